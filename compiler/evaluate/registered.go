package evaluate

import (
	"context"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/archive"
)

// Registry has what registrations are pinned to.
type Registry interface {
	// Registered returns what a registration brings, or why that is not known, as
	// diagnostics without sites.
	Content(context.Context, *model.Registration) (*Pinned, []diag.Diagnostic)
}

// Registered is the content that a registration is pinned to.
type Pinned struct {
	// Revision is the commit.
	Revision string
	// Content identifies the files.
	Content model.Digest
	// Files returns the files of the commit, or why they are not to be had. It is
	// called only for content that has not been evaluated before.
	Files func() (*archive.Tree, []diag.Diagnostic, error)
}

// Provided is what a registration brings to an environment.
type Provided struct {
	Workloads   []model.Workload
	Configs     []model.Config
	Entities    []model.Ref
	Uses        []Use
	Diagnostics []diag.Diagnostic
	Invalid     map[model.Ref]bool
	// Unknown says that an error hides which entities there are.
	Unknown   bool
	Positions map[model.Ref][]model.Position
}

// register adds to the model what registrations provide, and to x the findings about it.
// It returns the evaluations that have the provided functions of the assignment.
func (e *Evaluator) register(ctx context.Context, x *entities, env *model.Environment) (map[model.Ref]*Evaluation, error) {
	functions := map[model.Ref]*Evaluation{}
	own := map[model.Ref]bool{}
	for _, ref := range x.all {
		own[ref] = true
	}
	for i := range env.Registrations {
		r := &env.Registrations[i]
		ref := model.Ref{Collection: "registrations", Name: r.Name}
		p, of, err := e.provided(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, d := range p.Diagnostics {
			if len(d.Sites) == 0 {
				d = d.At(ref.At("git"), "")
			}
			x.report(d)
		}
		if p.Unknown {
			x.invalid[ref] = true
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
	if p, ok := recall[Provided](e.Cache, key); ok {
		return p, of, nil
	}
	p, passing, err := of.provided(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("evaluate registration %s: %w", r.Name, err)
	}
	p.Diagnostics = append(p.Diagnostics, ds...)
	if !passing && !diag.Errors(ds) {
		remember(e.Cache, key, p)
	}
	return p, of, nil
}

// addTo adds what a registration provides to the environment. What the platform
// declares itself, own, nobody else can; of what two registrations provide neither
// counts. It returns what is refused.
func (p *Provided) addTo(x *entities, env *model.Environment, r *model.Registration, own map[model.Ref]bool) (refused map[model.Ref]bool) {
	refused, twice := p.claim(x, r, own)
	for ref, at := range p.Positions {
		for _, p := range at {
			if !refused[ref.Entity()] {
				x.positions.Add(ref, p)
			}
		}
	}
	for ref := range p.Invalid {
		if !refused[ref] {
			x.invalid[ref] = true
		}
	}
	for _, u := range p.Uses {
		if !refused[u.Ref.Entity()] {
			x.uses = append(x.uses, u)
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
func (p *Provided) claim(x *entities, r *model.Registration, own map[model.Ref]bool) (refused, twice map[model.Ref]bool) {
	refused, twice = map[model.Ref]bool{}, map[model.Ref]bool{}
	self := model.Ref{Collection: "registrations", Name: r.Name}
	for _, ref := range p.Entities {
		if !slices.Contains(x.all, ref) {
			x.all = append(x.all, ref)
			continue
		}
		d := diag.New(diag.Registration, fmt.Sprintf("registration %s brings %s, which there is already", r.Name, ref)).Hinting("rename one of them")
		for _, p := range p.Positions[ref] {
			d = d.In(p, "")
		}
		if d = d.At(ref, ""); own[ref] {
			refused[ref] = true
			x.fail(self, d)
		} else {
			twice[ref] = true
			x.fail(ref, d)
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

// export exports what a registration provides; key is that of functions in it.
func (c *checkedOut) export(environment string, r *model.Registration, key Key) *Provided {
	x := &limited{newExporter(c.loaded), r}
	x.published = c.published
	for _, f := range c.failures {
		x.fail(f.ref, f.d)
	}
	x.collections.checkEmbeds(environment)
	x.collections.checkCollections(environment)
	x.checkProvided()
	out := Result{Model: model.Environment{Name: environment}}
	if r.Workloads {
		out.Model.Workloads = x.checkWorkspaces(x.workloads(environment))
		for i := range out.Model.Workloads {
			out.Model.Workloads[i].Registration = r.Name
		}
	}
	if r.Configs {
		out.Model.Configs = x.confine(x.configs())
	}
	out.digest(key)
	whole := model.Ref{Collection: "environments", Name: environment}
	unknown := x.incomplete || x.invalid[whole]
	delete(x.invalid, whole)
	for i := range x.ds {
		x.ds[i].Sites = resolved(x.ds[i].Sites, x.positions)
	}
	return &Provided{
		Workloads: out.Model.Workloads, Configs: out.Model.Configs,
		Entities: x.found.all, Uses: x.found.uses, Diagnostics: x.ds, Invalid: x.invalid,
		Unknown: unknown, Positions: x.positions.All(),
	}
}

// limited exports what a registration provides, and holds it to the limits of the
// registration.
type limited struct {
	*exporter
	registration *model.Registration
}

// resolved returns sites as positions: the references in them may mean something
// else in the platform.
func resolved(sites []diag.Site, positions *model.Positions) []diag.Site {
	var out []diag.Site
	for _, s := range sites {
		if !s.Position.IsZero() {
			out = append(out, s)
			continue
		}
		for _, p := range positions.Of(s.Ref) {
			at := s
			at.Position, at.Ref = p, model.Ref{}
			out = append(out, at)
		}
	}
	return out
}

// checkProvided reports collections that the registration does not provide.
func (x *limited) checkProvided() {
	r := x.registration
	for _, name := range model.CollectionNames {
		if name == "workloads" && r.Workloads || name == "configs" && r.Configs {
			continue
		}
		of := field(x.value, name)
		for entity, v := range fields(of) {
			if name == "namespaceServices" && entity == defaultNamespaceService && len(x.written(v)) == 0 {
				continue // the schema's own
			}
			x.report(x.at(diag.New(diag.Registration, fmt.Sprintf("registration %s does not provide %s", r.Name, name)), v).On(name).
				Hinting("move them to the platform, or let the registration provide them, if they are workloads or configs"))
			break
		}
	}
}

// owned reports workloads of another workspace than the registration's.
func (x *limited) checkWorkspaces(workloads []model.Workload) []model.Workload {
	r := x.registration
	return slices.DeleteFunc(workloads, func(w model.Workload) bool {
		if r.Workspace == "" || w.Workspace == r.Workspace {
			return false
		}
		ref := model.Ref{Collection: "workloads", Name: w.Name, Path: "workspace"}
		x.fail(ref, diag.New(diag.Registration, fmt.Sprintf("workload %s is of workspace %s, and registration %s brings those of %s", w.Name, w.Workspace, r.Name, r.Workspace)).
			Hinting("leave workspace out, or register it for the other workspace"))
		return true
	})
}

// confined puts configs under the limits of their registration.
func (x *limited) confine(configs []model.Config) []model.Config {
	r := x.registration
	for i := range configs {
		c := &configs[i]
		ref := model.Ref{Collection: "configs", Name: c.Name}
		if c.Layer < r.MinLayer || c.Layer > r.MaxLayer {
			x.fail(ref.At("layer"), diag.New(diag.Registration, fmt.Sprintf("config %s is in layer %d, and registration %s allows %d to %d", c.Name, c.Layer, r.Name, r.MinLayer, r.MaxLayer)).
				Hinting("choose another layer, or raise the registration's layers"))
		}
		if field(field(field(x.value, "configs"), c.Name), "overrides").Exists() {
			x.fail(ref.At("overrides"), diag.New(diag.Registration, fmt.Sprintf("config %s has overrides, which registration %s cannot bring", c.Name, r.Name)).
				Hinting("use values or defaults; only the platform's own configs overrule final values"))
		}
		c.Invalid = x.invalid[ref]
		if r.Match.Op != model.OpAll {
			c.Match = model.Selector{Op: model.OpAnd, Args: []model.Selector{c.Match, r.Match}}
		}
		if c.MatchUnknown {
			c.Match, c.MatchUnknown = r.Match, r.Match.Op == model.OpAll
		}
	}
	return configs
}

// registeredPackage is the package of registered files where they say none.
const defaultPackage = source.Package
