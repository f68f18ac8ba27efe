package evaluate

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// part is what the entities of one part of a package are.
type Result struct {
	// Clean says that all that is wrong in the reduced package is wrong in single
	// entities. Of a part that is not clean nothing else is known: what is wrong is
	// said of the whole package.
	Clean bool
	// Model has the part's entities, and nothing of the environment that they do
	// not say.
	Model model.Environment
	// Entities are all of the part, sorted.
	Entities []model.Ref
	// Uses are the environments that deployment targets name.
	Uses []Use
	// Stages are the environments, of the base.
	Stages []model.Stage
	// Told is what is wrong, and Sick the entities that have errors.
	Reported []reported
	Invalid  map[model.Ref]bool
	// Incomplete says that an error hides which assignments there are.
	Incomplete bool
}

// told is a diagnostic about an entity; zero for what is no entity's.
type reported struct {
	About      model.Ref
	Diagnostic diag.Diagnostic
}

// use is where something is referred to by its name.
type Use struct {
	Ref  model.Ref
	Name string
	// Elsewhere says that it need not be one of this platform.
	Elsewhere bool
}

// resume returns the entities of the result with their findings, for what needs all of
// them at once.
func (r *Result) resume(positions *model.Positions) *entities {
	x := &entities{findings: newFindings(), all: r.Entities, uses: r.Uses}
	x.positions, x.invalid, x.incomplete = positions, r.Invalid, r.Incomplete
	for _, d := range r.Reported {
		x.ds, x.about = append(x.ds, d.Diagnostic), append(x.about, d.About)
	}
	return x
}

// split takes what was evaluated at once apart.
func (d *partition) split(all *Result, batch []int) map[int]*Result {
	out := map[int]*Result{}
	for _, n := range batch {
		out[n] = &Result{Clean: true, Invalid: map[model.Ref]bool{}}
	}
	from := &all.Model
	if p, ok := out[d.unitOf(model.Ref{Collection: "environments", Name: from.Name})]; ok {
		declare(&p.Model, from)
	}
	for _, c := range model.Collections {
		c.Distribute(from, func(ref model.Ref) *model.Environment { return &out[d.unitOf(ref)].Model })
	}
	for _, ref := range all.Entities {
		p := out[d.unitOf(ref)]
		p.Entities = append(p.Entities, ref)
	}
	for _, u := range all.Uses {
		p := out[d.unitOf(u.Ref)]
		p.Uses = append(p.Uses, u)
	}
	for _, s := range all.Stages {
		p := out[d.unitOf(model.Ref{Collection: "environments", Name: s.Name})]
		p.Stages = append(p.Stages, s)
	}
	for _, t := range all.Reported {
		p := out[d.unitOf(t.About)]
		p.Reported = append(p.Reported, t)
	}
	for ref := range all.Invalid {
		out[d.unitOf(ref)].Invalid[ref] = true
	}
	return out
}

// hasFunctions says whether some entity is a function of the assignment.
func (r *Result) hasFunctions() bool {
	return slices.ContainsFunc(r.Model.Configs, func(c model.Config) bool { return c.Facts != nil }) ||
		slices.ContainsFunc(r.Model.NamespaceServices, func(s model.NamespaceService) bool { return s.Facts != nil }) ||
		slices.ContainsFunc(r.Model.Reconcilers, func(r model.Reconciler) bool { return r.Facts != nil })
}

// declare takes over what the environment says of itself.
func declare(m, from *model.Environment) {
	m.Description, m.After, m.GitOps, m.MaxRemovals, m.Rings = from.Description, from.After, from.GitOps, from.MaxRemovals, from.Rings
}

// repeats says whether two parts may tell the same mistake at the same place: of
// those the whole tells the first.
func repeats(parts []*Result) bool {
	type mistake struct {
		code    diag.Code
		message string
		at      string // "" where the place is a reference
	}
	in := map[mistake]int{}
	vague, several := map[mistake]bool{}, map[mistake]bool{}
	for n, p := range parts {
		for _, t := range p.Reported {
			what := mistake{code: t.Diagnostic.Code, message: t.Diagnostic.Message}
			exact := what
			for _, s := range t.Diagnostic.Sites {
				exact.at += fmt.Sprint(s.Position, " ")
				vague[what] = vague[what] || s.Position.IsZero()
			}
			if other, there := in[exact]; there && other != n {
				return true
			}
			if other, there := in[what]; there && other != n {
				several[what] = true
			}
			in[exact], in[what] = n, n
		}
	}
	for what := range several {
		if vague[what] {
			return true
		}
	}
	return false
}

// merge puts the parts of a package together.
func merge(name string, parts []*Result) *Result {
	out := &Result{Clean: true, Model: model.Environment{Name: name, NamespaceServices: []model.NamespaceService{}}, Stages: []model.Stage{}, Invalid: map[model.Ref]bool{}}
	m := &out.Model
	for _, p := range parts {
		of := &p.Model
		if of.Description != "" || of.After != nil || of.GitOps != nil || of.MaxRemovals != "" || of.Rings != nil {
			declare(m, of)
		}
		for _, c := range model.Collections {
			c.Distribute(of, func(model.Ref) *model.Environment { return m })
		}
		out.Entities = append(out.Entities, p.Entities...)
		out.Uses = append(out.Uses, p.Uses...)
		out.Stages = append(out.Stages, p.Stages...)
		out.Reported = append(out.Reported, p.Reported...)
		maps.Copy(out.Invalid, p.Invalid)
	}
	for _, c := range model.Collections {
		c.Sort(m)
	}
	slices.SortFunc(out.Stages, func(a, b model.Stage) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Entities, model.CompareEntities)
	slices.SortStableFunc(out.Uses, func(a, b Use) int { return model.CompareEntities(a.Ref, b.Ref) })
	return out
}

// digest gives every entity the digest of what it says; key is that of the sources, for
// what is a function of the assignment.
func (r *Result) digest(key Key) {
	for _, c := range model.Collections {
		c.Identify(&r.Model, func(ref model.Ref) model.Digest { return model.DigestBytes(append(key[:], ref.String()...)) })
	}
}

// Key identifies something that has been evaluated by all that can change it.
type Key [sha256.Size]byte
