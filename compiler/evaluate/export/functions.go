package export

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// namespaceServices exports the namespace services, with the schema's own.
func (x *Exporter) namespaceServices() []model.NamespaceService {
	out := append([]model.NamespaceService{}, entities(x, "namespaceServices", x.namespaceService)...)
	ref := model.Ref{Collection: "namespaceServices", Name: shape.DefaultNamespaceService}
	if !slices.ContainsFunc(out, func(s model.NamespaceService) bool { return s.Name == ref.Name }) &&
		!x.Invalid[ref] && (x.Wants == nil || x.Wants(ref)) {
		out = append(out, x.defaultNamespaceService())
		slices.SortFunc(out, func(a, b model.NamespaceService) int { return strings.Compare(a.Name, b.Name) })
	}
	return out
}

func (x *Exporter) namespaceService(v cue.Value, ref model.Ref) (model.NamespaceService, bool) {
	pattern := cuevalue.Field(v, "pattern")
	s := model.NamespaceService{Name: ref.Name, HasPattern: pattern.Exists(),
		Facts: factsOf(v, dependentParts(v)...), PatternFacts: factsOf(v, pattern)}
	if x.usesFact(ref, model.ClusterFact, "a namespace is the same on all clusters of a type",
		dependentParts(v)...) || x.usesFact(ref, "namespace", "the pattern makes it", pattern) ||
		x.usesFact(ref, "values", "they are composed for the namespace", pattern) ||
		x.usesFact(ref, "rendered", "the namespace is what charts render with", pattern) {
		return s, false
	}
	if s.Facts != nil {
		x.noteAll(v, ref)
		return s, true
	}
	value, ok := x.read.entity(v, ref)
	s.Spec = &value
	return s, ok
}

// dependentParts are what of an entity may be a function of the assignment: its
// regular fields, and itself where it is unknown which those are.
func dependentParts(v cue.Value) []cue.Value {
	var out []cue.Value
	if cuevalue.IsUnknown(v) {
		out = append(out, v)
	}
	for _, of := range cuevalue.Fields(v) {
		out = append(out, of)
	}
	return out
}

func (x *Exporter) reconciler(v cue.Value, ref model.Ref) (model.Reconciler, bool) {
	r := model.Reconciler{Name: ref.Name, Facts: factsOf(v, dependentParts(v)...)}
	for _, backend := range shape.Of(ref.Collection).OneOf[0] {
		if cuevalue.Field(v, backend).Exists() {
			r.Backend = backend
		}
	}
	if x.usesFact(ref, model.ClusterFact, "a folder is the same for all clusters of a type", dependentParts(v)...) {
		return r, false
	}
	if r.Facts != nil {
		x.noteAll(v, ref)
		return r, true
	}
	value, ok := x.read.entity(v, ref)
	r.Spec, _ = value.Lookup(r.Backend)
	return r, ok
}

// factsOf returns which facts of #assignment a part of an entity uses, sorted;
// nil for none. The entity must declare #assignment, so the identifier stands
// in its own source: where it does not, the source refers to something else
// that uses it, and all facts count as used.
func factsOf(entity cue.Value, parts ...cue.Value) []string {
	if !entity.LookupPath(cuevalue.AssignmentPath).Exists() {
		return nil
	}
	used := map[string]bool{}
	all := false
	entityNodes := cuevalue.SourceNodes(entity)
	for _, part := range parts {
		if !part.Exists() {
			continue
		}
		found := false
		for _, n := range cuevalue.WithReferences(cuevalue.SourceNodes(part), entityNodes) {
			f, a := cuevalue.FactsIn(n, used)
			found, all = found || f, all || a
		}
		if !found && part.Validate(cue.Concrete(true)) != nil {
			all = true
		}
	}
	if all {
		// Values that may be of single clusters are composed for each: that is asked for.
		return slices.DeleteFunc(shape.FactNames(),
			func(name string) bool { return name == model.ClusterFact && !used[name] })
	}
	return slices.Sorted(maps.Keys(used))
}

// usesFact reports a fact that a function cannot know, and returns whether it
// uses it.
func (x *Exporter) usesFact(ref model.Ref, fact, why string, parts ...cue.Value) bool {
	used := map[string]bool{}
	for _, part := range parts {
		for _, n := range cuevalue.SourceNodes(part) {
			cuevalue.FactsIn(n, used)
		}
	}
	if !used[fact] {
		return false
	}
	d := diag.New(diag.Function,
		"#assignment."+fact+" is not known here: "+why).Hinting("use another fact of the assignment")
	x.Fail(ref, x.At(d, parts...))
	return true
}

// defaultNamespaceService returns the namespace service that exists even where
// the platform does not declare the collection: the schema's.
func (x *Exporter) defaultNamespaceService() model.NamespaceService {
	if services, ok := x.shapes.schema("#NamespaceServices"); ok {
		ref := model.Ref{Collection: "namespaceServices", Name: shape.DefaultNamespaceService}
		if value, ok := x.read.entity(cuevalue.Field(services, shape.DefaultNamespaceService), ref); ok {
			return model.NamespaceService{Name: shape.DefaultNamespaceService, Spec: &value}
		}
	}
	return model.NamespaceService{Name: shape.DefaultNamespaceService}
}
