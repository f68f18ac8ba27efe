// Package compiler compiles a platform: CUE in, GitOps trees out. Compile is
// the pipeline from top to bottom; each step is a package of its own.
package compiler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/evaluate/incremental"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// allBackends are the backends, by their key in #Reconciler.
var allBackends = all.Backends()

// Request says what to compile.
type Request struct {
	// Dir is the platform's folder, or one below it.
	Dir string
	// Revision is a git revision of the platform to compile instead of what is in the
	// folder, as source.Checkout takes it; "" for the folder.
	Revision string
	// Overlay is text of the platform's files that is not in the folder, as an editor has it
	// before it is saved. It has no effect on a revision.
	Overlay source.Overlay
	// Environments are the names of those to compile; none means all.
	Environments []string
	// Except are those among them to leave out.
	Except []string
	// Previous are the records of the outputs that exist, by environment. What fails
	// keeps its last good output, as the record describes it.
	Previous map[string]*tree.Record
	// AllowRemovals lets a build remove any number of assignments, or all; see
	// Environment.Removals.
	AllowRemovals bool
	// AllowEmpty are the scheduling policies, configs and config schemas, each by its name
	// or as <collection>.<name>, whose selectors may select nothing where they selected
	// something before; AllEmpty among them means all.
	AllowEmpty []string
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
	// Supervisor bounds what the evaluation of the platform's own CUE may cost; nil for no
	// bounds.
	Supervisor *supervisor.Supervisor
	// Source is what the one environment is compiled from, where Dir holds the files of
	// commits; nil where it is a folder that people work in.
	Source *tree.Source
	// Shard is the part of the cluster types to build; the zero Shard is all.
	Shard engine.Shard
	// Ring is the part of the one environment to build, and Rings are all its parts; ""
	// for everything. A cluster type that the platform does not have any more is of the
	// ring that the record says.
	Ring  string
	Rings []model.Ring
	// Formerly are earlier names of the one environment, beside those that the platform says.
	Formerly []string
	// Members are the rings of cluster types that count instead of what their labels say; nil for none.
	Members map[string]string
	preview bool // whether a build that removes too much goes on
	// Progress, if given, is called with how far the build has come, by several goroutines.
	Progress func(engine.Progress)
}

// Build is a compiled platform.
type Build struct {
	Platform *source.Platform
	// Declarations are the environments that the base declares, sorted; nil where the
	// base cannot be read.
	Declarations []model.Declaration
	// Environments are those that were asked for, in the order of their names.
	Environments []*engine.Environment
	// Diagnostics of all of it have positions and are sorted by them.
	Diagnostics []diag.Diagnostic
	// Stats say what was computed and what was reused; see Recount.
	Stats engine.Stats

	meter    *engine.Meter
	library  *dependency.Library
	checkout *checkout // nil where the platform is a folder that people work in
	joined   []*Build
}

// Close removes what the build has in temporary files: what its trees are made of.
func (b *Build) Close() error {
	if b == nil {
		return nil
	}
	var errs []error
	for _, e := range b.Environments {
		errs = append(errs, e.Close())
	}
	if b.checkout != nil {
		errs = append(errs, b.checkout.remove())
	}
	for _, other := range b.joined {
		errs = append(errs, other.Close())
	}
	return errors.Join(errs...)
}

// Lock returns what kalypso.lock pins.
func (b *Build) Lock() *dependency.Lock { return b.library.Lock }

// Failed says whether the platform has errors.
func (b *Build) Failed() bool { return diag.Errors(b.Diagnostics) }

// UnknownEnvironmentError says that the platform has no such environment.
type UnknownEnvironmentError struct {
	Name  string
	Known []string
	// Diagnostics are those of the base where none is known: they say why.
	Diagnostics []diag.Diagnostic
}

