package names

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/edit/syntax"
)

// Hover is what is known of a word, as paragraphs of plain text.
type Hover struct {
	Place Place
	Lines []string
}

// Hover returns what is known of the word at an offset: of a name, what it names and where
// that is declared; of a config's value, what the last compilation made of it, and from where;
// of a field, what the schema says. ctx ends the composition of values.
func (x *Index) Hover(ctx context.Context, path string, offset int, r *Results) (Hover, bool) {
	f := x.byPath[path]
	if f == nil {
		return Hover{}, false
	}
	w := f.at(offset)
	if w == nil {
		return Hover{}, false
	}
	h := Hover{Place: f.place(w)}
	if _, u := x.useAt(path, offset); u != nil {
		for _, m := range x.meant(f.environment, u) {
			h.Lines = append(h.Lines, x.describe(f, &m, r)...)
		}
	} else if key := contractPath(w.Path); f.part && len(key) > 0 && w.Path[0] == "configs" {
		h.Lines = r.composed(ctx, f, w.Path[1], key)
	} else if w.Kind == syntax.Label && f.part {
		if s := at(w.Path); s != nil && s.of != nil && s.of.Name == w.Text && s.of.Doc != "" {
			h.Lines = append(h.Lines, s.of.Doc)
		}
	}
	return h, len(h.Lines) > 0
}

// describe says what a use names, how much there is of it, and where it is declared.
func (x *Index) describe(f *file, u *use, r *Results) []string {
	path := []string{u.collection, u.name}
	name := u.name
	if u.collection == model.DeploymentTargets {
		t := split(u.name)
		path, name = []string{"workloads", t.workload, u.collection, t.name}, t.full()
	}
	lines := []string{kindOf(u.collection) + " " + name}
	if doc := x.description(path...); doc != "" {
		lines = append(lines, doc)
	}
	if count := r.count(f.environment, u); count != "" {
		lines = append(lines, count)
	}
	var declared []string
	for _, o := range x.occurrences(f, u) {
		if at := o.file.where(&o.file.words[o.use.word]); o.use.declares && !slices.Contains(declared, at) {
			declared = append(declared, at)
		}
	}
	switch n := len(declared); {
	case n == 0:
		lines = append(lines, "not declared in the platform's files")
	case n > mostGroups:
		lines = append(lines, fmt.Sprintf("declared at %s and %d more places",
			strings.Join(declared[:mostGroups], ", "), n-mostGroups))
	default:
		lines = append(lines, "declared at "+strings.Join(declared, ", "))
	}
	return lines
}

// where returns the place of a word as messages write it.
func (f *file) where(w *syntax.Word) string {
	before := f.Text[:w.Start]
	return fmt.Sprintf("%s:%d:%d", f.Path, bytes.Count(before, []byte("\n"))+1, w.Start-bytes.LastIndexByte(before, '\n'))
}

// offset returns where a position is in the file; -1 where the file has no such line.
func (f *file) offset(p model.Position) int {
	rest := f.Text
	for line := 1; line < p.Line; line++ {
		_, after, found := bytes.Cut(rest, []byte("\n"))
		if !found {
			return -1
		}
		rest = after
	}
	return min(len(f.Text)-len(rest)+max(p.Column-1, 0), len(f.Text))
}

// wordAt returns the word at a position, or the label before it where a value stands there.
func (f *file) wordAt(p model.Position) *syntax.Word {
	offset := f.offset(p)
	if offset < 0 {
		return nil
	}
	if w := f.at(offset); w != nil && w.Kind == syntax.Label {
		return w
	}
	var before *syntax.Word
	for i := range f.words {
		if w := &f.words[i]; w.Kind == syntax.Label && w.Start <= offset && w.Field.Value >= offset &&
			(before == nil || w.Start > before.Start) {
			before = w
		}
	}
	return before
}
