package argocd

import (
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// Index returns README.md and kustomization.yaml, and with gitops
// assignments.yaml: the AppProjects, and one Application per folder. Where a
// folder goes to other clusters than Argo CD's own, kustomization.yaml also lists
// its reconciler.yaml, which stays with Argo CD.
func (argocd) Index(ct *backends.ClusterType, all []backends.Folder) ([]backends.File, []diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if ds = append(ds, checkTree(ct)...); diag.Errors(ds) {
		return nil, ds
	}
	files := []backends.File{kubernetes.README(ct, all)}
	if ct.GitOps == nil || len(all) == 0 {
		var names []string
		for _, f := range all {
			names = append(names, f.DeploymentTarget)
		}
		return delivery.Sorted(append(files, delivery.Kustomization(names))), nil
	}
	folders := read(o, all)
	if ds := delivery.Collisions(ct, owners(ct, folders)); len(ds) > 0 {
		return nil, ds
	}
	listed := []string{delivery.AssignmentsFile}
	for _, f := range folders {
		if f.apart() {
			listed = append(listed, f.DeploymentTarget+"/"+delivery.ReconcilerFile)
		}
	}
	files = append(files,
		backends.File{Path: delivery.AssignmentsFile, Data: delivery.YAML(assignments(ct, o, folders)...)},
		delivery.Kustomization(listed))
	return delivery.Sorted(files), nil
}

// assignments returns the objects of assignments.yaml.
func assignments(ct *backends.ClusterType, o options, folders []folder) []any {
	var docs []any
	for _, p := range append([]kubernetes.Object{projectOfAssignments(ct, o, folders)}, workspaceProjects(ct, o, folders)...) {
		// Before all Applications: projects come before them, and go after them.
		inWave(&p.Metadata, -1)
		docs = append(docs, p)
	}
	waves := slices.ContainsFunc(folders, func(f folder) bool { return f.Wave > 0 })
	for _, f := range folders {
		if len(f.Clusters) > 0 {
			continue // its own reconciler.yaml brings it to each of them
		}
		meta := delivery.AssignmentMeta(ct, f.Folder, o.Namespace)
		if waves {
			inWave(&meta, f.Wave)
		}
		docs = append(docs, applicationObject(meta, application{
			Project:     assignmentsProject(ct),
			Source:      treeSource(ct, delivery.FolderPath(ct, f.DeploymentTarget)),
			Destination: f.destination().in(f.Namespace),
			SyncPolicy:  o.syncOf(f.shared),

			IgnoreDifferences: f.ignoreDifferences(),
		}))
	}
	return docs
}

// owners are all who name an Application or an AppProject of the cluster type.
// The kinds are told apart by a prefix that no name can have.
func owners(ct *backends.ClusterType, folders []folder) []delivery.Owner {
	out := []delivery.Owner{
		{Name: "Application " + delivery.RootName(ct), Of: "the root Application"},
		{Name: "AppProject " + delivery.RootName(ct), Of: "the project of the root Application"},
		{Name: "AppProject " + assignmentsProject(ct), Of: "the project of the assignments"},
	}
	workspaces := map[string]bool{}
	for _, f := range folders {
		id := delivery.FolderID(ct, f.DeploymentTarget)
		for _, name := range namesOn(f.Clusters, backends.AssignmentName(ct.Environment, ct.Name, f.DeploymentTarget)) {
			out = append(out, delivery.Owner{Name: "Application " + name, Of: "the assignment of " + f.DeploymentTarget, Assignment: id})
		}
		if f.hasApplication() {
			for _, name := range namesOn(f.Clusters, applicationName(ct.Environment, ct.Name, f.DeploymentTarget)) {
				out = append(out, delivery.Owner{Name: "Application " + name, Of: "the workload of " + f.DeploymentTarget, Assignment: id})
			}
		}
		if f.Repo != "" && !workspaces[f.Workspace] {
			workspaces[f.Workspace] = true
			out = append(out, delivery.Owner{
				Name: "AppProject " + workspaceProject(ct.Environment, ct.Name, f.Workspace),
				Of:   "the project of workspace " + f.Workspace,
			})
		}
	}
	return out
}
