package incremental

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// profile has the facts about a file that decide whether its package can be evaluated in units.
// It depends only on the file.
type profile struct {
	// Leaf reports whether the file only declares independent entities. Without the file, the package
	// has fewer entities, but is otherwise the same.
	Leaf bool
	// Whole is the reason why no package with this file can be evaluated in units; "" if a
	// package can.
	Whole string
	// Declares are the collections that the file declares with the schema's type, sorted.
	Declares []string
	// Entities are the entities that the file declares by their names, without duplicates.
	Entities []model.Ref
	// Makes are the collections in which the file computes the names of entities, sorted.
	Makes []string
	// Uses are the identifiers in expressions, sorted.
	Uses []string
	// Large are the structs with more than maxFields written fields.
	Large []large
}

// large is a struct that is too large for CUE.
type large struct {
	Name     string // of its field
	Path     string // of its field; "" if the path is not written
	Fields   int
	Position model.Position // without the file: files with the same content share a profile
}

// maxFields is the maximal number of written fields of a struct. CUE compares each field with
// all others: 50,000 fields take nearly ten seconds, and twice as many take four times as long.
const maxFields = 20_000

// profileOf returns the profile of a file.
func profileOf(name string, data []byte) profile {
	var f *ast.File
	var err error
	if _, ok := finding.Guarded(name, func() { f, err = parser.ParseFile(name, data) }); !ok ||
		err != nil {
		return profile{Whole: "it does not parse"}
	}
	p := profile{Uses: usesIn(f), Leaf: true, Large: largeIn(f)}
	if f.PackageName() != source.Package {
		return profile{Whole: "it is not of package " + source.Package, Large: p.Large}
	}
	for _, name := range p.Uses {
		if slices.Contains(model.CollectionNames, name) {
			p.Whole = "it refers to " + name
		}
	}
	for _, d := range f.Decls {
		p.declaration(d)
	}
	slices.SortFunc(p.Entities, compareRefs)
	p.Entities = slices.Compact(p.Entities)
	slices.Sort(p.Declares)
	slices.Sort(p.Makes)
	p.Makes = slices.Compact(p.Makes)
	if p.Whole != "" {
		return profile{Whole: p.Whole, Large: p.Large}
	}
	if p.Leaf {
		p.Uses = nil
	}
	return p
}

func compareRefs(a, b model.Ref) int { return strings.Compare(a.String(), b.String()) }

// shares records that the file affects more than the entities that it declares by their names.
func (p *profile) shares() { p.Leaf = false }

// obstruct records that the entities that the file affects are unknown.
func (p *profile) obstruct(format string, args ...any) {
	p.Leaf = false
	if p.Whole == "" {
		p.Whole = fmt.Sprintf(format, args...)
	}
}

// declaration inspects a declaration at the top of the file.
func (p *profile) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.Package, *ast.ImportDecl, *ast.CommentGroup:
	case *ast.LetClause:
		p.shares()
	case *ast.Attribute:
		if name, _ := d.Split(); name != "extern" {
			p.obstruct("it has the attribute @%s", name)
		}
	case *ast.Field:
		name, plain := plainLabel(d)
		if !plain {
			p.obstruct("a field at its top has no plain name")
			return
		}
		if !slices.Contains(model.CollectionNames, name) {
			p.shares()
			return
		}
		if _, ok := loader.DeclaresCollection(d); ok && isOfSchema(d.Value) {
			p.Declares = append(p.Declares, name)
			p.shares()
			return
		}
		lit, ok := d.Value.(*ast.StructLit)
		if !ok {
			p.obstruct("%s is not written as a struct", name)
			return
		}
		for _, d := range lit.Elts {
			p.member(name, d)
		}
	default:
		p.obstruct("something at its top is no field")
	}
}

// member inspects a declaration in a collection.
func (p *profile) member(collection string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.CommentGroup:
	case *ast.LetClause:
		p.shares()
	case *ast.Field:
		if isPattern(d) || isMade(d) {
			p.shares()
			if isMade(d) {
				p.Makes = append(p.Makes, collection)
			}
			return
		}
		name, plain := plainLabel(d)
		if !plain {
			p.obstruct("an entity of %s has no plain name", collection)
			return
		}
		if _, isIdent, _ := ast.LabelName(d.Label); isIdent && strings.ContainsAny(name[:1], "_#") {
			p.shares()
			return
		}
		p.Entities = append(p.Entities, model.Ref{Collection: collection, Name: name})
	case *ast.Comprehension:
		p.shares()
		p.Makes = append(p.Makes, collection)
		lit, ok := d.Value.(*ast.StructLit)
		if !ok || d.Fallback != nil {
			p.obstruct("a comprehension in %s has more than one way", collection)
			return
		}
		for _, d := range lit.Elts {
			p.member(collection, d)
		}
	default:
		p.obstruct("something in %s is no field", collection)
	}
}

