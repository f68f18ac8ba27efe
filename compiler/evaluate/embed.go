package evaluate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// embeddedNames returns the files that an @embed attribute in folder dir names,
// as it names them: those of file=, and those that glob= matches.
func embeddedNames(a *ast.Attribute, dir string) []string {
	key, body := a.Split()
	if key != "embed" {
		return nil
	}
	for _, arg := range strings.Split(body, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(arg), "=")
		if unquoted, err := literal.Unquote(value); err == nil {
			value = unquoted
		}
		switch key {
		case "file":
			return []string{value}
		case "glob":
			found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(value)))
			if err != nil {
				return nil // loading the file has reported it
			}
			var names []string
			for _, name := range found {
				if rel, err := filepath.Rel(dir, name); err == nil {
					names = append(names, filepath.ToSlash(rel))
				}
			}
			return names
		}
	}
	return nil
}

// eachEmbedded calls add with the path and content of every file that a file embeds.
func eachEmbedded(f *ast.File, add func(name string, data []byte)) error {
	dir := filepath.Dir(f.Filename)
	var failed error
	ast.Walk(f, func(n ast.Node) bool {
		a, ok := n.(*ast.Attribute)
		if !ok || failed != nil {
			return true
		}
		for _, name := range embeddedNames(a, dir) {
			path := filepath.Join(dir, filepath.FromSlash(name))
			data, err := os.ReadFile(path)
			if err != nil {
				failed = err
				return true
			}
			add(path, data)
		}
		return true
	}, nil)
	return failed
}

// checkEmbeds reports @embed attributes that CUE ignores because their file does
// not enable them: what they would have brought is absent without an error.
func (x *exporter) checkEmbeds(environment string) {
	for _, f := range x.files {
		enabled := slices.ContainsFunc(f.Decls, func(d ast.Decl) bool {
			a, ok := d.(*ast.Attribute)
			return ok && strings.HasPrefix(a.Text, "@extern(")
		})
		if enabled {
			continue
		}
		ast.Walk(f, func(n ast.Node) bool {
			if a, ok := n.(*ast.Attribute); ok && strings.HasPrefix(a.Text, "@embed(") {
				x.report(diag.New(diag.Compile, "@embed has no effect in this file").In(x.of(a.Pos()), "").
					Hinting("write @extern(embed) above the file's package clause"))
				x.hideAll(environment)
			}
			return true
		}, nil)
	}
}
