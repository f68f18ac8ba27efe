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

// brought is what a registration brings to an environment.
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

// register adds to the model what registrations bring. It returns the registered
// entities that are functions of the assignment, which are evaluated again.
func (e *evaluation) register(x *exporter, env *model.Environment, g Evaluator) (map[model.Ref]*Evaluation, error) {
	functions := map[model.Ref]*Evaluation{}
	own := map[model.Ref]bool{}
	for _, ref := range x.entities {
		own[ref] = true
	}
	for i := range env.Registrations {
		r := &env.Registrations[i]
		ref := model.Ref{Collection: "registrations", Name: r.Name}
		b, of, err := e.bring(r, g)
		if err != nil {
			return nil, err
		}
		for _, d := range b.Diagnostics {
			if len(d.Sites) == 0 {
				d = d.At(ref.At("git"), "")
			}
			x.report(d)
		}
		if b.Unknown {
			x.invalid[ref] = true
			if r.Configs {
				env.Configs = append(env.Configs, model.Config{Name: "registration " + r.Name, UnknownOf: r.Name, Match: r.Match, Invalid: true})
			}
		}
		refused := x.merge(env, r, b, own)
		for _, c := range b.Configs {
			if ref := (model.Ref{Collection: "configs", Name: c.Name}); c.Facts != nil && !refused[ref] {
				functions[ref] = of
			}
		}
	}
	byName(env.Workloads, func(w *model.Workload) string { return w.Name })
	byName(env.Configs, func(c *model.Config) string { return c.Name })
	return functions, nil
}

// bring returns what a registration brings, as it is remembered or else evaluated.
func (e *evaluation) bring(r *model.Registration, g Evaluator) (*Provided, *Evaluation, error) {
	if g.Registry == nil {
		return &Provided{Unknown: true}, nil, nil
	}
	content, ds := g.Registry.Content(e.ctx, r)
	if content == nil {
		return &Provided{Unknown: true, Diagnostics: ds}, nil, nil
	}
	of := &Evaluation{environment: e.name, registration: r, content: content, workers: g.Workers}
	key := of.key()
	if b, ok := recall[Provided](e.cache, key); ok {
		return b, of, nil
	}
	b, passing, err := of.provided(e.ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("evaluate registration %s: %w", r.Name, err)
	}
	b.Diagnostics = append(b.Diagnostics, ds...)
	if !passing && !diag.Errors(ds) {
		remember(e.cache, key, b)
	}
	return b, of, nil
}

// take adds what a registration brings to the environment. What the platform
// declares itself, own, nobody else can; of what two registrations bring neither
// counts. It returns what is refused.
func (x *exporter) merge(env *model.Environment, r *model.Registration, b *Provided, own map[model.Ref]bool) (refused map[model.Ref]bool) {
	refused = map[model.Ref]bool{}
	twice := map[model.Ref]bool{}
	self := model.Ref{Collection: "registrations", Name: r.Name}
	for _, ref := range b.Entities {
		if !slices.Contains(x.entities, ref) {
			x.entities = append(x.entities, ref)
			continue
		}
		d := diag.New(diag.Registration, fmt.Sprintf("registration %s brings %s, which there is already", r.Name, ref)).Hinting("rename one of them")
		for _, p := range b.Positions[ref] {
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
	of := func(ref model.Ref) model.Ref { return model.Ref{Collection: ref.Collection, Name: ref.Name} }
	for ref, at := range b.Positions {
		for _, p := range at {
			if !refused[of(ref)] {
				x.positions.Add(ref, p)
			}
		}
	}
	for ref := range b.Invalid {
		if !refused[ref] {
			x.invalid[ref] = true
		}
	}
	for _, u := range b.Uses {
		if !refused[of(u.Ref)] {
			x.uses = append(x.uses, u)
		}
	}
	for _, w := range b.Workloads {
		if ref := (model.Ref{Collection: "workloads", Name: w.Name}); !refused[ref] && !twice[ref] {
			env.Workloads = append(env.Workloads, w)
		}
	}
	env.Workloads = slices.DeleteFunc(env.Workloads, func(w model.Workload) bool {
		return twice[model.Ref{Collection: "workloads", Name: w.Name}]
	})
	for _, c := range b.Configs {
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

// doubt makes a config that somebody else brings as well sick, so that the
// assignments of both fail.
func invalidate(configs []model.Config, other model.Config) {
	for i := range configs {
		if c := &configs[i]; c.Name == other.Name {
			c.Invalid = true
			c.Match = model.Selector{Op: model.OpOr, Args: []model.Selector{c.Match, other.Match}}
		}
	}
}

// brought exports what a registration brings; key is that of functions in it.
func (l *loaded) provided(environment string, r *model.Registration, key Key) *Provided {
	x := newExporter(l)
	for _, f := range l.failures {
		x.fail(f.ref, f.d)
	}
	x.checkEmbeds(environment)
	x.checkCollections(environment)
	x.checkProvided(r)
	out := Result{Model: model.Environment{Name: environment}}
	if r.Workloads {
		out.Model.Workloads = x.checkWorkspaces(x.workloads(environment), r)
		for i := range out.Model.Workloads {
			out.Model.Workloads[i].Registration = r.Name
		}
	}
	if r.Configs {
		out.Model.Configs = x.confine(x.configs(), r)
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
		Entities: x.entities, Uses: x.uses, Diagnostics: x.ds, Invalid: x.invalid,
		Unknown: unknown, Positions: x.positions.All(),
	}
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
func (x *exporter) checkProvided(r *model.Registration) {
	for _, name := range collectionNames() {
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
func (x *exporter) checkWorkspaces(workloads []model.Workload, r *model.Registration) []model.Workload {
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
func (x *exporter) confine(configs []model.Config, r *model.Registration) []model.Config {
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
