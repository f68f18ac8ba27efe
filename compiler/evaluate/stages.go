package evaluate

import (
	"context"
	"slices"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// Stage is an environment as the platform's base declares it.
type Stage struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	After       []string `json:"after"`
	// GitOps is what the base says of it, and has not been checked; nil for nothing.
	GitOps *model.GitOps `json:"gitops,omitempty"`
	// Promotion is what the base says of how commits come to it.
	Promotion model.Promotion `json:"-"`
	// Invalid says that there are errors in what the base says of it: of Promotion,
	// which then may lack anything, nothing may be taken for granted.
	Invalid bool `json:"-"`
	// NoRings says that the environment's own files have rings, and errors: those of
	// Promotion are not known.
	NoRings bool `json:"-"`
}

// Stages evaluates the platform's base, and returns the environments that it
// declares, sorted by name; nil where nothing of the base is readable. The cache
// is as for Environment.
func Stages(ctx context.Context, p *source.Platform, c Cache) ([]Stage, []diag.Diagnostic, error) {
	if !p.HasBase() && p.Hides("") || !p.Loadable("") {
		return nil, nil, nil // source.Open has said why nothing of the base counts
	}
	if !p.HasBase() && p.Module != "" {
		d := diag.New(diag.Module, "there are no files of package "+source.Package+" at the platform's root").
			In(model.Position{File: "cue.mod/module.cue", Line: 1, Column: 1}, "").
			Hinting("declare the collections there, in a file that begins with: package " + source.Package)
		return nil, []diag.Diagnostic{d}, nil
	}
	e := &evaluation{ctx: ctx, platform: p, dir: ".", cache: c, least: batchEntities, export: func(x *exporter) *Result { return x.stages() }}
	r, ds, err := e.evaluate()
	if r == nil || err != nil {
		return nil, ds, err
	}
	x := newExporter(nil)
	x.resume(r, e.positions(r))
	if r.Stages != nil {
		x.checkMany()
		x.checkFolders(p)
		x.checkStages(r.Stages)
		diag.Resolve(x.ds, x.positions)
	}
	return r.Stages, x.ds, nil
}

// stages exports the environments.
func (x *exporter) stages() *Result {
	broken := x.checkDefinite(func(path []string) bool { return len(path) == 1 && path[0] == "environments" })
	if x.checkComprehensions("environments") || broken {
		return x.result(model.Environment{}, nil)
	}
	stages := []Stage{}
	x.each("environments", func(v cue.Value, ref model.Ref) {
		s := Stage{Name: ref.Name}
		if value, ok := x.entity(v, ref, "gates", "rings"); ok {
			decode(value, &s)
			s.Promotion = x.promotion(v, value, ref)
		}
		stages = append(stages, s)
	})
	for _, ref := range x.entities { // those that have errors are there as well
		if isName(ref.Name) && !slices.ContainsFunc(stages, func(s Stage) bool { return s.Name == ref.Name }) {
			stages = append(stages, Stage{Name: ref.Name})
		}
	}
	slices.SortFunc(stages, func(a, b Stage) int { return compareNames(a.Name, b.Name) })
	return x.result(model.Environment{}, stages)
}
