// Package names answers an editor's questions about a platform's text that only kalypso can
// answer. These are the existing entities, the places of their names, and the possible texts at
// a place. The inputs are the texts of files, which may be incomplete. The outputs are places in
// them. The package evaluates no CUE: callers pass Results for the platform's last compilation.
package names

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/edit/syntax"
)

// File is a file of a platform. Its path is relative to the platform's root, with slashes.
type File struct {
	Path string
	Text []byte
}

// Place is a part of a file, from Start to End, in bytes.
type Place struct {
	Path       string
	Start, End int
}

// Edit replaces the text of a place.
type Edit struct {
	Place
	Text string
}

// Index has the names of a platform's files. It is immutable, so that goroutines may call its
// methods concurrently.
type Index struct {
	files  []*file // sorted by path
	byPath map[string]*file
}

// file is a file with its words and uses.
type file struct {
	File
	words   []syntax.Word
	fields  []*syntax.Field
	imports int // the offset after the package clause; -1 without one
	uses    []use
	says    map[string]string // the descriptions of entities, by their paths
	// environment is "" for the base. Files outside of the platform's package, such as the
	// files of helper packages, have no uses.
	environment string
	part        bool
}

// use is a word that names an entity or a deployment target.
type use struct {
	word       int
	collection string // or model.DeploymentTargets, model.TargetNames
	name       string // of a deployment target, <workload>/<target> if both are known
	declares   bool
}

// New returns the index of some files. It reuses the files of previous that have the same text.
// previous may be nil.
func New(files []File, previous *Index) *Index {
	x := &Index{byPath: make(map[string]*file, len(files))}
	for _, f := range files {
		var of *file
		if previous != nil {
			of = previous.byPath[f.Path]
		}
		if of == nil || !bytes.Equal(of.Text, f.Text) {
			of = read(f)
		}
		x.files = append(x.files, of)
		x.byPath[f.Path] = of
	}
	slices.SortFunc(x.files, func(a, b *file) int { return strings.Compare(a.Path, b.Path) })
	return x
}

func read(of File) *file {
	written := syntax.Read(of.Text)
	f := &file{File: of, words: written.Words, fields: written.Fields, imports: -1,
		says: map[string]string{}}
	if next := written.Package + 1; next > 0 && next < len(written.Tokens) {
		f.imports = written.Tokens[next].Start
	}
	dir := path.Dir(of.Path)
	f.part = path.Ext(of.Path) == ".cue" && (dir == "." || path.Dir(dir) == source.Environments)
	if dir != "." {
		f.environment = path.Base(dir)
	}
	if f.part {
		for i := range f.words {
			w := &f.words[i]
			if u, ok := useOf(w); ok {
				u.word = i
				f.uses = append(f.uses, u)
			}
			if n := len(w.Path); w.Kind == syntax.Text && (n == 3 || n == 5) &&
				w.Path[n-1] == "description" {
				f.says[strings.Join(w.Path[:n-1], "/")] = w.Text
			}
		}
	}
	return f
}

// useOf returns the use of a name by a word, and whether there is one.
func useOf(w *syntax.Word) (use, bool) {
	switch w.Kind {
	case syntax.Label:
		u, ok := entity(w.Path)
		u.declares = true
		return u, ok
	case syntax.Reference:
		return entity(w.Scope.Resolve(w.Path))
	case syntax.Identifier:
		return entity(w.Scope.Resolve([]string{w.Text}))
	case syntax.Text:
		if s := slotAt(w.Path); s != nil && s.names != "" && w.Text != "" {
			return use{collection: s.names, name: w.Text}, true
		}
	}
	return use{}, false
}

// entity returns the entity, or the deployment target, to which a path belongs.
func entity(path []string) (use, bool) {
	if len(path) < 2 || path[len(path)-1] == "*" || path[len(path)-1] == "[]" {
		return use{}, false
	}
	name := path[len(path)-1]
	switch {
	case len(path) == 2 && slices.Contains(model.CollectionNames, path[0]):
		return use{collection: path[0], name: name}, true
	case len(path) == 4 && path[0] == "workloads" && path[2] == model.DeploymentTargets &&
		path[1] != "*":
		return use{collection: model.DeploymentTargets, name: path[1] + "/" + name}, true
	}
	return use{}, false
}

// sees reports whether the files of two environments are compiled together; "" is the base.
func sees(a, b string) bool { return a == b || a == "" || b == "" }

// each calls a function for the uses in the files that are compiled together with the files of
// an environment; "" means all files.
func (x *Index) each(environment string, call func(f *file, u *use)) {
	for _, f := range x.files {
		if !f.part || !sees(environment, f.environment) {
			continue
		}
		for i := range f.uses {
			call(f, &f.uses[i])
		}
	}
}

