package shape

import (
	"cmp"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso"
)

// docOf returns a field's documentation, in one line.
func docOf(f *ast.Field) string {
	for _, g := range ast.Comments(f) {
		if g.Doc {
			return strings.Join(strings.Fields(g.Text()), " ")
		}
	}
	return ""
}

// fieldsOfSchema are the definitions of the schema, as its files write them.
var fieldsOfSchema = sync.OnceValue(func() []*ast.Field {
	var out []*ast.Field
	files, err := fs.Glob(kalypso.Module, "schema/*.cue")
	if err != nil {
		panic(err)
	}
	for _, name := range files {
		data, err := kalypso.Module.ReadFile(name)
		if err != nil {
			panic(err)
		}
		f, err := parser.ParseFile(name, data, parser.ParseComments)
		if err != nil {
			panic(err)
		}
		for _, d := range f.Decls {
			if field, ok := d.(*ast.Field); ok {
				out = append(out, field)
			}
		}
	}
	return out
})

// Definitions are the shapes of the schema's definitions, by name.
var Definitions = sync.OnceValue(func() map[string]*Shape {
	r := &shapeReader{exprs: map[string]ast.Expr{}, docs: map[string]string{}, shapes: map[string]*Shape{}}
	for _, field := range fieldsOfSchema() {
		name, _, _ := ast.LabelName(field.Label)
		r.exprs[name], r.docs[name] = field.Value, docOf(field)
	}
	for name := range r.exprs {
		r.definition(name)
	}
	return r.shapes
})

type shapeReader struct {
	exprs  map[string]ast.Expr
	docs   map[string]string
	shapes map[string]*Shape
}

func (r *shapeReader) definition(name string) *Shape {
	s, done := r.shapes[name]
	if !done {
		s = &Shape{}
		r.shapes[name] = s
		r.add(s, r.exprs[name])
		if slices.Contains([]string{"#GitURL", "#HTTPURL", "#OCIURL"}, name) {
			s.Address = name
		}
		s.selects = s.selects || strings.HasSuffix(name, "Selector")
		if doc := r.docs[name]; strings.HasPrefix(doc, strings.TrimPrefix(name, "#")+" is ") &&
			len(s.Fields) == 0 && s.Pattern == nil {
			s.Is, _ = strings.CutPrefix(firstSentence(doc), strings.TrimPrefix(name, "#")+" is ")
		}
	}
	return s
}

// add merges what an expression says into a shape.
func (r *shapeReader) add(s *Shape, e ast.Expr) {
	switch e := e.(type) {
	case *ast.StructLit:
		r.addStruct(s, e)
	case *ast.BinaryExpr:
		if e.Op == token.OR {
			r.addAlternatives(s, e)
			return
		}
		r.add(s, e.X)
		r.add(s, e.Y)
	case *ast.UnaryExpr:
		if e.Op == token.MUL {
			r.add(s, e.X)
		}
	case *ast.ParenExpr:
		r.add(s, e.X)
	case *ast.Ident:
		if strings.HasPrefix(e.Name, "#") {
			s.merge(r.definition(e.Name))
		}
	case *ast.ListLit:
		for _, elt := range e.Elts {
			if ell, ok := elt.(*ast.Ellipsis); ok && ell.Type != nil {
				s.Elem = &Shape{}
				r.add(s.Elem, ell.Type)
			}
		}
	}
}

// addAlternatives merges the alternatives of a disjunction: the strings that a
// scalar may be, unless it may be any, and the fields of a struct.
func (r *shapeReader) addAlternatives(s *Shape, e *ast.BinaryExpr) {
	var enum []string
	any := false
	if usual := usualOf(e); usual != "" {
		s.Usual = usual
	}
	for _, alternative := range alternatives(e) {
		switch a := alternative.(type) {
		case *ast.BasicLit:
			if text, err := literal.Unquote(a.Value); err == nil && a.Kind == token.STRING {
				enum = append(enum, text)
				continue
			}
			any = true
			s.Literal = append(s.Literal, a.Value)
		case *ast.StructLit:
			r.add(s, a)
		case *ast.Ident:
			of := &Shape{}
			if r.add(of, a); len(of.Fields) == 0 && len(of.Enum) == 0 {
				any = true
			}
			if len(of.Fields) > 0 {
				s.Def = a.Name
			}
			s.merge(of)
		case *ast.ListLit:
			any = true
			r.add(s, a)
		default:
			any = true
		}
	}
	if !any {
		s.Enum = append(s.Enum, enum...)
	}
}

