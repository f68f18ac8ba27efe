package cuevalue

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/expr"
)

// ImportOf returns the import that an identifier refers to.
func ImportOf(id *ast.Ident) (*ast.ImportSpec, bool) {
	if id == nil {
		return nil, false
	}
	spec, ok := id.Node.(*ast.ImportSpec)
	return spec, ok
}

// Syntax returns a value as a self-contained expression, which needs only CUE's builtin
// packages. It resolves references. Without options, it keeps defaults and optional fields as
// they are written. If CUE cannot write such an expression, Syntax returns the evaluated value.
func Syntax(v cue.Value, options ...cue.Option) (ast.Expr, error) {
	e, err := Definition(v, options...)
	if errors.Is(err, errExport) {
		return evaluated(v)
	}
	return e, err
}

var errExport = errors.New("CUE cannot write it")

// Definition returns a value as CUE's exporter writes it, with references between its own
// parts. It returns an error if a reference leads to a name that is not an identifier: the
// exporter would use the name for a let, and panics.
func Definition(v cue.Value, options ...cue.Option) (e ast.Expr, err error) {
	defer func() {
		if p := recover(); p != nil {
			e, err = nil, fmt.Errorf("%w: %v", errExport, p)
		}
	}()
	switch n := v.Syntax(append(options, cue.InlineImports(true))...).(type) {
	case *ast.File:
		lit := &ast.StructLit{}
		for _, d := range n.Decls {
			switch d.(type) {
			case *ast.ImportDecl, *ast.Package:
			default:
				lit.Elts = append(lit.Elts, d)
			}
		}
		return unwrap(lit), nil
	case ast.Expr:
		return unwrap(n), nil
	default:
		return nil, fmt.Errorf("CUE has no syntax for it (%T)", n)
	}
}

// unwrap removes the definition in which CUE wraps a value that was written inside one, {_#def,
// _#def: X}. The definition would close X at every level.
func unwrap(e ast.Expr) ast.Expr {
	lit, ok := e.(*ast.StructLit)
	if !ok {
		return e
	}
	var rest []ast.Decl
	var inner ast.Expr
	for _, d := range lit.Elts {
		switch d := d.(type) {
		case *ast.EmbedDecl:
			if id, ok := d.Expr.(*ast.Ident); ok && id.Name == wrapper {
				continue
			}
			if len(lit.Elts) == 1 {
				return d.Expr
			}
		case *ast.Field:
			if name, _, err := ast.LabelName(d.Label); err == nil && name == wrapper {
				inner = d.Value
				continue
			}
		case *ast.ImportDecl:
			continue
		}
		rest = append(rest, d)
	}
	if inner == nil {
		return lit
	}
	if len(rest) == 0 {
		return inner
	}
	// The inner value refers to the fields beside the wrapper, such as the #x of a JSON
	// Schema's $defs.
	return &ast.StructLit{Elts: append(rest, &ast.EmbedDecl{Expr: inner})}
}

// wrapper is the name of the definition that CUE's exporter puts around a value.
const wrapper = "_#def"

// SyntaxText returns the syntax of a value, and its text as Write prints it.
func SyntaxText(v cue.Value) (e ast.Expr, text string, err error) {
	if e, err = Syntax(v); err == nil {
		text, err = Write(e)
	}
	return e, text, err
}

// Write prints an expression canonically. It uses one line if the expression has no comments.
func Write(e ast.Expr) (string, error) {
	b, err := format.Node(e, format.Simplify())
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(bytes.TrimSpace(b))), nil
}

// WriteWithoutComments prints an expression of a source file without its comments. The file
// itself keeps them.
func WriteWithoutComments(e ast.Expr) (string, error) {
	text, err := Write(e)
	if err != nil || !strings.Contains(text, "//") {
		return text, err
	}
	without, err := parser.ParseExpr("", text)
	if err != nil {
		return "", err
	}
	return Write(without)
}

// hasDefault reports whether an expression marks a default.
func hasDefault(e ast.Expr) bool {
	return contains(e, func(n ast.Node) bool {
		u, ok := n.(*ast.UnaryExpr)
		return ok && u.Op == token.MUL
	})
}

// contains reports whether f returns true for a node of a syntax tree.
func contains(n ast.Node, f func(ast.Node) bool) bool {
	found := false
	ast.Walk(n, func(n ast.Node) bool {
		found = found || f(n)
		return !found
	}, nil)
	return found
}

// evaluated returns the result of CUE's evaluation of a value as an expression. Unlike
// Definition, which keeps the form of the source, it leaves no comprehensions and no
// references; defaults stay marked. It returns an error if the expression would lose
// information: about an unknown value, a closed struct, or alternatives that are structs.
func evaluated(v cue.Value) (ast.Expr, error) {
	if v.IncompleteKind() == cue.StructKind && !expr.IsSecret(v) {
		return evaluatedStruct(v)
	}
	if IsUnknown(v) {
		return nil, errors.New("CUE does not know it yet")
	}
	text := fmt.Sprintf("%v", v)
	if v.IncompleteKind()&(cue.StructKind|cue.ListKind) != 0 && strings.Contains(text, "{") {
		return nil, errors.New("CUE cannot write what structs it may be") // optional fields would be lost
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

// MarksDefault reports whether a value marks a default, either evaluated or as it is written.
// The default may be in an optional field of an alternative, and only the written form has
// that.
func MarksDefault(v cue.Value) bool {
	if e, err := parser.ParseExpr("", fmt.Sprintf("%v", v)); err == nil && hasDefault(e) {
		return true
	}
	return slices.ContainsFunc(SourceNodes(v), func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			n = f.Value
		}
		e, ok := n.(ast.Expr)
		return ok && !contains(e, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.Comprehension, *ast.CallExpr, *ast.IndexExpr, *ast.SelectorExpr:
				return true
			}
			return false
		}) && hasDefault(e)
	})
}
