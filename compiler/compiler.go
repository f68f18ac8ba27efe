// Package compiler compiles a platform: CUE in, GitOps trees out. Compile is
// the pipeline from top to bottom; each step is a package of its own.
package compiler

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/evaluate/incremental"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
	"github.com/kalypso-io/kalypso/internal/worker"
)

// Request says what to compile.
type Request struct {
	// Dir is the platform's folder, or one below it.
	Dir string
	// Revision is a git revision of the platform to compile instead of what is in the
	// folder, as source.Checkout takes it; "" for the folder.
	Revision string
	// Environments are the names of those to compile; none means all.
	Environments []string
	// Previous returns the record of the output that exists of an environment, or
	// nil. What fails keeps its last good output, as the record describes it. It
	// may be nil, and may be called by several goroutines.
	Previous func(environment string) (*tree.Record, error)
	// AllowRemovals lets a build remove any number of assignments, or all; see
	// Environment.Removals.
	AllowRemovals bool
	// AllowEmpty are the scheduling policies, configs and config schemas, each by its name
	// or as <collection>.<name>, whose selectors may select nothing where they selected
	// something before; AllEmpty among them means all.
	AllowEmpty []string
	// destine says whether an environment's tree may be written, before Previous is
	// called; nil where all may.
	destine func(environment string, g *model.GitOps) (*diag.Diagnostic, error)
	// Cache remembers results between builds; nil for none. It never changes what
	// a build gives. The build's trees read from it, so that it must be open for as
	// long as they are used.
	Cache *cache.Cache
	// Store is the folder of the content that kalypso.lock pins, beside the platform's
	// own; "" for the user's.
	Store string
	// Workers render charts and overlays, and evaluate what registrations bring; nil
	// for in this process, which a chart that loops for ever would take with it. They
	// know the handlers of packages project and evaluate.
	Workers *worker.Pool
	// Source is what the one environment is compiled from, where Dir holds the files of
	// commits; nil where it is a folder that people work in.
	Source *tree.Source
	// Shard is the part of the cluster types to build; the zero Shard is all.
	Shard Shard
	// Ring is the part of the one environment to build, and Rings are all its parts; ""
	// for everything. A cluster type that the platform does not have any more is of the
	// ring that the record says.
	Ring  string
	Rings []model.Ring
	// Progress, if given, is told what the build is at, by several goroutines.
	Progress func(Progress)
}

// AllEmpty stands for all selectors in Request.AllowEmpty.
const AllEmpty = "*"

// Progress is how far a build has come with an environment.
type Progress struct {
	Environment string
	// Done and Total count assignments; both are 0 before they are known.
	Done, Total int
}

// Build is a compiled platform.
type Build struct {
	Platform *source.Platform
	// Stages are the environments that the base declares, sorted; nil where the
	// base cannot be read.
	Stages []model.Stage
	// Environments are those that were asked for, in the order of their names.
	Environments []*Environment
	// Diagnostics of all of it have positions and are sorted by them.
	Diagnostics []diag.Diagnostic
	// Stats say what was computed and what was reused; see Recount.
	Stats Stats

	meter    *meter
	library  *dependency.Library
	checkout *checkout // nil where the platform is a folder that people work in
}

// Close removes what was put together for the build, of commits. What the build's trees
// are made of is gone then.
func (b *Build) Close() error {
	if b == nil || b.checkout == nil {
		return nil
	}
	return b.checkout.remove()
}

// Failed says whether the platform has errors.
func (b *Build) Failed() bool { return diag.Errors(b.Diagnostics) }

// UnknownEnvironmentError says that the platform has no such environment.
type UnknownEnvironmentError struct {
	Name  string
	Known []string
}

// Error names the environment, and the one that was probably meant.
func (e *UnknownEnvironmentError) Error() string {
	s := fmt.Sprintf("there is no environment %s", e.Name)
	if hint := diag.DidYouMean(e.Name, e.Known); hint != "" {
		s += "; " + hint
	}
	return s
}

