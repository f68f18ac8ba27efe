// Package compiler compiles a platform: it reads CUE and makes GitOps trees. Compile is the whole
// pipeline. Each step is a package of its own.
//
// For example, Compile gets this request:
//
//	Request{Dir: "examples/hello-world", Environments: []string{"dev"}}
//
// It returns a Build with the [engine.Environment] dev. Its Tree has the cluster types drone, large
// and small. In the file drone/hello-world-functional-test/platform-config.yaml, the ConfigMap has
// LOG_LEVEL: warn. This value comes from the defaults of config edge in configs.cue.
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

// Request describes the platform and the environments to compile.
type Request struct {
	// Dir is the platform's folder, or a folder below it.
	Dir string
	// Revision is a git revision of the platform to compile instead of the folder, in the form of
	// source.Checkout; "" for the folder.
	Revision string
	// Overlay has text of the platform's files that replaces the text in the folder, such as
	// unsaved text in an editor. It has no effect on a revision.
	Overlay source.Overlay
	// Environments are the names of the environments to compile; none means all.
	Environments []string
	// Except are the names of environments to leave out.
	Except []string
	// Previous are the records of existing outputs, by environment. Parts that fail keep their
	// last good output, as the record describes it.
	Previous map[string]*tree.Record
	// AllowRemovals allows a build to remove any number of assignments, or all of them; see
	// Environment.Removals.
	AllowRemovals bool
	// AllowEmpty names scheduling policies, configs and config schemas, each by its name or as
	// <collection>.<name>. Their selectors may select nothing, even if they selected something
	// before. AllEmpty stands for all names.
	AllowEmpty []string
	// Cache remembers results between builds; nil for no cache. It never changes the result of a
	// build. The build's trees read from it, so it must stay open as long as they are used.
	Cache *cache.Cache
	// Store is the folder for content that kalypso.lock pins, in addition to the platform's own
	// folder; "" for the user's folder.
	Store string
	// Workers render charts and overlays, and evaluate the files of registrations. nil means in
	// this process, which then hangs if a chart loops forever. The workers need the handlers of
	// packages project and evaluate.
	Workers *worker.Pool
	// Supervisor limits the cost of evaluating the platform's own CUE; nil for no limits.
	Supervisor *supervisor.Supervisor
	// Source is the source of the only environment, if Dir has the files of commits; nil if Dir
	// is a working folder.
	Source *tree.Source
	// Shard is the part of the cluster types to build; the zero Shard is all of them.
	Shard engine.Shard
	// Ring is the ring of the only environment to build, or "" to build all of it. Rings are all
	// rings of the environment. A cluster type that has left the platform is in its recorded
	// ring.
	Ring  string
	Rings []model.Ring
	// Formerly are earlier names of the only environment, in addition to those in the platform.
	Formerly []string
	// Members are rings of cluster types, which take precedence over labels; nil for labels only.
	Members map[string]string
	preview bool // whether a build continues although it removes too much
	// Progress, if not nil, is called with the progress of the build, by several goroutines.
	Progress func(engine.Progress)
}

// Build is a compiled platform.
type Build struct {
	Platform *source.Platform
	// Declarations are the environments that the base declares, sorted by name; nil if the base
	// cannot be read.
	Declarations []model.Declaration
	// Environments are the requested environments, sorted by name.
	Environments []*engine.Environment
	// Diagnostics are about the whole build. They have positions and are sorted by them.
	Diagnostics []diag.Diagnostic
	// Stats count the computed and the reused results; see Recount.
	Stats engine.Stats

	meter    *engine.Meter
	library  *dependency.Library
	checkout *checkout // nil if the platform is a working folder
	joined   []*Build
}

// Close removes the temporary files of the build, which its trees read.
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

// Lock returns the pins of kalypso.lock.
func (b *Build) Lock() *dependency.Lock { return b.library.Lock }

// Failed reports whether the platform has errors.
func (b *Build) Failed() bool { return diag.Errors(b.Diagnostics) }

// UnknownEnvironmentError is returned if the platform has no environment with the given name.
type UnknownEnvironmentError struct {
	Name  string
	Known []string
	// Diagnostics are the diagnostics of the base if it has no environments: they explain why.
	Diagnostics []diag.Diagnostic
}

