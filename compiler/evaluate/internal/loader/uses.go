package loader

import (
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Members finds the use of a name of an imported package at one of the positions. It returns
// the local name of the package, and all names in the package, in the form of such a use. of is
// "" if the name is not used as the name of a package's member.
func (p *Places) Members(at []model.Position, name string) (of string, members []string) {
	p.selectors(func(sel *ast.SelectorExpr, id *ast.Ident, spec *ast.ImportSpec) {
		if used, _, err := ast.LabelName(sel.Sel); of != "" || err != nil || used != name ||
			!slices.ContainsFunc(at, func(at model.Position) bool {
				return at == p.Position(sel.Pos()) || at == p.Position(sel.Sel.Pos())
			}) {
			return
		}
		of = id.Name
		for _, inst := range p.imports {
			if inst.ImportPath != importPath(spec) {
				continue
			}
			for _, f := range inst.Files {
				for name := range named(f.Decls) {
					if !strings.HasPrefix(name, "_") {
						members = append(members, of+"."+name)
					}
				}
			}
		}
	}, p.nodes()...)
	return of, members
}

// Profile returns the definition of the standard library on which the entity at a path is
// based, as it is written. It returns "" if there is no such definition.
func (p *Places) Profile(path []string) (profile string) {
	if len(path) < 2 {
		return ""
	}
	var nodes []ast.Node
	for _, f := range p.Declared(path[:2]) {
		nodes = append(nodes, f.Value)
	}
	p.selectors(func(sel *ast.SelectorExpr, id *ast.Ident, spec *ast.ImportSpec) {
		if name, _, err := ast.LabelName(sel.Sel); err == nil && profile == "" &&
			strings.HasPrefix(importPath(spec), OurModule+"/stdlib/") {
			profile = id.Name + "." + name
		}
	}, nodes...)
	return profile
}

// IsLiteral reports whether a literal is at a position, as CUE prints it.
func (p *Places) IsLiteral(at model.Position, text string) (found bool) {
	p.walk(at.File, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.BasicLit:
			found = found || n.Value == text && p.Position(n.Pos()) == at
		case *ast.UnaryExpr:
			lit, ok := n.X.(*ast.BasicLit)
			found = found || ok && n.Op == token.SUB && "-"+lit.Value == text && p.Position(n.Pos()) == at
		}
	})
	return found
}

// comprehensions returns the starts of all comprehensions of the package.
func (p *Places) comprehensions() map[model.Position]bool {
	out := map[model.Position]bool{}
	for _, f := range p.Files {
		ast.Walk(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.Comprehension); ok {
				out[p.Position(c.Pos())] = true
			}
			return true
		}, nil)
	}
	return out
}

// Labels returns the names of all fields that the package writes, sorted.
func (p *Places) Labels() []string { return p.labels() }

func (p *Places) fieldNames() []string {
	var out []string
	for _, f := range p.Files {
		ast.Walk(f, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok {
				if name, _, err := ast.LabelName(field.Label); err == nil {
					out = append(out, name)
				}
			}
			return true
		}, nil)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ComprehensionsLast moves the positions of comprehensions behind the others: CUE reports them
// for all errors inside them.
func (p *Places) ComprehensionsLast(at []model.Position) []model.Position {
	if len(at) < 2 {
		return at
	}
	clauses := p.clauses()
	slices.SortStableFunc(at, func(a, b model.Position) int {
		switch {
		case clauses[a] == clauses[b]:
			return 0
		case clauses[b]:
			return -1
		}
		return 1
	})
	return at
}

// UnquotedURL returns the URL without quotes in the line of a position. CUE reads everything
// after its // as a comment. It returns "" if the line has no such URL.
func (p *Places) UnquotedURL(at model.Position) string {
	if m := unquotedURL.FindStringSubmatch(p.line(at)); m != nil {
		return m[1]
	}
	return ""
}

// line returns the line of a position in a file of the package. It returns "" if there is no
// such line.
func (p *Places) line(at model.Position) string {
	for _, f := range p.Files {
		if p.relative(f.Filename) != at.File {
			continue
		}
		name, _ := p.files.Name(f.Filename)
		if data, err := p.files.ReadFile(name); err == nil {
			lines := strings.Split(string(data), "\n")
			return (&sketch{lines: lines}).line(at.Line)
		}
	}
	return ""
}

// Indented returns the fields at the top of a file that appear to be inside the field before
// them. They are indented as in YAML, but that field has no braces.
func (p *Places) Indented() []*ast.Field {
	var out []*ast.Field
	for _, f := range p.Files {
		outer := 0 // the column of the field that has the struct; 0 outside
		for _, decl := range f.Decls {
			field, ok := decl.(*ast.Field)
			if !ok {
				continue
			}
			switch column := field.Pos().Column(); {
			case outer > 0 && column > outer:
				out = append(out, field)
			case goesOnBelow(field):
				outer = column
			default:
				outer = 0
			}
		}
	}
	return out
}

// goesOnBelow reports whether the value of a field is another field, in a later line and
// without braces.
func goesOnBelow(f *ast.Field) bool {
	for {
		s, ok := f.Value.(*ast.StructLit)
		if !ok || s.Lbrace.IsValid() || len(s.Elts) != 1 {
			return false
		}
		inner, ok := s.Elts[0].(*ast.Field)
		if !ok {
			return false
		}
		if inner.Pos().Line() > f.Pos().Line() {
			return true
		}
		f = inner
	}
}

// selectors calls f with the uses of imported packages in nodes.
func (p *Places) selectors(f func(*ast.SelectorExpr, *ast.Ident, *ast.ImportSpec),
	nodes ...ast.Node) {
	for _, n := range nodes {
		ast.Walk(n, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				id, _ := sel.X.(*ast.Ident)
				if spec, imported := cuevalue.ImportOf(id); imported {
					f(sel, id, spec)
				}
			}
			return true
		}, nil)
	}
}

func (p *Places) nodes() []ast.Node {
	var out []ast.Node
	for _, f := range p.Files {
		out = append(out, f)
	}
	return out
}

// importPath returns the path of an import, without a version.
func importPath(spec *ast.ImportSpec) string {
	name, _, _ := strings.Cut(strings.Trim(spec.Path.Value, `"`), "@")
	return path.Clean(name)
}
