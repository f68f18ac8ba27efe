package expr

import (
	"fmt"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// secretMark is what schema.#Secret has, and no other struct.
const secretMark = "#secret"

// IsSecret says whether a struct is a schema.#Secret.
func IsSecret(v cue.Value) bool { return v.LookupPath(cue.MakePath(cue.Def(secretMark))).Exists() }

// Data returns a concrete value, defaults taken, as data.
func Data(v cue.Value) (model.Value, error) {
	v, _ = v.Default()
	switch v.Kind() {
	case cue.StructKind:
		it, err := v.Fields()
		if err != nil {
			return model.Value{}, err
		}
		var fields []model.Field
		for it.Next() {
			f, err := Data(it.Value())
			if err != nil {
				return model.Value{}, err
			}
			fields = append(fields, model.Field{Name: it.Selector().Unquoted(), Value: f})
		}
		if IsSecret(v) {
			return model.SecretOf(fields...), nil
		}
		return model.StructOf(fields...), nil
	case cue.ListKind:
		it, err := v.List()
		if err != nil {
			return model.Value{}, err
		}
		var elems []model.Value
		for it.Next() {
			e, err := Data(it.Value())
			if err != nil {
				return model.Value{}, err
			}
			elems = append(elems, e)
		}
		return model.ListOf(elems...), nil
	}
	return Scalar(v)
}

// partial returns the fields of a struct that have a value, defaults taken; null
// for what is no struct.
func partial(v cue.Value) model.Value {
	if v.IncompleteKind() != cue.StructKind {
		return model.Value{}
	}
	it, err := v.Fields()
	if err != nil {
		return model.Value{}
	}
	var fields []model.Field
	for it.Next() {
		name := it.Selector().Unquoted()
		if it.Value().Validate(cue.Concrete(true), cue.Final()) == nil {
			if data, err := Data(it.Value()); err == nil {
				fields = append(fields, model.Field{Name: name, Value: data})
			}
		} else if below := partial(it.Value()); below.Kind() == model.Struct {
			fields = append(fields, model.Field{Name: name, Value: below})
		}
	}
	return model.StructOf(fields...)
}

// Scalar returns a concrete scalar as data. Bytes have no data of their own:
// JSON would make a string of them. A float is as it is written, where that differs
// as it is written last.
func Scalar(v cue.Value) (model.Value, error) {
	switch v.Kind() {
	case cue.NullKind:
		return model.Value{}, nil
	case cue.BoolKind:
		b, err := v.Bool()
		return model.BoolOf(b), err
	case cue.StringKind:
		s, err := v.String()
		return model.StringOf(s), err
	case cue.IntKind:
		if i, err := v.Int64(); err == nil {
			return model.IntOf(i), nil
		}
		i, err := v.Int(nil)
		if err != nil {
			return model.Value{}, err
		}
		return model.NumberOf(i.String())
	case cue.FloatKind:
		spelt, err := Spellings(v)
		if err != nil {
			return model.Value{}, err
		}
		return spelt[len(spelt)-1].Value, nil
	}
	return model.Value{}, fmt.Errorf("a value of type %s is no data", v.IncompleteKind())
}

// Literal returns the expression that writes a value. Kinds are kept: a float
// has a point or an exponent, a secret its mark.
func Literal(v model.Value) ast.Expr {
	switch v.Kind() {
	case model.Struct, model.Secret:
		lit := &ast.StructLit{}
		if v.Kind() == model.Secret {
			lit.Elts = append(lit.Elts, &ast.Field{Label: ast.NewIdent(secretMark), Value: ast.NewBool(true)})
		}
		for _, f := range v.Fields() {
			lit.Elts = append(lit.Elts, &ast.Field{Label: ast.NewString(f.Name), Value: Literal(f.Value)})
		}
		return lit
	case model.List:
		list := &ast.ListLit{}
		for _, e := range v.Elems() {
			list.Elts = append(list.Elts, Literal(e))
		}
		return list
	case model.Null:
		return ast.NewNull()
	case model.Bool:
		return ast.NewBool(v.Text() == "true")
	case model.Int:
		return number(token.INT, v.Text())
	case model.Float:
		return number(token.FLOAT, v.Text())
	}
	return ast.NewString(v.Text())
}

// Text returns the expression that Literal writes, as text.
func Text(v model.Value) string {
	b, err := format.Node(Literal(v))
	if err != nil {
		panic("expr: a literal that does not print: " + err.Error())
	}
	return string(b)
}

// number writes a number; CUE has no negative literals, only negation.
func number(kind token.Token, text string) ast.Expr {
	if text[0] == '-' {
		return &ast.UnaryExpr{Op: token.SUB, X: &ast.BasicLit{Kind: kind, Value: text[1:]}}
	}
	return &ast.BasicLit{Kind: kind, Value: text}
}
