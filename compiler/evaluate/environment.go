// Package evaluate turns CUE into the model. It evaluates an environment of a platform or its
// base, and an application's repository: its own file and its values.
//
// An environment is one CUE package. Package incremental evaluates its parts that are not in
// the cache. Package export turns the CUE values into the model. Package registration adds the
// entities that registrations provide. The checks that need all entities come last.
//
// An error affects only its entity, which is then invalid and missing from the model. If an
// error hides which entities exist, the environment is evaluated in one piece, and is either
// incomplete or entirely unreadable.
//
// For example, examples/hello-world declares a config in configs.cue:
//
//	configs: everywhere: {match: {}, values: GREETING: "Hello, world"}
//
// The model of environment dev has it as a [model.Config] with the name "everywhere", and its
// positions have configs.everywhere.values.GREETING at a line of configs.cue.
package evaluate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/evaluate/incremental"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/evaluate/registration"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// Package is an evaluated environment. It keeps the CUE values of entities that are
// functions of the assignment, for Apply.
type Package struct {
	// Model is nil if the environment is unreadable.
	Model *model.Environment
	// Base and Own identify the source files of the model: Own the files in the
	// environment's own folder, and Base all other files.
	Base, Own model.Digest

	// Stats count the evaluated units.
	Stats incremental.Stats

	// For functions of the assignment:
	mu         sync.Mutex
	functions  *incremental.Functions
	registered map[model.Ref]*registration.Evaluation // the evaluations of registrations
}

// Cache stores results of evaluations. It never changes a result.
type Cache = memo.Cache

// Options are the resources for the evaluation of an environment.
type Options struct {
	// Cache has results of earlier evaluations; nil to evaluate everything.
	Cache Cache
	// Registry resolves registrations; if it is nil, all registrations are unknown.
	Registry registration.Registry
	// Workers evaluate the packages of registrations, with registration.Handler. If it is nil,
	// this process evaluates them, and an endless comprehension never ends.
	Workers *worker.Pool
	// Supervisor bounds the evaluation; nil for no bounds.
	Supervisor *supervisor.Supervisor
}

// Environment evaluates an environment of the platform. Diagnostics have positions or
// references into Model.Positions. The error reports files that cannot be read.
//
// declarations are the environments that the base declares; nil if the base cannot be read.
func Environment(ctx context.Context, p *source.Platform, name string,
	declarations []model.Declaration, o Options) (*Package, []diag.Diagnostic, error) {
	if !p.HasBase() || !p.Loadable(name) {
		return &Package{}, nil, nil // Declarations or source.Open has reported it
	}
	e := incremental.New(p, name, o.Cache)
	e.Supervisor, e.Bounds = o.Supervisor, boundsOf(declarations, name)
	return evaluateEnvironment(ctx, e, declarations, o)
}

func evaluateEnvironment(ctx context.Context, e *incremental.Evaluation,
	declarations []model.Declaration, o Options) (*Package, []diag.Diagnostic, error) {
	r, ds, err := e.Evaluate(ctx)
	if r == nil || err != nil {
		return &Package{}, ds, err
	}
	pkg := &Package{Stats: e.Stats, functions: e.Functions()}
	pkg.Base, pkg.Own = e.Digests()
	x := r.Resume(e.Positions(r))
	if e.Platform.Hides(e.Name) {
		x.HideAll(e.Name)
	}
	registrations := &registration.Evaluator{Environment: e.Name, Cache: o.Cache, Registry: o.Registry,
		Workers: o.Workers}
	if pkg.registered, err = registrations.Register(ctx, x, &r.Model); err != nil {
		return nil, nil, err
	}
	x.Many()
	s := &check.Declarations{Entities: x}
	s.Own(declarations, e.Name)
	s.OwnRings(declarations, &r.Model)
	x.References(&r.Model)
	pkg.Model = x.Finish(&r.Model)
	return pkg, x.Diagnostics, nil
}

