package evaluate

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// exporter turns the CUE values of one package into the model, entity by entity. It
// notes where everything is written, and what is wrong.
type exporter struct {
	*scope
	read        *reader
	shapes      *checker
	contracts   *contracts
	selectors   *selectors
	trees       *trees
	policies    *policies
	collections *collectionChecker
	found       *entities

	// wants says which entities to export; nil for all.
	wants func(model.Ref) bool
	// published are the workloads that are Workloads of the Kalypso scheduler.
	published map[string]bool
}

func newExporter(l *loaded) *exporter {
	s := &scope{l, newFindings()}
	read, c := &reader{s}, &contracts{s}
	of := &selectors{read}
	return &exporter{
		scope: s, read: read, shapes: &checker{s}, contracts: c, selectors: of, trees: &trees{read},
		policies: &policies{read, of, c}, collections: &collectionChecker{read, map[string]bool{}}, found: &entities{findings: s.findings},
	}
}

// environment exports the model.
func (x *exporter) environment(name string) *Result {
	x.collections.checkEmbeds(name)
	x.collections.checkCollections(name)
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

// result is what was exported.
func (x *exporter) result(env model.Environment, stages []model.Stage) *Result {
	slices.SortFunc(x.found.all, model.CompareEntities)
	r := &Result{Model: env, Entities: x.found.all, Uses: x.found.uses, Stages: stages, Invalid: x.invalid, Incomplete: x.incomplete}
	r.Clean = !x.incomplete
	for i, d := range x.ds {
		r.Clean = r.Clean && x.about[i] != model.Ref{}
		r.Reported = append(r.Reported, reported{x.about[i], d})
	}
	return r
}

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
			x.found.all = append(x.found.all, ref)
		}
	}
	slices.SortFunc(all, func(a, b entity) int { return strings.Compare(a.name, b.name) })
	if x.collections.undeclared[collection] {
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
		if !model.IsName(e.name) {
			x.fail(ref, badName(e.name))
			continue
		}
		if isUnknown(e.value) && !e.value.LookupPath(assignmentPath).Exists() {
			x.read.unknown(e.value, ref)
			continue
		}
		healthy := false
		x.guard(ref, func() { healthy = x.shapes.check(e.value, s, ref) })
		if healthy || collection == "configs" || collection == "configSchemas" || collection == "workloads" {
			x.guard(ref, func() { f(e.value, ref) })
		}
	}
}
