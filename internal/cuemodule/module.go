// Package cuemodule resolves the CUE module kalypso.io@v0, which is embedded in the binary,
// without a network. Overlay does so for kalypso's own loader. EnsureCache does so for plain
// cue and its language server, through the module cache. Vendor does so for environments
// without kalypso.
//
// The input is the root folder of a platform. The output is an overlay for the loader, or files
// on disk. The package never uses the network, and only writes to CUE's cache and to the
// platform's cue.mod.
package cuemodule

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"cuelang.org/go/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/regular"
)

// basePath is the prefix of imports of the module, and major its version in module.cue's deps:
// "kalypso.io" and "v0".
var basePath, major, _ = strings.Cut(kalypso.ModulePath, "@")

// File is the module file of a CUE module, relative to its root and with slashes.
// local-module.cue beside it replaces its deps for the developers of the module.
const (
	File            = "cue.mod/module.cue"
	localModuleFile = "cue.mod/local-module.cue"
)

// vendorDir is the module's folder in a platform's cue.mod/pkg, which CUE searches before any
// module.
var vendorDir = "cue.mod/pkg/" + basePath

// file is a file of the embedded module. Its name is relative to the module's root, with
// slashes.
type file struct {
	name string
	text []byte
}

// embedded returns all files of the module, ordered by name.
var embedded = sync.OnceValue(func() []file {
	var files []file
	err := fs.WalkDir(kalypso.Module, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := kalypso.Module.ReadFile(name)
		files = append(files, file{name, text})
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("the embedded CUE module cannot be read: %v", err))
	}
	return files
})

// packages returns the module's files except its cue.mod: the files to vendor.
var packages = sync.OnceValue(func() []file {
	return slices.DeleteFunc(slices.Clone(embedded()), func(f file) bool { return f.name == File })
})

// folders returns the folders that CUE reads for the module's packages. They are the packages'
// own folders, and all folders above them up to the module's root ".". A package also includes
// the files with its name in the folders above.
var folders = sync.OnceValue(func() []string {
	dirs := []string{"."}
	for _, f := range packages() {
		for dir := path.Dir(f.name); dir != "."; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
})

// has reports whether the module has a package file of that name.
func has(name string) bool {
	_, found := slices.BinarySearchFunc(packages(), name, func(f file, name string) int {
		return strings.Compare(f.name, name)
	})
	return found
}

// IsOurs reports whether a file belongs to the module and not to the user. Such a file is
// overlaid or vendored in the platform at root, or is in a module cache. The file has the name
// of CUE's positions; a relative name is relative to root.
func IsOurs(filename, root string) bool {
	if !filepath.IsAbs(filename) {
		filename = filepath.Join(root, filename)
	}
	filename = filepath.ToSlash(filepath.Clean(filename))
	vendored := path.Join(filepath.ToSlash(filepath.Clean(root)), vendorDir) + "/"
	return strings.HasPrefix(filename, vendored) ||
		strings.Contains(filename, "/mod/extract/"+basePath+"@")
}

// LanguageError reports that a module needs a newer CUE than the embedded one.
type LanguageError struct {
	// Module is the imported module with its version, as "example.com/lib@v0.3.0";
	// "" for the platform itself.
	Module string
	// Wants and Has are language versions: the one that the module needs, and the newest one
	// that the embedded CUE accepts.
	Wants, Has string
	// Position is the place in the platform's module file: its language.version, or its
	// dependency on the imported module. It is zero for a module that only other modules depend
	// on.
	Position token.Position
}

func (e *LanguageError) Error() string {
	who := "the platform"
	if e.Module != "" {
		who = e.Module
	}
	return fmt.Sprintf("%s needs CUE language %s, and this kalypso understands %s", who, e.Wants,
		e.Has)
}

// tooNew matches the error of CUE's modfile package, and of its loader, for a module file that
// is too new. The loader puts the module first. CUE has no type for this error, and reports
// neither position nor file.
var tooNew = lazyregexp.New(
	`(?:([^\s:]+@v[^\s:]+): )?language version "([^"]+)" declared in module\.cue is too new for current language version "([^"]+)"`)

// Language returns the *LanguageError for an error of CUE's loader, or nil for any other error.
// It does not check imported modules beforehand, because only the loader knows which of them a
// package uses.
func Language(root string, err error) *LanguageError {
	if err == nil || !tooNew.MatchString(err.Error()) {
		return nil
	}
	// Without the file, the error has no position.
	source, _ := regular.ReadFile(filepath.Join(root, filepath.FromSlash(File)))
	return languageError(err, source)
}

// checkLanguage returns a *LanguageError if the platform's module.cue needs a newer language.
// It returns nil for any other error. The loader would also report the error, but without a
// position.
func checkLanguage(source []byte) error {
	_, err := modfile.ParseNonStrict(source, File)
	if err == nil || !tooNew.MatchString(err.Error()) {
		return nil
	}
	return languageError(err, source)
}

// languageError converts an error that tooNew matches to a *LanguageError. source is the
// platform's module.cue.
func languageError(err error, source []byte) *LanguageError {
	m := tooNew.FindStringSubmatch(err.Error())
	e := &LanguageError{Module: m[1], Wants: m[2], Has: m[3]}
	e.Position = e.position(source)
	return e
}

// position returns the place of the error in the platform's module.cue.
func (e *LanguageError) position(source []byte) token.Position {
	f, err := parser.ParseFile(File, source)
	if err != nil {
		return token.Position{}
	}
	base, version, _ := strings.Cut(e.Module, "@")
	for _, decl := range f.Decls {
		section, fields := structField(decl)
		if fields == nil {
			continue
		}
		for _, entry := range fields.Elts {
			key, _ := field(entry)
			switch {
			case e.Module == "" && section == "language" && key == "version",
				e.Module != "" && section == "deps" && (key == base || key == base+"@"+semver.Major(version)):
				return entry.Pos().Position()
			}
		}
	}
	return token.Position{}
}
