// Package registration evaluates what application teams keep in repositories of their own,
// and adds it to an environment's model.
//
// A registration is pinned to a commit. Its files are written to a temporary folder, and
// evaluated by a worker, since a comprehension that others write may have no end: a job and
// its reply are plain data. What it provides is exported like the platform's own, held to the
// limits that the platform sets for it, and cached by the content.
package registration

import (
	"context"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/worker"
)

// Evaluator evaluates what registrations provide to an environment.
type Evaluator struct {
	Environment string
	Cache       memo.Cache
	Registry    Registry
	Workers     *worker.Pool
}

// Registry has what registrations are pinned to. It may be called by several goroutines.
type Registry interface {
	// Content returns what a registration is pinned to, or why that is not known, as
	// diagnostics without sites.
	Content(context.Context, *model.Registration) (*Pinned, []diag.Diagnostic)
}

// Pinned is the content that a registration is pinned to.
type Pinned struct {
	// Revision is the commit.
	Revision string
	// Content identifies the files.
	Content model.Digest
	// Files returns the files of the commit, or why they cannot be read. It is
	// called only for content that has not been evaluated before.
	Files func() (*archive.Tree, []diag.Diagnostic, error)
}

// Provided is what a registration provides to an environment.
type Provided struct {
	Workloads   []model.Workload
	Configs     []model.Config
	Entities    []model.Ref
	Uses        []check.Use
	Diagnostics []diag.Diagnostic
	Invalid     map[model.Ref]bool
	// Unknown says that an error hides which entities there are.
	Unknown   bool
	Positions map[model.Ref][]model.Position
}

// Register adds to the model what registrations provide, and to x the findings about it.
// It returns, for each provided function of the assignment, the evaluation that has it.
func (e *Evaluator) Register(ctx context.Context, x *check.Entities, env *model.Environment) (map[model.Ref]*Evaluation, error) {
	functions := map[model.Ref]*Evaluation{}
	own := map[model.Ref]bool{}
	for _, ref := range x.All {
		own[ref] = true
	}
	for i := range env.Registrations {
		r := &env.Registrations[i]
		ref := model.Ref{Collection: "registrations", Name: r.Name}
		r.Secrets = secretsOf(env, r)
		p, of, err := e.provided(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, d := range p.Diagnostics {
			if len(d.Sites) == 0 {
				d = d.At(ref.At("git"), "")
			}
			x.Report(d)
		}
		if p.Unknown {
			x.Invalid[ref] = true
			if r.Configs {
				env.Configs = append(env.Configs, model.Config{Name: "registration " + r.Name, UnknownOf: r.Name, Match: r.Match, Invalid: true})
			}
		}
		refused := p.addTo(x, env, r, own)
		for _, c := range p.Configs {
			if ref := (model.Ref{Collection: "configs", Name: c.Name}); c.Facts != nil && !refused[ref] {
				functions[ref] = of
			}
		}
	}
	for _, c := range model.Collections {
		c.Sort(env)
	}
	return functions, nil
}

// provided returns what a registration provides, from the cache or else evaluated.
func (e *Evaluator) provided(ctx context.Context, r *model.Registration) (*Provided, *Evaluation, error) {
	if e.Registry == nil {
		return &Provided{Unknown: true}, nil, nil
	}
	pinned, ds := e.Registry.Content(ctx, r)
	if pinned == nil {
		return &Provided{Unknown: true, Diagnostics: ds}, nil, nil
	}
	of := &Evaluation{environment: e.Environment, registration: r, pinned: pinned, workers: e.Workers}
	key := of.key()
	if p, ok := memo.Recall[Provided](e.Cache, key); ok {
		return p, of, nil
	}
	p, passing, err := of.provided(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("evaluate registration %s: %w", r.Name, err)
	}
	p.Diagnostics = append(p.Diagnostics, ds...)
	if !passing && !diag.Errors(ds) {
		memo.Remember(e.Cache, key, p)
	}
	return p, of, nil
}

// addTo adds what a registration provides to the environment. What the platform
// declares itself, own, registrations cannot; of what two of them provide neither
// counts. It returns what is refused.
func (p *Provided) addTo(x *check.Entities, env *model.Environment, r *model.Registration, own map[model.Ref]bool) (refused map[model.Ref]bool) {
	refused, twice := p.claim(x, r, own)
	for ref, at := range p.Positions {
		for _, p := range at {
			if !refused[ref.Entity()] {
				x.Positions.Add(ref, p)
			}
		}
	}
	for ref := range p.Invalid {
		if !refused[ref] {
			x.Invalid[ref] = true
		}
	}
	for _, u := range p.Uses {
		if !refused[u.Ref.Entity()] {
			x.Uses = append(x.Uses, u)
		}
	}
	for _, w := range p.Workloads {
		if ref := (model.Ref{Collection: "workloads", Name: w.Name}); !refused[ref] && !twice[ref] {
			env.Workloads = append(env.Workloads, w)
		}
	}
	env.Workloads = slices.DeleteFunc(env.Workloads, func(w model.Workload) bool {
		return twice[model.Ref{Collection: "workloads", Name: w.Name}]
	})
	for _, c := range p.Configs {
		switch ref := (model.Ref{Collection: "configs", Name: c.Name}); {
		case refused[ref]:
		case twice[ref]:
			invalidate(env.Configs, c)
		default:
			env.Configs = append(env.Configs, c)
		}
	}
	return refused
}

// claim adds the entities that there are not yet. The others it reports: those that the
// platform declares, which are refused, and those that another registration provides.
func (p *Provided) claim(x *check.Entities, r *model.Registration, own map[model.Ref]bool) (refused, twice map[model.Ref]bool) {
	refused, twice = map[model.Ref]bool{}, map[model.Ref]bool{}
	self := model.Ref{Collection: "registrations", Name: r.Name}
	for _, ref := range p.Entities {
		if !slices.Contains(x.All, ref) {
			x.All = append(x.All, ref)
			continue
		}
		d := diag.New(diag.Registration, fmt.Sprintf("registration %s brings %s, which there is already", r.Name, ref)).Hinting("rename one of them")
		d = d.InEach(p.Positions[ref]...)
		if d = d.At(ref, ""); own[ref] {
			refused[ref] = true
			x.Fail(self, d)
		} else {
			twice[ref] = true
			x.Fail(ref, d)
		}
	}
	return refused, twice
}

// invalidate makes a config that another registration provides as well invalid, so that
// the assignments of both fail.
func invalidate(configs []model.Config, other model.Config) {
	for i := range configs {
		if c := &configs[i]; c.Name == other.Name {
			c.Invalid = true
			c.Match = model.Selector{Op: model.OpOr, Args: []model.Selector{c.Match, other.Match}}
		}
	}
}

// defaultPackage is the package of registered files where they say none.
const defaultPackage = source.Package
