package randplatform

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso"
)

// helperPackage is the name and the folder of the package that the platform's
// files import.
const helperPackage = "helpers"

const module = "random.example/platform@v0"

const moduleText = `module: "` + module + `"
language: version: "v0.15.0"
deps: "` + kalypso.ModulePath + `": v: "` + kalypso.ModuleVersion + `"
`

// imports are the packages that a file imports if its text uses them.
var imports = []struct{ use, path string }{
	{"namespace.#", "kalypso.io/stdlib/namespace"},
	{"reconciler.#", "kalypso.io/stdlib/reconciler"},
	{"schema.#", "kalypso.io/schema"},
	{"value.#", "kalypso.io/stdlib/value"},
	{helperPackage + ".", "random.example/platform/" + helperPackage},
}

// Write makes the directory hold the platform: it writes the files whose text
// is another, and removes all others. After an edit that only touches files it
// gives all of them a new modification time.
func (p *Platform) Write(dir string) error {
	files := p.Files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if old, err := os.ReadFile(at); err == nil && string(old) == files[name] {
			if p.touched {
				later := time.Now()
				if err := os.Chtimes(at, later, later); err != nil {
					return err
				}
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(files[name]), 0o666); err != nil {
			return err
		}
	}
	return filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		if _, wanted := files[filepath.ToSlash(rel)]; wanted {
			return nil
		}
		return os.Remove(at)
	})
}

// Files returns the text of the platform's files by path, with slashes.
func (p *Platform) Files() map[string]string {
	broken := p.withBreakages()
	bodies := map[string]*strings.Builder{}
	in := func(file string) *strings.Builder {
		if bodies[file] == nil {
			bodies[file] = &strings.Builder{}
		}
		return bodies[file]
	}
	for _, e := range broken.entities {
		here, away := e.body, obj()
		if len(e.away) > 0 {
			here = obj()
			for _, f := range e.body.fields {
				if slices.Contains(e.away, f.label) {
					away.fields = append(away.fields, f)
				} else {
					here.fields = append(here.fields, f)
				}
			}
		}
		e.write(in(e.file), here, p.styles[e.file])
		if len(away.fields) > 0 {
			e.write(in(e.awayFile), away, p.styles[e.awayFile])
		}
	}
	out := map[string]string{"cue.mod/module.cue": moduleText}
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		out[name] = header(name, bodies[name].String()) + bodies[name].String() + p.comments[name]
	}
	for name, v := range p.data {
		var b strings.Builder
		v.write(&b, jsonText, 0)
		out[name] = b.String() + "\n" + p.comments[name]
	}
	for name, rows := range p.rows {
		out[name] = csv(rows)
	}
	p.addContent(out)
	for _, b := range p.broken {
		if _, there := out[b.file]; there {
			out[b.file] += b.text
		} else if b.file != "" && path.Ext(b.file) == ".cue" {
			out[b.file] = header(b.file, b.text) + b.text
		}
	}
	return out
}

// header returns the beginning of a file: the package, and the attributes and imports that the
// body uses.
func header(name, body string) string {
	var b strings.Builder
	if strings.Contains(body, "@embed(") {
		b.WriteString("@extern(embed)\n\n")
	}
	pkg := "platform"
	if path.Dir(name) == helperPackage {
		pkg = helperPackage
	}
	fmt.Fprintf(&b, "package %s\n\n", pkg)
	for _, i := range imports {
		if strings.Contains(body, i.use) {
			fmt.Fprintf(&b, "import %q\n\n", i.path)
		}
	}
	return b.String()
}

// write writes the entity's declaration, with some of its fields.
func (e *entity) write(b *strings.Builder, body *value, s style) {
	if e.comment != "" {
		fmt.Fprintf(b, "// %s\n", e.comment)
	}
	declaration := field{e.key, body}
	switch {
	case len(e.items) > 0:
		fmt.Fprintf(b, "%s: {\n\tfor item in [", e.collection)
		for i, item := range e.items {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(b, "%q", item)
		}
		b.WriteString("] {\n\t\t")
		declaration.write(b, s, 2)
		b.WriteString("\n\t}\n}\n")
		return
	case e.collection != "":
		declaration = field{e.collection, obj(e.key, body)}
	}
	if s == open && e.collection != "" {
		// The collection and the key on one line, as people write it.
		b.WriteString(e.collection + ": ")
		declaration = field{e.key, body}
	}
	declaration.write(b, s, 0)
	b.WriteString("\n\n")
}
