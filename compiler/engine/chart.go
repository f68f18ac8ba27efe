package engine

import (
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
)

// applicationValues returns what the application gives the chart of a deployment
// target, composed, with its provenance. It is the same on all cluster types.
func (e *emitter) applicationValues(w *model.Workload, t *model.DeploymentTarget) *compose.Graph {
	if g, known := e.charts.Load(t); known {
		return g.(*compose.Graph)
	}
	g, _ := e.charts.LoadOrStore(t, e.in.Plan.ApplicationValues(w, t, e.in.Plan.NewEvaluator()))
	return g.(*compose.Graph)
}

// chartValues returns what the chart of an assignment gets: what the application
// gives it and, where the deployment target says so, the platform's values, with null
// for those that configs take away: it takes a default of the chart away. Helm knows no texts of
// numbers, so that they are in canonical form.
func (e *emitter) chartValues(a *schedule.Assignment, platform, removed model.Value) (model.Value, []diag.Diagnostic) {
	g := e.applicationValues(a.Workload, a.Target)
	if g.Failed {
		return model.Value{}, g.Diagnostics()
	}
	values, ds := g.WithPlatform(model.Merge(removed, platform), a)
	return values.Canonical(), slices.Concat(g.Diagnostics(), ds) // the graph is shared
}

// plaintexts warns of secrets in what the application gives a chart or a playbook.
func (e *emitter) plaintexts(a *schedule.Assignment, m *model.Manifests) []diag.Diagnostic {
	target := a.Workload.TargetRef(a.Target.Name)
	switch {
	case m.Helm != nil && m.Helm.Values != nil:
		return compose.Plaintexts(*m.Helm.Values, target.At("manifests.helm.values"))
	case m.Ansible != nil && m.Ansible.Vars != nil:
		return compose.Plaintexts(*m.Ansible.Vars, target.At("manifests.ansible.vars"))
	}
	return nil
}

// fillChart gives the assignment's chart, if it has one, its name and what the
// application gives it. The platform's values fit in, and are for the backend to
// add: some do so cluster by cluster.
func (e *emitter) fillChart(a *schedule.Assignment, assigned *backends.Assignment) []diag.Diagnostic {
	if a.Manifests.Helm == nil {
		return nil
	}
	_, ds := e.chartValues(a, assigned.Values, assigned.Removed)
	if diag.Errors(ds) {
		return ds
	}
	helm := *a.Manifests.Helm
	helm.Values = nil
	if values := e.applicationValues(a.Workload, a.Target).Values; len(values.Fields()) > 0 {
		helm.Values = &values
	}
	if helm.ReleaseName == "" {
		helm.ReleaseName = model.ShortName(a.Target.FullName, model.MaxHelmRelease)
	}
	assigned.Manifests.Helm = &helm
	return ds
}
