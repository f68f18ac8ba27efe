// Package export makes the model of an evaluated CUE package.
//
// An [Exporter] iterates over the collections, and exports each entity. It has a type for each
// task: the reader of data, the checker of the schema, and the types for selectors, contracts,
// platform values and policies of promotion. All of them share one scope: the package, and the
// findings about it. The [Result] is plain data.
//
// For example, the input is the CUE value of a config of examples/hello-world,
//
//	everywhere: {match: {}, values: GREETING: "Hello, world"}
//
// and the output is a [model.Config] whose Match is the selector that holds for everything
// (model.OpAll), and whose Values are a struct with one final leaf, "Hello, world". The config
// whereabouts uses #assignment: it has Facts in place of values.
package export

import (
	"cmp"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/problem"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
)

// Exporter turns the CUE values of one package into the model, entity by entity. It records the
// positions of values, and errors.
type Exporter struct {
	*scope
	read        *reader
	shapes      *checker
	contracts   *contracts
	selectors   *selectors
	trees       *trees
	policies    *policies
	collections *collectionChecker
	Found       *check.Entities

	// Wants reports whether to export an entity; nil to export all.
	Wants func(model.Ref) bool
	// Supervised records which entity is being exported; nil to record nothing.
	Supervised *supervisor.Part
	// Published are the workloads that come from Workloads of the Kalypso scheduler.
	Published map[string]bool
}

// New returns an exporter of a package, without findings.
func New(l *loader.Package) *Exporter {
	s := &scope{l, finding.New()}
	read, c := &reader{s}, &contracts{s}
	of := &selectors{read}
	return &Exporter{
		scope: s, read: read, shapes: &checker{s}, contracts: c, selectors: of, trees: &trees{read},
		policies: &policies{read, of, c}, collections: &collectionChecker{read, map[string]bool{}},
		Found: &check.Entities{Set: s.Set},
	}
}

// entities exports the valid entities of a collection, sorted by name. It returns the results
// of export.
func entities[T any](x *Exporter, collection string,
	export func(v cue.Value, ref model.Ref) (T, bool)) []T {
	var out []T
	x.each(collection, func(v cue.Value, ref model.Ref) {
		if e, ok := export(v, ref); ok {
			out = append(out, e)
		}
	})
	return out
}

// each calls f for every valid entity of a collection, sorted by name.
func (x *Exporter) each(collection string, f func(v cue.Value, ref model.Ref)) {
	type entity struct {
		name  string
		value cue.Value
	}
	var all []entity
	for name, v := range cuevalue.Fields(cuevalue.Field(x.Value, collection)) {
		ref := model.Ref{Collection: collection, Name: name}
		if x.Wants == nil || x.Wants(ref) {
			all = append(all, entity{name, v})
			x.Found.All = append(x.Found.All, ref)
		}
	}
	slices.SortFunc(all, func(a, b entity) int { return strings.Compare(a.name, b.name) })
	if x.collections.undeclared[collection] {
		return
	}
	s, names := shape.Of(collection), shape.NamesOf(collection)
	defer func() { x.Current = model.Ref{} }()
	for _, e := range all {
		ref := model.Ref{Collection: collection, Name: e.name}
		x.Current = ref
		written := x.Written(e.value)
		for _, p := range written {
			x.Positions.Add(ref, p)
		}
		x.Supervised.SetPlace(supervisor.Place{Entity: ref, At: written})
		if !names.Allows(e.name) {
			x.Fail(ref, shape.BadKey(e.name, names))
			continue
		}
		if cuevalue.IsUnknown(e.value) && !e.value.LookupPath(cuevalue.AssignmentPath).Exists() {
			x.read.unknown(e.value, ref)
			continue
		}
		valid := false
		x.Guard(ref, func() { valid = x.shapes.check(e.value, s, ref) })
		if valid || collection == "configs" || collection == "configSchemas" ||
			collection == "workloads" || collection == "tests" {
			x.Guard(ref, func() { f(e.value, ref) })
		}
	}
}

// scope is an evaluated package with the findings about it. Every type that exports or checks
// CUE values has one, and adds to it.
type scope struct {
	*loader.Package
	*finding.Set
}

// note records the positions of a value: the exact position of a scalar, and the declarations
// of other values.
func (x *scope) note(v cue.Value, ref model.Ref) {
	if v.IncompleteKind() != cue.StructKind {
		if p := x.Position(v.Pos()); !p.IsZero() {
			x.Positions.Add(ref, p)
			return
		}
	}
	for _, p := range x.Written(v) {
		x.Positions.Add(ref, p)
	}
}

