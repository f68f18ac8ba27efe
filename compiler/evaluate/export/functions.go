package export

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/problem"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// namespaceServices exports the namespace services, including the schema's own.
func (x *Exporter) namespaceServices() []model.NamespaceService {
	out := append([]model.NamespaceService{}, entities(x, "namespaceServices", x.namespaceService)...)
	ref := model.Ref{Collection: "namespaceServices", Name: shape.DefaultNamespaceService}
	if !slices.ContainsFunc(out, func(s model.NamespaceService) bool { return s.Name == ref.Name }) &&
		!x.Invalid[ref] && (x.Wants == nil || x.Wants(ref)) {
		out = append(out, x.defaultNamespaceService())
		slices.SortFunc(out,
			func(a, b model.NamespaceService) int { return strings.Compare(a.Name, b.Name) })
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

// dependentParts returns the parts of an entity that may be functions of the assignment: its
// regular fields, and the entity itself if its fields are unknown.
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
	if x.usesFact(ref, model.ClusterFact, "a folder is the same for all clusters of a type",
		dependentParts(v)...) {
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

// factsOf returns the facts of #assignment that a part of an entity uses, sorted. It returns
// nil if the part uses no facts. An entity that uses #assignment must declare it, so its own
// source has the identifier. Otherwise the source refers to another value that uses it,
// and all facts count as used.
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
		// Values that depend on single clusters are composed for each cluster. This fact counts
		// only if it is used explicitly.
		return slices.DeleteFunc(shape.FactNames(),
			func(name string) bool { return name == model.ClusterFact && !used[name] })
	}
	return slices.Sorted(maps.Keys(used))
}

// usesFact reports a fact that a function cannot know, and returns whether the function uses
// it.
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

// defaultNamespaceService returns the schema's namespace service, which exists even if the
// platform does not declare the collection.
func (x *Exporter) defaultNamespaceService() model.NamespaceService {
	if services, ok := x.shapes.schema("#NamespaceServices"); ok {
		ref := model.Ref{Collection: "namespaceServices", Name: shape.DefaultNamespaceService}
		if value, ok := x.read.entity(cuevalue.Field(services, shape.DefaultNamespaceService), ref); ok {
			return model.NamespaceService{Name: shape.DefaultNamespaceService, Spec: &value}
		}
	}
	return model.NamespaceService{Name: shape.DefaultNamespaceService}
}

// Apply exports an entity of a package for one assignment.
func Apply(l *loader.Package, c function.Call) function.Outcome {
	x := &assignmentExporter{New(l)}
	entity := l.Value.LookupPath(cue.MakePath(cue.Str(c.Entity.Collection), cue.Str(c.Entity.Name)))
	var out function.Outcome
	x.Guard(c.Entity, func() {
		v := entity.FillPath(cuevalue.AssignmentPath, l.Context.BuildExpr(expr.Literal(c.Facts)))
		out = x.call(v, c)
		x.checkValid(v, c)
	})
	out.Diagnostics = x.functionErrors()
	return out
}

// assignmentExporter exports an entity for one assignment.
type assignmentExporter struct{ *Exporter }

// call exports the result of a function of the assignment.
func (x *assignmentExporter) call(v cue.Value, c function.Call) (out function.Outcome) {
	switch {
	case c.Shared:
		out.Spec = x.shared(v, c.Entity)
	case c.Field != "":
		out.Spec, _ = x.read.data(cuevalue.Field(v, c.Field), c.Entity.At(c.Field))
	case c.Entity.Collection == "configs":
		out.Values, out.Defaults, out.Overrides = x.trees.trees(v, c.Entity)
	default:
		if x.shapes.check(v, shape.Of(c.Entity.Collection), c.Entity) {
			out.Spec, _ = x.read.entity(v, c.Entity)
		}
	}
	return out
}

// shared exports the fields of a reconciler's backend that are the same for all assignments of
// a cluster type.
func (x *assignmentExporter) shared(v cue.Value, ref model.Ref) model.Value {
	for _, backend := range shape.Of(ref.Collection).OneOf[0] {
		options := cuevalue.Field(v, backend)
		if !options.Exists() {
			continue
		}
		s := shape.Of(ref.Collection).Fields[backend].Shape
		var own []string
		for _, name := range s.Names() {
			if s.Fields[name].PerAssignment {
				own = append(own, name)
			}
		}
		spec, _ := x.read.entity(options, ref.At(backend), own...)
		for i := range x.Diagnostics {
			x.Diagnostics[i].Message = "all assignments of a cluster type share this: " +
				x.Diagnostics[i].Message
			x.Diagnostics[i].Hint = "use no facts but environment and clusterType, or give the cluster " +
				"type a reconciler of its own"
		}
		return spec
	}
	return model.StructOf()
}

// checkValid reports the errors of an entity if there are no other diagnostics.
func (x *assignmentExporter) checkValid(v cue.Value, c function.Call) {
	if c.Field != "" || c.Shared || len(x.Diagnostics) > 0 {
		return
	}
	if err := v.Validate(); err != nil {
		for _, o := range problem.In(x.Places, err) {
			x.Fail(c.Entity, o.Diagnostic(nil, nil))
		}
	}
}

// functionErrors returns all diagnostics, as errors of a function of the assignment. Sites
// remain references if CUE has no position.
func (x *assignmentExporter) functionErrors() []diag.Diagnostic {
	for i := range x.Diagnostics {
		x.Diagnostics[i].Code, x.Diagnostics[i].Severity = diag.Function, diag.Function.Severity()
		if x.Diagnostics[i].Hint == "" ||
			strings.HasPrefix(x.Diagnostics[i].Hint, "correct the reference") {
			x.Diagnostics[i].Hint = "the assignment lacks a label, version or other fact that the " +
				"expression uses: give it one, match fewer assignments, or write a default, " +
				"*#assignment.labels.x | \"…\""
		}
	}
	return x.Diagnostics
}
