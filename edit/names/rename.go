package names

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/edit/syntax"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// Renamable returns the name at an offset that Rename can change. ok is false if there is no
// such name.
func (x *Index) Renamable(path string, offset int) (at Place, ok bool) {
	f, u := x.useAt(path, offset)
	if u == nil {
		return Place{}, false
	}
	return f.place(&f.words[u.word]), true
}

// Rename renames an entity or a deployment target everywhere. At a full name, it renames the
// deployment target: the new name is to without the workload's name. It returns an error if the
// new name is invalid, or if the name cannot be changed everywhere.
func (x *Index) Rename(path string, offset int, to string) ([]Edit, error) {
	f, u := x.useAt(path, offset)
	if u == nil {
		return nil, fmt.Errorf(
			"only names of entities and deployment targets can be renamed, and there is none")
	}
	meant := x.meant(f.environment, u)
	if len(meant) > 1 {
		return nil, fmt.Errorf("%d workloads have a deployment target %s: rename it where one of them "+
			"declares it", len(meant), u.name)
	}
	if len(meant) == 0 {
		return nil, notDeclared(u.collection, u.name)
	}
	m := meant[0]
	if u.collection == model.DeploymentTargets && u.name == split(m.name).full() {
		to = strings.TrimPrefix(to, split(m.name).workload+"-")
	}
	if err := x.mayRename(f, m, to); err != nil {
		return nil, err
	}
	var out []Edit
	for _, o := range x.occurrences(f, &m) {
		e := o.renamed(m, to)
		if w := &o.file.words[o.use.word]; w.Kind == syntax.Identifier && strings.HasPrefix(e.Text, `"`) {
			return nil, fmt.Errorf("%s refers to it by the identifier %s, and %s is none: write %s[%q] "+
				"there first", o.file.where(w), w.Text, to, m.collection, m.name)
		}
		out = append(out, e)
	}
	if m.collection == "workloads" {
		out = append(out, x.fullNames(f, m, to)...)
	}
	slices.SortFunc(out, func(a, b Edit) int {
		if a.Path != b.Path {
			return strings.Compare(a.Path, b.Path)
		}
		return a.Start - b.Start
	})
	return out, nil
}

func notDeclared(collection, name string) error {
	return fmt.Errorf("%s %s is not written in the platform's files: a comprehension, an imported "+
		"package or a registration gives it its name, and has to give it another", kindOf(collection),
		strings.ReplaceAll(name, "/", "-"))
}

// mayRename returns an error if an entity cannot have another name.
func (x *Index) mayRename(f *file, m use, to string) error {
	kind := kindOf(m.collection)
	scope := x.scope(f, &m)
	declared := x.declared(scope, m.collection)
	taken, own := to, m.name
	if m.collection == model.DeploymentTargets {
		taken, own = split(m.name).workload+"/"+to, split(m.name).name
	}
	switch {
	case m.collection == "tests" &&
		(to == "" || strings.TrimSpace(to) != to || strings.ContainsFunc(to, unicode.IsControl)):
		return fmt.Errorf(
			"%q is no name of a test: it is a line of text, without white space at its ends", to)
	case m.collection != "tests" && !model.IsName(to):
		return fmt.Errorf("%q is no name: at most %d lower case letters, digits and dashes, with a "+
			"letter or digit first and last", to, model.MaxLabel)
	case to == own:
		return fmt.Errorf("it is called %s already", to)
	case m.collection == "namespaceServices" && m.name == "default":
		return fmt.Errorf("the schema itself names the namespace service default: declare another, and " +
			"name it in the cluster types")
	case !slices.Contains(declared, m.name):
		return notDeclared(m.collection, m.name)
	case slices.Contains(declared, taken):
		return fmt.Errorf("there is a %s %s already", kind, to)
	}
	if m.collection == "environments" &&
		slices.ContainsFunc(x.files, func(g *file) bool { return g.environment == m.name && g.part }) {
		return fmt.Errorf("the folder %s/%s has the name of the environment: rename the folder as "+
			"well, and begin with it", source.Environments, m.name)
	}
	if m.collection == model.DeploymentTargets {
		return x.mayRenameTarget(scope, split(m.name), to)
	}
	return nil
}

// mayRenameTarget returns an error if selectors name several targets at once, or if two targets
// would have the same full name.
func (x *Index) mayRenameTarget(scope string, t target, to string) (err error) {
	full := target{t.workload, to}.full()
	same := 0
	for _, name := range x.declared(scope, model.DeploymentTargets) {
		other := split(name)
		if other.name == t.name {
			same++
		}
		if other.full() == full {
			err = fmt.Errorf("deployment target %s of workload %s has the full name %s already", other.name,
				other.workload, full)
		}
	}
	x.each(scope, func(g *file, u *use) {
		if u.collection == model.TargetNames && u.name == t.name && same > 1 && err == nil {
			err = fmt.Errorf("a selector in %s names %s, which %d workloads have: write there what it is "+
				"to select, and rename then", g.Path, t.name, same)
		}
	})
	return err
}

