// Package evaluate turns a platform's CUE into the model.
//
// One environment is one CUE package, evaluated in a context of its own that is
// dropped when its model is made; only what is a function of the assignment
// keeps it. An error stays with its entity, which is then sick and absent from
// the model, unless it hides which entities there are: then the environment is
// uncertain, or nothing of it is readable at all.
package evaluate

import (
	"context"
	"slices"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// Package is an evaluated environment.
type Package struct {
	// Model is nil where nothing of the environment is readable.
	Model *model.Environment
	// Base and Own identify the files that the model was made of: those of the
	// environment's own folder, and all others.
	Base, Own model.Digest

	loaded *loaded // kept for functions of the assignment; nil where there are none
}

// Environment evaluates an environment of the platform. Diagnostics have
// positions or references into Model.Positions. The error is about files that
// cannot be read.
func Environment(ctx context.Context, p *source.Platform, name string) (*Package, []diag.Diagnostic, error) {
	l, ds, err := loadPackage(ctx, p, p.Dir(name))
	if l == nil || err != nil {
		return &Package{}, ds, err
	}
	pkg := &Package{}
	if pkg.Base, pkg.Own, err = l.digests(p.Dir(name)); err != nil {
		return nil, nil, err
	}
	x := &exporter{loaded: l, positions: model.Positions{}, sick: map[model.Ref]bool{}}
	pkg.Model = x.environment(name)
	if hasFunctions(pkg.Model) {
		pkg.loaded = l
	}
	return pkg, x.ds, nil
}

func hasFunctions(m *model.Environment) bool {
	return slices.ContainsFunc(m.Configs, func(c model.Config) bool { return c.Facts != nil }) ||
		slices.ContainsFunc(m.NamespaceServices, func(s model.NamespaceService) bool { return s.Facts != nil }) ||
		slices.ContainsFunc(m.Reconcilers, func(r model.Reconciler) bool { return r.Facts != nil })
}

// Stage is an environment as the platform's base declares it.
type Stage struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	After       []string `json:"after"`
}

// Stages evaluates the platform's base, and returns the environments that it
// declares, sorted by name; nil where nothing of the base is readable.
func Stages(ctx context.Context, p *source.Platform) ([]Stage, []diag.Diagnostic, error) {
	l, ds, err := loadPackage(ctx, p, ".")
	if l == nil || err != nil {
		return nil, ds, err
	}
	x := &exporter{loaded: l, positions: model.Positions{}, sick: map[model.Ref]bool{}}
	stages := []Stage{}
	x.each("environments", func(v cue.Value, ref model.Ref) {
		s := Stage{Name: ref.Name}
		if value, ok := x.data(v, ref); ok {
			decode(value, &s)
		}
		stages = append(stages, s)
	})
	x.checkStages(p, stages)
	diag.Resolve(x.ds, x.positions)
	return stages, x.ds, nil
}

// environment exports the whole model.
func (x *exporter) environment(name string) *model.Environment {
	x.checkCollections()
	env := &model.Environment{Name: name, Positions: x.positions, Sick: x.sick}
	x.gitOps(env)
	env.ClusterTypes = x.clusterTypes()
	env.Clusters = x.clusters()
	env.Workloads = x.workloads(name)
	env.SchedulingPolicies = x.schedulingPolicies()
	env.Configs = x.configs()
	env.ConfigSchemas = x.configSchemas()
	env.NamespaceServices = x.namespaceServices()
	env.Reconcilers = x.reconcilers()
	x.registrations()
	x.checkReferences(env)
	for ref := range x.sick {
		switch ref.Collection {
		case "clusterTypes", "workloads", "schedulingPolicies":
			x.uncertain = true
		}
	}
	env.Uncertain = x.uncertain
	return env
}

// checkCollections reports top-level fields that are no collection, and
// collections of which CUE does not know all entities.
func (x *exporter) checkCollections() {
	it, err := x.value.Fields()
	if err != nil {
		x.incomplete(err)
		return
	}
	names := collectionNames()
	for it.Next() {
		name := it.Selector().Unquoted()
		if slices.Contains(names, name) {
			continue
		}
		d := diag.New(diag.UnknownCollection, "unknown top-level field "+name).On(name).Hinting(diag.DidYouMean(name, names))
		for _, p := range x.written(it.Value()) {
			d = d.In(p, "")
		}
		x.report(d)
		x.uncertain = true
	}
	for _, c := range names {
		coll := x.value.LookupPath(cue.MakePath(cue.Str(c)))
		if !coll.Exists() {
			continue
		}
		if _, conjuncts := coll.Expr(); len(conjuncts) > 1 {
			for _, conjunct := range conjuncts {
				if err := conjunct.Err(); err != nil {
					x.incomplete(err)
				}
			}
		}
	}
	if err := x.value.Validate(cue.Concrete(true)); err != nil {
		x.incomplete(err)
	}
}

// incomplete reports the errors that say that CUE left entities out: those of a
// whole collection, or of the package itself.
func (x *exporter) incomplete(err error) {
	for _, o := range x.problems(err) {
		if len(o.path) > 1 {
			continue
		}
		d := diag.New(diag.Incomplete, "which entities there are is not known: "+plain(o.messages[0])).On(joinPath(o.path)).
			Hinting("give the value that the comprehension or field name depends on")
		for _, p := range o.at {
			d = d.In(p, "")
		}
		if !slices.ContainsFunc(x.ds, func(e diag.Diagnostic) bool { return e.Message == d.Message && slices.Equal(e.Sites, d.Sites) }) {
			x.report(d)
		}
		x.uncertain = true
	}
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
		all = append(all, entity{name, v})
	}
	slices.SortFunc(all, func(a, b entity) int { return compareNames(a.name, b.name) })
	if len(all) > tooMany {
		x.report(diag.New(diag.ManyEntities, "CUE becomes slow with so many entities in one collection").On(collection).
			At(model.Ref{Collection: collection, Name: all[0].name}, ""))
	}
	s := entityShape(collection)
	for _, e := range all {
		ref := model.Ref{Collection: collection, Name: e.name}
		for _, p := range x.written(e.value) {
			x.positions.Add(ref, p)
		}
		if !isName(e.name) {
			d := diag.New(diag.BadName, "the name "+e.name+" is not a DNS label").On(ref.String()).
				Hinting("use at most 63 lower case letters, digits and dashes")
			x.fail(ref, d)
			continue
		}
		if x.check(e.value, s, ref) || collection == "configs" || collection == "configSchemas" || collection == "workloads" {
			f(e.value, ref)
		}
	}
}
