// Package evaluate turns a platform's CUE into the model.
//
// One environment is one CUE package. It is evaluated in parts where that cannot
// be told from evaluating it at once: each part is some of its files, evaluated
// in a context of its own that is dropped when its model is made; only what is a
// function of the assignment keeps it. What a part gave is remembered by a digest
// of all that can change it, so that after an edit little is evaluated.
//
// An error stays with its entity, which is then sick and absent from the model,
// unless it hides which entities there are: then the environment is evaluated in
// one piece, and is uncertain, or nothing of it is readable at all.
package evaluate

import (
	"context"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/worker"
)

// Package is an evaluated environment.
type Package struct {
	// Model is nil where nothing of the environment is readable.
	Model *model.Environment
	// Base and Own identify the files that the model was made of: those of the
	// environment's own folder, and all others.
	Base, Own model.Digest

	// Stats say how much was evaluated.
	Stats Stats

	// For functions of the assignment:
	mu         sync.Mutex
	functions  *Functions
	registered map[model.Ref]*Evaluation // those of registrations
}

// Options are what the evaluation of an environment may use.
type Options struct {
	// Cache remembers what was evaluated, which is not evaluated again. The result
	// is the same without it.
	Cache Cache
	// Registry has what registrations refer to; without it they are all unknown.
	Registry Registry
	// Workers evaluate what registrations bring; nil for in this process, which a
	// comprehension without an end would take with it. They know Handler under
	// HandlerName.
	Workers *worker.Pool
}

// Environment evaluates an environment of the platform. Diagnostics have
// positions or references into Model.Positions. The error is about files that
// cannot be read.
//
// stages are the environments that the base declares; nil where it cannot be
// read.
func Environment(ctx context.Context, p *source.Platform, name string, stages []model.Stage, o Options) (*Package, []diag.Diagnostic, error) {
	if !p.HasBase() || !p.Loadable(name) {
		return &Package{}, nil, nil // Stages or source.Open has reported it
	}
	return evaluateEnvironment(ctx, newEvaluation(p, name, o.Cache), stages, o)
}

func evaluateEnvironment(ctx context.Context, e *evaluation, stages []model.Stage, o Options) (*Package, []diag.Diagnostic, error) {
	r, ds, err := e.evaluate(ctx)
	if r == nil || err != nil {
		return &Package{}, ds, err
	}
	pkg := &Package{Stats: e.stats, functions: e.functions()}
	pkg.Base, pkg.Own = e.digests()
	x := r.resume(e.positions(r))
	if e.platform.Hides(e.name) {
		x.hideAll(e.name)
	}
	registrations := &Evaluator{e.name, o.Cache, o.Registry, o.Workers}
	if pkg.registered, err = registrations.register(ctx, x, &r.Model); err != nil {
		return nil, nil, err
	}
	x.checkMany()
	s := &stageChecker{x}
	s.checkOwnStages(stages, e.name)
	s.checkOwnRings(stages, &r.Model)
	x.checkReferences(&r.Model)
	pkg.Model = x.finish(&r.Model)
	return pkg, x.ds, nil
}
