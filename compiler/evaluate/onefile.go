package evaluate

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// checkOneFile warns of a selector that several files write, each for itself: it is
// all of them at once, so that each narrows what the others select. What templates
// and definitions give it does not count, nor what says the same or nothing.
func (x *selectors) checkOneFile(ref model.Ref) {
	if strings.Contains(ref.Path, "[") {
		return // CUE does not unify lists of different elements
	}
	var files, texts []string
	d := diag.New(diag.SeveralFiles, "").On(ref.String())
	for _, f := range x.declared(append([]string{ref.Collection, ref.Name}, strings.Split(ref.Path, ".")...)) {
		text, err := writeWithoutComments(f.Value)
		at := x.of(f.Pos())
		if err != nil || at.IsZero() || text == "{}" || text == "_" || slices.Contains(texts, text) {
			continue
		}
		texts = append(texts, text)
		if !slices.Contains(files, at.File) {
			files = append(files, at.File)
		}
		d = d.In(at, "")
	}
	if len(files) > 1 {
		d.Message = fmt.Sprintf("%s of %s is written in %d files, and selects only what all of them select", ref.Path, ref.Name, len(files))
		x.report(d.Hinting("write it in one file, or give what is another's a name of its own"))
	}
}

// declared returns the fields at a path that the package's files write by their
// names: not those of templates, definitions and comprehensions.
func (p *places) declared(path []string) []*ast.Field {
	var out []*ast.Field
	for _, f := range p.files {
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
