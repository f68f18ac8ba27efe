// Package registration evaluates the files that application teams keep in their own
// repositories, and adds the entities to an environment's model.
//
// A registration is pinned to a commit. Package registration writes its files to a temporary
// folder, and a worker evaluates them, because a comprehension that others write may have no
// end. A job and its reply are plain data. The provided entities are exported like the
// platform's own, checked against the limits that the platform sets, and cached by the content.
//
// For example, a team may keep the workload hello-world of examples/hello-world in a repository
// of its own. The input is then a registration with the commit of kalypso.lock, and the output
// is the same [model.Workload] as that of workloads.cue, with positions in the repository.
// examples/hello-world itself has no registrations: its model stays as it is.
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
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/internal/archive"
)

// Evaluator evaluates the entities that registrations provide to an environment.
type Evaluator struct {
	Environment string
	Cache       memo.Cache
	Registry    Registry
	Workers     *worker.Pool
}

// Registry has the pinned contents of registrations. Several goroutines may call it.
type Registry interface {
	// Content returns the pinned content of a registration. If the content is unknown, it
	// returns nil and the reasons, as diagnostics without sites.
	Content(context.Context, *model.Registration) (*PinnedContent, []diag.Diagnostic)
}

// PinnedContent is the pinned content of a registration.
type PinnedContent struct {
	// Revision is the commit.
	Revision string
	// Content identifies the files.
	Content model.Digest
	// Files returns the files of the commit, or the reasons why they cannot be read. It is
	// called only for content that has not been evaluated before.
	Files func() (*archive.Tree, []diag.Diagnostic, error)
}

// ProvidedEntities has the entities that a registration provides to an environment.
type ProvidedEntities struct {
	Workloads   []model.Workload
	Configs     []model.Config
	Entities    []model.Ref
	Uses        []check.Use
	Diagnostics []diag.Diagnostic
	Invalid     map[model.Ref]bool
	// Unknown reports whether an error hides some of the entities.
	Unknown   bool
	Positions map[model.Ref][]model.Position
}

// provider is a registration with its provided entities, and the evaluation that has them.
type provider struct {
	*model.Registration
	*ProvidedEntities
	evaluation *Evaluation
}

// Register adds the provided entities of registrations to the model, and the findings about
// them to x. It returns the evaluation of each provided function of the assignment.
func (e *Evaluator) Register(ctx context.Context, x *check.Entities,
	env *model.Environment) (map[model.Ref]*Evaluation, error) {
	var all []*provider
	for i := range env.Registrations {
		r := &env.Registrations[i]
		ref := r.Ref()
		r.Bounds, _ = env.WorkspaceOf(&model.Workload{Workspace: r.Workspace, Registration: r.Name})
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
			x.Unread = append(x.Unread, r)
			if r.Configs {
				env.Configs = append(env.Configs, model.Config{Name: "registration " + r.Name,
					UnknownOf: r.Name, Match: r.Match, Invalid: true})
			}
		}
		all = append(all, &provider{r, p, of})
	}
	holders := settle(x, all)
	functions := map[model.Ref]*Evaluation{}
	for _, r := range all {
		r.addTo(x, env, holders)
		for _, c := range r.ProvidedEntities.Configs {
			if ref := (model.Ref{Collection: "configs", Name: c.Name}); c.Facts != nil && holders[ref] == r {
				functions[ref] = r.evaluation
			}
		}
	}
	for _, c := range model.Collections {
		c.Sort(env)
	}
	return functions, nil
}

