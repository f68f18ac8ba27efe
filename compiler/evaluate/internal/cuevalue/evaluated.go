package cuevalue

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/expr"
)

// evaluated returns a value as an expression of what CUE evaluated it to, where
// syntax is of how it was written: no comprehension and no reference is left, and
// defaults stay marked. The error is about what that leaves out: what is not known
// yet, what closes a struct, and alternatives that are structs.
func evaluated(v cue.Value) (ast.Expr, error) {
	if v.IncompleteKind() == cue.StructKind && !expr.IsSecret(v) {
		return evaluatedStruct(v)
	}
	if IsUnknown(v) {
		return nil, errors.New("CUE does not know it yet")
	}
	text := fmt.Sprintf("%v", v)
	if v.IncompleteKind()&(cue.StructKind|cue.ListKind) != 0 && strings.Contains(text, "{") {
		return nil, errors.New("CUE cannot write what structs it may be") // optional fields are left out
	}
	return parser.ParseExpr("", text)
}

func evaluatedStruct(v cue.Value) (ast.Expr, error) {
	it, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	switch {
	case err != nil:
		return nil, err
	case IsUnknown(v):
		return nil, errors.New("CUE does not know which fields it has")
	case IsUsed("close", SourceNodes(v)):
		return nil, errors.New("CUE cannot write what close makes of it")
	}
	lit := &ast.StructLit{}
	for it.Next() {
		of, err := evaluated(it.Value())
		if err != nil {
			return nil, err
		}
		f := &ast.Field{Value: of}
		if sel := it.Selector(); it.FieldType()&cue.PatternConstraint != 0 {
			pattern, err := evaluated(sel.Pattern())
			if err != nil {
				return nil, err
			}
			f.Label = ast.NewList(pattern)
		} else {
			f.Label = ast.NewString(sel.Unquoted())
		}
		switch kind := it.FieldType(); {
		case kind&cue.OptionalConstraint != 0:
			f.Constraint = token.OPTION
		case kind&cue.RequiredConstraint != 0:
			f.Constraint = token.NOT
		}
		lit.Elts = append(lit.Elts, f)
	}
	return lit, nil
}

// MarksDefault says whether a value marks a default, as it is evaluated or, which
// may be in an optional field of an alternative, as it is written.
func MarksDefault(v cue.Value) bool {
	if e, err := parser.ParseExpr("", fmt.Sprintf("%v", v)); err == nil && hasDefault(e) {
		return true
	}
	return slices.ContainsFunc(SourceNodes(v), func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			n = f.Value
		}
		e, ok := n.(ast.Expr)
		return ok && isLiteralConstraint(e) && hasDefault(e)
	})
}

// isLiteralConstraint says whether an expression is made of constraints as they
// are: a default in a comprehension or in an argument is of something else.
func isLiteralConstraint(e ast.Expr) bool {
	return !contains(e, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.Comprehension, *ast.CallExpr, *ast.IndexExpr, *ast.SelectorExpr:
			return true
		}
		return false
	})
}
