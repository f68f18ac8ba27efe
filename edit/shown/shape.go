package shown

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// shape is what the schema says about the fields of a struct, as far as there are maps in it.
// A nil shape says nothing.
type shape struct {
	fields map[string]*shape
	// Of a map: the definition that its members satisfy, such as #Workload, and their shape.
	definition string
	member     *shape
	element    *shape // of a list
}

// field returns the shape of a field, and the definition that has to be written to see it.
// The name of a pattern or of what is computed is "".
func (s *shape) field(name string) (*shape, string) {
	if s == nil {
		return nil, ""
	}
	if f := s.fields[name]; f != nil {
		return f, ""
	}
	return s.member, s.definition
}

// elements returns the shape of a list's elements.
func (s *shape) elements() *shape {
	if s == nil {
		return nil
	}
	return s.element
}

// platform is the shape of a platform's files: the collections.
var platform = sync.OnceValue(func() *shape {
	b := builder{definitions: definitions(), shapes: map[string]*shape{}}
	root := &shape{fields: map[string]*shape{}}
	for _, name := range model.CollectionNames {
		root.fields[name] = b.ofDefinition("#" + strings.ToUpper(name[:1]) + name[1:])
	}
	return root
})

// definitions are those of the embedded schema, by name.
func definitions() map[string]ast.Expr {
	out := map[string]ast.Expr{}
	files, _ := fs.Glob(kalypso.Module, "schema/*.cue")
	for _, name := range files {
		text, _ := kalypso.Module.ReadFile(name)
		f, err := parser.ParseFile(path.Base(name), text)
		if err != nil {
			continue // the tests of the schema say so
		}
		for _, d := range f.Decls {
			if field, ok := d.(*ast.Field); ok {
				if name, ok := field.Label.(*ast.Ident); ok {
					out[name.Name] = field.Value
				}
			}
		}
	}
	return out
}

// builder makes shapes, each definition's once: they may refer to each other.
type builder struct {
	definitions map[string]ast.Expr
	shapes      map[string]*shape
}

func (b *builder) ofDefinition(name string) *shape {
	if s := b.shapes[name]; s != nil {
		return s
	}
	expr, ok := b.definitions[name]
	if !ok {
		return nil
	}
	s := &shape{fields: map[string]*shape{}}
	b.shapes[name] = s
	b.add(s, expr)
	return s
}

// add adds to a shape what an expression says.
func (b *builder) add(s *shape, expr ast.Expr) {
	switch e := expr.(type) {
	case *ast.Ident:
		if of := b.ofDefinition(e.Name); of != nil && of != s {
			s.merge(of)
		}
	case *ast.BinaryExpr:
		if e.Op == token.AND || e.Op == token.OR {
			b.add(s, e.X)
			b.add(s, e.Y)
		}
	case *ast.ParenExpr:
		b.add(s, e.X)
	case *ast.UnaryExpr:
		b.add(s, e.X)
	case *ast.ListLit:
		for _, el := range e.Elts {
			if rest, ok := el.(*ast.Ellipsis); ok && rest.Type != nil {
				s.element = b.of(rest.Type)
			}
		}
	case *ast.StructLit:
		for _, d := range e.Elts {
			b.declare(s, d)
		}
	}
}

func (b *builder) of(expr ast.Expr) *shape {
	s := &shape{fields: map[string]*shape{}}
	b.add(s, expr)
	return s
}

func (b *builder) declare(s *shape, d ast.Decl) {
	switch d := d.(type) {
	case *ast.EmbedDecl:
		b.add(s, d.Expr)
	case *ast.Field:
		if _, isPattern := d.Label.(*ast.ListLit); isPattern {
			if s.definition = b.definitionIn(d.Value); s.definition != "" {
				s.member = b.ofDefinition(s.definition)
			}
			return
		}
		if name, _, err := ast.LabelName(d.Label); err == nil {
			s.fields[name] = b.of(d.Value)
		}
	}
}

// definitionIn returns the definition that a conjunction begins with, or "".
func (b *builder) definitionIn(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		if _, ok := b.definitions[e.Name]; ok {
			return e.Name
		}
	case *ast.BinaryExpr:
		if e.Op == token.AND {
			return b.definitionIn(e.X)
		}
	}
	return ""
}

func (s *shape) merge(other *shape) {
	for name, f := range other.fields {
		s.fields[name] = f
	}
	if other.definition != "" {
		s.definition, s.member = other.definition, other.member
	}
	if other.element != nil {
		s.element = other.element
	}
}

// nameOf returns the name that a label's token writes; "" where it is computed.
func nameOf(t lexeme) string {
	if t.token == token.STRING {
		name, err := strconv.Unquote(t.text)
		if err != nil {
			return ""
		}
		return name
	}
	return t.text
}