// provided returns the entities that a registration provides, from the cache or from an
// evaluation.
func (e *Evaluator) provided(ctx context.Context,
	r *model.Registration) (*ProvidedEntities, *Evaluation, error) {
	if e.Registry == nil {
		return &ProvidedEntities{Unknown: true}, nil, nil
	}
	pinned, ds := e.Registry.Content(ctx, r)
	if pinned == nil {
		return &ProvidedEntities{Unknown: true, Diagnostics: ds}, nil, nil
	}
	of := &Evaluation{environment: e.Environment, registration: r, pinned: pinned, workers: e.Workers}
	key := of.key()
	if p, ok := memo.Recall[ProvidedEntities](e.Cache, key); ok {
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

// settle adds the entities that registrations provide to x, and returns the registration that
// holds each entity. The value is nil if several registrations bring an entity and none of them
// may hold it. There is no key for an entity that the platform declares itself. settle reports
// registrations that claim another owner's entity, and entities without an owner.
func settle(x *check.Entities, all []*provider) map[model.Ref]*provider {
	own := map[model.Ref]bool{}
	for _, ref := range x.All {
		own[ref] = true
	}
	claimants := map[model.Ref][]*provider{}
	var claimed []model.Ref // in the order of the first claimants
	for _, r := range all {
		for _, ref := range r.Entities {
			if claimants[ref] == nil {
				claimed = append(claimed, ref)
			}
			claimants[ref] = append(claimants[ref], r)
		}
	}
	holders := map[model.Ref]*provider{}
	for _, ref := range claimed {
		by := claimants[ref]
		if own[ref] {
			for _, r := range by {
				d := diag.New(diag.Registration,
					fmt.Sprintf("registration %s brings %s, which the platform declares itself", r.Name, ref)).
					InEach(r.Positions[ref]...).At(ref, "").Hinting("rename one of them")
				x.Fail(r.Ref(), d)
			}
			continue
		}
		x.All = append(x.All, ref)
		i, why := x.Holder(ref.Name, names(by))
		if i < 0 {
			holders[ref] = nil
			bring := "bring"
			if len(by) == 1 {
				bring = "brings"
			}
			d := diag.New(diag.Registration,
				fmt.Sprintf("%s %s %s, and %s", check.Registrations(names(by)), bring, ref, why))
			for _, r := range by {
				d = r.sites(d, ref)
			}
			for _, u := range x.Unread {
				if u.Names.Allow(ref.Name) {
					d = d.At(u.Ref(), "registration "+u.Name)
				}
			}
			x.Fail(ref, d.Hinting(check.ClaimHint(ref.Name)))
			continue
		}
		holders[ref] = by[i]
		for j, r := range by {
			if j != i {
				d := diag.New(diag.Registration,
					fmt.Sprintf("registration %s brings %s, which registration %s has: %s", r.Name, ref,
						by[i].Name, why))
				x.Fail(r.Ref(),
					by[i].sites(r.sites(d, ref), ref).Hinting("rename it; "+check.ClaimHint(ref.Name)))
			}
		}
	}
	return holders
}

func names(of []*provider) []*model.Registration {
	out := make([]*model.Registration, len(of))
	for i, r := range of {
		out[i] = r.Registration
	}
	return out
}

// sites adds the registration's positions of an entity to a diagnostic.
func (r *provider) sites(d diag.Diagnostic, ref model.Ref) diag.Diagnostic {
	for _, at := range r.Positions[ref] {
		d = d.In(at, "registration "+r.Name)
	}
	return d
}

// addTo adds the entities that a registration holds to the environment. It also adds the
// configs that several registrations bring and none of them holds, as invalid, so that their
// assignments fail.
func (r *provider) addTo(x *check.Entities, env *model.Environment,
	holders map[model.Ref]*provider) {
	contested := func(ref model.Ref) bool {
		holder, claimed := holders[ref]
		return claimed && holder == nil
	}
	for ref, at := range r.Positions {
		for _, p := range at {
			if entity := ref.Entity(); holders[entity] == r || contested(entity) {
				x.Positions.Add(ref, p)
			}
		}
	}
	for ref := range r.Invalid {
		if holder, claimed := holders[ref]; holder == r || !claimed && !slices.Contains(r.Entities, ref) {
			x.Invalid[ref] = true
		}
	}
	for _, u := range r.Uses {
		if holders[u.Ref.Entity()] == r {
			x.Uses = append(x.Uses, u)
		}
	}
	for _, w := range r.ProvidedEntities.Workloads {
		if holders[model.Ref{Collection: "workloads", Name: w.Name}] == r {
			env.Workloads = append(env.Workloads, w)
		}
	}
	for _, c := range r.ProvidedEntities.Configs {
		ref := model.Ref{Collection: "configs", Name: c.Name}
		i := slices.IndexFunc(env.Configs, func(other model.Config) bool { return other.Name == c.Name })
		switch {
		case contested(ref) && i >= 0:
			env.Configs[i].Match = model.Selector{Op: model.OpOr,
				Args: []model.Selector{env.Configs[i].Match, c.Match}}
		case contested(ref):
			c.Invalid = true
			env.Configs = append(env.Configs, c)
		case holders[ref] == r:
			env.Configs = append(env.Configs, c)
		}
	}
}

// defaultPackage is the package of registered files if the registration does not set one.
const defaultPackage = source.Package