// Error names the environment, and the one that was probably meant.
func (e *UnknownEnvironmentError) Error() string {
	s := fmt.Sprintf("there is no environment %s", e.Name)
	if hint := spelling.DidYouMean(e.Name, e.Known); hint != "" {
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
	if err := b.finish(ctx, r.Previous); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Evaluate evaluates environments of a platform, reads their inventories, and says what is
// assigned. Nothing is composed or emitted. Errors are as those of Compile.
func Evaluate(ctx context.Context, r Request) (*Build, error) {
	b, err := plan(ctx, r)
	if err != nil {
		return nil, err
	}
	b.gather()
	b.joinNoEffect()
	b.Diagnostics = diag.Sort(b.Diagnostics)
	return b, nil
}

// gather adds the diagnostics of environments that are planned to those of the build.
func (b *Build) gather() {
	for _, e := range b.Environments {
		if e.Model != nil {
			diag.Resolve(e.Diagnostics(), e.Model.Positions)
		}
		b.Diagnostics = append(b.Diagnostics, e.Diagnostics()...)
	}
}

// maxAttempts is how often a build begins anew where someone else changes what it
// reads or writes.
const maxAttempts = 3

// plan opens the platform, and takes the environments through the pipeline up to the
// configuration of their assignments. If files change while it reads them, it starts over.
func plan(ctx context.Context, r Request) (*Build, error) {
	for attempt := 1; ; attempt++ {
		b, ds, err := open(ctx, r)
		if err == nil {
			if err = b.addOwnFiles(ctx, r, ds); err == nil {
				err = b.planEnvironments(ctx, r, ds)
			}
			if err == nil {
				return b, nil
			}
			err = errors.Join(err, b.Close())
		}
		if attempt == maxAttempts || !errors.Is(err, incremental.ErrChanged) {
			return nil, err
		}
	}
}

// open opens the platform, at a revision if the request names one, and evaluates its base, once.
// It returns the diagnostics of the evaluation, which the build has too.
func open(ctx context.Context, r Request) (b *Build, ds []diag.Diagnostic, err error) {
	b = &Build{meter: engine.NewMeter(r.Cache, identity())}
	base, err := checkOutBase(ctx, r)
	if err == nil {
		err = b.read(ctx, r, base)
	}
	if err == nil {
		b.Declarations, ds, err = evaluate.Declarations(ctx, b.Platform,
			evaluate.Options{Cache: b.meter.Packages(), Supervisor: r.Supervisor})
	}
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	b.Diagnostics = append(b.Diagnostics, ds...)
	return b, ds, nil
}

// read opens the platform's files, and the content that kalypso.lock pins, in the folder of a
// checkout, or in the request's if that is nil.
func (b *Build) read(ctx context.Context, r Request, c *checkout) error {
	b.checkout = c
	if c != nil {
		r.Dir = c.dir
	}
	platform, ds, err := source.OpenOver(r.Dir, b.overlay(r))
	if err != nil {
		return err
	}
	contents, more, err := dependency.Open(platform.Root, r.Store)
	if err != nil {
		return err
	}
	ds = append(ds, more...)
	if more, err = installModules(ctx, dependencies(platform.Files()), contents); err != nil {
		return err
	}
	for _, d := range more {
		ds = append(ds, d.In(model.Position{File: cuemodule.File, Line: 1, Column: 1}, ""))
	}
	b.Platform, b.library, b.Diagnostics = platform, contents, ds
	return nil
}

// overlay returns what lies over the platform's files: of an environment that has its own
// files in a branch, not what is over those that the folder has in their place.
func (b *Build) overlay(r Request) source.Overlay {
	if r.Revision != "" {
		return nil
	}
	out := maps.Clone(r.Overlay)
	for _, s := range b.Declarations {
		if own := path.Join(source.Environments, s.Name) + "/"; s.Promotion.Source != nil {
			maps.DeleteFunc(out, func(name string, _ []byte) bool { return strings.HasPrefix(name, own) })
		}
	}
	return out
}

// addOwnFiles adds the environments' own files of other branches to the files of the base, and,
// with a revision, the commits of environments.
func (b *Build) addOwnFiles(ctx context.Context, r Request, ds []diag.Diagnostic) error {
	whole, err := checkOut(ctx, r, b.Declarations, b.checkout)
	if err != nil || whole == b.checkout {
		return err
	}
	if err := b.Close(); err != nil {
		return errors.Join(err, whole.remove())
	}
	if err := b.read(ctx, r, whole); err != nil {
		return err
	}
	b.Diagnostics = append(b.Diagnostics, ds...)
	return nil
}

// planEnvironments plans the environments of the request; ds are the diagnostics of the base.
func (b *Build) planEnvironments(ctx context.Context, r Request, ds []diag.Diagnostic) error {
	names, err := b.environments(r.Environments)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(r.Except, name) })
	of := &engine.Request{
		Platform: b.Platform, Declarations: b.Declarations, Backends: allBackends, Library: b.library,
		Registry: registry{b.library}, Meter: b.meter, Workers: r.Workers, Supervisor: r.Supervisor,
		Source: r.Source, Sources: b.checkout.commits(), Shard: r.Shard, Ring: r.Ring, Rings: r.Rings,
		Members: r.Members, Formerly: r.Formerly,
		AllowRemovals: r.AllowRemovals, AllowEmpty: r.AllowEmpty, Preview: r.preview,
		Progress: r.Progress, Incomplete: losesSome(ds),
	}
	b.Environments = make([]*engine.Environment, len(names))
	if err := each(ctx, names, func(ctx context.Context, i int) (err error) {
		b.Environments[i], err = engine.Plan(ctx, names[i], of)
		return err
	}); err != nil {
		return err
	}
	b.checkPlaces()
	b.checkOwnBranch(r.Dir)
	return b.checkAllowEmpty(r.AllowEmpty)
}

