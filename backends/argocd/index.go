package argocd

import (
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
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
		backends.File{Path: delivery.AssignmentsFile, Data: yaml.Must(assignments(ct, o, folders)...)},
		delivery.Kustomization(listed))
	return delivery.Sorted(files), nil
}

// Entries returns the Kustomization of the folder. A cluster whose Applications are in another
// cluster's Argo CD follows nothing.
func (argocd) Entries(ct *backends.ClusterType) (func(*model.Cluster) []backends.File, []diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	switch {
	case diag.Errors(ds):
		return nil, ds
	case o.remote():
		return nil, delivery.NoEntries(ct, "Argo CD runs elsewhere, and an Application that goes from "+
			"one class to another would be deleted between")
	}
	files := []backends.File{delivery.Entry(ct)}
	return func(*model.Cluster) []backends.File { return files }, nil
}

// Waves of assignments.yaml. Projects come before all Applications. Earlier
// releases had projects in wave -1, which go when they are not used any more: they
// are pruned with the last Applications, or after them, and never before these have
// moved to their new projects, for which Argo CD would wait for ever.
//
// Argo CD waits for the health of a wave where another follows: without
// dependencies there is one of Applications. manyWaves is more than the longest
// chain of dependencies, where a folder has to choose without seeing the others.
const manyWaves = 100

// firstWave returns the wave of Applications that depend on nothing.
func firstWave(folders []folder) int {
	if slices.ContainsFunc(folders, func(f folder) bool { return f.Wave > 0 || f.apart() }) {
		return -manyWaves
	}
	return -1
}

// assignments returns the objects of assignments.yaml.
func assignments(ct *backends.ClusterType, o options, folders []folder) []any {
	var docs []any
	first := firstWave(folders)
	var projects []kubernetes.Object
	for _, f := range folders {
		projects = append(projects, projectsOfAssignment(ct, o, f)...)
	}
	for _, p := range append(projects, workloadProjects(ct, o, folders)...) {
		inWave(&p.Metadata, first-1)
		docs = append(docs, p)
	}
	for _, f := range folders {
		if len(f.Clusters) > 0 {
			continue // its own reconciler.yaml brings it to each of them
		}
		meta := delivery.AssignmentMeta(ct, f.Folder, o.Namespace)
		inWave(&meta, first+f.Wave)
		docs = append(docs, applicationObject(meta, application{
			Project:     assignmentProject(ct.Environment, ct.Name, f.DeploymentTarget),
			Source:      treeSource(ct, delivery.FolderPath(ct, f.DeploymentTarget)),
			Destination: f.destination().in(f.Namespace),
			SyncPolicy:  o.syncOf(f.shared),

			IgnoreDifferences: f.ignoreDifferences(),
		}))
	}
	return docs
}

// owners are all who name an Application or an AppProject of the cluster type.
// A prefix that no name can have tells the kinds apart.
func owners(ct *backends.ClusterType, folders []folder) []delivery.Owner {
	out := []delivery.Owner{
		{Name: "Application " + delivery.RootName(ct), Of: "the root Application"},
		{Name: "AppProject " + delivery.RootName(ct), Of: "the project of the root Application"},
	}
	for _, f := range folders {
		id := delivery.FolderID(ct, f.DeploymentTarget)
		for _, name := range namesOn(f.Clusters, backends.AssignmentName(ct.Environment, ct.Name, f.DeploymentTarget)) {
			out = append(out, delivery.Owner{Name: "Application " + name,
				Of: "the assignment of " + f.DeploymentTarget, Assignment: id})
		}
		if f.hasApplication() {
			for _, name := range namesOn(f.Clusters, applicationName(ct.Environment, ct.Name, f.DeploymentTarget)) {
				out = append(out, delivery.Owner{Name: "Application " + name,
					Of: "the workload of " + f.DeploymentTarget, Assignment: id})
			}
		}
		for _, name := range assignmentProjects(ct, f) {
			out = append(out, delivery.Owner{
				Name: "AppProject " + name,
				Of:   "the project of the assignment of " + f.DeploymentTarget, Assignment: id,
			})
		}
		if f.Repo != "" && f.Own {
			out = append(out, delivery.Owner{
				Name: "AppProject " + workloadProject(ct.Environment, ct.Name, f.DeploymentTarget),
				Of:   "the project of the workload of " + f.DeploymentTarget, Assignment: id,
			})
		}
	}
	return out
}
