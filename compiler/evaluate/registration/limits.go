package registration

import (
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// export exports the entities that a registration provides. key is the key of its functions.
func (c *checkedOut) export(environment string, r *model.Registration,
	key memo.Key) *ProvidedEntities {
	x := &limitedExporter{export.New(c.Package), r}
	x.Published = c.published
	for _, f := range c.failures {
		x.Fail(f.ref, f.d)
	}
	x.CheckCollections(environment)
	x.checkProvided()
	out := export.Result{Model: model.Environment{Name: environment}}
	if r.Workloads {
		out.Model.Workloads = x.checkSources(x.checkWorkspaces(x.Workloads(environment)))
		for i := range out.Model.Workloads {
			out.Model.Workloads[i].Registration = r.Name
		}
	}
	if r.Configs {
		out.Model.Configs = x.confine(x.Configs())
	}
	out.Digest(key)
	entity := model.Ref{Collection: "environments", Name: environment}
	unknown := x.Incomplete || x.Invalid[entity]
	delete(x.Invalid, entity)
	for i := range x.Diagnostics {
		x.Diagnostics[i].Sites = resolved(x.Diagnostics[i].Sites, x.Positions)
	}
	return &ProvidedEntities{
		Workloads: out.Model.Workloads, Configs: out.Model.Configs,
		Entities: x.Found.All, Uses: x.Found.Uses, Diagnostics: x.Diagnostics, Invalid: x.Invalid,
		Unknown: unknown, Positions: x.Positions.All(),
	}
}

// limitedExporter exports the provided entities of a registration, within its limits.
type limitedExporter struct {
	*export.Exporter
	registration *model.Registration
}

// resolved returns sites as positions, because their references may name different entities in
// the platform.
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
func (x *limitedExporter) checkProvided() {
	r := x.registration
	for _, name := range model.CollectionNames {
		if name == "workloads" && r.Workloads || name == "configs" && r.Configs {
			continue
		}
		of := cuevalue.Field(x.Value, name)
		for entity, v := range cuevalue.Fields(of) {
			if name == "namespaceServices" && entity == shape.DefaultNamespaceService &&
				len(x.Written(v)) == 0 {
				continue // the schema's own
			}
			x.Report(x.At(diag.New(diag.Registration,
				fmt.Sprintf("registration %s does not provide %s", r.Name, name)), v).On(name).
				Hinting("move them to the platform, or let the registration provide them, if they are " +
					"workloads or configs"))
			break
		}
	}
}

// checkWorkspaces reports workloads whose workspace differs from the registration's.
func (x *limitedExporter) checkWorkspaces(workloads []model.Workload) []model.Workload {
	r := x.registration
	return slices.DeleteFunc(workloads, func(w model.Workload) bool {
		if r.Workspace == "" || w.Workspace == r.Workspace {
			return false
		}
		ref := model.Ref{Collection: "workloads", Name: w.Name, Path: "workspace"}
		x.Fail(ref, diag.New(diag.Registration,
			fmt.Sprintf("workload %s is of workspace %s, and registration %s brings those of %s", w.Name,
				w.Workspace, r.Name, r.Workspace)).
			Hinting("leave workspace out, or register it for the other workspace"))
		return true
	})
}

// confine applies the limits of the registration to its configs.
func (x *limitedExporter) confine(configs []model.Config) []model.Config {
	r := x.registration
	for i := range configs {
		c := &configs[i]
		ref := model.Ref{Collection: "configs", Name: c.Name}
		if c.Layer < r.MinLayer || c.Layer > r.MaxLayer {
			x.Fail(ref.At("layer"), diag.New(diag.Registration,
				fmt.Sprintf("config %s is in layer %d, and registration %s allows %d to %d", c.Name, c.Layer,
					r.Name, r.MinLayer, r.MaxLayer)).
				Hinting("choose another layer, or raise the registration's layers"))
		}
		if cuevalue.Field(cuevalue.Field(cuevalue.Field(x.Value, "configs"), c.Name),
			"overrides").Exists() {
			x.Fail(ref.At("overrides"),
				diag.New(diag.Registration,
					fmt.Sprintf("config %s has overrides, which registration %s cannot bring", c.Name, r.Name)).
					Hinting("use values or defaults; only the platform's own configs overrule final values"))
		}
		if c.Clusters != nil {
			c.Clusters = nil
			x.Fail(ref.At("clusters"),
				diag.New(diag.Registration,
					fmt.Sprintf("config %s selects clusters, which registration %s cannot do", c.Name, r.Name)).
					Hinting("match labels of the cluster type; only the platform tells the clusters of a type "+
						"apart"))
		}
		for _, d := range foreignSecrets(r, ref, c.Values, c.Defaults) {
			x.Fail(ref, d)
		}
		c.Invalid = x.Invalid[ref]
		if r.Match.Op != model.OpAll {
			c.Match = model.Selector{Op: model.OpAnd, Args: []model.Selector{c.Match, r.Match}}
		}
		if c.MatchUnknown {
			c.Match, c.MatchUnknown = r.Match, r.Match.Op == model.OpAll
		}
	}
	return configs
}

// foreignSecrets reports secrets in values that the registration may not use. ref is the place
// of the values.
func foreignSecrets(r *model.Registration, ref model.Ref, trees ...model.Tree) []diag.Diagnostic {
	var ds []diag.Diagnostic
	for _, t := range trees {
		for _, secret := range secretsIn(t) {
			if r.Bounds != nil && r.Bounds.Secrets.Allow(secret) {
				continue
			}
			d := diag.New(diag.Bounds,
				fmt.Sprintf("%s refers to the secret %s, which registration %s may not use", ref, secret,
					r.Name)).
				Hinting("leave it out, or " + way(r, secret))
			ds = append(ds, d)
		}
	}
	return ds
}

// way returns a hint on how a platform can allow a registration a secret.
func way(r *model.Registration, secret string) string {
	const allow = "let the platform allow it: "
	switch {
	case r.Bounds == nil:
		return "correct workspace " + r.Workspace
	case r.Workspace == "":
		return allow + r.Bounds.AllowingSecret("NAME", r.Name, secret)
	}
	return allow + r.Bounds.AllowingSecret(r.Workspace, r.Name, secret)
}

// secretsIn returns the secrets that a tree refers to, as STORE/KEY.
func secretsIn(t model.Tree) []string {
	var out []string
	for _, f := range t.Fields {
		out = append(out, secretsIn(f.Tree)...)
	}
	if t.Open != nil && t.Open.Default != nil {
		out = append(out, secretsOfValue(*t.Open.Default)...)
	}
	return append(out, secretsOfValue(t.Final)...)
}

func secretsOfValue(v model.Value) []string {
	if v.Kind() == model.Secret {
		store, _ := v.Lookup("store")
		key, _ := v.Lookup("key")
		return []string{store.Text() + "/" + key.Text()}
	}
	var out []string
	for _, elem := range v.Elems() {
		out = append(out, secretsOfValue(elem)...)
	}
	for _, f := range v.Fields() {
		out = append(out, secretsOfValue(f.Value)...)
	}
	return out
}
