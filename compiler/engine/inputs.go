package engine

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Inputs is an environment with its assignments and the configuration of each assignment. All
// steps of its build read it.
type Inputs struct {
	Name   string
	Source tree.Source
	// Model is nil if kalypso cannot read anything of the environment. Then Schedule and Plan are
	// nil too.
	Model    *model.Environment
	Schedule *schedule.Schedule
	// Plan describes the configuration of the schedule's assignments.
	Plan *compose.Plan

	request *Request
	// cluster types with clusters that get different values, and must not
	split    []string
	digests  bool                       // whether Source is identified by the digests of files
	clusters map[string][]model.Cluster // by cluster type, sorted by name
	spans    []span                     // by cluster type of the model
	// rings are the rings of the request, by cluster type. A cluster type without a ring or in
	// several rings is absent.
	rings map[string]string
	// declared are all rings of the environment, by cluster type as in rings.
	declared map[string]string
	// bounded are the cluster types that are allowed to workspaces with a selector, by workspace.
	bounded map[string]map[string]bool

	// charts are the charts of the platform that were read, so that all steps see the same. The key
	// is the path with its files of values, the value a func() (content, []diag.Diagnostic).
	charts sync.Map
	// versions are the derived versions: versionKey -> version.
	versions sync.Map
}

// Ring returns the ring of a cluster type or of a class of a cluster type. It returns "" if there
// is no ring or if there are several.
func (p *Inputs) Ring(clusterType string) string { return p.declared[clusterType] }

// OCI returns the location of the environment's tree in an OCI registry. It returns nil if the
// tree is elsewhere or its location is not known.
func (p *Inputs) OCI() *tree.OCI {
	if p.Model == nil || p.Model.GitOps == nil || p.Model.GitOps.OCI == "" {
		return nil
	}
	g := p.Model.GitOps
	return &tree.OCI{Repository: g.OCI, Tag: g.Tag, Path: g.Path}
}

// Git returns the location of the environment's tree in a git repository. It returns nil if the
// tree is elsewhere or its location is not known.
func (p *Inputs) Git() *tree.Git {
	if p.Model == nil || p.Model.GitOps == nil || p.Model.GitOps.Repo == "" {
		return nil
	}
	g := p.Model.GitOps
	return &tree.Git{Repository: g.Repo, Branch: g.Branch, Path: g.Path}
}

// Formerly returns the earlier names of the environment.
func (p *Inputs) Formerly() []string {
	out := p.request.Formerly
	for i := range p.request.Declarations {
		if d := &p.request.Declarations[i]; d.Name == p.Name {
			out = append(slices.Clip(out), d.Formerly...)
		}
	}
	return out
}

// span is a range of assignments by number, from first up to but not including next.
type span struct{ first, next int }

// spansOf returns the span of each cluster type of the model. The schedule sorts its assignments
// by cluster type.
func spansOf(m *model.Environment, s *schedule.Schedule) []span {
	out := make([]span, len(m.ClusterTypes))
	first := 0
	for i := range m.ClusterTypes {
		next := first
		for next < len(s.Assignments) && s.Assignments[next].ClusterType.Name == m.ClusterTypes[i].Name {
			next++
		}
		out[i] = span{first, next}
		first = next
	}
	return out
}

// byFolder groups clusters by the folder that they follow. All groups share one allocation,
// because there may be a million clusters.
func byFolder(clusters []model.Cluster) map[string][]model.Cluster {
	sizes := map[string]int{}
	for i := range clusters {
		sizes[clusters[i].Folder]++
	}
	all, out := make([]model.Cluster, len(clusters)), make(map[string][]model.Cluster, len(sizes))
	for folder, size := range sizes {
		out[folder], all = all[:0:size], all[size:]
	}
	for i := range clusters {
		out[clusters[i].Folder] = append(out[clusters[i].Folder], clusters[i])
	}
	return out
}

// hold fails the assignments of a cluster type, so that they keep their folders.
func (p *Inputs) hold(n int) {
	for i := p.spans[n].first; i < p.spans[n].next; i++ {
		p.Plan.Failed[i] = true
	}
}

// id returns the id of the assignment with this number.
func (p *Inputs) id(assignment int) string { return p.Schedule.Assignments[assignment].ID(p.Name) }

// reconciler returns the reconciler of a cluster type. It returns nil if the reconciler has
// errors.
func (p *Inputs) reconciler(ct *model.ClusterType) *model.Reconciler {
	i, found := slices.BinarySearchFunc(p.Model.Reconcilers, ct.Reconciler,
		func(r model.Reconciler, name string) int {
			return strings.Compare(r.Name, name)
		})
	if !found {
		return nil
	}
	return &p.Model.Reconcilers[i]
}

// backend returns the backend of a cluster type. It returns nil if the reconciler has errors.
func (p *Inputs) backend(ct *model.ClusterType) backends.Backend {
	if r := p.reconciler(ct); r != nil {
		return p.request.Backends[r.Backend]
	}
	return nil
}