// noteAll records the positions of a value and of everything in it.
func (x *scope) noteAll(v cue.Value, ref model.Ref) {
	x.note(v, ref)
	if v.IncompleteKind() == cue.StructKind {
		for name, of := range cuevalue.Fields(v) {
			x.noteAll(of, ref.At(model.Label(name)))
		}
	}
}

// noteContract records the positions of a field of a contract. It records all of several
// positions, because any of them may be the broken one.
func (x *scope) noteContract(v cue.Value, ref model.Ref) {
	if places := x.Written(v); len(places) > 1 {
		for _, p := range places {
			x.Positions.Add(ref, p)
		}
		return
	}
	x.note(v, ref)
}

// At adds the positions of values to a diagnostic.
func (x *scope) At(d diag.Diagnostic, values ...cue.Value) diag.Diagnostic {
	for _, v := range values {
		d = d.InEach(x.Written(v)...)
	}
	return d
}

// writtenIn returns the positions of a value in a folder.
func (x *scope) writtenIn(v cue.Value, folder string) []model.Position {
	return slices.DeleteFunc(x.Written(v),
		func(p model.Position) bool { return !strings.HasPrefix(p.File, folder) })
}

// checkUnsound reports all errors of a package.
func (x *scope) checkUnsound(ref model.Ref) {
	for _, o := range problem.In(x.Places, x.Value.Validate()) {
		for _, o := range problem.Locate(x.Places, o) {
			x.Fail(ref, o.Diagnostic(nil, nil).On(cmp.Or(problem.JoinPath(o.Path), "values")))
		}
	}
}

// result returns the exported entities and the findings about them.
func (x *Exporter) result(env model.Environment, declarations []model.Declaration) *Result {
	slices.SortFunc(x.Found.All, model.CompareEntities)
	r := &Result{Model: env, Entities: x.Found.All, Uses: x.Found.Uses, Declarations: declarations,
		Invalid: x.Invalid, Incomplete: x.Incomplete}
	r.Clean = !x.Incomplete
	for i, d := range x.Diagnostics {
		r.Clean = r.Clean && x.About[i] != model.Ref{}
		r.Reported = append(r.Reported, entityDiagnostic{x.About[i], d})
	}
	return r
}

// Result is the export of a package, or of one unit of it. It is plain data.
type Result struct {
	// Clean reports whether all errors in the reduced package are errors of single entities. A unit
	// that is not clean has no other fields: the errors are reported for the whole package.
	Clean bool
	// Model has the unit's entities. It has only those fields of the environment that the unit
	// declares.
	Model model.Environment
	// Entities are all entities of the unit, including invalid ones, sorted.
	Entities []model.Ref
	// Uses are the environments that deployment targets name.
	Uses []check.Use
	// Declarations are the environments, of the base.
	Declarations []model.Declaration
	// Reported are the diagnostics, and Invalid the entities with errors.
	Reported []entityDiagnostic
	Invalid  map[model.Ref]bool
	// Incomplete reports whether an error hides some of the assignments.
	Incomplete bool
}

// entityDiagnostic is a diagnostic about an entity; About is zero if it does not concern an entity.
type entityDiagnostic struct {
	About      model.Ref
	Diagnostic diag.Diagnostic
}

// Resume returns the entities of the result with their findings, for checks that need all
// entities at once.
func (r *Result) Resume(positions *model.Positions) *check.Entities {
	x := &check.Entities{Set: finding.New(), All: r.Entities, Uses: r.Uses}
	x.Positions, x.Invalid, x.Incomplete = positions, r.Invalid, r.Incomplete
	for _, d := range r.Reported {
		x.Diagnostics, x.About = append(x.Diagnostics, d.Diagnostic), append(x.About, d.About)
	}
	return x
}

// HasFunctions reports whether some entity is a function of the assignment.
func (r *Result) HasFunctions() bool {
	return slices.ContainsFunc(r.Model.Configs, func(c model.Config) bool { return c.Facts != nil }) ||
		slices.ContainsFunc(r.Model.NamespaceServices,
			func(s model.NamespaceService) bool { return s.Facts != nil }) ||
		slices.ContainsFunc(r.Model.Reconcilers, func(r model.Reconciler) bool { return r.Facts != nil })
}

// Digest sets the digest of every entity's content. key is the key of the sources, and is part
// of the digest of every function of the assignment.
func (r *Result) Digest(key memo.Key) {
	for _, c := range model.Collections {
		c.Identify(&r.Model,
			func(ref model.Ref) model.Digest { return model.DigestBytes(append(key[:], ref.String()...)) })
	}
}
