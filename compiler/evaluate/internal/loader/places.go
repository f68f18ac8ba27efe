package loader

import (
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// DeclarationsFile is the name of files that kalypso itself adds to a package. Their positions
// are meaningless for users.
const DeclarationsFile = "kalypso_registration.cue"

// Places turns CUE's positions into positions that a user can act on. These are in files of the
// platform, relative to its root, and not in lines that only declare a collection.
type Places struct {
	files    *source.Files
	prefix   string                  // of the names of files
	Files    []*ast.File             // of the package
	declares map[model.Position]bool // with Column 0: only the line matters
	embeds   map[string]string       // from base names of embedded files to their paths from the root
	imports  []*build.Instance       // packages
	declared func() map[string][]*ast.Field
	labels   func() []string
	clauses  func() map[model.Position]bool // the starts of comprehensions
}

// NewPlaces returns the places of the files of a package. The names of the files are relative
// to their root, with a prefix. inst is nil if no package was built.
func NewPlaces(files *source.Files, prefix string, inst *build.Instance) *Places {
	p := &Places{files: files, prefix: prefix, declares: map[model.Position]bool{},
		embeds: map[string]string{}}
	p.declared, p.clauses = sync.OnceValue(p.entities), sync.OnceValue(p.comprehensions)
	p.labels = sync.OnceValue(p.fieldNames)
	if inst == nil {
		return p
	}
	p.Files, p.imports = inst.Files, inst.Imports
	for _, f := range inst.Files {
		rel := p.relative(f.Filename)
		for _, d := range f.Decls {
			if field, ok := d.(*ast.Field); ok {
				if at, ok := DeclaresCollection(field); ok {
					p.declares[model.Position{File: rel, Line: at.Line()}] = true
				}
			}
		}
		for _, e := range source.Embeds(f, files) {
			p.embeds[e.Name] = path.Join(path.Dir(rel), filepath.ToSlash(e.Name))
		}
	}
	return p
}

// DeclaresCollection reports whether a field declares a collection, as in clusterTypes:
// schema.#ClusterTypes.
func DeclaresCollection(f *ast.Field) (at token.Pos, ok bool) {
	sel, isSelector := f.Value.(*ast.SelectorExpr)
	name, _, err := ast.LabelName(f.Label)
	if !isSelector || err != nil || !slices.Contains(model.CollectionNames, name) {
		return token.NoPos, false
	}
	definition, _, err := ast.LabelName(sel.Sel)
	id, isIdent := sel.X.(*ast.Ident)
	_, imported := cuevalue.ImportOf(id)
	return sel.Pos(), err == nil && isIdent && imported && definition == shape.Definition(name)
}

func (p *Places) relative(file string) string {
	if rel, err := filepath.Rel(p.files.Root, file); err == nil && filepath.IsAbs(file) &&
		filepath.IsLocal(rel) {
		return p.prefix + filepath.ToSlash(rel)
	} else if err == nil && filepath.IsAbs(file) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(file)
}

// Position returns the position, or a zero one if it is meaningless for users.
func (p *Places) Position(pos token.Pos) model.Position {
	if !pos.IsValid() || pos.Filename() == "" {
		return model.Position{}
	}
	file := pos.Filename()
	if embedded, ok := p.embeds[file]; ok {
		return model.Position{File: embedded, Line: pos.Line(), Column: pos.Column()}
	}
	if !filepath.IsAbs(file) || cuemodule.IsOurs(file, p.files.Root) ||
		filepath.Base(file) == DeclarationsFile {
		return model.Position{}
	}
	rel := p.relative(file)
	if strings.HasPrefix(rel, "../") || p.declares[model.Position{File: rel, Line: pos.Line()}] {
		return model.Position{}
	}
	return model.Position{File: rel, Line: pos.Line(), Column: pos.Column()}
}

// All returns the positions that are meaningful for users, without duplicates.
func (p *Places) All(positions []token.Pos) []model.Position {
	var out []model.Position
	for _, pos := range positions {
		if q := p.Position(pos); !q.IsZero() && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

// Written returns the positions at which the platform writes the value. It returns one position
// for each declaration, including comprehensions, templates and lets. It distinguishes the
// parts of a declaration, as in a: #A & {…}, from other declarations by their lines.
func (p *Places) Written(v cue.Value) []model.Position {
	var out []model.Position
	for _, at := range p.All(cuevalue.Positions(v)) {
		if !slices.ContainsFunc(out,
			func(o model.Position) bool { return o.File == at.File && o.Line == at.Line }) {
			out = append(out, at)
		}
	}
	return out
}

// PathAt returns the names of the fields around a position. It returns nil at the top level.
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

// Declared returns the fields at a path of an entity that the package's files write by their
// names. It skips fields of templates, definitions and comprehensions.
func (p *Places) Declared(path []string) []*ast.Field {
	fields := p.declared()[strings.Join(path[:2], " ")]
	for _, name := range path[2:] {
		var below []*ast.Field
		for _, f := range fields {
			for label, f := range namedIn(structsOf(f.Value)) {
				if label == name {
					below = append(below, f)
				}
			}
		}
		fields = below
	}
	return fields
}

// entities returns the fields that declare entities, by collection and name. There are too many
// entities to search for each.
func (p *Places) entities() map[string][]*ast.Field {
	out := map[string][]*ast.Field{}
	for _, f := range p.Files {
		for collection, f := range named(f.Decls) {
			for name, f := range namedIn(structsOf(f.Value)) {
				out[collection+" "+name] = append(out[collection+" "+name], f)
			}
		}
	}
	return out
}

// named yields the fields that declarations name explicitly.
func named(decls []ast.Decl) iter.Seq2[string, *ast.Field] {
	return func(yield func(string, *ast.Field) bool) {
		for _, d := range decls {
			f, ok := d.(*ast.Field)
			if !ok || f.Constraint != token.ILLEGAL {
				continue
			}
			if name, _, err := ast.LabelName(f.Label); err == nil && !yield(name, f) {
				return
			}
		}
	}
}

// namedIn yields the fields that several structs name explicitly.
func namedIn(structs []*ast.StructLit) iter.Seq2[string, *ast.Field] {
	return func(yield func(string, *ast.Field) bool) {
		for _, lit := range structs {
			for name, f := range named(lit.Elts) {
				if !yield(name, f) {
					return
				}
			}
		}
	}
}

// structsOf returns the struct literals in a conjunction.
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

// FieldAt returns the name of the field whose constraint is at a position.
func (p *Places) FieldAt(at model.Position) (string, bool) {
	name := ""
	for _, f := range p.Files {
		if p.relative(f.Filename) != at.File {
			continue
		}
		ast.Walk(f, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && isConstraint(field.Value) &&
				p.Position(field.Value.Pos()) == at {
				name, _, _ = ast.LabelName(field.Label)
			}
			return name == ""
		}, nil)
	}
	return name, name != ""
}

// isConstraint reports whether an expression may be without a value: it is a type, a bound or
// an operation, and not a literal.
func isConstraint(e ast.Expr) bool {
	switch e.(type) {
	case *ast.Ident, *ast.BinaryExpr, *ast.UnaryExpr, *ast.ParenExpr, *ast.CallExpr:
		return true
	}
	return false
}

// IsOf reports whether a position is the position of a field's expression.
func (p *Places) IsOf(at model.Position, fields []ast.Node) bool {
	return slices.ContainsFunc(fields, func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		return ok && p.Position(f.Value.Pos()) == at
	})
}

// Contain reports whether a position is inside the nodes.
func (p *Places) Contain(at model.Position, nodes []ast.Node) bool {
	return slices.ContainsFunc(nodes, func(n ast.Node) bool {
		first, last := p.Position(n.Pos()), p.Position(n.End())
		return first.File == at.File && first.Compare(at) <= 0 && at.Compare(last) <= 0
	})
}
