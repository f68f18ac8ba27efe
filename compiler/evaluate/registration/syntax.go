package registration

import (
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// documents returns the mappings of a YAML stream: CUE makes several documents a
// list.
func documents(f *ast.File) []*ast.StructLit {
	var out []*ast.StructLit
	whole := &ast.StructLit{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.Field:
			whole.Elts = append(whole.Elts, d)
		case *ast.EmbedDecl:
			list, _ := d.Expr.(*ast.ListLit)
			if list == nil {
				continue
			}
			for _, e := range list.Elts {
				if doc, ok := e.(*ast.StructLit); ok {
					out = append(out, doc)
				}
			}
		}
	}
	if len(whole.Elts) > 0 {
		out = append(out, whole)
	}
	return out
}

// fieldOf returns a field that stands at a position.
func fieldOf(name string, value ast.Expr, at token.Pos) *ast.Field {
	label := ast.NewString(name)
	ast.SetPos(label, at)
	return &ast.Field{Label: label, Value: value, TokenPos: at}
}

// stringOf returns the string that a field holds; "" where it holds none.
func stringOf(f *ast.Field) string {
	if f == nil {
		return ""
	}
	lit, ok := f.Value.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, _ := literal.Unquote(lit.Value)
	return text
}

// structOf returns the struct that a field holds; nil where it holds none.
func structOf(f *ast.Field) *ast.StructLit {
	if f == nil {
		return nil
	}
	s, _ := f.Value.(*ast.StructLit)
	return s
}

// elementsOf returns the structs of the list that a field holds.
func elementsOf(f *ast.Field) []*ast.StructLit {
	if f == nil {
		return nil
	}
	list, _ := f.Value.(*ast.ListLit)
	if list == nil {
		return nil
	}
	var out []*ast.StructLit
	for _, e := range list.Elts {
		if s, ok := e.(*ast.StructLit); ok {
			out = append(out, s)
		}
	}
	return out
}
