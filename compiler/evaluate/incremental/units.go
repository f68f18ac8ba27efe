package incremental

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// split divides what was evaluated at once into the units of a batch.
func (d *partition) split(all *export.Result, batch []int) map[int]*export.Result {
	out := map[int]*export.Result{}
	for _, n := range batch {
		out[n] = &export.Result{Clean: true, Invalid: map[model.Ref]bool{}}
	}
	from := &all.Model
	if p, ok := out[d.unitOf(model.Ref{Collection: "environments", Name: from.Name})]; ok {
		p.Model.Settings = from.Settings
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
	for _, s := range all.Declarations {
		p := out[d.unitOf(model.Ref{Collection: "environments", Name: s.Name})]
		p.Declarations = append(p.Declarations, s)
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

// repeats says whether two units may report the same mistake at the same place. The
// whole package reports the first of them alone.
func repeats(units []*export.Result) bool {
	type mistake struct {
		code    diag.Code
		message string
		at      string // "" where the place is a reference
	}
	in := map[mistake]int{}
	vague, several := map[mistake]bool{}, map[mistake]bool{}
	for n, p := range units {
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

// merge puts the units of a package together.
func merge(name string, units []*export.Result) *export.Result {
	out := &export.Result{Clean: true, Model: model.Environment{Name: name,
		NamespaceServices: []model.NamespaceService{}}, Declarations: []model.Declaration{},
		Invalid: map[model.Ref]bool{}}
	m := &out.Model
	for _, p := range units {
		of := &p.Model
		if !reflect.ValueOf(of.Settings).IsZero() { // one unit declares the environment
			m.Settings = of.Settings
		}
		for _, c := range model.Collections {
			c.Distribute(of, func(model.Ref) *model.Environment { return m })
		}
		out.Entities = append(out.Entities, p.Entities...)
		out.Uses = append(out.Uses, p.Uses...)
		out.Declarations = append(out.Declarations, p.Declarations...)
		out.Reported = append(out.Reported, p.Reported...)
		maps.Copy(out.Invalid, p.Invalid)
	}
	for _, c := range model.Collections {
		c.Sort(m)
	}
	slices.SortFunc(out.Declarations, func(a, b model.Declaration) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Entities, model.CompareEntities)
	slices.SortStableFunc(out.Uses, func(a, b check.Use) int { return model.CompareEntities(a.Ref, b.Ref) })
	return out
}

// inOrder returns all units in the order of their numbers.
func (e *Evaluation) inOrder(units map[int]*export.Result) []*export.Result {
	out := make([]*export.Result, 0, len(units))
	for n := sharedUnit; n < len(e.partition.units); n++ {
		out = append(out, units[n])
	}
	return out
}

// without returns the shared unit without the entities that others declare,
// which a comprehension may have made as well.
func (e *Evaluation) without(shared *export.Result) *export.Result {
	if !slices.ContainsFunc(shared.Entities, func(ref model.Ref) bool { return e.partition.unitOf(ref) != sharedUnit }) {
		return shared
	}
	return e.partition.split(shared, append(e.partition.all(), sharedUnit))[sharedUnit]
}
