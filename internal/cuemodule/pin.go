package cuemodule

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"golang.org/x/mod/semver"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/internal/regular"
)

// span is a part of a source text, in bytes.
type span struct{ from, to int }

func spanOf(n ast.Node) span { return span{n.Pos().Offset(), n.End().Offset()} }

// unpin removes the pins of the module from a parsed module.cue or local-module.cue. It returns
// their former places: entries of deps, or the whole deps if it has no other entries.
func unpin(f *ast.File) []span {
	var pins []span
	f.Decls = slices.DeleteFunc(f.Decls, func(decl ast.Decl) bool {
		section, deps := structField(decl)
		if section != "deps" || deps == nil {
			return false
		}
		whole := spanOf(decl) // the end of a chain of fields is lost once it is empty
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

// Pin is the version of the module in a module.cue or local-module.cue.
type Pin struct {
	Version string // such as "v0.1.0"; "" if it is not written as a string
	At      token.Position
}

// Newer reports whether the platform needs a newer module than the binary has.
func (p Pin) Newer() bool { return semver.Compare(p.Version, kalypso.ModuleVersion) > 0 }

// PinOf returns the pin of the module in the source of a module.cue or local-module.cue. name
// is the file's name in errors and positions. PinOf finds no pin in a file that does not parse,
// because the loader reports the error.
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

// Unpinned reports whether plain cue finds no schema for the platform at root. In such a
// platform, neither module.cue nor local-module.cue has a pin of the module, and the module is
// not vendored. over has the same meaning as for Overlay.
func Unpinned(root string, over map[string][]byte) bool {
	for _, name := range []string{File, localModuleFile} {
		source, err := read(root, over, name)
		if err != nil {
			continue // Open reports a missing file that it needs
		}
		if _, found := PinOf(name, source); found {
			return false
		}
	}
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(vendorDir)))
	return errors.Is(err, fs.ErrNotExist)
}

// isModule reports whether an entry of deps is about the module. The key of such an entry is
// the module's path with the major version. The key may lack the major version, which CUE then
// takes from the version.
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

// depVersion returns the version in an entry of deps. It returns "" if the entry has no
// version.
func depVersion(dep *ast.StructLit) string {
	if dep == nil {
		return ""
	}
	for _, decl := range dep.Elts {
		if name, value := field(decl); name == "v" {
			lit, ok := value.(*ast.BasicLit)
			if !ok {
				return ""
			}
			s, err := literal.Unquote(lit.Value)
			if err != nil {
				return ""
			}
			return s
		}
	}
	return ""
}

// structField returns the name and the fields of a field whose value is a struct. It returns ""
// and nil for any other declaration.
func structField(decl ast.Decl) (string, *ast.StructLit) {
	name, value := field(decl)
	if lit, ok := value.(*ast.StructLit); ok {
		return name, lit
	}
	return "", nil
}

// field returns a field's name, unquoted, and its value. It returns "" and nil for any other
// declaration.
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

// blank overwrites parts of a source text, and the comma after each, with spaces. The rest does
// not move, so that its positions stay right.
func blank(source []byte, parts []span) []byte {
	source = slices.Clone(source)
	for _, p := range parts {
		for i := p.from; i < p.to; i++ {
			if source[i] != '\n' && source[i] != '\r' {
				source[i] = ' '
			}
		}
		end := p.to // CUE accepts a comma on a later line as the entry's comma
		for end < len(source) && strings.IndexByte(" \t\r\n", source[end]) >= 0 {
			end++
		}
		if end < len(source) && source[end] == ',' {
			source[end] = ' '
		}
	}
	return source
}

// Overlay returns the files to overlay on the platform at root, for [load.Config.Overlay]. With
// them, the loader resolves the module from the binary: without a cache, a network or a pin.
// root must be written as it is in load.Config.Dir. Overlay makes it absolute.
//
// The module's packages lie under cue.mod/pkg. Pin and package together are
// ambiguous to CUE, so the pin is blanked out of module.cue; the rest of that
// file keeps its positions. Files of another version that were vendored into
// the platform are hidden.
//
// If the module file needs a language that is newer than the embedded CUE, Overlay returns a
// *LanguageError. The loader reports any other error of the module file. For a folder without a
// readable module file, Overlay returns an error that wraps the cause.
//
// over are files whose text differs from the text on the disk, by their paths from root, with
// slashes. They are a part of the result.
func Overlay(root string, over map[string][]byte) (map[string]load.Source, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	out := make(map[string]load.Source)
	for name, data := range over {
		out[filepath.Join(root, filepath.FromSlash(name))] = load.FromBytes(data)
	}
	for _, name := range []string{File, localModuleFile} {
		source, err := read(root, over, name)
		if errors.Is(err, fs.ErrNotExist) && name == localModuleFile {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the platform's module file: %w", err)
		}
		if name == File {
			if err := checkLanguage(source); err != nil {
				return nil, err
			}
		}
		if without, ok := blanked(name, source); ok {
			out[filepath.Join(root, filepath.FromSlash(name))] = load.FromBytes(without)
		}
	}

	vendored := filepath.Join(root, filepath.FromSlash(vendorDir))
	if err := hideStale(out, vendored); err != nil {
		return nil, err
	}
	for _, f := range packages() {
		out[filepath.Join(vendored, filepath.FromSlash(f.name))] = load.FromBytes(f.text)
	}
	return out, nil
}

func read(root string, over map[string][]byte, name string) ([]byte, error) {
	if data, ok := over[name]; ok {
		return data, nil
	}
	return regular.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
}

// blanked returns a module file without its pins, and whether it had any. It ignores a file
// that does not parse, because the loader reports the error.
func blanked(name string, source []byte) ([]byte, bool) {
	f, err := parser.ParseFile(name, source)
	if err != nil {
		return nil, false
	}
	pins := unpin(f)
	return blank(source, pins), len(pins) > 0
}

// hidden replaces a vendored file that the module does not have. It has no package clause, so
// that it does not belong to any package that can be imported.
var hidden = load.FromString("// Not part of " + basePath + " " + kalypso.ModuleVersion + ".\n")

// hideStale overlays the CUE files under dir that the module does not have. It follows a link
// to a folder, as CUE does, because a platform may vendor the module as a link.
func hideStale(over map[string]load.Source, dir string) error {
	var hide func(folder string) error
	hide = func(folder string) error {
		entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(folder)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the vendored %s: %w", basePath, err)
		}
		for _, e := range entries {
			name := path.Join(folder, e.Name())
			switch {
			case e.IsDir(), slices.Contains(folders(), name):
				if err := hide(name); err != nil {
					return err
				}
			case path.Ext(name) == ".cue" && !has(name):
				over[filepath.Join(dir, filepath.FromSlash(name))] = hidden
			}
		}
		return nil
	}
	return hide(".")
}
