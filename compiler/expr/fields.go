package expr

import (
	"slices"

	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Field is one field of a contract.
type Field struct {
	Name string
	// Optional says that the field may be absent.
	Optional bool
	// Constraint is that of the field's value.
	Constraint model.Expr
	// Contract is a contract that says this and nothing else: a struct of the field.
	Contract model.Expr
}

// Fields takes a contract apart into contracts on one field each, in the order in
// which it names them: values satisfy it where they are a struct and satisfy each,
// and what it fills in is what each fills in. It says false of what is not simply a
// struct, of patterns, and where fields may refer to each other.
func Fields(contract model.Expr) ([]Field, bool) {
	x, err := parser.ParseExpr("", string(contract))
	if err != nil {
		return nil, false
	}
	var p pieces
	if !p.add(x) || len(p.rest) > 0 || len(p.lets) > 0 || p.refers(x) {
		return nil, false
	}
	out := make([]Field, 0, len(p.names))
	for _, name := range p.names {
		f := p.fields[name]
		mark := "?"
		switch {
		case f.regular:
			mark = ""
		case f.required:
			mark = "!"
		}
		constraint := conjunction(f.terms)
		label := string(model.AppendJSONString(nil, name))
		out = append(out, Field{
			Name: name, Optional: mark == "?", Constraint: model.Expr(constraint),
			Contract: model.Expr("{" + label + mark + ": " + constraint + "\n}"),
		})
	}
	return slices.Clip(out), true
}
