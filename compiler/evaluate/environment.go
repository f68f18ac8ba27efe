// Package evaluate turns a platform's CUE into the model.
//
// One environment is one CUE package. It is evaluated in parts where that cannot
// be told from evaluating it at once: each part is some of its files, evaluated
// in a context of its own that is dropped when its model is made; only what is a
// function of the assignment keeps it. What a part gave is remembered by a digest
// of all that can change it, so that after an edit little is evaluated.
//
// An error stays with its entity, which is then sick and absent from the model,
// unless it hides which entities there are: then the environment is evaluated in
// one piece, and is uncertain, or nothing of it is readable at all.
package evaluate

import (
	"context"
	"slices"
	"sync"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/worker"
)

// Package is an evaluated environment.
type Package struct {
	// Model is nil where nothing of the environment is readable.
	Model *model.Environment
	// Base and Own identify the files that the model was made of: those of the
	// environment's own folder, and all others.
	Base, Own model.Digest

	// Stats say how much was evaluated.
	Stats Stats

	// For functions of the assignment:
	evaluation *evaluation
	mu         sync.Mutex
	loaded     map[int]*loaded // the parts that are
	registered map[model.Ref]*Evaluation
}

// Options are what the evaluation of an environment may use.
type Options struct {
	// Cache remembers what was evaluated, which is not evaluated again. The result
	// is the same without it.
	Cache Cache
	// Registry has what registrations refer to; without it they are all unknown.
	Registry Registry
	// Workers evaluate what registrations bring; nil for in this process, which a
	// comprehension without an end would take with it. They know Handler under
	// HandlerName.
	Workers *worker.Pool
}

// Environment evaluates an environment of the platform. Diagnostics have
// positions or references into Model.Positions. The error is about files that
// cannot be read.
//
// stages are the environments that the base declares; nil where it cannot be
// read.
func Environment(ctx context.Context, p *source.Platform, name string, stages []Stage, o Options) (*Package, []diag.Diagnostic, error) {
	if !p.HasBase() || !p.Loadable(name) {
		return &Package{}, nil, nil // Stages or source.Open has reported it
	}
	return newEnvironment(ctx, p, name, o.Cache).environment(stages, Evaluator{o.Registry, o.Workers})
}

func newEnvironment(ctx context.Context, p *source.Platform, name string, c Cache) *evaluation {
	return &evaluation{ctx: ctx, platform: p, name: name, dir: p.Dir(name), cache: c, least: batchEntities,
		export: func(x *exporter) *Result { return x.environment(name) }}
}

func (e *evaluation) environment(stages []Stage, g Evaluator) (*Package, []diag.Diagnostic, error) {
	r, ds, err := e.evaluate()
	if r == nil || err != nil {
		return &Package{}, ds, err
	}
	// Who asks for positions must not keep CUE's values alive.
	pkg := &Package{Stats: e.stats, evaluation: e, loaded: e.loaded}
	e.loaded = nil
	pkg.Base, pkg.Own = digests(e.sources, e.dir)
	x := newExporter(nil)
	x.resume(r, e.positions(r))
	if e.platform.Hides(e.name) {
		x.hideAll(e.name)
	}
	if pkg.registered, err = e.register(x, &r.Model, g); err != nil {
		return nil, nil, err
	}
	x.checkMany()
	x.checkOwnStages(stages, e.name)
	x.checkOwnRings(stages, &r.Model)
	pkg.Model = x.finish(&r.Model)
	return pkg, x.ds, nil
}

// resume takes up what was exported where it ended.
func (x *exporter) resume(r *Result, positions *model.Positions) {
	x.positions, x.invalid, x.incomplete = positions, r.Invalid, r.Incomplete
	for _, t := range r.Reported {
		x.ds, x.about = append(x.ds, t.Diagnostic), append(x.about, t.About)
	}
	x.entities, x.uses = r.Entities, r.Uses
}

// finish checks what needs all entities at once.
func (x *exporter) finish(env *model.Environment) *model.Environment {
	x.checkReferences(env)
	for ref := range x.invalid {
		switch ref.Collection {
		case "clusterTypes", "workloads", "schedulingPolicies", "registrations":
			x.incomplete = true
		}
	}
	env.Positions, env.Invalid, env.Incomplete = x.positions, x.invalid, x.incomplete
	return env
}

// hideAll marks the whole environment as not known: what it has may be in part
// in what cannot be read, configs included, so that its output stays as it is.
func (x *exporter) hideAll(environment string) {
	x.invalid[model.Ref{Collection: "environments", Name: environment}] = true
	x.incomplete = true
}

func hasFunctions(m *model.Environment) bool {
	return slices.ContainsFunc(m.Configs, func(c model.Config) bool { return c.Facts != nil }) ||
		slices.ContainsFunc(m.NamespaceServices, func(s model.NamespaceService) bool { return s.Facts != nil }) ||
		slices.ContainsFunc(m.Reconcilers, func(r model.Reconciler) bool { return r.Facts != nil })
}

// environment exports the model.
func (x *exporter) environment(name string) *Result {
	x.checkEmbeds(name)
	x.checkCollections(name)
	env := model.Environment{Name: name}
	x.gitOps(&env)
	env.ClusterTypes = x.clusterTypes()
	env.Clusters = x.clusters()
	env.Workloads = x.workloads(name)
	env.SchedulingPolicies = x.schedulingPolicies()
	env.Configs = x.configs()
	env.ConfigSchemas = x.configSchemas()
	env.NamespaceServices = x.namespaceServices()
	env.Reconcilers = x.reconcilers()
	env.Registrations = x.registrations()
	return x.result(env, nil)
}

// part is what was exported.
func (x *exporter) result(env model.Environment, stages []Stage) *Result {
	slices.SortFunc(x.entities, compareEntities)
	p := &Result{Model: env, Entities: x.entities, Uses: x.uses, Stages: stages, Invalid: x.invalid, Incomplete: x.incomplete}
	p.Clean = !x.incomplete
	for i, d := range x.ds {
		p.Clean = p.Clean && x.about[i] != model.Ref{}
		p.Reported = append(p.Reported, reported{x.about[i], d})
	}
	return p
}

// tooMany is the number of fields from which on CUE's time for one struct grows
// with its square.
const tooMany = 10_000

// each calls f for every healthy entity of a collection, sorted by name.
func (x *exporter) each(collection string, f func(v cue.Value, ref model.Ref)) {
	type entity struct {
		name  string
		value cue.Value
	}
	var all []entity
	for name, v := range fields(field(x.value, collection)) {
		ref := model.Ref{Collection: collection, Name: name}
		if x.wants == nil || x.wants(ref) {
			all = append(all, entity{name, v})
			x.entities = append(x.entities, ref)
		}
	}
	slices.SortFunc(all, func(a, b entity) int { return compareNames(a.name, b.name) })
	if x.undeclared[collection] {
		return
	}
	s := entityShape(collection)
	defer func() { x.exported = model.Ref{} }()
	for _, e := range all {
		ref := model.Ref{Collection: collection, Name: e.name}
		x.exported = ref
		for _, p := range x.written(e.value) {
			x.positions.Add(ref, p)
		}
		if !isName(e.name) {
			x.fail(ref, badName(e.name))
			continue
		}
		if isUnknown(e.value) && !e.value.LookupPath(assignmentPath).Exists() {
			x.unknown(e.value, ref)
			continue
		}
		healthy := false
		x.guard(ref, func() { healthy = x.check(e.value, s, ref) })
		if healthy || collection == "configs" || collection == "configSchemas" || collection == "workloads" {
			x.guard(ref, func() { f(e.value, ref) })
		}
	}
}
