package evaluate

import (
	"cmp"
	"github.com/kalypso-io/kalypso/compiler/model"
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

// shape is what the schema says of a value's fields, read off the schema's own
// files: CUE enforces it, but reports neither all misspelt fields at once nor
// what else could have been meant.
type shape struct {
	fields  map[string]fieldShape
	pattern *shape     // of fields whose names are a pattern
	keys    keyShape   // what those names are
	open    bool       // any field may be there
	oneOf   [][]string // groups of which exactly one field is given
	elem    *shape     // of a list's elements
	enum    []string   // the strings that a scalar may be
	is      string     // what a scalar is, as the schema's documentation says it
	usual   string     // the schema's default of a scalar, as CUE writes it; "" for none
	literal []string   // what a struct may be instead, such as false
	def     string     // the definition that a struct is, where it may be a scalar as well
	address string     // the definition of the schema that an address is: #GitURL, #HTTPURL or #OCIURL
}

type fieldShape struct {
	*shape
	required bool
	// perAssignment says that the field may be a function of any fact of the
	// assignment, where the others of a reconciler are shared by a cluster type.
	perAssignment bool
	doc           string // the field's documentation
}

// keyShape is what the schema says of field names that it leaves open. The zero
// keyShape allows any.
type keyShape struct {
	names   bool           // they are #Name
	matches *regexp.Regexp // they match
	doc     string
}

func (k keyShape) allows(key string) bool {
	return (!k.names || model.IsName(key)) && (k.matches == nil || k.matches.MatchString(key))
}

// names returns the field names, sorted.
func (s *shape) names() []string {
	var names []string
	for n := range s.fields {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// about returns the documentation of a field as a hint.
func (s *shape) about(name string) string {
	doc := lower(firstSentence(s.fields[name].doc))
	if doc == "" || strings.TrimPrefix(doc, "a ") == name {
		return ""
	}
	return name + ": " + doc
}

// allowed lists what a value may be, where that can be listed.
func (s *shape) allowed() string {
	list := strings.Join(s.enum, ", ")
	if len(s.fields) > 0 {
		list += ", or a struct with " + strings.Join(s.names(), ", ")
	}
	return list
}

// definitionOf returns the schema's definition that a collection is.
func definitionOf(collection string) string {
	return "#" + strings.ToUpper(collection[:1]) + collection[1:]
}

// entityShape returns the shape of a collection's entities.
func entityShape(collection string) *shape {
	return schemaShapes()[definitionOf(collection)].pattern
}

// schemaFields are the definitions of the schema, as its files write them.
var schemaFields = sync.OnceValue(func() []*ast.Field {
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

// schemaShapes are the shapes of the schema's definitions, by name.
var schemaShapes = sync.OnceValue(func() map[string]*shape {
	r := &shapeReader{exprs: map[string]ast.Expr{}, docs: map[string]string{}, shapes: map[string]*shape{}}
	for _, field := range schemaFields() {
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
	shapes map[string]*shape
}

func (r *shapeReader) definition(name string) *shape {
	s, done := r.shapes[name]
	if !done {
		s = &shape{}
		r.shapes[name] = s
		r.add(s, r.exprs[name])
		if slices.Contains([]string{"#GitURL", "#HTTPURL", "#OCIURL"}, name) {
			s.address = name
		}
		if doc := r.docs[name]; strings.HasPrefix(doc, strings.TrimPrefix(name, "#")+" is ") && len(s.fields) == 0 && s.pattern == nil {
			s.is, _ = strings.CutPrefix(firstSentence(doc), strings.TrimPrefix(name, "#")+" is ")
		}
	}
	return s
}

// add merges what an expression says into a shape.
func (r *shapeReader) add(s *shape, e ast.Expr) {
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
				s.elem = &shape{}
				r.add(s.elem, ell.Type)
			}
		}
	}
}

// addAlternatives merges the alternatives of a disjunction: the strings that a
// scalar may be, unless it may be any, and the fields of a struct.
func (r *shapeReader) addAlternatives(s *shape, e *ast.BinaryExpr) {
	var enum []string
	any := false
	if usual := usualOf(e); usual != "" {
		s.usual = usual
	}
	for _, alternative := range alternatives(e) {
		switch a := alternative.(type) {
		case *ast.BasicLit:
			if text, err := literal.Unquote(a.Value); err == nil && a.Kind == token.STRING {
				enum = append(enum, text)
				continue
			}
			any = true
			s.literal = append(s.literal, a.Value)
		case *ast.StructLit:
			r.add(s, a)
		case *ast.Ident:
			of := &shape{}
			if r.add(of, a); len(of.fields) == 0 && len(of.enum) == 0 {
				any = true
			}
			if len(of.fields) > 0 {
				s.def = a.Name
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
		s.enum = append(s.enum, enum...)
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

func (s *shape) merge(t *shape) {
	for name, f := range t.fields {
		s.set(name, f)
	}
	if t.pattern != nil {
		s.pattern, s.keys = t.pattern, t.keys
	}
	if t.elem != nil {
		s.elem = t.elem
	}
	if t.usual != "" {
		s.usual = t.usual
	}
	if t.is != "" && s.is == "" {
		s.is = t.is
	}
	if t.def != "" {
		s.def = t.def
	}
	if t.address != "" {
		s.address = t.address
	}
	s.open = s.open || t.open
	s.oneOf = append(s.oneOf, t.oneOf...)
	for _, e := range t.enum {
		if !slices.Contains(s.enum, e) {
			s.enum = append(s.enum, e)
		}
	}
}

func (s *shape) set(name string, f fieldShape) {
	if s.fields == nil {
		s.fields = map[string]fieldShape{}
	}
	s.fields[name] = f
}

func (r *shapeReader) addStruct(s *shape, lit *ast.StructLit) {
	for _, d := range lit.Elts {
		switch d := d.(type) {
		case *ast.Ellipsis:
			s.open = true
		case *ast.EmbedDecl:
			r.add(s, d.Expr)
		case *ast.Attribute:
			if key, body := d.Split(); key == "oneOf" {
				s.oneOf = append(s.oneOf, strings.Split(strings.ReplaceAll(body, " ", ""), ","))
			}
		case *ast.Field:
			r.addField(s, d)
		}
	}
}

func (r *shapeReader) addField(s *shape, d *ast.Field) {
	of := &shape{}
	r.add(of, d.Value)
	if list, isPattern := d.Label.(*ast.ListLit); isPattern {
		r.addPattern(s, list, fieldShape{shape: of, doc: docOf(d)})
		return
	}
	name, _, err := ast.LabelName(d.Label)
	if err != nil || strings.HasPrefix(name, "#") {
		return
	}
	s.set(name, fieldShape{shape: of, required: d.Constraint == token.NOT, perAssignment: hasAttribute(d, "perAssignment"), doc: docOf(d)})

}

func hasAttribute(f *ast.Field, name string) bool {
	return slices.ContainsFunc(f.Attrs, func(a *ast.Attribute) bool {
		key, _ := a.Split()
		return key == name
	})
}

// addPattern adds fields whose names are a pattern: [#Name], [N=#Name],
// [=~"…"], [string], or an enumeration, which is as good as fields.
func (r *shapeReader) addPattern(s *shape, label *ast.ListLit, of fieldShape) {
	key := label.Elts[0]
	if a, ok := key.(*ast.Alias); ok {
		key = a.Expr
	}
	switch names := (&shape{}); key := key.(type) {
	case *ast.ParenExpr:
		r.add(names, key)
		for _, name := range names.enum {
			s.set(name, of)
		}
		return
	case *ast.UnaryExpr:
		if lit, ok := key.X.(*ast.BasicLit); ok && key.Op == token.MAT {
			text, err := literal.Unquote(lit.Value)
			if err != nil {
				panic(err)
			}
			s.keys = keyShape{matches: regexp.MustCompile(text), doc: of.doc}
		}
	case *ast.Ident:
		s.keys = keyShape{names: key.Name == "#Name", doc: of.doc}
	}
	s.pattern = of.shape
}

// firstSentence cuts a documentation after its first sentence.
func firstSentence(doc string) string {
	s, _, _ := strings.Cut(doc, ". ")
	return strings.TrimSuffix(s, ".")
}
