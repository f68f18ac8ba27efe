package argocd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Names of AppProjects have dots between their parts, which have none: one Argo
// CD may serve several cluster types and environments, and with dashes the
// workspace b-c on cluster type a and c on a-b would have one project.

// workspaceProject returns the name of a workspace's AppProject.
func workspaceProject(environment, clusterType, workspace string) string {
	return model.ShortName(environment+"."+clusterType+"."+workspace, model.MaxLabel)
}

// assignmentsProject returns the name of the AppProject that applies folders.
func assignmentsProject(ct *backends.ClusterType) string {
	return model.ShortName("kalypso."+ct.Environment+"."+ct.Name+".assignments", model.MaxLabel)
}

// workspaceProjects returns an AppProject for each workspace with workloads in
// projects that kalypso makes, sorted by workspace.
func workspaceProjects(ct *backends.ClusterType, o options, folders []folder) []kubernetes.Object {
	specs := map[string]*appProject{}
	for _, f := range folders {
		if f.Repo == "" {
			continue
		}
		p := specs[f.Workspace]
		if p == nil {
			p = &appProject{Description: fmt.Sprintf("Workloads of %s on cluster type %s in %s", f.Workspace, ct.Name, ct.Environment)}
			specs[f.Workspace] = p
		}
		p.SourceRepos = append(p.SourceRepos, f.Repo)
		for _, d := range f.destinations() {
			p.Destinations = append(p.Destinations, d.in(f.Namespace))
		}
		if f.CreatesNamespace {
			p.ClusterResourceWhitelist = append(p.ClusterResourceWhitelist, namespaceOf(f))
		}
	}
	var out []kubernetes.Object
	for workspace, spec := range specs {
		meta := delivery.ClusterTypeMeta(workspaceProject(ct.Environment, ct.Name, workspace), o.Namespace)
		out = append(out, project(meta, *spec))
	}
	slices.SortFunc(out, func(a, b kubernetes.Object) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return out
}

func namespaceOf(f folder) clusterObject { return clusterObject{Kind: "Namespace", Name: f.Namespace} }

// projectOfAssignments returns the AppProject of the Applications that apply
// folders: the namespaces and kinds of object that are in them.
func projectOfAssignments(ct *backends.ClusterType, o options, folders []folder) kubernetes.Object {
	spec := appProject{
		Description:                fmt.Sprintf("Assignments of cluster type %s in %s", ct.Name, ct.Environment),
		SourceRepos:                []string{ct.GitOps.URL()},
		NamespaceResourceWhitelist: slices.Clone(usualKinds),
	}
	for _, f := range folders {
		for _, d := range f.destinations() {
			for _, namespace := range append([]string{f.Namespace}, f.Namespaces...) {
				spec.Destinations = append(spec.Destinations, d.in(namespace))
			}
		}
		if f.local() {
			spec.Destinations = append(spec.Destinations, f.destination().in(o.Namespace))
			spec.NamespaceResourceWhitelist = append(spec.NamespaceResourceWhitelist, applicationKind)
		}
		spec.NamespaceResourceWhitelist = append(spec.NamespaceResourceWhitelist, f.Kinds...)
		spec.ClusterResourceWhitelist = append(append(spec.ClusterResourceWhitelist, namespaceOf(f)), f.ClusterObjects...)
	}
	return project(delivery.ClusterTypeMeta(assignmentsProject(ct), o.Namespace), spec)
}

// project returns an AppProject with sorted lists, each element once.
func project(meta kubernetes.Metadata, spec appProject) kubernetes.Object {
	spec.SourceRepos = unique(spec.SourceRepos, cmp.Compare[string])
	spec.Destinations = unique(spec.Destinations, compareDestinations)
	spec.ClusterResourceWhitelist = unique(spec.ClusterResourceWhitelist, compareObjects)
	spec.NamespaceResourceWhitelist = unique(spec.NamespaceResourceWhitelist, compareKinds)
	return projectObject(meta, spec)
}
