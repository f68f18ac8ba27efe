// Package shape has the schema of the language as Go values, for better messages than CUE's,
// and for editors. It reads the schema's own files, which remain the only source.
//
// For example, the input is the definition #Config, {match!: #Match, ...}. The output is a
// [Shape] whose field match has the name "match", is required, and begins with the definition
// #Match.
package shape

import (
	"cmp"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Shape has the fields of a value, or its other forms, according to the schema. CUE enforces
// the same rules, but it neither reports all misspelt fields at once nor suggests corrections.
type Shape struct {
	Fields  map[string]Field
	Pattern *Field     // every field whose name matches a pattern; nil if there is no pattern
	Keys    Keys       // the names that the pattern allows
	Open    bool       // any field may be there
	OneOf   [][]string // groups with exactly one field
	Elem    *Shape     // of a list's elements
	Enum    []string   // the strings that a scalar may be; empty if it may be any string
	Texts   []string   // the strings in the schema: the strings of Enum, and defaults
	Is      string     // the kind of scalar, in the words of the schema's documentation
	// the schema's default of a scalar, in CUE's syntax; "" if there is no default
	Usual   string
	Literal []string         // alternatives to a struct, such as false
	Def     string           // the definition of a struct that may also be a scalar
	Inputs  map[string]Field // the fields that are definitions: #assignment
	selects bool             // it is the shape of a selector
	Address string           // the schema's definition of an address: #GitURL, #HTTPURL or #OCIURL
}

// Misspelt reports whether a missing field seems to exist under a misspelt name, which another
// diagnostic reports.
func (s *Shape) Misspelt(name string, given map[string]cue.Value) bool {
	for other := range given {
		if _, known := s.Fields[other]; !known && spelling.Meant(other, s.Names()) == name {
			return true
		}
	}
	return false
}

// Find returns the shape of the value at an absolute path, where s is the shape of v. It
// returns nil if the schema does not describe the value.
func (s *Shape) Find(v cue.Value, path []string) *Shape {
	depth := len(v.Path().Selectors())
	if len(path) < depth {
		return nil
	}
	return s.At(path[depth:])
}

// At returns the shape of the value at a path inside a value with shape s. It returns nil if
// the schema does not describe it.
func (s *Shape) At(path []string) *Shape {
	for _, name := range path {
		switch f := s.Field(strings.Trim(name, `"`)); {
		case f != nil:
			s = f.Shape
		case s.Elem != nil:
			s = s.Elem
		default:
			return nil
		}
	}
	return s
}

// Field returns the field with a name, which the pattern may cover. It returns nil if the
// schema has no such field.
func (s *Shape) Field(name string) *Field {
	if f, known := s.Fields[name]; known {
		return &f
	}
	return s.Pattern
}

// FactNames are the fields of #assignment, as schema.#Assignment declares them.
func FactNames() []string { return Definitions()["#Assignment"].Names() }

// DefaultNamespaceService is the name of the schema's own namespace service.
const DefaultNamespaceService = "default"

// Field is a field of a struct.
type Field struct {
	*Shape
	// Name is "" if the field's name is a pattern, or one of several names that a pattern
	// lists.
	Name string
	// In is the definition that has the field, such as #Workload. Of is the definition that the
	// field's value begins with, such as #Name; "" if there is no such definition.
	In, Of   string
	Required bool
	// PerAssignment reports whether the field may be a function of any fact of the assignment. The
	// other fields of a reconciler are the same for all assignments of a cluster type.
	PerAssignment bool
	Doc           string // the field's documentation, in one line
}

// Keys are the field names that a pattern of the schema allows. The zero Keys allow any.
type Keys struct {
	names   bool           // they must be a #Name
	matches *regexp.Regexp // they must match
	doc     string
}

// Allows reports whether the keys allow the name for a field.
func (k Keys) Allows(key string) bool {
	return (!k.names || model.IsName(key)) && (k.matches == nil || k.matches.MatchString(key))
}

// Names returns the field names, sorted.
func (s *Shape) Names() []string { return slices.Sorted(maps.Keys(s.Fields)) }

// OnlyRequired returns the name of the only required field of a struct. It returns "" if no
// field, or more than one, is required.
func (s *Shape) OnlyRequired() string {
	only := ""
	if s == nil {
		return ""
	}
	for name := range s.Fields {
		if s.Fields[name].Required && only != "" {
			return ""
		}
		if s.Fields[name].Required {
			only = name
		}
	}
	return only
}

// Definition returns the schema's definition of a collection.
func Definition(collection string) string {
	return "#" + strings.ToUpper(collection[:1]) + collection[1:]
}

// Of returns the shape of a collection's entities.
func Of(collection string) *Shape { return Definitions()[Definition(collection)].Pattern.Shape }

// NamesOf returns the allowed names for the entities of a collection.
func NamesOf(collection string) Keys { return Definitions()[Definition(collection)].Keys }

func (s *Shape) merge(t *Shape) {
	for name, f := range t.Fields {
		s.set(name, f)
	}
	if t.Pattern != nil {
		s.Pattern, s.Keys = t.Pattern, t.Keys
	}
	if t.Elem != nil {
		s.Elem = t.Elem
	}
	if t.Usual != "" {
		s.Usual = t.Usual
	}
	if t.Is != "" && s.Is == "" {
		s.Is = t.Is
	}
	if t.Def != "" {
		s.Def = t.Def
	}
	if t.Address != "" {
		s.Address = t.Address
	}
	s.Open, s.selects = s.Open || t.Open, s.selects || t.selects
	s.OneOf = append(s.OneOf, t.OneOf...)
	s.Texts = append(s.Texts, t.Texts...)
	for name, f := range t.Inputs {
		s.setInput(name, f)
	}
	for _, e := range t.Enum {
		if !slices.Contains(s.Enum, e) {
			s.Enum = append(s.Enum, e)
		}
	}
}

func (s *Shape) setInput(name string, f Field) {
	if s.Inputs == nil {
		s.Inputs = map[string]Field{}
	}
	s.Inputs[name] = f
}

func (s *Shape) set(name string, f Field) {
	if s.Fields == nil {
		s.Fields = map[string]Field{}
	}
	s.Fields[name] = f
}

// docOf returns a field's documentation, in one line.
func docOf(f *ast.Field) string {
	for _, g := range ast.Comments(f) {
		if g.Doc {
			return strings.Join(strings.Fields(g.Text()), " ")
		}
	}
	return ""
}

// fieldsOfSchema returns the definitions in the schema's files.
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

// Platform returns the shape of a platform's files. Its fields are the collections, and
// #assignment, which files use but do not declare.
var Platform = sync.OnceValue(func() *Shape {
	root := &Shape{Fields: map[string]Field{"#assignment": {Shape: Definitions()["#Assignment"]}}}
	for _, field := range fieldsOfSchema() {
		definition, _, _ := ast.LabelName(field.Label)
		for _, name := range model.CollectionNames {
			if Definition(name) == definition {
				root.Fields[name] = Field{Shape: Definitions()[definition], Name: name, Doc: docOf(field)}
			}
		}
	}
	return root
})

// Definitions returns the shapes of the schema's definitions, by name.
var Definitions = sync.OnceValue(func() map[string]*Shape {
	r := &shapeReader{exprs: map[string]ast.Expr{}, docs: map[string]string{},
		shapes: map[string]*Shape{}}
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
	in     string // the current definition
}

func (r *shapeReader) definition(name string) *Shape {
	s, done := r.shapes[name]
	if !done {
		s = &Shape{}
		r.shapes[name] = s
		outer := r.in
		r.in = name
		r.add(s, r.exprs[name])
		r.in = outer
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

// add merges the information of an expression into a shape.
func (r *shapeReader) add(s *Shape, e ast.Expr) {
	switch e := e.(type) {
	case *ast.StructLit:
		for _, d := range e.Elts {
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
	case *ast.BasicLit:
		if text, err := literal.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			s.Texts = append(s.Texts, text)
		}
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

// addAlternatives merges the alternatives of a disjunction. These are the allowed strings of a
// scalar, unless any string is allowed, and the fields of a struct.
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
	s.Texts = append(s.Texts, enum...)
	if !any {
		s.Enum = append(s.Enum, enum...)
	}
}

// usualOf returns the literal that is the default of a disjunction. It returns "" if there is
// no default.
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

func (r *shapeReader) addField(s *Shape, d *ast.Field) {
	f := Field{Shape: &Shape{}, In: r.in, Of: r.firstDefinition(d.Value), Doc: docOf(d)}
	r.add(f.Shape, d.Value)
	if list, isPattern := d.Label.(*ast.ListLit); isPattern {
		r.addPattern(s, list, f)
		return
	}
	name, _, err := ast.LabelName(d.Label)
	if err != nil {
		return
	}
	f.Name, f.Required = name, d.Constraint == token.NOT
	f.PerAssignment = slices.ContainsFunc(d.Attrs, func(a *ast.Attribute) bool {
		key, _ := a.Split()
		return key == "perAssignment"
	})
	if !strings.HasPrefix(name, "#") {
		s.set(name, f)
		return
	}
	s.setInput(name, f)
}

// firstDefinition returns the definition that a conjunction begins with. It returns "" if it
// begins with another expression.
func (r *shapeReader) firstDefinition(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if r.exprs[e.Name] != nil {
			return e.Name
		}
	case *ast.BinaryExpr:
		if e.Op == token.AND {
			return r.firstDefinition(e.X)
		}
	}
	return ""
}

// addPattern adds fields whose names are a pattern: [#Name], [N=#Name], [=~"…"] or [string]. It
// adds an enumeration as individual fields.
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
		s.Keys = Keys{matches: matched(key), doc: of.Doc}
	case *ast.Ident:
		s.Keys = Keys{names: key.Name == "#Name", doc: of.Doc}
		if key.Name == "#TestName" {
			s.Keys.matches = matched(r.exprs[key.Name])
		}
	}
	s.Pattern = &of
}
