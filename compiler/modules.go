package compiler

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/registration"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// moduleSource returns the source that pins a CUE module.
func moduleSource(d cuemodule.Dependency) dependency.Source {
	return dependency.Source{Kind: dependency.Module, URL: d.Path, Version: d.Version}
}

// dependencies returns the CUE modules that a platform depends on, except modules in the platform
// itself.
func dependencies(files *source.Files) []cuemodule.Dependency {
	text, err := files.ReadFile(cuemodule.File)
	if err != nil {
		return nil // loading reports it
	}
	var out []cuemodule.Dependency
	for _, d := range cuemodule.Dependencies(text) {
		if _, err := files.Stat(d.PackageDir()); err != nil {
			out = append(out, d)
		}
	}
	return out
}

// dependenciesOf returns the CUE modules that the files of a registration depend on, except
// modules in its repository.
func dependenciesOf(r *model.Registration, tree *archive.Tree) []cuemodule.Dependency {
	root := registration.ModuleOf(r, tree)
	var out []cuemodule.Dependency
	for _, d := range cuemodule.Dependencies(tree.Files[path.Join(root, cuemodule.File)].Data) {
		own := false
		for name := range tree.Files {
			own = own || strings.HasPrefix(name, path.Join(root, d.PackageDir())+"/")
		}
		if !own {
			out = append(out, d)
		}
	}
	return out
}

// installModules adds CUE modules that kalypso.lock pins to CUE's cache, unless CUE has them
// already. Loading reports modules that cannot be found. The diagnostics of installModules have
// no sites.
func installModules(ctx context.Context, modules []cuemodule.Dependency,
	contents *dependency.Library) ([]diag.Diagnostic, error) {
	var ds []diag.Diagnostic
	for _, d := range modules {
		entry, locked := contents.Lock.Find(moduleSource(d))
		if !locked {
			continue
		}
		if there, err := cuemodule.Cached(d); there || err != nil {
			continue // loading reports errors in the version
		}
		zip, problems := contents.Content(entry)
		if ds = append(ds, problems...); len(problems) > 0 {
			continue
		}
		if err := cuemodule.Install(ctx, d, zip); err != nil {
			return nil, fmt.Errorf("put the module %s %s into CUE's cache: %w", d.Path, d.Version, err)
		}
	}
	return ds, nil
}
