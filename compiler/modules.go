package compiler

import (
	"context"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/library"
	"github.com/kalypso-io/kalypso/compiler/lock"
	"github.com/kalypso-io/kalypso/compiler/locking"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/module"
)

// moduleSource is the source that pins a CUE module.
func moduleSource(d module.Dependency) lock.Source {
	return lock.Source{Kind: lock.Module, URL: d.Path, Version: d.Version}
}

// installModules puts the CUE modules that the platform depends on, and that
// kalypso.lock pins, where CUE looks for them, unless it has them already. Those
// that nobody has, loading reports.
func installModules(ctx context.Context, root string, contents *library.Library) ([]diag.Diagnostic, error) {
	var ds []diag.Diagnostic
	for _, d := range module.Dependencies(root) {
		entry, locked := contents.Lock.Find(moduleSource(d))
		if !locked {
			continue
		}
		if there, err := module.Cached(root, d); there || err != nil {
			continue // what is wrong with the version, loading says
		}
		zip, problems := contents.Content(entry)
		for _, p := range problems {
			ds = append(ds, p.In(model.Position{File: "cue.mod/module.cue", Line: 1, Column: 1}, ""))
		}
		if len(problems) > 0 {
			continue
		}
		if err := module.Install(ctx, d, zip); err != nil {
			return nil, fmt.Errorf("put the module %s %s into CUE's cache: %w", d.Path, d.Version, err)
		}
	}
	return ds, nil
}

// moduleUses are the CUE modules that the platform at root depends on.
func moduleUses(root string) []locking.Use {
	var out []locking.Use
	for _, d := range module.Dependencies(root) {
		out = append(out, locking.Use{Source: moduleSource(d), By: []string{"cue.mod/module.cue"}})
	}
	return out
}
