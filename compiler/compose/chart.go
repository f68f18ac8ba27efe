package compose

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
)

// ApplicationValues composes the values that an application sets for the chart of a deployment
// target. It uses the rules of configs: the values for all deployment targets are the lower layer,
// and the target's own values are the higher one. The graph has neither contracts nor secrets: a
// chart's values are written into files.
func (p *Plan) ApplicationValues(w *model.Workload, t *model.DeploymentTarget,
	eval *expr.Evaluator) *Graph {
	m := p.memo.merger(eval)
	defer p.memo.release(m)
	start := len(m.parts)
	for layer, of := range []struct {
		name string
		ref  model.Ref
		model.ChartValues
	}{
		{"workload " + w.Name, model.Ref{Collection: "workloads", Name: w.Name}, w.Chart},
		{"deployment target " + t.FullName, w.TargetRef(t.Name), t.Chart},
	} {
		if of.Values.Kind != model.Absent {
			m.parts = append(m.parts,
				rootNode(&root{FromValues, of.name, layer, of.ref.At("manifests.helm.values")}, of.Values))
		}
		if of.Defaults.Kind != model.Absent {
			m.parts = append(m.parts, rootNode(&root{FromDefault, of.name, layer,
				of.ref.At("manifests.helm.defaults")}, of.Defaults))
		}
	}
	m.unite(start)
	if !m.graph.Failed {
		m.withoutSecrets(w.TargetRef(t.Name))
	}
	return m.finish()
}

// Application composes the values of a target of an application, which has no platform. Each
// folder's values are defaults that override the values of its parent folder. The contract fills in
// the missing values. Several goroutines may call it.
func Application(t *model.ApplicationTarget, eval *expr.Evaluator) *Graph {
	m := (&memo{}).merger(eval)
	for layer, of := range t.Layers {
		values := of.Values
		for _, over := range t.Layers[layer+1:] {
			values = withoutReplaced(values, over.Values)
		}
		if values.Kind == model.StructTree {
			m.parts = append(m.parts, rootNode(&root{FromDefault, of.File, layer,
				model.Ref{Collection: "values", Name: of.File}}, values))
		}
	}
	m.unite(0)
	if t.Contract != nil && !m.graph.Failed {
		m.contracted([]*model.Contract{t.Contract})
	}
	return m.finish()
}

// withoutReplaced returns a tree without the mappings that a deeper folder
// replaces by another value. The values of a still deeper folder then start over,
// as with several files for Helm.
func withoutReplaced(t, over model.Tree) model.Tree {
	if t.Kind != model.StructTree || over.Kind != model.StructTree {
		return t
	}
	out := model.Tree{Kind: model.StructTree}
	for _, f := range t.Fields {
		o, there := over.Field(f.Name)
		if there && f.Tree.Kind == model.StructTree && o.Kind != model.StructTree {
			continue
		}
		if there {
			f.Tree = withoutReplaced(f.Tree, o)
		}
		out.Fields = append(out.Fields, f)
	}
	return out
}

// withoutSecrets reports references to secrets: a chart's values are plain text.
func (m *merger) withoutSecrets(target model.Ref) {
	_, secrets := splitSecrets(m.graph.Values)
	for _, s := range secrets {
		ref := target.At(model.JoinPath("manifests.helm.values", s.Path))
		m.fail(diag.New(diag.UndeliverableSecret,
			fmt.Sprintf("the chart's value %s refers to a secret, and would be written in plain text",
				s.Path)).
			On(ref.String()).At(ref, "").Hinting("refer to the secret in a config, and let the chart read " +
			"the Secret platform-secrets"))
	}
}

// WithPlatform adds the platform's values to the chart's values, which are the
// graph's, at the path that the deployment target names. Without a path it
// returns the application's values. It never replaces a value of the application,
// but returns a diagnostic.
func (g *Graph) WithPlatform(platform model.Value, a *schedule.Assignment) (model.Value,
	[]diag.Diagnostic) {
	at := a.Manifests.Helm.PlatformValues
	if at == "" {
		return g.Values, nil
	}
	path := strings.Split(at, ".")
	merged, taken := g.Values.Insert(path, platform)
	if taken == 0 {
		return merged, nil
	}
	there := ""
	for _, name := range path[:taken] {
		there = model.JoinPath(there, model.Label(name))
	}
	message := fmt.Sprintf("the chart's values already hold something at %s, where platformValues "+
		"puts the platform's", there)
	if taken < len(path) {
		message = fmt.Sprintf("%s of the chart's values is no struct, so platformValues cannot put the "+
			"platform's at %s", there, at)
	}
	target := a.Workload.TargetRef(a.Target.Name)
	d := diag.New(diag.HelmValues,
		message).On(target.At(model.JoinPath("manifests.helm.values", there)).String()).
		Hinting("give platformValues a path that the chart's values leave free")
	for _, leaf := range g.Leaves() {
		if leaf.Path == there || strings.HasPrefix(leaf.Path, there+".") {
			d = origins(d, leaf.From[:1])
			break
		}
	}
	return g.Values, []diag.Diagnostic{d.At(target.At("manifests.helm.platformValues"), "")}
}
