// Package evaluate turns CUE into the model: of a platform, an environment or the base;
// of an application's repository, its own file and its values.
//
// An environment is one CUE package. Package incremental evaluates what the cache does not have of
// it, package export makes the model of the CUE values, and package registration adds what registrations
// provide. What needs all entities at once is checked last.
//
// An error stays with its entity, which is then invalid and absent from the model, unless it
// hides which entities there are: then the environment is evaluated in one piece, and is
// incomplete, or nothing of it is readable at all.
package evaluate

import (
	"context"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/incremental"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/evaluate/registration"
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
	Stats incremental.Stats

	// For functions of the assignment:
	mu         sync.Mutex
	functions  *incremental.Functions
	registered map[model.Ref]*registration.Evaluation // those of registrations
}

// Cache keeps what was evaluated. Results are the same without it.
type Cache = memo.Cache

// Options are what the evaluation of an environment may use.
type Options struct {
	// Cache has what was evaluated before; nil for none.
	Cache memo.Cache
	// Registry has what registrations refer to; without it they are all unknown.
	Registry registration.Registry
	// Workers evaluate what registrations provide, with registration.Handler; nil for in
	// this process, which a comprehension without an end never leaves.
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
	return evaluateEnvironment(ctx, incremental.New(p, name, o.Cache), stages, o)
}

func evaluateEnvironment(ctx context.Context, e *incremental.Evaluation, stages []model.Stage, o Options) (*Package, []diag.Diagnostic, error) {
	r, ds, err := e.Evaluate(ctx)
	if r == nil || err != nil {
		return &Package{}, ds, err
	}
	pkg := &Package{Stats: e.Stats, functions: e.Functions()}
	pkg.Base, pkg.Own = e.Digests()
	x := r.Resume(e.Positions(r))
	if e.Platform.Hides(e.Name) {
		x.HideAll(e.Name)
	}
	registrations := &registration.Evaluator{Environment: e.Name, Cache: o.Cache, Registry: o.Registry, Workers: o.Workers}
	if pkg.registered, err = registrations.Register(ctx, x, &r.Model); err != nil {
		return nil, nil, err
	}
	x.Many()
	s := &check.Stages{Entities: x}
	s.Own(stages, e.Name)
	s.OwnRings(stages, &r.Model)
	x.References(&r.Model)
	pkg.Model = x.Finish(&r.Model)
	return pkg, x.Diagnostics, nil
}
