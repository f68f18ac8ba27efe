package export

import (
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// result is what was exported.
func (x *Exporter) result(env model.Environment, declarations []model.Declaration) *Result {
	slices.SortFunc(x.Found.All, model.CompareEntities)
	r := &Result{Model: env, Entities: x.Found.All, Uses: x.Found.Uses, Declarations: declarations,
		Invalid: x.Invalid, Incomplete: x.Incomplete}
	r.Clean = !x.Incomplete
	for i, d := range x.Diagnostics {
		r.Clean = r.Clean && x.About[i] != model.Ref{}
		r.Reported = append(r.Reported, reported{x.About[i], d})
	}
	return r
}

// Result is what was exported of a package, or of one unit of it: plain data.
type Result struct {
	// Clean says that all that is wrong in the reduced package is wrong in single
	// entities. A unit that is not clean has nothing else: its errors are reported of
	// the whole package.
	Clean bool
	// Model has the unit's entities. Of the environment's own fields it has those that
	// the unit declares.
	Model model.Environment
	// Entities are all of the unit, invalid ones included, sorted.
	Entities []model.Ref
	// Uses are the environments that deployment targets name.
	Uses []check.Use
	// Declarations are the environments, of the base.
	Declarations []model.Declaration
	// Reported are the diagnostics, and Invalid the entities that have errors.
	Reported []reported
	Invalid  map[model.Ref]bool
	// Incomplete says that an error hides which assignments there are.
	Incomplete bool
}

// reported is a diagnostic about an entity; zero for what is no entity's.
type reported struct {
	About      model.Ref
	Diagnostic diag.Diagnostic
}

// Resume returns the entities of the result with their findings, for what needs all of
// them at once.
func (r *Result) Resume(positions *model.Positions) *check.Entities {
	x := &check.Entities{Set: finding.New(), All: r.Entities, Uses: r.Uses}
	x.Positions, x.Invalid, x.Incomplete = positions, r.Invalid, r.Incomplete
	for _, d := range r.Reported {
		x.Diagnostics, x.About = append(x.Diagnostics, d.Diagnostic), append(x.About, d.About)
	}
	return x
}

// HasFunctions says whether some entity is a function of the assignment.
func (r *Result) HasFunctions() bool {
	return slices.ContainsFunc(r.Model.Configs, func(c model.Config) bool { return c.Facts != nil }) ||
		slices.ContainsFunc(r.Model.NamespaceServices, func(s model.NamespaceService) bool { return s.Facts != nil }) ||
		slices.ContainsFunc(r.Model.Reconcilers, func(r model.Reconciler) bool { return r.Facts != nil })
}

// Digest gives every entity the digest of what it says; key is that of the sources, for
// what is a function of the assignment.
func (r *Result) Digest(key memo.Key) {
	for _, c := range model.Collections {
		c.Identify(&r.Model, func(ref model.Ref) model.Digest { return model.DigestBytes(append(key[:], ref.String()...)) })
	}
}
