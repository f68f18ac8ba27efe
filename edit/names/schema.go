package names

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// shape is what the schema has for a value, as far as an editor can offer it.
type shape struct {
	fields  map[string]*property
	member  *property // of a map
	element *shape    // of a list
	enum    []string
}

// property is a field of the schema.
type property struct {
	*shape
	in, name string // the definition that has it
	doc      string
	required bool
}

// platform is the shape of a platform's files: the collections.
var platform = sync.OnceValue(func() *shape {
	d := schema()
	root := &shape{fields: map[string]*property{"#assignment": {shape: d.definition("#Assignment")}}}
	for _, name := range model.CollectionNames {
		definition := "#" + strings.ToUpper(name[:1]) + name[1:]
		root.fields[name] = &property{shape: d.definition(definition), name: name, doc: docOf(d.exprs[definition])}
	}
	return root
})

// schema are the definitions of the embedded schema.
func schema() *definitions {
	d := &definitions{exprs: map[string]*ast.Field{}, shapes: map[string]*shape{}}
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
		for _, decl := range f.Decls {
			if of, ok := decl.(*ast.Field); ok {
				name, _, _ := ast.LabelName(of.Label)
				d.exprs[name] = of
			}
		}
	}
	return d
}

// definitions reads the definitions of the schema, each once: they may refer to each other.
type definitions struct {
	exprs  map[string]*ast.Field
	shapes map[string]*shape
}

func (d *definitions) definition(name string) *shape {
	s, done := d.shapes[name]
	if of := d.exprs[name]; !done && of != nil {
		s = &shape{fields: map[string]*property{}}
		d.shapes[name] = s
		d.add(s, of.Value, name)
	}
	return s
}

// add adds what an expression of a definition says.
func (d *definitions) add(s *shape, e ast.Expr, in string) {
	switch e := e.(type) {
	case *ast.StructLit:
		for _, decl := range e.Elts {
			switch decl := decl.(type) {
			case *ast.EmbedDecl:
				d.add(s, decl.Expr, in)
			case *ast.Field:
				d.addField(s, decl, in)
			}
		}
	case *ast.BinaryExpr:
		d.add(s, e.X, in)
		d.add(s, e.Y, in)
	case *ast.UnaryExpr:
		if e.Op == token.MUL {
			d.add(s, e.X, in)
		}
	case *ast.ParenExpr:
		d.add(s, e.X, in)
	case *ast.BasicLit:
		if name, err := literal.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			s.enum = append(s.enum, name)
		}
	case *ast.Ident:
		s.merge(d.definition(e.Name))
	case *ast.ListLit:
		for _, elt := range e.Elts {
			s.element = &shape{fields: map[string]*property{}}
			if ellipsis, ok := elt.(*ast.Ellipsis); ok && ellipsis.Type != nil {
				d.add(s.element, ellipsis.Type, in)
			} else if !ok {
				d.add(s.element, elt, in)
			}
		}
	}
}

func (d *definitions) addField(s *shape, f *ast.Field, in string) {
	p := &property{shape: &shape{fields: map[string]*property{}}, in: in, doc: docOf(f),
		required: f.Constraint == token.NOT}
	d.add(p.shape, f.Value, in)
	if _, pattern := f.Label.(*ast.ListLit); pattern {
		s.member = p
		return
	}
	name, _, err := ast.LabelName(f.Label)
	if err != nil {
		return
	}
	p.name = name
	s.fields[name] = p
}

func (s *shape) merge(t *shape) {
	if t == nil {
		return
	}
	maps.Copy(s.fields, t.fields)
	if t.member != nil {
		s.member = t.member
	}
	if t.element != nil {
		s.element = t.element
	}
	for _, e := range t.enum {
		if !slices.Contains(s.enum, e) {
			s.enum = append(s.enum, e)
		}
	}
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

// slot is what may stand at a path.
type slot struct {
	*shape
	of *property // the field that it is, or is in
	// names is the collection of what a value names.
	names string
	// labels is set inside of a selector's labels, or of what a match constrains: of whose
	// labels it speaks. Of a value, key is the label's.
	labels side
	key    string
}

// side is whose labels a selector speaks of.
type side int

const (
	noLabels side = iota
	ofTargets
	ofClusterTypes
	ofClusters
	ofBoth
)

// at returns what may stand at a path; nil where the schema says nothing of it.
func at(path []string) *slot {
	if path == nil {
		return nil
	}
	s := &slot{shape: platform()}
	for i, name := range path {
		switch {
		case s.labels == ofBoth || s.labels != noLabels && s.of.name == "labels":
			s.fact(name)
			if i < len(path)-1 && path[i+1] != "[]" {
				return nil
			}
			return s
		case name == "[]":
			if s.element != nil {
				s.shape = s.element
			}
			continue
		case s.fields[name] != nil:
			s.of, s.shape = s.fields[name], s.fields[name].shape
		case s.member != nil:
			s.of, s.shape = s.member, s.member.shape
		default:
			return nil
		}
		s.enter()
	}
	return s
}

// enter notes what a field of the schema means for what is in it.
func (s *slot) enter() {
	s.names = model.References[s.of.in+"."+s.of.name]
	switch {
	case s.of.name == "match":
		s.labels = ofBoth
	case s.of.in == "#DeploymentTargetSelector" && s.of.name == "labels":
		s.labels = ofTargets
	case s.of.in == "#ClusterTypeSelector" && s.of.name == "labels":
		s.labels = ofClusterTypes
	case s.of.in == "#ClusterSelector" && s.of.name == "labels":
		s.labels = ofClusters
	}
}

// fact makes it the slot of a label, or of another fact of an assignment.
func (s *slot) fact(name string) {
	s.shape = &shape{}
	if s.names = model.References["#Assignment."+name]; s.names == "" || s.labels == ofClusterTypes ||
		s.labels == ofClusters || s.labels == ofTargets && name != "workload" && name != "workspace" {
		s.names, s.key = "", name
	}
}
