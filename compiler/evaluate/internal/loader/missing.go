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
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// missing adds the probable intention to the diagnostic of a name that refers to nothing.
func (p *Places) missing(name string, d diag.Diagnostic) diag.Diagnostic {
	if len(d.Sites) == 0 {
		return d
	}
	at := d.Sites[0].Position
	switch selected := p.isSelected(at); {
	case name == "#assignment" && !p.importing(at.File, OurModule+"/schema"):
		return d.Hinting(
			fmt.Sprintf("%s, and below the package clause: import %q", d.Hint, OurModule+"/schema"))
	case name == "#assignment":
		return d
	case p.dash(at) > 0:
		d.Message = "a list stands between brackets, and its elements have no dashes"
		d.Sites[0].Position.Column = p.dash(at) // for all names of an element
		return d.Hinting("write [a, b], and of structs [{…}, {…}]")
	case selected && packagesByName()[name] != "":
		d.Suggestion = diag.Suggestion{Import: packagesByName()[name]}
		return d.Hinting(
			fmt.Sprintf("add this line below the package clause: import %q", packagesByName()[name]))
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

// yamlWords maps the names of values in YAML and other languages to their names in CUE.
var yamlWords = map[string]string{
	"True": "true", "TRUE": "true", "yes": "true", "Yes": "true", "on": "true", "On": "true",
	"False": "false", "FALSE": "false", "no": "false", "No": "false", "off": "false", "Off": "false",
	"Null": "null", "NULL": "null", "nil": "null", "None": "null",
}

// isSelected reports whether the name at a position is X in X.y: the name of a package, or of a
// struct, with a selected member.
func (p *Places) isSelected(at model.Position) (found bool) {
	p.walk(at.File, func(n ast.Node) {
		sel, ok := n.(*ast.SelectorExpr)
		found = found || ok && p.Position(sel.X.Pos()) == at
	})
	return found
}

// dash returns the column of the dash that begins the line of a position, as in elements of
// lists in YAML. It returns 0 if the line does not begin with a dash.
func (p *Places) dash(at model.Position) int {
	line := p.line(at)
	m := dashedName.FindStringSubmatchIndex(line[:min(at.Column-1, len(line))])
	if m == nil {
		return 0
	}
	return m[2] + 1
}

// dashedName matches the beginning of an element of a YAML list that is a name.
var dashedName = lazyregexp.New(`^\s*(-)\s+[\w./-]*$`)

// importing reports whether a file imports a package.
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

// visible returns the names that a position may refer to. These are the top-level fields of all
// files of the package, the fields of the structs around the position, and the other
// declarations of the file.
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
			if p.Position(n.Pos()).Compare(at) <= 0 && p.Position(n.End()).Compare(at) >= 0 {
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

// packagesByName returns the import paths of CUE's own packages and of the packages of the
// module kalypso.io, by their names.
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

// Errors translates errors that make a whole package unreadable. code is for errors of unknown
// kinds.
func (p *Places) Errors(err error, code diag.Code) []diag.Diagnostic {
	var ds []diag.Diagnostic
	for _, e := range errors.Errors(err) {
		message := p.withoutPositions(cuevalue.Text(e))
		d, found := p.syntax(e, message)
		if !found {
			d = p.uncompiled(e, message, code)
		} else if strings.Contains(message, "found 'EOF'") &&
			slices.ContainsFunc(ds, func(
				o diag.Diagnostic) bool {
				return o.Sites[0].Position.File == d.Sites[0].Position.File
			}) {
			continue // it follows from the other error
		}
		if !slices.ContainsFunc(ds, func(o diag.Diagnostic) bool {
			return o.Message == d.Message &&
				slices.Equal(o.Sites, d.Sites)
		}) {
			ds = append(ds, d)
		}
	}
	return slices.DeleteFunc(ds, func(d diag.Diagnostic) bool {
		return strings.HasSuffix(d.Message, announcesSchemaError) && len(ds) > 1
	})
}

// uncompiled translates an error of a package with syntactically valid files.
func (p *Places) uncompiled(e errors.Error, message string, code diag.Code) diag.Diagnostic {
	d := unreadable(message, code)
	at := p.All(errors.Positions(e))
	if strings.Contains(e.Error(), failedImport) {
		slices.Reverse(at) // the error first, then its imports
	}
	d = d.InEach(at...)
	if m := missingReference.FindStringSubmatch(d.Message); m != nil {
		if len(d.Sites) == 0 {
			d = d.InEach(p.uses(m[1])...)
		}
		d = p.missing(m[1], d)
	}
	if len(d.Sites) == 0 {
		return d.In(model.Position{File: "cue.mod/module.cue", Line: 1, Column: 1}, "")
	}
	path := ""
	for _, name := range p.PathAt(d.Sites[0].Position) {
		if !strings.HasPrefix(name, "#") {
			name = model.Label(name)
		}
		path = model.JoinPath(path, name)
	}
	return d.On(path)
}

var missingReference = lazyregexp.New(`^reference (\S+) is not found$`)

// uses returns the positions of an identifier that refers to nothing. CUE does not report such
// an identifier in a hidden field at the top level.
func (p *Places) uses(name string) []model.Position {
	var out []token.Pos
	for _, f := range p.Files {
		ast.Walk(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name == name && id.Node == nil {
				out = append(out, id.Pos())
			}
			return true
		}, nil)
	}
	return p.All(out)
}

// announcesSchemaError is CUE's message before the error of an embedded JSON Schema.
const announcesSchemaError = "constraints are not possible to satisfy"

var positionPrefix = lazyregexp.New(`(^|: )[^\s:]+:\d+:\d+: `)

// withoutPositions returns the first line of an error. It removes the positions that CUE puts
// into the text, and the platform's root.
func (p *Places) withoutPositions(message string) string {
	message = strings.ReplaceAll(cuevalue.FirstLine(message), p.files.Root+"/", "")
	return positionPrefix.ReplaceAllString(message, "$1")
}

// unreadableKinds are errors that CUE reports when it loads and compiles a package, with their
// messages for users. $1 is the group of the matching pattern.
var unreadableKinds = []struct {
	says    lazyregexp.Regexp
	code    diag.Code
	message string
	hint    string
}{
	{lazyregexp.New(
		`cannot find package "([^"]+)"|cannot find module providing package (\S+)|no dependency found for (?:package )?"?([^\s"]+)`), diag.Import,
		"there is no package $1", "correct the import path, or let cue.mod/module.cue depend on its " +
			"module (`cue mod tidy`) and run `kalypso lock`: a build itself never reaches the network"},
	{lazyregexp.New(`builtin package "([^"]+)" undefined`), diag.Import,
		"there is no package $1", "a path without a dot in its first part is a package of CUE itself; " +
			"one of the platform begins with the platform's module path"},
	{lazyregexp.New(`^reference "(#assignment)" not found`), diag.Compile,
		"reference $1 is not found", "declare it beside the values: $1: schema.#Assignment"},
	{lazyregexp.New(`^reference "([^"]+)" not found`), diag.Compile,
		"reference $1 is not found", "write it in quotes if it is text, \"$1\", or declare $1"},
	{lazyregexp.New(`imported and not used: "([^"]+)"`), diag.Compile,
		"package $1 is imported and not used", "remove the import"},
	{lazyregexp.New(`^unreferenced alias or let clause (\S+)`), diag.Compile,
		"$1 is declared and not used", "remove it, or make it a hidden field: _$1"},
	{lazyregexp.New(`^@embed: open (.+?): no such file or directory`), diag.Compile,
		"there is no file $1 to embed", "the path counts from the folder of the file that names it"},
	{lazyregexp.New(`^@embed: cannot refer to parent directory`), diag.Compile,
		"@embed cannot read a file of another folder", "embed the file in the folder where it lies, as " +
			"a definition or hidden field, and refer to that"},
	{lazyregexp.New(`^@embed: failed to decode file: (.+)`), diag.Compile,
		"the embedded file cannot be read: $1", "correct the file"},
	{lazyregexp.New(`^@embed: (invalid value .+ \(does not satisfy matchN\).*)`), diag.Compile,
		"CUE cannot embed the JSON Schema: $1", "a schema whose root asks an empty object for " +
			"something (oneOf, anyOf, minProperties) cannot be embedded: put that under a property, or " +
			"write the contract in CUE"},
	{lazyregexp.New(`^@embed: (.+)`), diag.Compile,
		"the file cannot be embedded: $1", "correct the file, or the attribute"},
	{lazyregexp.New(`^string literal not terminated`), diag.Syntax,
		"a string is not terminated",
		`close it with " on the same line; text of several lines stands between """`},
	{lazyregexp.New(`^expected 'EOF', found '([}\])])'`), diag.Syntax,
		"there is nothing that this $1 closes", "remove it, or open what it is to close"},
	{lazyregexp.New(`^illegal integer number`), diag.Syntax,
		"a number does not begin with 0",
		`write it without the 0, in quotes for a text, or with 0o in front for an octal number, as 0o644`},
	{lazyregexp.New(`^missing ',' (.+)`), diag.Syntax,
		"a comma or a new line is missing $1", "separate fields and elements by commas or new lines"},
}

// failedImport is the text before the error of an imported package.
const failedImport = "import failed: "

func unreadable(message string, code diag.Code) diag.Diagnostic {
	message = strings.TrimPrefix(message, failedImport)
	for _, kind := range unreadableKinds {
		m := kind.says.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		about := strings.Join(m[1:], "") // only one alternative matches
		fill := strings.NewReplacer("$1", about)
		d := diag.New(kind.code, fill.Replace(kind.message)).Hinting(fill.Replace(kind.hint))
		if kind.code == diag.Import && strings.HasPrefix(about, OurModule+"/") {
			d = d.Suggesting(about, ourPackages())
		}
		return d
	}
	return diag.New(code, message).
		Hinting("correct it first: nothing else of the package can be read")
}
