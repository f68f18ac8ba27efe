package names

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/edit/syntax"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// Fix is a change that may mend what a diagnostic is about.
type Fix struct {
	Title string
	Edits []Edit
}

// Fixes returns what can be done about a resolved diagnostic, the best first. It goes by what
// the diagnostic holds as data; where the text is not any more what was compiled, and the word
// in question is gone, there is none.
func (x *Index) Fixes(d diag.Diagnostic) []Fix {
	var out []Fix
	if d.Suggestion.Wrong != "" {
		out = append(out, x.correct(d)...)
	}
	if ref := d.Suggestion.ToDefaults; ref != (model.Ref{}) {
		out = append(out, x.toDefaults(ref, d)...)
	}
	if d.Suggestion.Import != "" && len(d.Sites) > 0 {
		out = append(out, x.importing(d.Sites[0].Position.File, d.Suggestion.Import)...)
	}
	if d.Code == diag.UnpinnedSchema {
		out = append(out, x.pin()...)
	}
	return out
}

// correct replaces a misspelt word at the first site that has it.
func (x *Index) correct(d diag.Diagnostic) []Fix {
	for _, s := range d.Sites {
		f := x.byPath[s.Position.File]
		if f == nil {
			continue
		}
		if w := f.misspelt(s.Position, d.Suggestion.Wrong); w != nil {
			e := Edit{f.place(w), d.Suggestion.Right}
			if !w.Quoted {
				e.Text = model.Label(d.Suggestion.Right)
			}
			return []Fix{{fmt.Sprintf("Change %s to %s", d.Suggestion.Wrong, d.Suggestion.Right), []Edit{e}}}
		}
	}
	return nil
}

// misspelt returns a word at a position: the first with the text on the line or, of what stands
// there, further on.
func (f *file) misspelt(at model.Position, text string) *syntax.Word {
	offset := f.offset(at)
	if offset < 0 {
		return nil
	}
	line := bytes.LastIndexByte(f.Text[:offset], '\n') + 1
	end := offset
	if newline := bytes.IndexByte(f.Text[offset:], '\n'); newline >= 0 {
		end += newline
	} else {
		end = len(f.Text)
	}
	for _, of := range f.fields {
		if of.Start <= offset && offset <= of.End && of.Start >= line {
			end = max(end, of.End)
		}
	}
	var before *syntax.Word
	for i := range f.words {
		w := &f.words[i]
		switch {
		case w.Text != text || w.Start < line || w.Start > end:
		case w.End >= offset:
			return w
		case before == nil:
			before = w
		}
	}
	return before
}

// toDefaults moves a value of a config, or of a chart's values, to the defaults beside them.
// Where environments have files of it, those of the sites count.
func (x *Index) toDefaults(ref model.Ref, d diag.Diagnostic) []Fix {
	path := append([]string{ref.Collection, ref.Name}, splitPath(ref.Path)...)
	var edits []Edit
	for _, f := range x.files {
		if !f.part || !slices.ContainsFunc(d.Sites, func(s diag.Site) bool { return s.Position.File == f.Path }) {
			continue
		}
		for i := range f.words {
			if w := &f.words[i]; w.Kind == syntax.Label && slices.Equal(w.Path, path) {
				edits = append(edits, f.moved(w)...)
			}
		}
	}
	if edits == nil {
		return nil
	}
	return []Fix{{fmt.Sprintf("Move %s of %s to defaults", path[len(path)-1], ref.Name), edits}}
}

// splitPath returns the names of a CUE path.
func splitPath(path string) []string {
	var out []string
	for _, w := range syntax.Read([]byte("x: " + path)).Words[1:] {
		out = append(out, w.Text)
	}
	return out
}

