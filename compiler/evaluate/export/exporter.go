// Package export makes the model of an evaluated CUE package.
//
// An [Exporter] goes through the collections, and exports each entity. It has a type for each
// thing that is done on the way: the reader of data, the checker that holds values against the
// schema, and those of selectors, contracts, platform values and policies of promotion.
// All of them work on one scope: the package, and the findings about it. The [Result] is plain data.
package export

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
)

// Exporter turns the CUE values of one package into the model, entity by entity. It
// notes where everything is written, and what is wrong.
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

	// Wants says which entities to export; nil for all.
	Wants func(model.Ref) bool
	// Supervised is told which entity is exported; nil for nobody.
	Supervised *supervisor.Part
	// Published are the workloads that are Workloads of the Kalypso scheduler.
	Published map[string]bool
}

// New returns an exporter of a package, which nothing is known of yet.
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

// entities exports the valid entities of a collection, sorted by name: what export returns
// of each.
func entities[T any](x *Exporter, collection string, export func(v cue.Value, ref model.Ref) (T, bool)) []T {
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
		x.Supervised.At(supervisor.Place{Entity: ref, At: written})
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
