package cuemodule

import (
	"fmt"
	"path/filepath"
	"strings"

	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"cuelang.org/go/mod/modfile"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/regular"
	"golang.org/x/mod/semver"
)

// LanguageError says that a module asks for a newer CUE than the embedded one.
type LanguageError struct {
	// Module is the imported module with its version, as "example.com/lib@v0.3.0";
	// "" for the platform itself.
	Module string
	// Wants and Has are language versions: the module's, and the newest that the
	// embedded CUE accepts.
	Wants, Has string
	// Position is where the platform states it: its language.version, or its
	// dependency on the imported module. It is zero for a module that only
	// other modules depend on.
	Position token.Position
}

func (e *LanguageError) Error() string {
	who := "the platform"
	if e.Module != "" {
		who = e.Module
	}
	return fmt.Sprintf("%s needs CUE language %s, and this kalypso understands %s", who, e.Wants, e.Has)
}

// tooNew matches what CUE's modfile package and its loader say of a module file
// that is too new; the loader puts the module in front. CUE has no type for it,
// and tells neither position nor file.
var tooNew = lazyregexp.New(
	`(?:([^\s:]+@v[^\s:]+): )?language version "([^"]+)" declared in module\.cue is too new for current language version "([^"]+)"`)

// Language returns the *LanguageError that an error of CUE's loader amounts to,
// or nil. Imported modules are not looked at beforehand: only the loader knows
// which of them a package uses.
func Language(root string, err error) *LanguageError {
	if err == nil || !tooNew.MatchString(err.Error()) {
		return nil
	}
	// Without the file there is an error without a position.
	source, _ := regular.ReadFile(filepath.Join(root, filepath.FromSlash(File)))
	return languageError(err, source)
}

// checkLanguage returns a *LanguageError if the platform's module.cue asks for a
// newer language, and nil for whatever else is wrong with it. The loader would
// find it too, without a position.
func checkLanguage(source []byte) error {
	_, err := modfile.ParseNonStrict(source, File)
	if err == nil || !tooNew.MatchString(err.Error()) {
		return nil
	}
	return languageError(err, source)
}

// languageError makes a *LanguageError of an error that tooNew matches; source
// is the platform's module.cue.
func languageError(err error, source []byte) *LanguageError {
	m := tooNew.FindStringSubmatch(err.Error())
	e := &LanguageError{Module: m[1], Wants: m[2], Has: m[3]}
	e.Position = e.position(source)
	return e
}

// position finds what the error is about in the platform's module.cue.
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