// renamed returns the edit that renames an entity at a place.
func (o occurrence) renamed(m use, to string) Edit {
	w := &o.file.words[o.use.word]
	if o.use.collection == model.DeploymentTargets && !strings.Contains(o.use.name, "/") {
		to = split(m.name).workload + "-" + to
	}
	e := Edit{o.place(), to}
	if w.Quoted {
		return e
	}
	// A name that is not an identifier of CUE needs quotes, even after a dot.
	e.Text = model.Label(to)
	return e
}

// fullNames returns the edits of the full names of a workload's targets.
func (x *Index) fullNames(f *file, workload use, to string) []Edit {
	scope := x.scope(f, &workload)
	renamed := map[string]string{}
	for _, name := range x.declared(scope, model.DeploymentTargets) {
		if t := split(name); t.workload == workload.name {
			renamed[t.full()] = target{to, t.name}.full()
		}
	}
	var out []Edit
	x.each(scope, func(g *file, u *use) {
		if full, ok := renamed[u.name]; ok && u.collection == model.DeploymentTargets {
			out = append(out, Edit{g.place(&g.words[u.word]), full})
		}
	})
	return out
}

// kindOf returns the word for an entity of a collection.
func kindOf(collection string) string {
	if kind, ok := kinds[collection]; ok {
		return kind
	}
	return collection
}

var kinds = map[string]string{
	"environments": "environment", "clusterTypes": "cluster type", "clusters": "cluster",
	"workspaces": "workspace",
	"workloads":  "workload", "registrations": "registration",
	"schedulingPolicies": "scheduling policy", "configs": "config",
	"configSchemas": "config schema", "namespaceServices": "namespace service",
	"reconcilers": "reconciler", "tests": "test", "inventories": "inventory",
	model.DeploymentTargets: "deployment target", model.TargetNames: "deployment target",
}

// Fix is a change that may fix the problem of a diagnostic.
type Fix struct {
	Title string
	Edits []Edit
}

// Fixes returns the fixes for a resolved diagnostic, the best one first. It uses the data of
// the diagnostic. It returns no fixes if the text has changed since the compilation, and the
// affected word no longer exists.
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

// misspelt returns the word with the given text near a position. It prefers the first such word
// at or after the position, in its line or in a field there. Otherwise it returns the first one
// earlier in the line.
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

// toDefaults moves a value of a config, or of a chart's values, to the defaults beside them. If
// files of several environments set it, toDefaults changes only the files of the diagnostic's
// sites.
func (x *Index) toDefaults(ref model.Ref, d diag.Diagnostic) []Fix {
	path := append([]string{ref.Collection, ref.Name}, splitPath(ref.Path)...)
	var edits []Edit
	for _, f := range x.files {
		if !f.part || !slices.ContainsFunc(d.Sites,
			func(s diag.Site) bool { return s.Position.File == f.Path }) {
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

// splitPath returns the names in a CUE path.
func splitPath(path string) []string {
	var out []string
	for _, w := range syntax.Read([]byte("x: " + path)).Words[1:] {
		out = append(out, w.Text)
	}
	return out
}

// moved returns the edits that move the field with a label from values to defaults. If it is
// written without braces, as in "values: a: 1", the edits only replace the label. Otherwise they
// move the field out of the braces, into a new field before them.
func (f *file) moved(w *syntax.Word) []Edit {
	of := w.Field
	for _, i := range of.Words {
		if v := &f.words[i]; v.Text == "values" && isValues(v.Path) {
			return []Edit{{f.place(v), "defaults"}}
		}
	}
	outer := f.fieldAround(w)
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

// isValues reports whether a path is the path of a config's values, or of a chart's.
func isValues(path []string) bool {
	return len(path) == 3 && path[0] == "configs" && path[2] == "values" || len(path) > 3 &&
		path[0] == "workloads" && path[len(path)-2] == "helm"
}

// fieldAround returns the smallest field around the field with a label.
func (f *file) fieldAround(w *syntax.Word) *syntax.Field {
	var out *syntax.Field
	for _, of := range f.fields {
		if of != w.Field && of.Value <= w.Start && w.Field.End <= of.End &&
			(out == nil || of.Start > out.Start) {
			out = of
		}
	}
	return out
}

// lines returns the text to remove for a field: its whole lines if they have no other text, and
// otherwise the field and a comma after it.
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

// pin adds the dependency on the schema's module.
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
