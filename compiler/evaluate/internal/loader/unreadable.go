package loader

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Errors translates what makes a whole package unreadable. code is for errors of no known
// kind.
func (p *Places) Errors(err error, code diag.Code) []diag.Diagnostic {
	var ds []diag.Diagnostic
	for _, e := range errors.Errors(err) {
		d := unreadable(p.withoutPositions(cuevalue.Text(e)), code)
		at := p.All(errors.Positions(e))
		if strings.Contains(e.Error(), failedImport) {
			slices.Reverse(at) // first what is wrong there, then who imports it
		}
		d = d.InEach(at...)
		if m := missingReference.FindStringSubmatch(d.Message); m != nil && len(d.Sites) == 0 {
			d = d.InEach(p.uses(m[1])...)
		}
		if len(d.Sites) == 0 {
			d = d.In(model.Position{File: "cue.mod/module.cue", Line: 1, Column: 1}, "")
		}
		if !slices.ContainsFunc(ds, func(o diag.Diagnostic) bool { return o.Message == d.Message && slices.Equal(o.Sites, d.Sites) }) {
			ds = append(ds, d)
		}
	}
	return slices.DeleteFunc(ds, func(d diag.Diagnostic) bool {
		return strings.HasSuffix(d.Message, announcesSchemaError) && len(ds) > 1
	})
}

var missingReference = lazyregexp.New(`^reference (\S+) is not found$`)

// uses returns where an identifier that refers to nothing stands: CUE does not
// say so where it stands in a hidden field at the top.
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

// announcesSchemaError is the message of CUE that precedes the error of an embedded JSON
// Schema.
const announcesSchemaError = "constraints are not possible to satisfy"

var positionPrefix = lazyregexp.New(`(^|: )[^\s:]+:\d+:\d+: `)

// withoutPositions returns the first line of an error without the positions that
// CUE puts into the text, and without the platform's root.
func (p *Places) withoutPositions(message string) string {
	message = strings.ReplaceAll(cuevalue.FirstLine(message), p.files.Root+"/", "")
	return positionPrefix.ReplaceAllString(message, "$1")
}

// unreadableKinds are the errors that CUE reports when it loads and compiles a
// package, as users should read them. $1 is the group of
// the pattern that matches.
var unreadableKinds = []struct {
	says    lazyregexp.Regexp
	code    diag.Code
	message string
	hint    string
}{
	{lazyregexp.New(`cannot find package "([^"]+)"|cannot find module providing package (\S+)|no dependency found for (?:package )?"?([^\s"]+)`), diag.Import,
		"there is no package $1", "correct the import path, or let cue.mod/module.cue depend on its module (`cue mod tidy`) and run `kalypso lock`: a build itself never reaches the network"},
	{lazyregexp.New(`builtin package "([^"]+)" undefined`), diag.Import,
		"there is no package $1", "a path without a dot in its first part is a package of CUE itself; one of the platform begins with the platform's module path"},
	{lazyregexp.New(`^reference "(#assignment)" not found`), diag.Compile,
		"reference $1 is not found", "declare it beside the values: $1: schema.#Assignment"},
	{lazyregexp.New(`^reference "([^"]+)" not found`), diag.Compile,
		"reference $1 is not found", "declare $1, correct its spelling, or quote it if it is text: \"$1\""},
	{lazyregexp.New(`imported and not used: "([^"]+)"`), diag.Compile,
		"package $1 is imported and not used", "remove the import"},
	{lazyregexp.New(`^unreferenced alias or let clause (\S+)`), diag.Compile,
		"$1 is declared and not used", "remove it, or make it a hidden field: _$1"},
	{lazyregexp.New(`^@embed: open (.+?): no such file or directory`), diag.Compile,
		"there is no file $1 to embed", "the path counts from the folder of the file that names it"},
	{lazyregexp.New(`^@embed: cannot refer to parent directory`), diag.Compile,
		"@embed cannot read a file of another folder", "embed the file in the folder where it lies, as a definition or hidden field, and refer to that"},
	{lazyregexp.New(`^@embed: failed to decode file: (.+)`), diag.Compile,
		"the embedded file cannot be read: $1", "correct the file"},
	{lazyregexp.New(`^@embed: (invalid value .+ \(does not satisfy matchN\).*)`), diag.Compile,
		"CUE cannot embed the JSON Schema: $1", "a schema whose root asks an empty object for something (oneOf, anyOf, minProperties) cannot be embedded: put that under a property, or write the contract in CUE"},
	{lazyregexp.New(`^@embed: (.+)`), diag.Compile,
		"the file cannot be embedded: $1", "correct the file, or the attribute"},
	{lazyregexp.New(`^string literal not terminated`), diag.Syntax,
		"a string is not terminated", `close it with " on the same line; text of several lines stands between """`},
	{lazyregexp.New(`^missing ',' (.+)`), diag.Syntax,
		"a comma or a new line is missing $1", "separate fields and elements by commas or new lines"},
}

// failedImport precedes what is wrong with an imported package.
const failedImport = "import failed: "

func unreadable(message string, code diag.Code) diag.Diagnostic {
	message = strings.TrimPrefix(message, failedImport)
	for _, kind := range unreadableKinds {
		m := kind.says.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		about := strings.Join(m[1:], "") // of alternatives one matches
		fill := strings.NewReplacer("$1", about)
		d := diag.New(kind.code, fill.Replace(kind.message)).Hinting(fill.Replace(kind.hint))
		if kind.code == diag.Import && strings.HasPrefix(about, OurModule+"/") {
			d = d.Suggesting(about, ourPackages())
		}
		if path, ok := builtinPackages[about]; ok && strings.HasPrefix(kind.message, "reference ") {
			d = d.Hinting(fmt.Sprintf("import %q", path))
		}
		return d
	}
	return diag.New(code, message).
		Hinting("correct it first: nothing else of the package can be read")
}

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
