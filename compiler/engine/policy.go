package engine

import (
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Policies returns the bounds of the workspaces that may have assignments on a cluster type
// as policies for its clusters, as a YAML stream. They are the same whatever is assigned. The
// reconciler is known; where nobody knows as whom it applies things, that is a diagnostic.
func (p *Inputs) Policies(ct *model.ClusterType) ([]byte, []diag.Diagnostic) {
	of := p.delivered(ct)
	accounts := p.backend(ct).Accounts(of)
	if accounts.Unknown == "" {
		return kubernetes.Policies(of, accounts, p.teams(ct)), nil
	}
	ds := []diag.Diagnostic{diag.New(diag.NoPolicies, "the bounds of workspaces cannot be policies "+
		"on clusters of type "+ct.Name+": "+accounts.Unknown).
		At(of.Reconciler.Ref, "").At(of.Ref, "").Hinting("leave --policies out: the build checks the bounds")}
	diag.Resolve(ds, p.Model.Positions)
	return nil, ds
}

// Observed returns the API groups of the objects that reconcile what is on a cluster type, and
// the namespace that they are in; none and "" where they are no objects of Kubernetes.
func (p *Inputs) Observed(ct *model.ClusterType) (groups []string, namespace string) {
	b := p.backend(ct)
	switch accounts := b.Accounts(p.delivered(ct)); {
	case len(accounts.Namespaces) > 0:
		namespace = accounts.Namespaces[0]
	case len(accounts.Folders) > 0:
		namespace = accounts.Folders[0].Namespace
	}
	return b.Traits().Groups, namespace
}

// teams returns the workspaces that are declared for a cluster type, and those that workloads
// have without a declaration, sorted by name. Of one with errors nothing is known.
func (p *Inputs) teams(ct *model.ClusterType) []kubernetes.Team {
	bounds := map[string][]*model.Workspace{}
	for i := range p.Model.Workspaces {
		w := &p.Model.Workspaces[i]
		bounds[w.Name] = []*model.Workspace{w}
	}
	for i := range p.Model.Workloads {
		w := &p.Model.Workloads[i]
		if of, _ := p.Model.WorkspaceOf(w); of != nil && !slices.Contains(bounds[w.Workspace], of) {
			bounds[w.Workspace] = append(bounds[w.Workspace], of)
		}
	}
	var out []kubernetes.Team
	for _, name := range slices.Sorted(maps.Keys(bounds)) {
		here := slices.DeleteFunc(bounds[name], func(w *model.Workspace) bool {
			return !w.Environments.Allow(p.Name) || !p.mayBeOn(w, ct)
		})
		if len(here) > 0 {
			out = append(out, kubernetes.Team{Workspace: name, Bounds: here})
		}
	}
	return out
}
