package docgen

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso"
)

// chapters are the files of the schema in a good order for readers.
var chapters = []string{
	"environment.cue", "promotion.cue", "cluster.cue", "inventory.cue", "workload.cue",
	"workspace.cue", "manifests.cue", "registration.cue", "policy.cue", "config.cue",
	"test.cue", "namespace.cue", "reconciler.cue", "application.cue", "names.cue",
}

func languagePage() ([]byte, error) {
	p := newPage("The language", "schema/*.cue")
	files, err := parse("schema")
	if err != nil {
		return nil, err
	}
	p.block("%s", prose(packageDoc(files), "cue"))
	p.block("A field with a default holds it where nobody gives a value. The field `name` is the entity's key: nobody\n" +
		"writes it. Names with a `#` are definitions, and link to their own section. A regular expression must\n" +
		"match somewhere in the text; `^` and `$` tie it to the ends.")
	p.block("A platform that wants another default gives values, since of two defaults CUE takes neither: not\n" +
		"`configFormat: *\"json\" | string`, but `clusterTypes: [Name=_]: configFormat: [if Name == " +
		"\"edge\" {\"env\"}, \"json\"][0]`.")
	w := newWriter(p, "", files)
	delete(files, "doc.cue")
	for _, name := range chapters {
		file, ok := files[name]
		if !ok {
			return nil, fmt.Errorf("schema/%s: no such file", name)
		}
		delete(files, name)
		p.block("## %s", name)
		w.file(file)
	}
	for name := range files {
		return nil, fmt.Errorf("schema/%s: give it a place among the chapters", name)
	}
	return p.Bytes(), nil
}

func stdlibPage() ([]byte, error) {
	p := newPage("The standard library", "stdlib/*/*.cue")
	p.block("Packages to import beside the schema. Everything in them is ordinary CUE: a platform can unify it with\n" +
		"fields of its own, and needs none of it.")
	dirs, err := fs.ReadDir(kalypso.Module, "stdlib")
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		files, err := parse("stdlib/" + dir.Name())
		if err != nil {
			return nil, err
		}
		p.block("## kalypso.io/stdlib/%s", dir.Name())
		p.block("%s", prose(packageDoc(files), "cue"))
		w := newWriter(p, "language.md", files)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			w.file(files[name])
		}
	}
	return p.Bytes(), nil
}

// parse reads the files of a package of the module, by name.
func parse(dir string) (map[string]*ast.File, error) {
	entries, err := fs.ReadDir(kalypso.Module, dir)
	if err != nil {
		return nil, err
	}
	files := map[string]*ast.File{}
	for _, e := range entries {
		text, err := kalypso.Module.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if files[e.Name()], err = parser.ParseFile(e.Name(), text, parser.ParseComments); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// packageDoc is the package comment.
func packageDoc(files map[string]*ast.File) string {
	file, ok := files["doc.cue"]
	if !ok {
		return ""
	}
	text := doc(file)
	for _, d := range file.Decls {
		if pkg, ok := d.(*ast.Package); ok {
			text += doc(pkg)
		}
	}
	return text
}

// doc is the comment above a node.
func doc(n ast.Node) string {
	for _, group := range ast.Comments(n) {
		if group.Doc || group.Position == 0 {
			return group.Text()
		}
	}
	if f, ok := n.(*ast.Field); ok {
		return doc(f.Label)
	}
	return ""
}

// paragraph is a comment as one line of Markdown.
func paragraph(text string) string { return escape(strings.Join(strings.Fields(text), " ")) }
