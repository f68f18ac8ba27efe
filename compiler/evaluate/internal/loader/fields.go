package loader

import (
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// PathAt returns the names of the fields around a position; nil for one at the top.
func (p *Places) PathAt(at model.Position) (path []string) {
	for _, f := range p.Files {
		if p.relative(f.Filename) != at.File {
			continue
		}
		ast.Walk(f, func(n ast.Node) bool {
			if field, isField := n.(*ast.Field); isField && p.Contain(at, []ast.Node{field}) {
				if name, _, err := ast.LabelName(field.Label); err == nil {
					path = append(path, name)
				}
			}
			return true
		}, nil)
	}
	return path
}

// Declared returns the fields at a path that the package's files write by their
// names: not those of templates, definitions and comprehensions.
func (p *Places) Declared(path []string) []*ast.Field {
	var out []*ast.Field
	for _, f := range p.Files {
		out = append(out, fieldsAt(f.Decls, path)...)
	}
	return out
}

func fieldsAt(decls []ast.Decl, path []string) (out []*ast.Field) {
	for _, d := range decls {
		f, ok := d.(*ast.Field)
		if !ok || f.Constraint != token.ILLEGAL {
			continue
		}
		if name, _, err := ast.LabelName(f.Label); err != nil || name != path[0] {
			continue
		}
		if len(path) == 1 {
			out = append(out, f)
			continue
		}
		for _, lit := range structsOf(f.Value) {
			out = append(out, fieldsAt(lit.Elts, path[1:])...)
		}
	}
	return out
}

// structsOf returns the struct literals that an expression is the conjunction of.
func structsOf(e ast.Expr) []*ast.StructLit {
	switch e := e.(type) {
	case *ast.StructLit:
		return []*ast.StructLit{e}
	case *ast.BinaryExpr:
		if e.Op == token.AND {
			return append(structsOf(e.X), structsOf(e.Y)...)
		}
	}
	return nil
}

// FieldAt returns the name of the field whose constraint is written at a position.
func (p *Places) FieldAt(at model.Position) (string, bool) {
	name := ""
	for _, f := range p.Files {
		if p.relative(f.Filename) != at.File {
			continue
		}
		ast.Walk(f, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && isConstraint(field.Value) && p.Of(field.Value.Pos()) == at {
				name, _, _ = ast.LabelName(field.Label)
			}
			return name == ""
		}, nil)
	}
	return name, name != ""
}

// isConstraint says whether an expression may be what has no value: a type, a
// bound or an operation, and no literal.
func isConstraint(e ast.Expr) bool {
	switch e.(type) {
	case *ast.Ident, *ast.BinaryExpr, *ast.UnaryExpr, *ast.ParenExpr, *ast.CallExpr:
		return true
	}
	return false
}

// IsOf says whether a position is that of a field's expression.
func (p *Places) IsOf(at model.Position, fields []ast.Node) bool {
	return slices.ContainsFunc(fields, func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		return ok && p.Of(f.Value.Pos()) == at
	})
}

// Contain says whether a position is inside syntax.
func (p *Places) Contain(at model.Position, nodes []ast.Node) bool {
	return slices.ContainsFunc(nodes, func(n ast.Node) bool {
		first, last := p.Of(n.Pos()), p.Of(n.End())
		return first.File == at.File && first.Compare(at) <= 0 && at.Compare(last) <= 0
	})
}
