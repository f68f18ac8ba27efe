package evaluate

import (
	"context"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/incremental"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
)

// noBase says that a module has nothing of a platform at its root.
func noBase(p *source.Platform) diag.Diagnostic {
	d := diag.New(diag.Module, "there are no files of package "+source.Package+" at the platform's root").
		In(model.Position{File: "cue.mod/module.cue", Line: 1, Column: 1}, "")
	if p.Module == kalypso.ModulePath {
		return d.Hinting("this is the repository of kalypso, and no platform: name one of its " +
			"examples, as with -C examples/hello-world, or run kalypso in a platform")
	}
	return d.Hinting("declare the collections there, in a file that begins with: package " +
		source.Package + "; or let kalypso init DIR write a platform into a new folder")
}

// noEnvironments warns that a platform, or an application, has none. at is the file that the
// hint is about.
func noEnvironments(at model.Position, hint string) diag.Diagnostic {
	return diag.New(diag.NoEnvironments, "there are no environments, so there is nothing to do").In(at, "").Hinting(hint)
}

// Declarations evaluates the platform's base, and returns the environments that it
// declares, sorted by name; nil where nothing of the base is readable.
func Declarations(ctx context.Context, p *source.Platform, o Options) ([]model.Declaration, []diag.Diagnostic, error) {
	if !p.HasBase() && p.Hides("") || !p.Loadable("") {
		return nil, nil, nil // source.Open has said why nothing of the base counts
	}
	if !p.HasBase() && p.Module != "" {
		return nil, []diag.Diagnostic{noBase(p)}, nil
	}
	e := incremental.New(p, "", o.Cache)
	e.Supervisor = o.Supervisor
	r, ds, err := e.Evaluate(ctx)
	if e.Tripped() {
		p.Bar() // each environment has the base in it
	}
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
		if len(r.Declarations) == 0 && !diag.Errors(x.Diagnostics) && !p.Hides("") {
			x.Diagnostics = append(x.Diagnostics, noEnvironments(p.FirstFile(""),
				"declare one, as in: environments: dev: {}; docs/tutorial.md says what else it needs"))
		}
	}
	return r.Declarations, x.Diagnostics, nil
}

// boundsOf returns the bounds that the base declares for an environment; zero for none.
func boundsOf(declarations []model.Declaration, name string) (b supervisor.Bounds) {
	i := slices.IndexFunc(declarations, func(s model.Declaration) bool { return s.Name == name })
	if i < 0 {
		return b
	}
	// The schema has checked them: what cannot be read is too large.
	var err error
	if text := declarations[i].Evaluation.CPU; text != "" {
		if b.CPU, err = time.ParseDuration(text); err != nil {
			b.CPU = math.MaxInt64
		}
	}
	if text := declarations[i].Evaluation.Memory; text != "" {
		b.Memory = math.MaxInt64
		if q, err := resource.ParseQuantity(text); err == nil {
			b.Memory = q.Value()
		}
	}
	return b
}
