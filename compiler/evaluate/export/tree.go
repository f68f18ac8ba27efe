package export

import (
	"fmt"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// valueFields are the parts of a config that hold platform values.
var valueFields = []string{"values", "defaults", "overrides"}

// trees exports platform values, which may be open.
type trees struct{ *reader }

// trees exports the three parts of a config that hold values.
func (x *trees) trees(v cue.Value, ref model.Ref) (values, defaults, overrides model.Tree) {
	before := len(x.Diagnostics)
	for i, into := range []*model.Tree{&values, &defaults, &overrides} {
		f := cuevalue.Field(v, valueFields[i])
		if !f.Exists() {
			continue
		}
		at := ref.At(valueFields[i])
		*into = x.tree(f, at)
		if valueFields[i] != "values" {
			x.finalOnly(*into, at)
		}
	}
	if len(x.Diagnostics) > before {
		return values, defaults, overrides
	}
	for i, t := range []model.Tree{values, defaults, overrides} {
		x.checkDependent(cuevalue.Field(v, valueFields[i]), t, ref.At(valueFields[i]), valueFields[i] == "defaults")
	}
	return values, defaults, overrides
}

// finalOnly reports leaves under defaults and overrides that are no data: what
// they are for is a value.
func (x *trees) finalOnly(t model.Tree, ref model.Ref) {
	switch t.Kind {
	case model.StructTree:
		for _, f := range t.Fields {
			x.finalOnly(f.Tree, ref.At(model.Label(f.Name)))
		}
	case model.OpenLeaf:
		x.Fail(ref, diag.New(diag.NotConcrete, ref.Path+" must be a value, and is "+t.Open.Text).
			Hinting("a constraint belongs under values"))
	}
}

// chartValues exports the values that a workload or a deployment target gives a
// chart.
func (x *trees) chartValues(v cue.Value, ref model.Ref) (c model.ChartValues, ok bool) {
	helm := cuevalue.Field(cuevalue.Field(v, "manifests"), "helm")
	if !helm.Exists() {
		return c, true
	}
	before := len(x.Diagnostics)
	at := ref.At("manifests.helm")
	if values := cuevalue.Field(helm, "values"); values.Exists() {
		c.Values = x.tree(values, at.At("values"))
	}
	if defaults := cuevalue.Field(helm, "defaults"); defaults.Exists() {
		c.Defaults = x.tree(defaults, at.At("defaults"))
		x.finalOnly(c.Defaults, at.At("defaults"))
	}
	return c, !diag.Errors(x.Diagnostics[before:])
}

// tree exports platform values as a tree whose leaves are final or open. What
// cannot be a value is reported.
func (x *trees) tree(v cue.Value, ref model.Ref) model.Tree {
	x.note(v, ref)
	if v.Kind() == cue.StructKind && !expr.IsSecret(v) && cuevalue.IsPlainStruct(v) {
		var out []model.TreeField
		for name, of := range cuevalue.Fields(v) {
			out = append(out, model.TreeField{Name: name, Tree: x.tree(of, ref.At(model.Label(name)))})
		}
		return model.StructTreeOf(out...)
	}
	if expr.IsFinal(v) {
		before := len(x.Diagnostics)
		value, ok := x.data(v, ref)
		if !ok {
			if len(x.Diagnostics) == before {
				x.Fail(ref, diag.New(diag.NotConcrete, ref.Path+" has no value"))
			}
			return model.Tree{}
		}
		return model.Tree{Kind: model.FinalLeaf, Final: value}
	}
	if !x.unknownParts(v, ref) || !x.checkPatterns(v, ref, diag.WrongValue) {
		return model.Tree{}
	}
	open, err := x.open(v)
	if err != nil {
		x.Fail(ref, diag.New(diag.NotConcrete, fmt.Sprintf("%s cannot be used as a value: %v", ref.Path, err)))
		return model.Tree{}
	}
	return model.Tree{Kind: model.OpenLeaf, Open: open}
}

// open exports a leaf that is not final.
func (x *trees) open(v cue.Value) (*model.Open, error) {
	e, err := cuevalue.Syntax(v)
	if err != nil {
		return nil, err
	}
	text, err := cuevalue.Write(e)
	if err != nil {
		return nil, err
	}
	constraint, err := cuevalue.Write(expr.WithoutDefaults(e))
	if err != nil {
		return nil, err
	}
	open := &model.Open{Constraint: model.Expr(constraint), Text: text}
	if d, _ := v.Default(); expr.IsFinal(d) {
		quiet := &reader{&scope{x.Package, finding.New()}}
		if value, ok := quiet.data(d, model.Ref{}); ok {
			open.Default = &value
		}
	}
	return open, nil
}
