// Package loader loads a CUE package, without a network and without files that it must not
// read. What makes a whole package unreadable is a diagnostic. Of a loaded package it knows
// where values are written, as positions that mean something to users.
package loader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// Package is a built package, in a CUE context of its own.
type Package struct {
	Context  *cue.Context
	Value    cue.Value
	Instance *build.Instance
	*Places
}

// Platform loads and builds the package in a folder of the platform, without
// the files that are left out, named from the root. The diagnostics are about
// errors that leave nothing of the package readable: it is nil then. CUE cannot be
// interrupted, so ctx only counts before it starts.
func Platform(ctx context.Context, p *source.Platform, dir string, without []string) (*Package,
	[]diag.Diagnostic, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	overlay, err := cuemodule.Overlay(p.Root, p.Files().Over)
	if err != nil {
		var language *cuemodule.LanguageError
		if errors.As(err, &language) {
			return nil, []diag.Diagnostic{languageDiagnostic(language)}, nil
		}
		return nil, nil, fmt.Errorf("cannot prepare the module kalypso.io: %w", err)
	}
	if p.Module == "" {
		return nil, nil, nil // source.Open has said what is wrong with the module
	}
	if model.IsDevice(path.Base(dir)) {
		return nil, []diag.Diagnostic{namedAsDevice(dir)}, nil
	}
	for _, name := range without {
		overlay[filepath.Join(p.Root, filepath.FromSlash(name))] = load.FromString("package " + source.Package + "\n")
	}
	for _, name := range p.Links() {
		overlay[filepath.Join(p.Root, filepath.FromSlash(name))] = load.FromString("")
	}
	return Folder(p.Files(), dir, source.Package, "", overlay)
}

// namedAsDevice is about an environment in whose folder CUE finds no package, on any system.
func namedAsDevice(dir string) diag.Diagnostic {
	d := diag.New(diag.Unportable, path.Base(dir)+" is the name of a device on Windows, and CUE "+
		"reads no package in a folder of that name").
		In(model.Position{File: dir, Line: 1, Column: 1}, "").Hinting("give the environment and its folder another name")
	d.Severity = diag.Error
	return d
}

// Folder loads and builds a package of the module whose files are given. Its files are
// named from the module's root, with prefix before their names. The overlay is for CUE, and
// holds that of the files.
func Folder(files *source.Files, dir, name, prefix string,
	overlay map[string]load.Source) (l *Package, ds []diag.Diagnostic, err error) {
	if d, ok := finding.Guarded("the package in "+filepath.ToSlash(dir),
		func() { l, ds, err = buildFolder(files, dir, name, prefix, overlay) }); !ok {
		return nil, []diag.Diagnostic{d}, nil
	}
	return l, ds, err
}

func buildFolder(files *source.Files, dir, name, prefix string,
	overlay map[string]load.Source) (*Package, []diag.Diagnostic, error) {
	insts := load.Instances([]string{"./" + filepath.ToSlash(dir)}, &load.Config{
		Dir:        files.Root,
		ModuleRoot: files.Root,
		Package:    name,
		Overlay:    overlay,
		Env: append(slices.DeleteFunc(os.Environ(),
			func(v string) bool { return strings.HasPrefix(v, "CUE_REGISTRY=") }), "CUE_REGISTRY=none"),
	})
	inst := insts[0]
	places := NewPlaces(files, prefix, inst)
	if inst.Err != nil {
		if language := cuemodule.Language(files.Root, inst.Err); language != nil {
			return nil, []diag.Diagnostic{languageDiagnostic(language)}, nil
		}
		return nil, places.Errors(inst.Err, diag.Syntax), nil
	}
	if ds := places.checkEmbedded(inst); len(ds) > 0 {
		return nil, ds, nil // loading has read none of them, and building would
	}
	c := cuecontext.New()
	v := c.BuildInstance(inst)
	if inst.Err != nil {
		return nil, places.Errors(inst.Err, diag.Compile), nil
	}
	return &Package{Context: c, Value: v, Instance: inst, Places: places}, nil, nil
}

func languageDiagnostic(e *cuemodule.LanguageError) diag.Diagnostic {
	return diag.New(diag.LanguageVersion, e.Error()).In(model.Position{File: e.Position.Filename,
		Line: e.Position.Line, Column: e.Position.Column}, "").
		Hinting("take a newer kalypso, or lower language.version if nothing newer is used")
}