// usualOf returns the literal that is the default of a disjunction; "" for none.
func usualOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.UnaryExpr:
		if lit, ok := e.X.(*ast.BasicLit); ok && e.Op == token.MUL {
			return lit.Value
		}
	case *ast.BinaryExpr:
		return cmp.Or(usualOf(e.X), usualOf(e.Y))
	}
	return ""
}

func alternatives(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return alternatives(e.X)
	case *ast.UnaryExpr:
		if e.Op == token.MUL {
			return alternatives(e.X)
		}
	case *ast.BinaryExpr:
		if e.Op == token.OR {
			return append(alternatives(e.X), alternatives(e.Y)...)
		}
	}
	return []ast.Expr{e}
}

func (r *shapeReader) addStruct(s *Shape, lit *ast.StructLit) {
	for _, d := range lit.Elts {
		switch d := d.(type) {
		case *ast.Ellipsis:
			s.Open = true
		case *ast.EmbedDecl:
			r.add(s, d.Expr)
		case *ast.Attribute:
			if key, body := d.Split(); key == "oneOf" {
				s.OneOf = append(s.OneOf, strings.Split(strings.ReplaceAll(body, " ", ""), ","))
			}
		case *ast.Field:
			r.addField(s, d)
		}
	}
}

func (r *shapeReader) addField(s *Shape, d *ast.Field) {
	of := &Shape{}
	r.add(of, d.Value)
	if list, isPattern := d.Label.(*ast.ListLit); isPattern {
		r.addPattern(s, list, Field{Shape: of, doc: docOf(d)})
		return
	}
	name, _, err := ast.LabelName(d.Label)
	if err != nil || strings.HasPrefix(name, "#") {
		return
	}
	s.set(name, Field{Shape: of, Required: d.Constraint == token.NOT,
		PerAssignment: hasAttribute(d, "perAssignment"), doc: docOf(d)})

}

func hasAttribute(f *ast.Field, name string) bool {
	return slices.ContainsFunc(f.Attrs, func(a *ast.Attribute) bool {
		key, _ := a.Split()
		return key == name
	})
}

// addPattern adds fields whose names are a pattern: [#Name], [N=#Name],
// [=~"…"], [string], or an enumeration, which is the same as fields.
func (r *shapeReader) addPattern(s *Shape, label *ast.ListLit, of Field) {
	key := label.Elts[0]
	if a, ok := key.(*ast.Alias); ok {
		key = a.Expr
	}
	switch names := (&Shape{}); key := key.(type) {
	case *ast.ParenExpr:
		r.add(names, key)
		for _, name := range names.Enum {
			s.set(name, of)
		}
		return
	case *ast.UnaryExpr:
		s.Keys = Keys{matches: matched(key), doc: of.doc}
	case *ast.Ident:
		s.Keys = Keys{names: key.Name == "#Name", doc: of.doc}
		if key.Name == "#TestName" {
			s.Keys.matches = matched(r.exprs[key.Name])
		}
	}
	s.Pattern = of.Shape
}

// matched returns the regular expression that =~"…" is of; nil for anything else.
func matched(e ast.Expr) *regexp.Regexp {
	u, ok := e.(*ast.UnaryExpr)
	if !ok || u.Op != token.MAT {
		return nil
	}
	lit, ok := u.X.(*ast.BasicLit)
	if !ok {
		return nil
	}
	text, err := literal.Unquote(lit.Value)
	if err != nil {
		panic(err)
	}
	return regexp.MustCompile(text)
}