// Apply evaluates functions of assignments. Outcomes are in the order of calls. Apply evaluates
// only the units of the environment that have the entities, and each of them only once. Several
// goroutines may call it, but only one works at a time.
func (p *Package) Apply(ctx context.Context, calls []function.Call) ([]function.Outcome, error) {
	if p.functions == nil {
		return nil, fmt.Errorf("an environment that cannot be read has no functions of the assignment")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]function.Outcome, len(calls))
	theirs := map[model.Ref][]int{} // functions of registrations -> calls
	for i, c := range calls {
		if p.registered[c.Entity] != nil {
			theirs[c.Entity] = append(theirs[c.Entity], i)
			continue
		}
		if err := p.functions.Call(ctx, c.Entity,
			func(l *loader.Package) { out[i] = export.Apply(l, c) }); err != nil {
			return nil, err
		}
	}
	for entity, numbers := range theirs {
		of := make([]function.Call, len(numbers))
		for n, i := range numbers {
			of[n] = calls[i]
		}
		made, err := p.registered[entity].Call(ctx, of)
		if err != nil {
			return nil, err
		}
		for n, i := range numbers {
			out[i] = made[n]
		}
	}
	return out, nil
}

// noBase returns the diagnostic that the root of a module has no files of a platform.
func noBase(p *source.Platform) diag.Diagnostic {
	d := diag.New(diag.Module,
		"there are no files of package "+source.Package+" at the platform's root").
		In(model.Position{File: "cue.mod/module.cue", Line: 1, Column: 1}, "")
	if p.Module == kalypso.ModulePath {
		return d.Hinting("this is the repository of kalypso, and no platform: name one of its " +
			"examples, as with -C examples/hello-world, or run kalypso in a platform")
	}
	return d.Hinting("declare the collections there, in a file that begins with: package " +
		source.Package + "; or let kalypso init DIR write a platform into a new folder")
}

// noEnvironments warns that a platform or an application has no environments. at is the file
// that the hint is about.
func noEnvironments(at model.Position, hint string) diag.Diagnostic {
	return diag.New(diag.NoEnvironments, "there are no environments, so there is nothing to do").In(at,
		"").Hinting(hint)
}

// Declarations evaluates the platform's base, and returns the environments that it declares,
// sorted by name. It returns nil if the base is unreadable.
func Declarations(ctx context.Context, p *source.Platform, o Options) ([]model.Declaration,
	[]diag.Diagnostic, error) {
	if !p.HasBase() && p.Hides("") || !p.Loadable("") {
		return nil, nil, nil // source.Open has reported why the base is unusable
	}
	if !p.HasBase() && p.Module != "" {
		return nil, []diag.Diagnostic{noBase(p)}, nil
	}
	e := incremental.New(p, "", o.Cache)
	e.Supervisor = o.Supervisor
	r, ds, err := e.Evaluate(ctx)
	if e.Tripped() {
		p.Bar() // each environment includes the base
	}
	if r == nil || err != nil {
		return nil, ds, err
	}
	x := r.Resume(e.Positions(r))
	if r.Declarations != nil {
		x.Many()
		s := &check.Declarations{Entities: x}
		s.Folders(p)
		s.Declared(r.Declarations)
		diag.Resolve(x.Diagnostics, x.Positions)
		if len(r.Declarations) == 0 && !diag.Errors(x.Diagnostics) && !p.Hides("") {
			x.Diagnostics = append(x.Diagnostics, noEnvironments(p.FirstFile(""),
				"declare one, as in: environments: dev: {}; docs/tutorial.md says what else it needs"))
		}
	}
	return r.Declarations, x.Diagnostics, nil
}

// boundsOf returns the bounds that the base declares for an environment; zero if it declares no
// bounds.
func boundsOf(declarations []model.Declaration, name string) (b supervisor.Bounds) {
	i := slices.IndexFunc(declarations, func(s model.Declaration) bool { return s.Name == name })
	if i < 0 {
		return b
	}
	// The schema has checked both values, so an unreadable value is too large.
	var err error
	if text := declarations[i].Evaluation.CPU; text != "" {
		if b.CPU, err = time.ParseDuration(text); err != nil {
			b.CPU = math.MaxInt64
		}
	}
	if text := declarations[i].Evaluation.Memory; text != "" {
		b.Memory = math.MaxInt64
		if q, err := resource.ParseQuantity(text); err == nil {
			b.Memory = q.Value()
		}
	}
	return b
}
