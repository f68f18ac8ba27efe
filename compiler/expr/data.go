package expr

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// secretMark is the field that only a schema.#Secret has.
const secretMark = "#secret"

// IsSecret reports whether a struct is a schema.#Secret.
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

// partial returns the fields of a struct that have a value, defaults taken. It returns null if
// v is not a struct.
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

// Scalar returns a concrete scalar as data. It rejects bytes, because JSON would turn them into
// a string. A float keeps its spelling; of several spellings, the last one wins.
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

// Literal returns the expression that writes a value. It keeps kinds: a float has a point or an
// exponent, and a secret its mark.
func Literal(v model.Value) ast.Expr {
	switch v.Kind() {
	case model.Struct, model.Secret:
		lit := &ast.StructLit{}
		if v.Kind() == model.Secret {
			lit.Elts = append(lit.Elts,
				&ast.Field{Label: ast.NewIdent(secretMark), Value: ast.NewBool(true)})
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

// IsFinal reports whether a value is data that nothing may replace: no default, no constraint,
// no optional field and no open list anywhere in it. CUE's IsConcrete does not suffice, because
// it also holds for [...string] and similar lists.
func IsFinal(v cue.Value) bool {
	switch v.Kind() {
	case cue.StructKind:
		if IsSecret(v) {
			return true
		}
		it, err := v.Fields(cue.Optional(true), cue.Patterns(true))
		if err != nil {
			return false
		}
		for it.Next() {
			if it.FieldType() != cue.StringLabel || !IsFinal(it.Value()) {
				return false
			}
		}
		return true
	case cue.ListKind:
		if !IsFinalList(v) {
			return false
		}
		it, err := v.List()
		if err != nil {
			return false
		}
		for it.Next() {
			if !IsFinal(it.Value()) {
				return false
			}
		}
		return true
	case cue.BottomKind, cue.BytesKind:
		return false
	}
	return v.IsConcrete()
}

// IsFinalList reports whether the length of a list is final.
func IsFinalList(v cue.Value) bool {
	n := v.Len()
	return n.Err() == nil && n.IsConcrete()
}

// WithoutDefaults removes the marks of defaults from an expression, in place. The result is the
// constraint on any value.
func WithoutDefaults(e ast.Expr) ast.Expr {
	return astutil.Apply(e, nil, func(c astutil.Cursor) bool {
		if u, ok := c.Node().(*ast.UnaryExpr); ok && u.Op == token.MUL {
			c.Replace(u.X)
		}
		return true
	}).(ast.Expr)
}

// Spelling is one way to write a number.
type Spelling struct {
	Value model.Value
	Pos   token.Pos
}

// Spellings returns the spellings of a concrete float, without duplicates, in the order of the
// conjuncts. Unification considers 1.5 and 1.50 equal, and returns either. Spellings returns
// the spellings in values or, if no value has one, the spellings in defaults and other
// alternatives. A computed number has one spelling, as CUE prints it. Spellings returns an
// error for a number beyond CUE's arithmetic.
func Spellings(v cue.Value) ([]Spelling, error) {
	b, err := v.MarshalJSON()
	if err != nil {
		return nil, err
	}
	number, err := model.FloatOf(string(b))
	if err != nil {
		return nil, err
	}
	s := speller{number: number}
	if s.conjuncts(v, 0); s.err != nil {
		return nil, s.err
	}
	for _, found := range [][]Spelling{s.values, s.alternatives} {
		if len(found) > 0 {
			return found, nil
		}
	}
	return []Spelling{{Value: number, Pos: v.Pos()}}, nil
}

// speller collects the spellings of a number.
type speller struct {
	number               model.Value
	values, alternatives []Spelling
	err                  error
}

// maxReferences is the maximal length of a chain of references that speller follows.
const maxReferences = 100

func (s *speller) conjuncts(v cue.Value, references int) {
	op, args := v.Expr()
	switch op {
	case cue.AndOp:
		for _, a := range args {
			s.conjuncts(a, references)
		}
		return
	case cue.SelectorOp, cue.IndexOp:
		if to := cue.Dereference(v); references < maxReferences &&
			to.Path().String() != v.Path().String() {
			s.conjuncts(to, references+1)
			return
		}
	}
	switch n := v.Source().(type) {
	case *ast.Field:
		s.literals(n.Value, &s.values)
	case ast.Expr:
		s.literals(n, &s.values)
	}
}

// literals collects the possible literals of an expression.
func (s *speller) literals(e ast.Expr, into *[]Spelling) {
	sign := ""
	switch x := e.(type) {
	case *ast.ParenExpr:
		s.literals(x.X, into)
		return
	case *ast.BinaryExpr:
		switch x.Op {
		case token.OR:
			s.literals(x.X, &s.alternatives)
			s.literals(x.Y, &s.alternatives)
		case token.AND:
			s.literals(x.X, into)
			s.literals(x.Y, into)
		}
		return
	case *ast.UnaryExpr:
		switch x.Op {
		case token.MUL:
			s.literals(x.X, &s.alternatives)
			return
		case token.SUB:
			sign = "-"
		case token.ADD:
		default:
			return
		}
		e = x.X
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.FLOAT {
		return
	}
	// A number from YAML may include its sign.
	written, err := model.FloatOf(sign +
		strings.ReplaceAll(strings.TrimPrefix(lit.Value, "+"), "_", ""))
	var n literal.NumInfo
	switch {
	case err != nil && literal.ParseNum(lit.Value, &n) == nil:
		s.err = fmt.Errorf("the number %s%s is beyond what CUE can hold", sign, lit.Value)
	case err == nil && written.Same(s.number) && !isSpelt(*into, written):
		*into = append(*into, Spelling{written, lit.Pos()})
	}
}

func isSpelt(spellings []Spelling, v model.Value) bool {
	for _, s := range spellings {
		if s.Value.Equal(v) {
			return true
		}
	}
	return false
}
