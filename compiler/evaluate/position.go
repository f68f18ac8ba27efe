package evaluate

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// places turns CUE's positions into those that a user can act on: of files of
// the platform, relative to its root, and no line that only declares a
// collection.
type places struct {
	root     string
	prefix   string                  // of the names of files
	files    []*ast.File             // of the package
	declares map[model.Position]bool // line ends ignored: Column is 0
	embeds   map[string]string       // base name of an embedded file -> its path from the root
}

func newPlaces(root, prefix string, inst *build.Instance) *places {
	p := &places{root: root, prefix: prefix, declares: map[model.Position]bool{}, embeds: map[string]string{}}
	if inst == nil {
		return p
	}
	p.files = inst.Files
	for _, f := range inst.Files {
		rel := p.relative(f.Filename)
		for _, d := range f.Decls {
			if field, ok := d.(*ast.Field); ok {
				if at, ok := declaresCollection(field); ok {
					p.declares[model.Position{File: rel, Line: at.Line()}] = true
				}
			}
		}
		for _, e := range source.Embeds(f) {
			p.embeds[e.Name] = path.Join(path.Dir(rel), filepath.ToSlash(e.Name))
		}
	}
	return p
}

// declaresCollection says whether a field is clusterTypes: schema.#ClusterTypes
// or its like.
func declaresCollection(f *ast.Field) (at token.Pos, ok bool) {
	sel, isSelector := f.Value.(*ast.SelectorExpr)
	name, _, err := ast.LabelName(f.Label)
	if !isSelector || err != nil || !slices.Contains(model.CollectionNames, name) {
		return token.NoPos, false
	}
	definition, _, err := ast.LabelName(sel.Sel)
	id, isIdent := sel.X.(*ast.Ident)
	_, imported := importOf(id)
	return sel.Pos(), err == nil && isIdent && imported && definition == definitionOf(name)
}

// importOf returns the import that an identifier refers to.
func importOf(id *ast.Ident) (*ast.ImportSpec, bool) {
	if id == nil {
		return nil, false
	}
	spec, ok := id.Node.(*ast.ImportSpec)
	return spec, ok
}

func (p *places) relative(file string) string {
	if rel, err := filepath.Rel(p.root, file); err == nil && filepath.IsAbs(file) && filepath.IsLocal(rel) {
		return p.prefix + filepath.ToSlash(rel)
	} else if err == nil && filepath.IsAbs(file) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(file)
}

// of returns the position, or a zero one if it says nothing to a user.
func (p *places) of(pos token.Pos) model.Position {
	if !pos.IsValid() || pos.Filename() == "" {
		return model.Position{}
	}
	file := pos.Filename()
	if embedded, ok := p.embeds[file]; ok {
		return model.Position{File: embedded, Line: pos.Line(), Column: pos.Column()}
	}
	if !filepath.IsAbs(file) || cuemodule.IsOurs(file, p.root) || filepath.Base(file) == declarationsFile {
		return model.Position{}
	}
	rel := p.relative(file)
	if strings.HasPrefix(rel, "../") || p.declares[model.Position{File: rel, Line: pos.Line()}] {
		return model.Position{}
	}
	return model.Position{File: rel, Line: pos.Line(), Column: pos.Column()}
}

// all returns the positions that say something, once each.
func (p *places) all(positions []token.Pos) []model.Position {
	var out []model.Position
	for _, pos := range positions {
		if q := p.of(pos); !q.IsZero() && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

// written returns where the platform writes the value: one position for each
// declaration, also for comprehensions, templates and lets. The parts of a
// declaration, as in a: #A & {…}, are told from others by their lines.
func (p *places) written(v cue.Value) []model.Position {
	var out []model.Position
	for _, at := range p.all(sources(v)) {
		if !slices.ContainsFunc(out, func(o model.Position) bool { return o.File == at.File && o.Line == at.Line }) {
			out = append(out, at)
		}
	}
	return out
}

func sources(v cue.Value) []token.Pos {
	var out []token.Pos
	for _, n := range sourceNodes(v) {
		out = append(out, n.Pos())
	}
	return out
}

// sourceNodes returns the syntax that declares a value.
func sourceNodes(v cue.Value) []ast.Node {
	var out []ast.Node
	for _, c := range conjuncts(v) {
		if n := c.Source(); n != nil {
			out = append(out, n)
		}
	}
	return out
}

// conjuncts returns the values that a value is the conjunction of.
func conjuncts(v cue.Value) []cue.Value {
	op, args := v.Expr()
	if op != cue.AndOp {
		return []cue.Value{v}
	}
	var out []cue.Value
	for _, a := range args {
		out = append(out, conjuncts(a)...)
	}
	return out
}
