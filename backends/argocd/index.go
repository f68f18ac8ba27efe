package argocd

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Index returns README.md, kustomization.yaml and, with gitops, assignments.yaml with the
// AppProjects and one Application per folder. If a folder goes to clusters other than Argo
// CD's own, kustomization.yaml also lists its reconciler.yaml. That file stays in Argo CD's
// cluster.
func (argocd) Index(ct *backends.ClusterType, all []backends.Folder) ([]backends.File,
	[]diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if ds = append(ds, checkTree(ct)...); diag.Errors(ds) {
		return nil, ds
	}
	files := []backends.File{kubernetes.README(ct, all)}
	if ct.GitOps == nil || len(all) == 0 {
		return delivery.Sorted(append(files, delivery.FolderList(all))), nil
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
		kubernetes.Kustomization(listed))
	return delivery.Sorted(files), nil
}

// Entries returns the Kustomization of the folder. If another cluster's Argo CD has the
// Applications, clusters cannot have entries.
func (argocd) Entries(ct *backends.ClusterType) (func(*model.Cluster) []backends.File,
	[]diag.Diagnostic) {
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

// Waves of assignments.yaml. Projects come before all Applications. Earlier releases put projects
// in wave -1. Argo CD prunes those projects when they are no longer used, with the last
// Applications or after them. It never prunes them before the Applications have moved to their new
// projects, since it would then wait for ever.
//
// Argo CD waits for the health of a wave if another wave follows. Without dependencies there is
// only one wave of Applications. manyWaves is more than the longest chain of dependencies, for
// folders that choose a wave without knowing the other folders.
const manyWaves = 100

// assignments returns the objects of assignments.yaml.
func assignments(ct *backends.ClusterType, o options, folders []folder) []any {
	var docs []any
	first := -1 // the wave of Applications without dependencies
	if slices.ContainsFunc(folders, func(f folder) bool { return f.Wave > 0 || f.apart() }) {
		first = -manyWaves
	}
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
			continue // its own reconciler.yaml delivers it to each of them
		}
		meta := delivery.AssignmentMeta(ct, f.Folder, o.Namespace)
		inWave(&meta, first+f.Wave)
		docs = append(docs, applicationObject(meta, application{
			Project:     assignmentProject(ct.Environment, ct.Name, f.DeploymentTarget),
			Source:      treeSource(ct, delivery.FolderPath(ct, f.DeploymentTarget)),
			Destination: f.destination().inNamespace(f.Namespace),
			SyncPolicy:  o.syncOf(f.indexInput),

			IgnoreDifferences: f.ignoreDifferences(),
		}))
	}
	return docs
}

