package evaluate

import (
	"fmt"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// trees exports platform values, which may be open.
type trees struct{ *reader }

// tree exports platform values as a tree whose leaves are final or open. What
// cannot be a value is reported.
func (x *trees) tree(v cue.Value, ref model.Ref) model.Tree {
	x.note(v, ref)
	if v.Kind() == cue.StructKind && !expr.IsSecret(v) && isPlainStruct(v) {
		var out []model.TreeField
		for name, of := range fields(v) {
			out = append(out, model.TreeField{Name: name, Tree: x.tree(of, ref.At(model.Label(name)))})
		}
		return model.StructTreeOf(out...)
	}
	if expr.IsFinal(v) {
		before := len(x.ds)
		value, ok := x.data(v, ref)
		if !ok {
			if len(x.ds) == before {
				x.fail(ref, diag.New(diag.NotConcrete, ref.Path+" has no value"))
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
		x.fail(ref, diag.New(diag.NotConcrete, fmt.Sprintf("%s cannot be used as a value: %v", ref.Path, err)))
		return model.Tree{}
	}
	return model.Tree{Kind: model.OpenLeaf, Open: open}
}

// open exports a leaf that is not final.
func (x *trees) open(v cue.Value) (*model.Open, error) {
	e, err := syntax(v)
	if err != nil {
		return nil, err
	}
	text, err := write(e)
	if err != nil {
		return nil, err
	}
	constraint, err := write(expr.WithoutDefaults(e))
	if err != nil {
		return nil, err
	}
	open := &model.Open{Constraint: model.Expr(constraint), Text: text}
	if d, _ := v.Default(); expr.IsFinal(d) {
		quiet := &reader{&scope{x.loaded, newFindings()}}
		if value, ok := quiet.data(d, model.Ref{}); ok {
			open.Default = &value
		}
	}
	return open, nil
}

// isPlainStruct says whether a struct has nothing but regular fields.
func isPlainStruct(v cue.Value) bool {
	it, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		return false
	}
	for it.Next() {
		if it.FieldType() != cue.StringLabel {
			return false
		}
	}
	return true
}
