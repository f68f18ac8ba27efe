package expr

import (
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/token"
)

// IsFinal says whether a value is data that nothing may replace: no default, no
// constraint, no optional field and no open list anywhere in it. CUE's IsConcrete
// alone also holds for [...string] and its like.
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

// IsFinalList says whether a list has as many elements as it will ever have.
func IsFinalList(v cue.Value) bool {
	n := v.Len()
	return n.Err() == nil && n.IsConcrete()
}

// WithoutDefaults removes the marks of defaults from an expression, which it
// changes: what remains is the constraint that any value must satisfy.
func WithoutDefaults(e ast.Expr) ast.Expr {
	return astutil.Apply(e, nil, func(c astutil.Cursor) bool {
		if u, ok := c.Node().(*ast.UnaryExpr); ok && u.Op == token.MUL {
			c.Replace(u.X)
		}
		return true
	}).(ast.Expr)
}