// Error names the environment, and the known name that was probably meant.
func (e *UnknownEnvironmentError) Error() string {
	s := fmt.Sprintf("there is no environment %s", e.Name)
	if hint := spelling.DidYouMean(e.Name, e.Known); hint != "" {
		s += "; " + hint
	}
	return s
}

// Compile compiles environments of a platform. It reports errors of the platform as diagnostics.
// It returns an error if it cannot read a file, or if the request names something that does not
// exist.
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

// Evaluate evaluates environments of a platform, reads their inventories, and schedules the
// assignments. It does not compose or emit anything. Its errors are as in Compile.
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

// gather adds the diagnostics of planned environments to the diagnostics of the build.
func (b *Build) gather() {
	for _, e := range b.Environments {
		if e.Model != nil {
			diag.Resolve(e.Diagnostics(), e.Model.Positions)
		}
		b.Diagnostics = append(b.Diagnostics, e.Diagnostics()...)
	}
}

// maxAttempts is the number of attempts of a build if someone else changes its input or its
// output in the meantime.
const maxAttempts = 3

// plan opens the platform and plans the environments, up to the configuration of their
// assignments. If files change while it reads them, it starts over.
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

// open opens the platform, at a revision if the request has one, and evaluates its base. It
// returns the diagnostics of the evaluation, which the build has too.
func open(ctx context.Context, r Request) (b *Build, ds []diag.Diagnostic, err error) {
	b = &Build{meter: NewMeter(r.Cache)}
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

// read opens the platform's files, and the content that kalypso.lock pins. It uses the folder of
// the checkout, or the request's folder if the checkout is nil.
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

// overlay returns the overlay of the platform's files. If an environment has its own files in a
// branch, overlay leaves out the text for the files that the folder has in their place.
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

// addOwnFiles adds the environments' own files from other branches to the files of the base. With
// a revision, it also adds the commits of the environments.
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

// planEnvironments plans the environments of the request. ds are the diagnostics of the base.
func (b *Build) planEnvironments(ctx context.Context, r Request, ds []diag.Diagnostic) error {
	names, err := b.environments(r.Environments)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(slices.Clone(names),
		func(name string) bool { return slices.Contains(r.Except, name) })
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

// finish builds the planned environments. previous are the records of their outputs, by
// environment.
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

// withoutConsequences drops the errors about sources that are missing in kalypso.lock if the file
// cannot be read. The user has to correct the file first.
func withoutConsequences(ds []diag.Diagnostic) []diag.Diagnostic {
	if !slices.ContainsFunc(ds,
		func(d diag.Diagnostic) bool { return d.Code == diag.BadLock && d.Severity == diag.Error }) {
		return ds
	}
	return slices.DeleteFunc(ds, func(d diag.Diagnostic) bool { return d.Code == diag.NotLocked })
}

// Recount updates Stats with the later uses of the cache. Trees read from the cache when they are
// written, and most results get there only with its Flush.
func (b *Build) Recount() {
	b.Stats = b.meter.Stats()
	for _, other := range b.joined {
		other.Recount()
		b.Stats.Add(other.Stats)
	}
}

// Join adds another build of the same platform, with other environments. b.Close closes it too.
func (b *Build) Join(other *Build) {
	b.joined = append(b.joined, other)
	b.Stats.Add(other.Stats)
	b.Diagnostics = diag.Sort(append(b.Diagnostics, other.Diagnostics...))
	b.Environments = append(b.Environments, other.Environments...)
	other.Environments = nil // b closes them
	slices.SortFunc(b.Environments,
		func(x, y *engine.Environment) int { return strings.Compare(x.Name, y.Name) })
}

// each calls f for the number of each element, concurrently. It returns the first error.
func each[E any](ctx context.Context, of []E, f func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range of {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}

// environments returns the requested environments, or all environments, sorted by name. If the
// base cannot be read, the names of the folders are the environments.
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

// losesSome reports whether parts of environments may be missing, because they may be in a folder
// of an undeclared environment.
func losesSome(ds []diag.Diagnostic) bool {
	return slices.ContainsFunc(ds,
		func(d diag.Diagnostic) bool { return d.Code == diag.UndeclaredEnvironment })
}