// BackendOf returns the name of the backend of a cluster type. It returns "" if the reconciler is
// not known.
func (p *Inputs) BackendOf(clusterType string) string {
	for i := range p.Model.ClusterTypes {
		if ct := &p.Model.ClusterTypes[i]; ct.Name == clusterType && p.reconciler(ct) != nil {
			return p.reconciler(ct).Backend
		}
	}
	return ""
}

// Reconciled reports whether the reconciler of a cluster type is known.
func (p *Inputs) Reconciled(ct *model.ClusterType) bool {
	_, known := p.Plan.Shared[ct.Name]
	return known && p.reconciler(ct) != nil
}

func reconcilerRef(ct *model.ClusterType) model.Ref {
	return model.Ref{Collection: "reconcilers", Name: ct.Reconciler}
}

// delivered returns a cluster type in the form that its backend gets.
func (p *Inputs) delivered(ct *model.ClusterType) *backends.ClusterType {
	return &backends.ClusterType{
		Environment: p.Name,
		Name:        ct.TypeName(),
		Folder:      ct.Name,
		Entries:     ct.Entries == model.ClusterEntries,
		Description: ct.Description,
		GitOps:      p.Model.GitOps,
		Clusters:    p.clusters[ct.Name],
		Reconciler:  backends.Spec{Ref: reconcilerRef(ct), Value: p.Plan.Shared[ct.Name]},
		Ref:         ct.Ref(),
	}
}

// clusterNames returns the names of the clusters of a type, sorted.
func (p *Inputs) clusterNames(clusterType string) []string {
	var names []string
	for _, c := range p.clusters[clusterType] {
		names = append(names, c.Name)
	}
	return names
}

// Bootstrap returns the objects that a cluster needs to pull its folder, as a YAML stream.
// cluster is the name of a cluster of the type, or "" for any of them. folders are the folders of
// the cluster type. The reconciler must be known.
func (p *Inputs) Bootstrap(ct *model.ClusterType, cluster string, folders []tree.Folder) ([]byte,
	[]diag.Diagnostic) {
	of := p.delivered(ct)
	of.Cluster = cluster
	objects, ds := p.backend(ct).Bootstrap(of, infos(folders))
	diag.Resolve(ds, p.Model.Positions)
	return objects, ds
}

// Policies returns policies for the clusters of a type, as a YAML stream. They enforce the bounds
// of the workspaces that may have assignments there, and do not depend on the assignments. The
// reconciler must be known. If the account that it uses is not known, Policies returns a
// diagnostic.
func (p *Inputs) Policies(ct *model.ClusterType) ([]byte, []diag.Diagnostic) {
	of := p.delivered(ct)
	accounts := p.backend(ct).Accounts(of)
	if accounts.Unknown == "" {
		return kubernetes.Policies(of, accounts, p.teams(ct)), nil
	}
	ds := []diag.Diagnostic{diag.New(diag.NoPolicies, "the bounds of workspaces cannot be policies "+
		"on clusters of type "+ct.Name+": "+accounts.Unknown).
		At(of.Reconciler.Ref, "").At(of.Ref,
		"").Hinting("leave --policies out: the build checks the bounds")}
	diag.Resolve(ds, p.Model.Positions)
	return nil, ds
}

// Observed returns the API groups and the namespace of the objects that reconcile a cluster type.
// It returns no groups and "" if these are not objects of Kubernetes.
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

// teams returns the workspaces that may be on a cluster type, sorted by name. They are the
// declared workspaces and the undeclared workspaces of workloads. Workspaces with errors are
// absent.
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

// mayBeOn reports whether a workspace may be on a cluster type.
func (p *Inputs) mayBeOn(w *model.Workspace, ct *model.ClusterType) bool {
	if w.SelectedTypes == nil {
		return w.ClusterTypes.Allow(ct.TypeName())
	}
	return p.bounded[w.Name][ct.Name]
}

// forMachines reports whether a backend, given by its key in #Reconciler, delivers only to
// machines. Machines have no namespaces.
func (p *Inputs) forMachines(backend string) bool {
	b, known := p.request.Backends[backend]
	return known && b.Traits().Machines
}

// selection returns the policies and configs that select an assignment.
func (p *Inputs) selection(i int) tree.Selection {
	a := &p.Schedule.Assignments[i]
	return tree.Selection{Policies: a.Policies, SparedBy: a.SparedBy, Configs: p.Plan.Configs(i),
		ConfigSchemas: p.Plan.ConfigSchemas(i)}
}

// needsContent reports whether the emission of an assignment needs the content of its source, or
// at least its pin.
func (p *Inputs) needsContent(a *schedule.Assignment) bool {
	return needsContent(p.backend(a.ClusterType), a)
}

// needsContent is Inputs.needsContent for an assignment with a backend, which may be nil.
func needsContent(b backends.Backend, a *schedule.Assignment) bool {
	if b == nil {
		return false
	}
	support := b.Support(a.Manifests.Kind())
	if a.Target.Render {
		return support.Rendered == ""
	}
	return support.Referenced == "" && support.Looks
}

func infos(folders []tree.Folder) []backends.Folder {
	out := make([]backends.Folder, len(folders))
	for i, f := range folders {
		out[i] = f.Info
	}
	return out
}
