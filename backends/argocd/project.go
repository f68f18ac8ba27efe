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

// What a project does not permit, Argo CD neither prunes nor deletes: it leaves it
// on the cluster, without a word. The project that is in force is the one of the
// commit in which an object goes, so that nothing that a project permits may
// follow from the objects or clusters that happen to be there: all of it follows
// from what the platform declares of destinations, workspaces and namespace services
// (permits.go). A project that leaves the tree stays as it was until its Applications
// are gone, by its finalizer.
//
// Names of AppProjects have dots between their parts, which have none: one Argo
// CD may serve several cluster types and environments, and with dashes the target
// b-c on cluster type a and c on a-b would have one project.

// assignmentProject returns the name of the AppProject of the Application that
// applies an assignment's folder.
func assignmentProject(environment, clusterType, deploymentTarget string) string {
	return model.ShortName(environment+"."+clusterType+"."+deploymentTarget, model.MaxLabel)
}

// clustersProject returns the name of the AppProject of the Applications that apply an
// assignment's folder to each cluster of an inventory. It is another one than that of the folder's one
// Application elsewhere: a folder may go from one to the other, and what it leaves is deleted with
// the permissions that it had there.
func clustersProject(environment, clusterType, deploymentTarget string) string {
	return model.ShortName(environment+"."+clusterType+"."+deploymentTarget+".clusters", model.MaxLabel)
}

// workloadProject returns the name of the AppProject of the workload's own
// Application.
func workloadProject(environment, clusterType, deploymentTarget string) string {
	return model.ShortName(environment+"."+clusterType+"."+deploymentTarget+".workload", model.MaxLabel)
}

// workspaceProject returns the name of the AppProject that the Applications of a
// workspace shared before each had its own.
func workspaceProject(environment, clusterType, workspace string) string {
	return model.ShortName(environment+"."+clusterType+"."+workspace, model.MaxLabel)
}

var anyKind = groupKind{Group: "*", Kind: "*"}

// projectsOfAssignment returns the AppProjects of the Applications that apply the folder: of the one
// Application, and where it goes to each cluster of an inventory, of those. The first is there in
// any case, as earlier releases had it for both, and Argo CD deletes no project that is used.
//
// A folder of another backend, or of an earlier release, is permitted everything: nobody knows what
// it holds.
func projectsOfAssignment(ct *backends.ClusterType, o options, f folder) []kubernetes.Object {
	spec := appProject{
		Description: fmt.Sprintf("Assignment of %s to cluster type %s in %s",
			f.DeploymentTarget, ct.Name, ct.Environment),
		SourceRepos:                []string{ct.GitOps.URL()},
		NamespaceResourceWhitelist: []groupKind{anyKind},
	}
	if f.Permits == nil {
		spec.Destinations = []destination{{Server: "*", Namespace: "*"}}
		spec.ClusterResourceWhitelist = []clusterObject{{Group: "*", Kind: "*"}}
	} else {
		f.Permits.in(&spec, f, o)
	}
	var out []kubernetes.Object
	for _, name := range assignmentProjects(ct, f) {
		out = append(out, projectObject(projectMeta(ct, o, f, name), spec))
	}
	return out
}

// assignmentProjects returns the names of projectsOfAssignment.
func assignmentProjects(ct *backends.ClusterType, f folder) []string {
	out := []string{assignmentProject(ct.Environment, ct.Name, f.DeploymentTarget)}
	if len(f.Clusters) > 0 {
		out = append(out, clustersProject(ct.Environment, ct.Name, f.DeploymentTarget))
	}
	return out
}

// projectOfWorkload returns the AppProject of the workload's Application: what
// others wrote reaches the workload's namespace, wherever that is, and what its
// workspace allows, and nothing else.
func projectOfWorkload(ct *backends.ClusterType, o options, f folder) kubernetes.Object {
	spec := appProject{
		Description: fmt.Sprintf("Workload of %s on cluster type %s in %s",
			f.DeploymentTarget, ct.Name, ct.Environment),
		SourceRepos:                []string{f.Repo},
		Destinations:               []destination{{Server: "*", Namespace: f.Namespace}},
		NamespaceResourceWhitelist: []groupKind{anyKind},
	}
	if f.CreatesNamespace {
		// By name, as any other would be somebody else's. Argo CD never prunes it.
		spec.ClusterResourceWhitelist = []clusterObject{{Kind: "Namespace", Name: f.Namespace}}
	}
	if f.Bounds != nil {
		f.Bounds.in(&spec, o.Namespace)
	}
	return projectObject(projectMeta(ct, o, f, workloadProject(ct.Environment, ct.Name, f.DeploymentTarget)), spec)
}

func projectMeta(ct *backends.ClusterType, o options, f folder, name string) kubernetes.Metadata {
	meta := delivery.AssignmentMeta(ct, f.Folder, o.Namespace)
	meta.Name = name
	return meta
}

// workloadProjects returns the AppProjects of the workloads' Applications, in the
// order of their folders.
func workloadProjects(ct *backends.ClusterType, o options, folders []folder) []kubernetes.Object {
	var out []kubernetes.Object
	for _, f := range folders {
		if f.Repo != "" && f.Own {
			out = append(out, projectOfWorkload(ct, o, f))
		}
	}
	return append(out, workspaceProjects(ct, o, folders)...)
}

// workspaceProjects returns the AppProjects that the Applications in kept folders
// still share by workspace, sorted by name: without them, they could not be synced
// until the folders are built again. One whose name an assignment's project has now
// is left out.
func workspaceProjects(ct *backends.ClusterType, o options, folders []folder) []kubernetes.Object {
	taken := map[string]bool{}
	for _, f := range folders {
		taken[assignmentProject(ct.Environment, ct.Name, f.DeploymentTarget)] = true
	}
	specs := map[string]*appProject{}
	for _, f := range folders {
		if f.Repo == "" || f.Own || taken[workspaceProject(ct.Environment, ct.Name, f.Workspace)] {
			continue
		}
		p := specs[f.Workspace]
		if p == nil {
			p = &appProject{
				Description: fmt.Sprintf("Workloads of %s on cluster type %s in %s", f.Workspace,
					ct.Name, ct.Environment),
				NamespaceResourceWhitelist: []groupKind{anyKind},
			}
			specs[f.Workspace] = p
		}
		p.SourceRepos = append(p.SourceRepos, f.Repo)
		p.Destinations = append(p.Destinations, destination{Server: "*", Namespace: f.Namespace})
	}
	var out []kubernetes.Object
	for workspace, spec := range specs {
		slices.Sort(spec.SourceRepos)
		spec.SourceRepos = slices.Compact(spec.SourceRepos)
		slices.SortFunc(spec.Destinations, func(a, b destination) int { return cmp.Compare(a.Namespace, b.Namespace) })
		spec.Destinations = slices.Compact(spec.Destinations)
		out = append(out, projectObject(delivery.ClusterTypeMeta(workspaceProject(ct.Environment, ct.Name,
			workspace), o.Namespace), *spec))
	}
	slices.SortFunc(out, func(a, b kubernetes.Object) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return out
}