// moved returns the edits that move the field with a label, inside of values, to defaults. A
// field that stands alone, as in values: a: 1, gets the other label; another one leaves the
// braces, for a field of its own before them.
func (f *file) moved(w *syntax.Word) []Edit {
	of := w.Field
	for _, i := range of.Words {
		if v := &f.words[i]; v.Text == "values" && isValues(v.Path) {
			return []Edit{{f.place(v), "defaults"}}
		}
	}
	outer := f.around(w)
	if outer == nil {
		return nil
	}
	values := &f.words[outer.Words[len(outer.Words)-1]]
	if !isValues(values.Path) || outer.Value >= len(f.Text) || f.Text[outer.Value] != '{' {
		return nil
	}
	indent := syntax.Indent(f.Text, outer.Start)
	moved := strings.TrimSpace(string(f.Text[outer.Start:values.Start])) + " defaults: " +
		string(f.Text[of.Start:of.End]) + "\n" + indent
	start, end := f.lines(of)
	return []Edit{{Place{f.Path, outer.Start, outer.Start}, strings.TrimPrefix(moved, " ")},
		{Place{f.Path, start, end}, ""}}
}

// isValues says whether a path is that of a config's values, or of a chart's.
func isValues(path []string) bool {
	return len(path) == 3 && path[0] == "configs" && path[2] == "values" || len(path) > 3 &&
		path[0] == "workloads" && path[len(path)-2] == "helm"
}

// around returns the smallest field that the field with a label is in.
func (f *file) around(w *syntax.Word) *syntax.Field {
	var out *syntax.Field
	for _, of := range f.fields {
		if of != w.Field && of.Value <= w.Start && w.Field.End <= of.End && (out == nil || of.Start > out.Start) {
			out = of
		}
	}
	return out
}

// lines returns what to remove of a field: its lines where it has them for itself, else it and
// a comma after it.
func (f *file) lines(of *syntax.Field) (start, end int) {
	start, end = of.Start, of.End
	first := bytes.LastIndexByte(f.Text[:start], '\n') + 1
	rest := f.Text[end:]
	if newline := bytes.IndexByte(rest, '\n'); newline >= 0 &&
		len(bytes.Trim(rest[:newline], " \t,")) == 0 && len(bytes.TrimSpace(f.Text[first:start])) == 0 {
		return first, end + newline + 1
	}
	if after := bytes.TrimLeft(rest, " \t"); bytes.HasPrefix(after, []byte(",")) {
		end = len(f.Text) - len(bytes.TrimLeft(after[1:], " \t"))
	}
	return start, end
}

// importing adds an import below a file's package clause.
func (x *Index) importing(path, of string) []Fix {
	f := x.byPath[path]
	if f == nil || f.imports < 0 {
		return nil
	}
	edit := Edit{Place{path, f.imports, f.imports}, fmt.Sprintf("\n\nimport %q", of)}
	return []Fix{{fmt.Sprintf("Import %s", of), []Edit{edit}}}
}

// pin adds the dependency on the module that has the schema.
func (x *Index) pin() []Fix {
	f := x.byPath[cuemodule.File]
	if f == nil {
		return nil
	}
	entry := fmt.Sprintf("%q: v: %q", kalypso.ModulePath, kalypso.ModuleVersion)
	at, text := len(f.Text), "deps: "+entry+"\n"
	if at > 0 && f.Text[at-1] != '\n' {
		text = "\n" + text
	}
	for _, of := range f.fields {
		if w := &f.words[of.Words[0]]; len(w.Path) == 1 && w.Text == "deps" && len(of.Words) == 1 &&
			of.Value < at && f.Text[of.Value] == '{' {
			at, text = of.Value+1, "\n"+syntax.Indent(f.Text, of.Start)+"\t"+entry
			if of.Value+1 < len(f.Text) && f.Text[of.Value+1] != '\n' && f.Text[of.Value+1] != '\r' {
				text += ", "
			}
			break
		}
	}
	return []Fix{{"Pin the schema in " + cuemodule.File, []Edit{{Place{f.Path, at, at}, text}}}}
}
