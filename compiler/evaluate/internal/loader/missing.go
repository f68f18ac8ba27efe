package loader

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// missing adds to the diagnostic of a name that refers to nothing what it was probably meant
// to be.
func (p *Places) missing(name string, d diag.Diagnostic) diag.Diagnostic {
	if len(d.Sites) == 0 {
		return d
	}
	at := d.Sites[0].Position
	switch selected := p.isSelected(at); {
	case name == "#assignment" && !p.importing(at.File, OurModule+"/schema"):
		return d.Hinting(fmt.Sprintf("%s, and below the package clause: import %q", d.Hint, OurModule+"/schema"))
	case name == "#assignment":
		return d
	case p.dash(at) > 0:
		d.Message = "a list stands between brackets, and its elements have no dashes"
		d.Sites[0].Position.Column = p.dash(at) // of all names of an element
		return d.Hinting("write [a, b], and of structs [{…}, {…}]")
	case selected && packagesByName()[name] != "":
		d.Suggestion = diag.Suggestion{Import: packagesByName()[name]}
		return d.Hinting(fmt.Sprintf("add this line below the package clause: import %q", packagesByName()[name]))
	case selected && slices.Contains([]string{"var", "local", "data", "module", "each"}, name):
		d.Message += ": it is of Terraform, and CUE refers to a field or a let by its name alone"
		return d.Hinting("declare a field, such as _color, and write its name")
	case yamlWords[name] != "":
		d.Suggestion = diag.Suggestion{Wrong: name, Right: yamlWords[name]}
		return d.Hinting("write " + yamlWords[name])
	}
	if visible := p.visible(at); spelling.Nearest(name, visible) != "" {
		return d.Suggesting(name, visible)
	}
	return d
}

// yamlWords are what YAML, or another language, calls values that CUE has other names for.
var yamlWords = map[string]string{
	"True": "true", "TRUE": "true", "yes": "true", "Yes": "true", "on": "true", "On": "true",
	"False": "false", "FALSE": "false", "no": "false", "No": "false", "off": "false", "Off": "false",
	"Null": "null", "NULL": "null", "nil": "null", "None": "null",
}

// isSelected says whether the name at a position is that of a package, or of a struct, of
// which something is used: X in X.y.
func (p *Places) isSelected(at model.Position) (found bool) {
	p.walk(at.File, func(n ast.Node) {
		sel, ok := n.(*ast.SelectorExpr)
		found = found || ok && p.Of(sel.X.Pos()) == at
	})
	return found
}

// dash returns the column of the dash that begins the line of what is at a position, as in elements
// of lists in YAML; 0 for none.
func (p *Places) dash(at model.Position) int {
	line := p.line(at)
	m := dashedName.FindStringSubmatchIndex(line[:min(at.Column-1, len(line))])
	if m == nil {
		return 0
	}
	return m[2] + 1
}

// dashedName matches the beginning of an element of a list in YAML that is a name.
var dashedName = lazyregexp.New(`^\s*(-)\s+[\w./-]*$`)

// importing says whether a file imports a package.
func (p *Places) importing(file, path string) (found bool) {
	p.walk(file, func(n ast.Node) {
		spec, ok := n.(*ast.ImportSpec)
		found = found || ok && importPath(spec) == path
	})
	return found
}

// walk calls f with all nodes of a file of the package.
func (p *Places) walk(file string, f func(ast.Node)) {
	for _, of := range p.Files {
		if p.relative(of.Filename) == file {
			ast.Walk(of, func(n ast.Node) bool { f(n); return true }, nil)
		}
	}
}

// visible returns the names that a position may refer to: the top-level fields of all files of the
// package, the fields of the structs around the position, and the other declarations of the file.
func (p *Places) visible(at model.Position) []string {
	names := []string{"#assignment"}
	addFields := func(decls []ast.Decl) {
		for _, d := range decls {
			if field, ok := d.(*ast.Field); ok {
				if name, isIdent, err := ast.LabelName(field.Label); err == nil && isIdent {
					names = append(names, name)
				}
			}
		}
	}
	for _, f := range p.Files {
		addFields(f.Decls)
	}
	p.walk(at.File, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.StructLit:
			if p.Of(n.Pos()).Compare(at) <= 0 && p.Of(n.End()).Compare(at) >= 0 {
				addFields(n.Elts)
			}
		case *ast.LetClause:
			names = append(names, n.Ident.Name)
		case *ast.ForClause:
			for _, id := range []*ast.Ident{n.Key, n.Value} {
				if id != nil {
					names = append(names, id.Name)
				}
			}
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// packagesByName returns the import paths of CUE's own packages and of those of the module
// kalypso.io by their names.
var packagesByName = sync.OnceValue(func() map[string]string {
	out := maps.Clone(builtinPackages)
	for _, path := range ourPackages() {
		out[path[strings.LastIndexByte(path, '/')+1:]] = path
	}
	return out
})

// builtinPackages are the import paths of CUE's own packages by their names
// (https://pkg.go.dev/cuelang.org/go/pkg).
var builtinPackages = map[string]string{
	"base64": "encoding/base64", "bits": "math/bits", "csv": "encoding/csv", "hex": "encoding/hex",
	"hmac": "crypto/hmac", "html": "html", "json": "encoding/json", "list": "list", "math": "math",
	"md5": "crypto/md5", "net": "net", "path": "path", "regexp": "regexp", "sha1": "crypto/sha1",
	"sha256": "crypto/sha256", "sha512": "crypto/sha512", "strconv": "strconv", "strings": "strings",
	"struct": "struct", "tabwriter": "text/tabwriter", "template": "text/template", "time": "time",
	"toml": "encoding/toml", "uuid": "uuid", "yaml": "encoding/yaml",
}

// OurModule is the path of the module kalypso.io, without its major version.
var OurModule, _, _ = strings.Cut(kalypso.ModulePath, "@")

// ourPackages are the import paths of the module kalypso.io.
func ourPackages() []string {
	var paths []string
	for _, pattern := range []string{"*/*.cue", "*/*/*.cue"} {
		files, err := fs.Glob(kalypso.Module, pattern)
		if err != nil {
			panic(err)
		}
		for _, name := range files {
			if dir := path.Dir(name); dir != "cue.mod" {
				paths = append(paths, path.Join(OurModule, dir))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