// owners returns the owners of all Applications and AppProjects of the cluster type. A
// prefix with a space, which no name can have, separates the kinds.
func owners(ct *backends.ClusterType, folders []folder) []delivery.Owner {
	out := []delivery.Owner{
		{Name: "Application " + delivery.RootName(ct), Of: "the root Application"},
		{Name: "AppProject " + delivery.RootName(ct), Of: "the project of the root Application"},
	}
	for _, f := range folders {
		id := delivery.FolderID(ct, f.DeploymentTarget)
		for _, name := range namesOn(f.Clusters,
			backends.AssignmentName(ct.Environment, ct.Name, f.DeploymentTarget)) {
			out = append(out, delivery.Owner{Name: "Application " + name,
				Of: "the assignment of " + f.DeploymentTarget, Assignment: id})
		}
		if f.hasApplication() {
			for _, name := range namesOn(f.Clusters,
				applicationName(ct.Environment, ct.Name, f.DeploymentTarget)) {
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

// health is the health check of Applications that Argo CD had until 1.8. Its documentation
// contains the check, to restore it
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/health/#argocd-app).
//
//go:embed health.lua
var health string

// healthCheck returns comments that explain how to add the health check to Argo CD. The check is
// one key of a ConfigMap, which belongs to the installation of Argo CD. If kalypso printed that
// ConfigMap, applying the stream on the client's side would replace the installed one.
func healthCheck(namespace string) []byte {
	text := fmt.Sprintf(`Argo CD waits for an Application, as dependsOn asks for, only where it has this
health check for them. Add the key to the ConfigMap argocd-cm by what installed Argo
CD, or by this command, which leaves the other keys alone:

  kubectl patch configmap argocd-cm -n %s --type merge --patch '
  data:
    resource.customizations.health.argoproj.io_Application: |
%s  '
`, namespace, indented(health, "      "))
	return []byte(indented(text, "# "))
}

// indented returns a text with a prefix before each line, without blanks at their
// ends.
func indented(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(prefix+line, " \n") + "\n")
	}
	return b.String()
}

// Bootstrap returns the objects that make Argo CD pull the cluster type's folder: the root
// Application and its AppProject. It adds, in comments, the health check that lets sync waves wait
// for Applications.
//
// Without gitops there is no root. Bootstrap then prints only the AppProjects of workloads.
func (argocd) Bootstrap(ct *backends.ClusterType, all []backends.Folder) ([]byte,
	[]diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if ds = append(ds, checkTree(ct)...); diag.Errors(ds) {
		return nil, ds
	}
	if ct.GitOps == nil {
		ds := []diag.Diagnostic{delivery.NeedsGitOps(ct.Environment,
			"the root Application of cluster type "+ct.Name).
			At(delivery.Environment(ct.Environment, ""), "")}
		var docs []any
		for _, p := range workloadProjects(ct, o, read(o, all)) {
			docs = append(docs, p)
		}
		if docs == nil {
			return nil, ds
		}
		return yaml.Must(docs...), ds
	}
	return append(healthCheck(o.Namespace), yaml.Must(
		// It permits the content of assignments.yaml: Applications and AppProjects in Argo
		// CD's namespace, and the sets that make Applications for each cluster.
		projectObject(delivery.ClusterTypeMeta(delivery.RootName(ct), o.Namespace), appProject{
			Description:  fmt.Sprintf("Root of cluster type %s in %s", ct.Name, ct.Environment),
			SourceRepos:  []string{ct.GitOps.URL()},
			Destinations: []destination{{Server: inCluster, Namespace: o.Namespace}},
			NamespaceResourceWhitelist: []groupKind{{Group: "argoproj.io", Kind: "AppProject"},
				applicationKind,
				setKind},
		}),
		applicationObject(delivery.ClusterTypeMeta(delivery.RootName(ct), o.Namespace), application{
			Project:     delivery.RootName(ct),
			Source:      treeSource(ct, delivery.Path(ct.GitOps.Path, ct.Pulled())),
			Destination: destination{Server: inCluster, Namespace: o.Namespace},
			SyncPolicy:  o.rootSync(),
		}),
	)...), nil
}

// treeSource returns the source of a folder in the repository or the artifact of the
// environment's tree. Argo CD reads artifacts since 3.1
// (https://argo-cd.readthedocs.io/en/stable/user-guide/oci).
func treeSource(ct *backends.ClusterType, path string) source {
	revision := gitName("refs/heads/", ct.GitOps.Branch)
	if ct.GitOps.OCI != "" {
		revision = ct.GitOps.Tag
	}
	return source{RepoURL: ct.GitOps.URL(), TargetRevision: revision, Path: path}
}

// checkTree reports a tag that makes Argo CD fetch a different artifact from the tagged one. If a
// tag can be a range of versions, such as 1.x, Argo CD reads it as a range.
func checkTree(ct *backends.ClusterType) []diag.Diagnostic {
	if ct.GitOps == nil || ct.GitOps.OCI == "" {
		return nil
	}
	tag := ct.GitOps.Tag
	if _, err := semver.NewVersion(tag); err == nil {
		return nil
	}
	if _, err := semver.NewConstraint(tag); err != nil {
		return nil
	}
	return []diag.Diagnostic{diag.New(diag.BadSpec,
		fmt.Sprintf("Argo CD takes the tag %s for a range of versions", tag)).
		On("gitops.tag").At(delivery.Environment(ct.Environment, "gitops.tag"), "").At(ct.Reconciler.Ref,
		"").
		Hinting("choose a tag that is a name, such as the environment's")}
}