// finish takes planned environments through the rest of the pipeline. previous are the
// records of their outputs.
func (b *Build) finish(ctx context.Context, previous map[string]*tree.Record) error {
	err := each(ctx, b.Environments, func(ctx context.Context, i int) error {
		return b.Environments[i].Build(ctx, previous[b.Environments[i].Name])
	})
	if err != nil {
		return err
	}
	for _, e := range b.Environments {
		b.Diagnostics = append(b.Diagnostics, e.Diagnostics()...)
	}
	b.warnOfMoves(previous)
	b.warnOfNoTargets()
	b.joinNoEffect()
	b.Diagnostics = diag.Sort(withoutConsequences(b.Diagnostics))
	b.Platform.Quote(b.Diagnostics)
	b.Stats = b.meter.Stats()
	return nil
}

// withoutConsequences leaves out that sources are not in kalypso.lock, where the
// file cannot be read: correcting it is what is to be done.
func withoutConsequences(ds []diag.Diagnostic) []diag.Diagnostic {
	if !slices.ContainsFunc(ds,
		func(d diag.Diagnostic) bool { return d.Code == diag.BadLock && d.Severity == diag.Error }) {
		return ds
	}
	return slices.DeleteFunc(ds, func(d diag.Diagnostic) bool { return d.Code == diag.NotLocked })
}

// Recount brings Stats up to date with what was read and written of the cache since:
// trees that are written read from it, and most results get there with its Flush.
func (b *Build) Recount() {
	b.Stats = b.meter.Stats()
	for _, other := range b.joined {
		other.Recount()
		b.Stats.Add(other.Stats)
	}
}

// Join adds another build of the same platform, of other environments, which is closed with b.
func (b *Build) Join(other *Build) {
	b.joined = append(b.joined, other)
	b.Stats.Add(other.Stats)
	b.Diagnostics = diag.Sort(append(b.Diagnostics, other.Diagnostics...))
	b.Environments = append(b.Environments, other.Environments...)
	other.Environments = nil // they are closed once
	slices.SortFunc(b.Environments, func(x, y *engine.Environment) int { return strings.Compare(x.Name, y.Name) })
}

// each calls a function for the number of each of some environments, several at once.
func each[E any](ctx context.Context, of []E, f func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range of {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}

// environments returns those that were asked for, or all, sorted. Where the base
// cannot be read the folders say which there are.
func (b *Build) environments(asked []string) ([]string, error) {
	var known []string
	for _, s := range b.Declarations {
		known = append(known, s.Name)
	}
	if b.Declarations == nil {
		known = b.Platform.Folders
	}
	if len(asked) == 0 {
		return known, nil
	}
	for _, name := range asked {
		if !slices.Contains(known, name) {
			unknown := &UnknownEnvironmentError{Name: name, Known: known}
			if len(known) == 0 {
				unknown.Diagnostics = diag.Sort(b.Diagnostics)
				b.Platform.Quote(unknown.Diagnostics)
			}
			return nil, unknown
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