// Compile compiles environments of a platform. Errors of the platform are among
// the diagnostics; the error is about what cannot be read, or a request for
// what is not there.
func Compile(ctx context.Context, r Request) (*Build, error) {
	b, err := plan(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := b.finish(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// mostAttempts is how often a build begins anew where someone else changes what it
// reads or writes.
const mostAttempts = 3

// plan takes the environments through the pipeline up to what their assignments
// are configured by. Where files change while they are read, it begins anew.
func plan(ctx context.Context, r Request) (b *Build, err error) {
	for range mostAttempts {
		if b, err = planOnce(ctx, r); !errors.Is(err, incremental.ErrChanged) {
			break
		}
	}
	return b, err
}

// begin reads the base, of commits where that is asked for. It returns what evaluating
// it has to say as well, which is among the build's diagnostics.
func begin(ctx context.Context, r Request) (*Build, []diag.Diagnostic, error) {
	first, err := checkOutBase(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	b, said, err := beginIn(ctx, r, first)
	if err != nil {
		return nil, nil, err
	}
	whole, err := checkOut(ctx, r, b.Stages)
	if err != nil || whole == nil {
		return b, said, err
	}
	if err := b.Close(); err != nil {
		return nil, nil, errors.Join(err, whole.remove())
	}
	return beginIn(ctx, r, whole)
}

// checkOutBase puts the revision that a request names into a folder; nil where it names
// none.
func checkOutBase(ctx context.Context, r Request) (*checkout, error) {
	if r.Revision == "" {
		return nil, nil
	}
	return checkOut(ctx, r, nil)
}

// beginIn reads the base in the folder of a checkout; nil for the request's.
func beginIn(ctx context.Context, r Request, c *checkout) (*Build, []diag.Diagnostic, error) {
	b := &Build{checkout: c}
	if c != nil {
		r.Dir = c.dir
	}
	said, err := b.begin(ctx, r)
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	return b, said, nil
}

func (b *Build) begin(ctx context.Context, r Request) ([]diag.Diagnostic, error) {
	platform, ds, err := source.Open(r.Dir)
	if err != nil {
		return nil, err
	}
	contents, more, err := dependency.Open(platform.Root, r.Store)
	if err != nil {
		return nil, err
	}
	ds = append(ds, more...)
	if more, err = installModules(ctx, dependencies(platform.Root), contents); err != nil {
		return nil, err
	}
	for _, d := range more {
		ds = append(ds, d.In(model.Position{File: cuemodule.File, Line: 1, Column: 1}, ""))
	}
	meter := newMeter(r.Cache)
	stages, said, err := evaluate.Stages(ctx, platform, meter.packages())
	if err != nil {
		return nil, err
	}
	b.Platform, b.Stages, b.Diagnostics, b.meter, b.library = platform, stages, append(slices.Clone(ds), said...), meter, contents
	return said, nil
}

func planOnce(ctx context.Context, r Request) (*Build, error) {
	b, said, err := begin(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := b.plan(ctx, r, said); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Build) plan(ctx context.Context, r Request, said []diag.Diagnostic) error {
	names, err := b.environments(r.Environments)
	if err != nil {
		return err
	}
	for _, name := range names {
		b.Environments = append(b.Environments, &Environment{Name: name, platform: b.Platform.Module, ctx: ctx, request: &r, commits: b.checkout.commits(), meter: b.meter, library: b.library})
	}
	err = b.each(ctx, func(ctx context.Context, e *Environment) error {
		return e.plan(ctx, b.Platform, b.Stages, losesSome(said))
	})
	if err != nil {
		return err
	}
	b.checkPlaces()
	b.checkOwnBranch(r.Dir)
	if err := b.checkDestinations(r); err != nil {
		return err
	}
	return b.checkAllowEmpty(r.AllowEmpty)
}

// finish takes planned environments through the rest of the pipeline.
func (b *Build) finish(ctx context.Context) error {
	// One after the other, in their order: reading one keeps others from writing to it,
	// and two builds that did so in different orders would wait for each other for ever.
	for _, e := range b.Environments {
		if err := e.previous(); err != nil {
			return err
		}
	}
	err := b.each(ctx, func(ctx context.Context, e *Environment) error { return e.finish(ctx) })
	if err != nil {
		return err
	}
	for _, e := range b.Environments {
		b.Diagnostics = append(b.Diagnostics, e.diagnostics...)
	}
	b.Diagnostics = diag.Sort(withoutConsequences(b.Diagnostics))
	b.Stats = b.meter.stats()
	return nil
}

// withoutConsequences leaves out that sources are not in kalypso.lock, where the
// file cannot be read: correcting it is what is to be done.
func withoutConsequences(ds []diag.Diagnostic) []diag.Diagnostic {
	if !slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Code == diag.BadLock && d.Severity == diag.Error }) {
		return ds
	}
	return slices.DeleteFunc(ds, func(d diag.Diagnostic) bool { return d.Code == diag.NotLocked })
}

// Recount brings Stats up to date with what was read and written of the cache since:
// trees that are written read from it, and most results get there with its Flush.
func (b *Build) Recount() { b.Stats = b.meter.stats() }

// each calls a function for every environment, several at once.
func (b *Build) each(ctx context.Context, f func(context.Context, *Environment) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, e := range b.Environments {
		group.Go(func() error { return f(ctx, e) })
	}
	return group.Wait()
}

// environments returns those that were asked for, or all, sorted. Where the base
// cannot be read the folders say which there are.
func (b *Build) environments(asked []string) ([]string, error) {
	var known []string
	for _, s := range b.Stages {
		known = append(known, s.Name)
	}
	if b.Stages == nil {
		known = b.Platform.Folders
	}
	if len(asked) == 0 {
		return known, nil
	}
	for _, name := range asked {
		if !slices.Contains(known, name) {
			return nil, &UnknownEnvironmentError{name, known}
		}
	}
	names := slices.Sorted(slices.Values(asked))
	return slices.Compact(names), nil
}

// losesSome says whether something of any environment may be missing: a folder
// that is no environment may hold it.
func losesSome(ds []diag.Diagnostic) bool {
	return slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Code == diag.UndeclaredEnvironment })
}