// declared returns the names of a collection that an environment's files see, sorted. A name in
// model.DeploymentTargets is <workload>/<target>.
func (x *Index) declared(environment, collection string) []string {
	var out []string
	x.each(environment, func(_ *file, u *use) {
		if u.declares && u.collection == collection {
			out = append(out, u.name)
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// place returns the place of a word's text, without its quotes.
func (f *file) place(w *syntax.Word) Place {
	p := Place{f.Path, w.Start, w.End}
	if !w.Quoted {
		return p
	}
	hashes := 0
	for hashes < len(f.Text[w.Start:w.End]) && f.Text[w.Start+hashes] == '#' {
		hashes++
	}
	p.Start += hashes + 1
	if !w.Open {
		p.End = max(p.End-hashes-1, p.Start)
	}
	return p
}

// wordAtOffset returns the word at an offset. It returns nil if there is no word.
func (f *file) wordAtOffset(offset int) *syntax.Word {
	for i := range f.words {
		if w := &f.words[i]; w.Start <= offset && offset <= w.End {
			return w
		}
	}
	return nil
}

// useAt returns the use at an offset. It returns a nil use if the word there does not name an
// entity.
func (x *Index) useAt(path string, offset int) (*file, *use) {
	f := x.byPath[path]
	if f == nil {
		return nil, nil
	}
	for i := range f.uses {
		if w := &f.words[f.uses[i].word]; w.Start <= offset && offset <= w.End {
			return f, &f.uses[i]
		}
	}
	return f, nil
}

// target is a declared deployment target.
type target struct{ workload, name string }

func (t target) full() string { return t.workload + "-" + t.name }

func split(name string) target {
	workload, name, _ := strings.Cut(name, "/")
	return target{workload, name}
}

// meant returns the uses that a use may mean, in the form of their declarations. They must be
// visible in the files of the environment. A full name means one target, and a short name may
// mean several.
func (x *Index) meant(environment string, u *use) []use {
	switch {
	case u.collection == model.DeploymentTargets && strings.Contains(u.name, "/"):
		return []use{*u}
	case u.collection == model.DeploymentTargets, u.collection == model.TargetNames:
		var out []use
		for _, name := range x.declared(environment, model.DeploymentTargets) {
			t := split(name)
			if u.name == t.full() && u.collection == model.DeploymentTargets || u.name == t.name &&
				u.collection == model.TargetNames {
				out = append(out, use{collection: model.DeploymentTargets, name: name})
			}
		}
		return out
	}
	return []use{*u}
}

// scope returns the environment in which the name of an entity is known. It is the environment
// of the file with the name. It is "", for all environments, if the base declares the entity,
// or if the file belongs to the base.
func (x *Index) scope(f *file, u *use) string {
	environment := f.environment
	x.each(environment, func(g *file, v *use) {
		if g.environment == "" && v.declares && v.collection == u.collection && v.name == u.name {
			environment = ""
		}
	})
	return environment
}

// occurrence is a place with a use.
type occurrence struct {
	file *file
	use  *use
}

func (o occurrence) place() Place { return o.file.place(&o.file.words[o.use.word]) }

// occurrences returns the places that name the same entities as a use, in the order of paths
// and offsets.
func (x *Index) occurrences(f *file, u *use) []occurrence {
	var out []occurrence
	for _, m := range x.meant(f.environment, u) {
		scope := x.scope(f, &m)
		t := split(m.name)
		x.each(scope, func(g *file, v *use) {
			same := v.collection == m.collection && v.name == m.name
			if m.collection == model.DeploymentTargets {
				same = same || v.collection == model.DeploymentTargets && v.name == t.full() ||
					v.collection == model.TargetNames && v.name == t.name
			}
			if o := (occurrence{g, v}); same && !slices.Contains(out, o) {
				out = append(out, o)
			}
		})
	}
	slices.SortFunc(out, func(a, b occurrence) int {
		p, q := a.place(), b.place()
		if p.Path != q.Path {
			return strings.Compare(p.Path, q.Path)
		}
		return p.Start - q.Start
	})
	return out
}

// Definition returns the places of declaration of the name at an offset. It returns all of
// them, because the files of a platform unify.
func (x *Index) Definition(path string, offset int) []Place {
	return x.places(path, offset, func(declares bool) bool { return declares })
}

// References returns the places that refer to the name at an offset and, if declaration is set,
// also its places of declaration.
func (x *Index) References(path string, offset int, declaration bool) []Place {
	return x.places(path, offset, func(declares bool) bool { return declaration || !declares })
}

func (x *Index) places(path string, offset int, wanted func(declares bool) bool) []Place {
	f, u := x.useAt(path, offset)
	if u == nil {
		return nil
	}
	var out []Place
	for _, o := range x.occurrences(f, u) {
		if wanted(o.use.declares) {
			out = append(out, o.place())
		}
	}
	return out
}
