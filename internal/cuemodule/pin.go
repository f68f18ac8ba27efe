package cuemodule

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"golang.org/x/mod/semver"

	"github.com/kalypso-io/kalypso"
)

// span is a part of a source text, in bytes.
type span struct{ from, to int }

func spanOf(n ast.Node) span { return span{n.Pos().Offset(), n.End().Offset()} }

// unpin takes the pins of the module out of a parsed module.cue or
// local-module.cue and returns where they were: entries of deps, or the whole
// deps where nothing else is in it.
func unpin(f *ast.File) []span {
	var pins []span
	f.Decls = slices.DeleteFunc(f.Decls, func(decl ast.Decl) bool {
		section, deps := structField(decl)
		if section != "deps" || deps == nil {
			return false
		}
		whole := spanOf(decl) // a chain of fields ends nowhere once it is empty
		var entries []span
		deps.Elts = slices.DeleteFunc(deps.Elts, func(entry ast.Decl) bool {
			key, dep := structField(entry)
			if !isModule(key, dep) {
				return false
			}
			entries = append(entries, spanOf(entry))
			return true
		})
		if len(entries) > 0 && len(deps.Elts) == 0 {
			pins = append(pins, whole)
			return true
		}
		pins = append(pins, entries...)
		return false
	})
	return pins
}

// Pin is what a module.cue or local-module.cue says of the module.
type Pin struct {
	Version string // such as "v0.1.0"; "" where it is not written as a string
	At      token.Position
}

// Newer says whether the platform needs a newer module than the binary has.
func (p Pin) Newer() bool { return semver.Compare(p.Version, kalypso.ModuleVersion) > 0 }

// PinOf returns the pin of the module in the source of a module.cue or
// local-module.cue, which errors and positions call name. It finds none in a
// file that does not parse: the loader reports that.
func PinOf(name string, source []byte) (pin Pin, found bool) {
	f, err := parser.ParseFile(name, source)
	if err != nil {
		return Pin{}, false
	}
	for _, decl := range f.Decls {
		section, deps := structField(decl)
		if section != "deps" || deps == nil {
			continue
		}
		for _, entry := range deps.Elts {
			if key, dep := structField(entry); isModule(key, dep) {
				return Pin{depVersion(dep), entry.Pos().Position()}, true
			}
		}
	}
	return Pin{}, false
}

// Unpinned says whether plain cue finds no schema for the platform at root:
// neither module.cue nor local-module.cue has a pin of the module, and it is not
// vendored. over is as for Overlay.
func Unpinned(root string, over map[string][]byte) bool {
	for _, name := range []string{File, localModuleFile} {
		source, err := read(root, over, name)
		if err != nil {
			continue // Open reports what it needs and cannot read
		}
		if _, found := PinOf(name, source); found {
			return false
		}
	}
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(vendorDir)))
	return errors.Is(err, fs.ErrNotExist)
}

// isModule says whether an entry of deps is about the module: its key is the
// module's path with the major version, or without it (which CUE then takes
// from the version).
func isModule(key string, dep *ast.StructLit) bool {
	base, keyMajor, found := strings.Cut(key, "@")
	if base != basePath {
		return false
	}
	if !found {
		v := depVersion(dep)
		return v == "" || semver.Major(v) == major
	}
	return keyMajor == major
}

// depVersion returns the version in an entry of deps; "" where there is none.
func depVersion(dep *ast.StructLit) string {
	if dep == nil {
		return ""
	}
	for _, decl := range dep.Elts {
		if name, value := field(decl); name == "v" {
			return text(value)
		}
	}
	return ""
}

// structField returns the name and the fields of a field that holds a struct;
// "" and nil for any other declaration.
func structField(decl ast.Decl) (string, *ast.StructLit) {
	name, value := field(decl)
	if lit, ok := value.(*ast.StructLit); ok {
		return name, lit
	}
	return "", nil
}

// field returns a field's name, unquoted, and its value; "" and nil for any
// other declaration.
func field(decl ast.Decl) (string, ast.Expr) {
	f, ok := decl.(*ast.Field)
	if !ok {
		return "", nil
	}
	name, _, err := ast.LabelName(f.Label)
	if err != nil {
		return "", nil
	}
	return name, f.Value
}

// text returns the string that an expression spells; "" where it is no string.
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, err := literal.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

// blank overwrites parts of a source text, and the comma after each, with
// spaces: what stays is where it was, so that positions in it stay right.
func blank(source []byte, parts []span) []byte {
	source = slices.Clone(source)
	for _, p := range parts {
		for i := p.from; i < p.to; i++ {
			if source[i] != '\n' && source[i] != '\r' {
				source[i] = ' '
			}
		}
		end := p.to // CUE takes a comma on a later line for that of the entry
		for end < len(source) && strings.IndexByte(" \t\r\n", source[end]) >= 0 {
			end++
		}
		if end < len(source) && source[end] == ',' {
			source[end] = ' '
		}
	}
	return source
}
