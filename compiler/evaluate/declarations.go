package evaluate

import (
	"context"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/incremental"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// Declarations evaluates the platform's base, and returns the environments that it
// declares, sorted by name; nil where nothing of the base is readable. The cache
// is as for Environment.
func Declarations(ctx context.Context, p *source.Platform, c Cache) ([]model.Declaration, []diag.Diagnostic, error) {
	if !p.HasBase() && p.Hides("") || !p.Loadable("") {
		return nil, nil, nil // source.Open has said why nothing of the base counts
	}
	if !p.HasBase() && p.Module != "" {
		d := diag.New(diag.Module, "there are no files of package "+source.Package+" at the platform's root").
			In(model.Position{File: "cue.mod/module.cue", Line: 1, Column: 1}, "").
			Hinting("declare the collections there, in a file that begins with: package " + source.Package)
		return nil, []diag.Diagnostic{d}, nil
	}
	e := incremental.New(p, "", c)
	r, ds, err := e.Evaluate(ctx)
	if r == nil || err != nil {
		return nil, ds, err
	}
	x := r.Resume(e.Positions(r))
	if r.Declarations != nil {
		x.Many()
		s := &check.Declarations{Entities: x}
		s.Folders(p)
		s.Declared(r.Declarations)
		diag.Resolve(x.Diagnostics, x.Positions)
	}
	return r.Declarations, x.Diagnostics, nil
}
