package loader

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// DeclarationsFile is the name of files that kalypso itself adds to a package. Their
// positions mean nothing to users.
const DeclarationsFile = "kalypso_registration.cue"

// Places turns CUE's positions into those that a user can act on: of files of
// the platform, relative to its root, and no line that only declares a
// collection.
type Places struct {
	root     string
	prefix   string                  // of the names of files
	Files    []*ast.File             // of the package
	declares map[model.Position]bool // line ends ignored: Column is 0
	embeds   map[string]string       // base name of an embedded file -> its path from the root
}

// NewPlaces returns the places of the files of a package, whose names are relative to root
// and have a prefix. inst may be nil for none.
func NewPlaces(root, prefix string, inst *build.Instance) *Places {
	p := &Places{root: root, prefix: prefix, declares: map[model.Position]bool{}, embeds: map[string]string{}}
	if inst == nil {
		return p
	}
	p.Files = inst.Files
	for _, f := range inst.Files {
		rel := p.relative(f.Filename)
		for _, d := range f.Decls {
			if field, ok := d.(*ast.Field); ok {
				if at, ok := DeclaresCollection(field); ok {
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

// DeclaresCollection says whether a field is clusterTypes: schema.#ClusterTypes
// or its like.
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
	if rel, err := filepath.Rel(p.root, file); err == nil && filepath.IsAbs(file) && filepath.IsLocal(rel) {
		return p.prefix + filepath.ToSlash(rel)
	} else if err == nil && filepath.IsAbs(file) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(file)
}

// Of returns the position, or a zero one if it means nothing to users.
func (p *Places) Of(pos token.Pos) model.Position {
	if !pos.IsValid() || pos.Filename() == "" {
		return model.Position{}
	}
	file := pos.Filename()
	if embedded, ok := p.embeds[file]; ok {
		return model.Position{File: embedded, Line: pos.Line(), Column: pos.Column()}
	}
	if !filepath.IsAbs(file) || cuemodule.IsOurs(file, p.root) || filepath.Base(file) == DeclarationsFile {
		return model.Position{}
	}
	rel := p.relative(file)
	if strings.HasPrefix(rel, "../") || p.declares[model.Position{File: rel, Line: pos.Line()}] {
		return model.Position{}
	}
	return model.Position{File: rel, Line: pos.Line(), Column: pos.Column()}
}

// All returns the positions that mean something to users, once each.
func (p *Places) All(positions []token.Pos) []model.Position {
	var out []model.Position
	for _, pos := range positions {
		if q := p.Of(pos); !q.IsZero() && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

// Written returns where the platform writes the value: one position for each
// declaration, also for comprehensions, templates and lets. The parts of a
// declaration, as in a: #A & {…}, are distinguished from others by their lines.
func (p *Places) Written(v cue.Value) []model.Position {
	var out []model.Position
	for _, at := range p.All(cuevalue.Positions(v)) {
		if !slices.ContainsFunc(out, func(o model.Position) bool { return o.File == at.File && o.Line == at.Line }) {
			out = append(out, at)
		}
	}
	return out
}
