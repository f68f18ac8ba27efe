// Package source says where a platform's bytes come from: which folder is the
// platform's root, which environments have files, and which files have no
// effect though they look as if they had.
package source

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
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/mod/modfile"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/module"
)

// Package is the name of the package that a platform's files are in.
const Package = "platform"

// environments is the folder whose folders are the environments.
const environments = "environments"

// Platform is a platform in a directory.
type Platform struct {
	// Root is the absolute path of the folder that holds cue.mod.
	Root string
	// Module is the platform's module path, such as "sample.example/platform@v0".
	// It identifies the platform.
	Module string
	// Folders are the environments that have a folder with files, sorted.
	Folders []string

	first map[string]string // environment -> its first file
}

// NotAPlatformError says that a folder is in no CUE module.
type NotAPlatformError struct{ Dir string }

func (e *NotAPlatformError) Error() string {
	return fmt.Sprintf("%s is not in a platform: no cue.mod/module.cue there or in a folder above; run kalypso in the platform, or name it with -C", e.Dir)
}

// Open finds the platform that dir is in, and looks at its files. The
// diagnostics are about files that have no effect, or whose package cannot be
// told; the error is about folders and files that cannot be read.
func Open(dir string) (*Platform, []diag.Diagnostic, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(abs); err != nil {
		return nil, nil, err
	} else if !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not a directory", dir)
	}
	root, err := findRoot(abs)
	if err != nil {
		return nil, nil, err
	}
	p := &Platform{Root: root, first: map[string]string{}}
	var ds []diag.Diagnostic
	if p.Module, ds, err = readModule(root); err != nil {
		return nil, nil, err
	}
	more, err := p.scan()
	return p, append(ds, more...), err
}

// HasFolder says whether the environment has a folder with files.
func (p *Platform) HasFolder(environment string) bool {
	return slices.Contains(p.Folders, environment)
}

// FirstFile returns where the environment's first file begins, in the order of
// their names.
func (p *Platform) FirstFile(environment string) model.Position {
	return model.Position{File: p.first[environment], Line: 1, Column: 1}
}

// Dir returns the folder, relative to the root, whose package is the
// environment's: its own, or the root where it has none.
func (p *Platform) Dir(environment string) string {
	if p.HasFolder(environment) {
		return path.Join(environments, environment)
	}
	return "."
}

func findRoot(dir string) (string, error) {
	for d := dir; ; d = filepath.Dir(d) {
		_, err := os.Stat(filepath.Join(d, "cue.mod", "module.cue"))
		if err == nil {
			return d, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if d == filepath.Dir(d) {
			return "", &NotAPlatformError{dir}
		}
	}
}

func readModule(root string) (string, []diag.Diagnostic, error) {
	const name = "cue.mod/module.cue"
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return "", nil, err
	}
	f, err := modfile.ParseNonStrict(data, name)
	if module.Language(root, err) != nil {
		return "", nil, nil // loading the module reports it
	}
	if err != nil {
		d := diag.New(diag.Module, "the module file cannot be used: "+err.Error()).
			In(model.Position{File: name, Line: 1, Column: 1}, "").
			Hinting("a platform's cue.mod/module.cue has a module path and a language version; `cue mod init` writes one")
		return "", []diag.Diagnostic{d}, nil
	}
	return f.QualifiedModule(), nil, nil
}

// scan looks at every CUE file of the module.
func (p *Platform) scan() ([]diag.Diagnostic, error) {
	var ds []diag.Diagnostic
	err := filepath.WalkDir(p.Root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(p.Root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			return p.enter(name, rel)
		}
		if !isSource(entry) {
			return nil
		}
		found, err := p.look(name, rel)
		ds = append(ds, found...)
		return err
	})
	slices.Sort(p.Folders)
	p.Folders = slices.Compact(p.Folders)
	return ds, err
}

// enter skips folders that CUE does not look into: hidden ones, and other modules.
func (p *Platform) enter(name, rel string) error {
	if rel == "." {
		return nil
	}
	base := path.Base(rel)
	if rel == "cue.mod" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "cue.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// isSource says whether CUE would load the file: no hidden ones, no scripts of
// the cue command, no tests.
func isSource(entry fs.DirEntry) bool {
	name := entry.Name()
	if !strings.HasSuffix(name, ".cue") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return false
	}
	return !strings.HasSuffix(name, "_tool.cue") && !strings.HasSuffix(name, "_test.cue")
}

// look compares a file's package with what its folder is.
func (p *Platform) look(name, rel string) ([]diag.Diagnostic, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	dir := path.Dir(rel)
	environment, isEnvironment := strings.CutPrefix(dir, environments+"/")
	isEnvironment = isEnvironment && !strings.Contains(environment, "/")
	loaded := dir == "." || dir == environments || isEnvironment
	if isEnvironment {
		p.Folders = append(p.Folders, environment)
		if _, seen := p.first[environment]; !seen {
			p.first[environment] = rel
		}
	}
	f, err := parser.ParseFile(rel, data, parser.PackageClauseOnly)
	if err != nil {
		return nil, nil // loading it reports what is wrong with it
	}
	pkg, at := packageOf(f, rel)
	switch {
	case loaded && pkg == "":
		return []diag.Diagnostic{diag.New(diag.OtherPackage, "the file has no package clause, so it is not part of the platform").
			In(at, "").Hinting("begin the file with: package " + Package)}, nil
	case loaded && pkg != Package:
		return []diag.Diagnostic{diag.New(diag.OtherPackage, fmt.Sprintf("the file is of package %s, so it is not part of the platform", pkg)).
			In(at, "").Hinting(fmt.Sprintf("write package %s, or move the file into a folder of its own", Package))}, nil
	case !loaded && pkg == Package:
		return []diag.Diagnostic{diag.New(diag.StrayFile, fmt.Sprintf("package %s is never loaded from %s", Package, dir)).
			In(at, "").Hinting("move the file to the platform's root or to environments/<name>, or give a helper package a name of its own")}, nil
	}
	return nil, nil
}

func packageOf(f *ast.File, rel string) (string, model.Position) {
	at := model.Position{File: rel, Line: 1, Column: 1}
	for _, d := range f.Decls {
		if p, ok := d.(*ast.Package); ok {
			if pos := p.Name.Pos(); pos.IsValid() {
				at = model.Position{File: rel, Line: pos.Line(), Column: pos.Column()}
			}
			if p.Name.Name == "_" {
				return "", at
			}
			return p.Name.Name, at
		}
	}
	return "", at
}