// plainLabel returns the name of a plain field: a field without an alias, a constraint or an
// attribute.
func plainLabel(f *ast.Field) (string, bool) {
	switch f.Label.(type) {
	case *ast.Ident, *ast.BasicLit:
	default:
		return "", false
	}
	name, _, err := ast.LabelName(f.Label)
	_, isAlias := f.Value.(*ast.Alias)
	return name, err == nil && name != "" && f.Alias == nil && f.Constraint == token.ILLEGAL &&
		len(f.Attrs) == 0 && !isAlias
}

// isPattern reports whether a field is a constraint on all fields of some names.
func isPattern(f *ast.Field) bool {
	_, isList := f.Label.(*ast.ListLit)
	return isList && f.Alias == nil && f.Constraint == token.ILLEGAL && len(f.Attrs) == 0
}

// isMade reports whether a field's name is an expression.
func isMade(f *ast.Field) bool {
	switch f.Label.(type) {
	case *ast.Interpolation, *ast.ParenExpr:
		return f.Alias == nil && f.Constraint == token.ILLEGAL && len(f.Attrs) == 0
	}
	return false
}

// isOfSchema reports whether an expression selects from the schema's package.
func isOfSchema(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, _ := sel.X.(*ast.Ident)
	spec, ok := cuevalue.ImportOf(id)
	if !ok {
		return false
	}
	path, err := literal.Unquote(spec.Path.Value)
	return err == nil && ast.ParseImportPath(path).Path == loader.OurModule+"/schema"
}

// usesIn returns the identifiers in a syntax tree, sorted, except the names of fields and the
// part of a selector after its dot.
func usesIn(n ast.Node) []string {
	names := map[ast.Node]bool{}
	found := map[string]bool{}
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Package, *ast.ImportDecl:
			return false
		case *ast.Field:
			names[n.Label] = true
		case *ast.SelectorExpr:
			names[n.Sel] = true
		case *ast.Ident:
			if !names[n] {
				found[n.Name] = true
			}
		}
		return true
	}, nil)
	return slices.Sorted(maps.Keys(found))
}

// largeIn returns the large structs of a file, except collections: another warning reports
// collections with too many entities.
func largeIn(f *ast.File) (out []large) {
	collections := map[ast.Node]bool{}
	for _, d := range f.Decls {
		if field, isField := d.(*ast.Field); isField {
			name, _ := plainLabel(field)
			collections[d] = slices.Contains(model.CollectionNames, name)
		}
	}
	var path []string // of the field that the walk is in
	ast.Walk(f, func(n ast.Node) bool {
		field, isField := n.(*ast.Field)
		if !isField {
			return true
		}
		label, _, _ := ast.LabelName(field.Label)
		if path = append(path, label); collections[n] {
			return true
		}
		if lit, isStruct := field.Value.(*ast.StructLit); isStruct && len(lit.Elts) > maxFields {
			out = append(out, large{label, pathOf(path), len(lit.Elts),
				model.Position{Line: field.Pos().Line(), Column: field.Pos().Column()}})
		}
		return true
	}, func(n ast.Node) {
		if _, isField := n.(*ast.Field); isField {
			path = path[:len(path)-1]
		}
	})
	return out
}

// pathOf returns the path of names. It returns "" if one of the names is empty.
func pathOf(names []string) (path string) {
	for _, name := range names {
		if name == "" {
			return ""
		}
		path = model.JoinPath(path, model.Label(name))
	}
	return path
}

// tooLarge reports the large structs of files.
func tooLarge(files []source.File, profiles []profile) (ds []diag.Diagnostic) {
	for i, p := range profiles {
		for _, l := range p.Large {
			l.Position.File = files[i].Name
			ds = append(ds, diag.New(diag.LargeStruct,
				fmt.Sprintf("%s has %d fields, and CUE takes too long with more than %d", l.Name, l.Fields,
					maxFields)).
				In(l.Position,
					"").On(l.Path).Hinting("write them as a list, as one text, or in structs below one another"))
		}
	}
	return ds
}
