// Package argocd emits the objects of Argo CD 3 (https://argo-cd.readthedocs.io). Each assignment
// gets an Application. If the environment's tree is in git, each cluster type gets one Application
// per folder, so that a folder that fails does not stop another one. The cluster type also gets the
// AppProjects that confine these Applications.
//
// The CRDs of Argo CD accept specs that its controller refuses. Examples are a destination with
// name and server, a source with path and chart, and a project that does not cover its
// Applications. The types and rules here make such specs impossible.
//
// The clusters. Applications and AppProjects live in the cluster where Argo CD runs. If that
// cluster is the destination, a folder is applied as a whole. If the destination is another
// cluster, the folder's kustomization.yaml lists only the objects for that cluster. The cluster
// type's own kustomization.yaml then lists the workload's Application. A rendered workload has no
// Application of its own, because it is applied with its folder. If the destination is each cluster
// of the cluster type, ApplicationSets make the Applications.
//
// The projects. Argo CD never deletes objects that a project does not permit. The permissions of
// projects therefore do not depend on anything that may leave the tree (project.go):
//
//   - <environment>.<clusterType>.<target> applies an assignment's folder. It permits the
//     environment's own tree, the folder's destination, and the namespaces and cluster-scoped
//     kinds that its workspace may contain and its namespace service names. The same name with
//     .clusters is for the Applications on each cluster of an inventory.
//   - <environment>.<clusterType>.<target>.workload, unless the reconciler names a project,
//     is for the Application of other people's manifests. It permits their source and the
//     workload's namespace. It permits no cluster-scoped objects, except that namespace if a
//     sync option creates it. A workload with cluster-scoped objects is rendered, or needs a
//     project of the platform team.
//   - kalypso-<environment>-<clusterType> applies assignments.yaml, which contains
//     Applications and AppProjects of Argo CD's namespace. It permits nothing else.
//     Bootstrap prints it, and it never changes.
//
// An example, from examples/hello-world: the deployment target performance-test has
//
//	manifests: git: {repo: "https://git.example.com/hello/app", branch: "dev", path: "./performance-test"}
//
// On the cluster type small in dev, reconciler.yaml then has the Application
// dev-small-hello-world-performance-test:
//
//	spec:
//	  project: dev.small.hello-world-performance-test.workload
//	  source: {repoURL: https://git.example.com/hello/app, targetRevision: dev, path: performance-test}
//	  destination:
//	    server: https://kubernetes.default.svc
//	    namespace: dev-small-hello-world-performance-test
package argocd

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const backend = "argocd"

type argocd struct{}

// New returns the backend.
func New() backends.Backend { return argocd{} }

// Name is the backend's key in #Reconciler.
func (argocd) Name() string { return backend }

// Support reports that Argo CD delivers everything that runs on Kubernetes. It replaces images only
// in overlays.
func (argocd) Support(kind model.SourceKind) backends.Support {
	s := delivery.Support(kind)
	s.Images = kind == model.KustomizeSource
	return s
}

// Traits returns the traits of Argo CD: values of single clusters reach them in ApplicationSets. It
// does not track CustomResourceDefinitions, and ignores them when it deletes an Application
// (shouldBeDeleted in controller/appcontroller.go).
func (argocd) Traits() backends.Traits {
	return backends.Traits{
		PerCluster: true, DeletesUnlisted: true, KeepsDefinitions: true, SkipsDefinitions: true,
		Removal: "Argo CD removes nothing while it retries a failed sync, for up to an hour by " +
			"default: kalypso explain K3901 says how to end that",
		Groups: []string{"argoproj.io"},
		Bootstraps: "a project, an app of apps, and the health check that sync waves need;\n" +
			"apply them to the cluster that Argo CD runs on",
		StatusNames: []string{"application", "argocd", "continuous-delivery"},
		Webhook: &backends.Webhook{Event: "a notification of Argo CD, as docs/hub.md has it",
			Signatures: []string{"X-Signature", "X-Hub-Signature-256"}},
	}
}

// Reconciled returns the names of the objects in assignments.yaml, or of the set's
// Applications.
func (argocd) Reconciled(environment, clusterType string, f backends.Folder) backends.Reconciled {
	return backends.Reconciled{Object: backends.AssignmentName(environment, clusterType,
		f.DeploymentTarget), Objects: applications(environment, clusterType, f)}
}

// Emit returns the folder with the workspace and, in reconciler.yaml, the workload's Application. A
// rendered workload is in manifests.yaml instead, and the folder's Application applies it.
func (argocd) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	o, ds := optionsOf(a.Reconciler)
	ds = append(append(ds, needsGitOps(a, o)...), reachesArgoCD(a, o)...)
	var folder delivery.Content
	var share indexInput
	var problems []diag.Diagnostic
	if a.Render {
		folder, share, problems = rendered(a, o)
	} else {
		folder, share, problems = referenced(a, o)
	}
	ds = append(ds, problems...)
	ds = append(ds, unreached(a, o)...)
	if o.eachCluster() && !diag.Errors(ds) {
		folder, problems = onClusters(a, o, folder, share)
		ds = append(ds, problems...)
	}
	var emission backends.Emission
	if !diag.Errors(ds) {
		emission, problems = delivery.Emission(a, folder)
		ds = append(ds, problems...)
	}
	if a.GitOps != nil && !diag.Errors(ds) {
		share.Permits, problems = permitsOf(a, o, emission.Objects)
		ds = append(ds, problems...)
	}
	return delivery.Finish(a, emission, share.withDestination(a, o), ds)
}

// referenced returns the folder of a workload that Argo CD fetches, and the data about its
// Application that Index needs.
func referenced(a *backends.Assignment, o options) (delivery.Content, indexInput,
	[]diag.Diagnostic) {
	source, ds := sourceOf(a, o)
	share := indexInput{CreatesNamespace: slices.Contains(o.SyncOptions, "CreateNamespace=true")}
	if o.Project == "" {
		share.Repo, share.Own, share.Bounds = source.RepoURL, true, boundsOf(a.Bounds)
	}
	return delivery.Content{Reconciler: []kubernetes.Object{workload(a, o, source)},
		Elsewhere: o.remote()}, share, ds
}

// Central returns the workloads' Applications: one Argo CD may serve many clusters.
func (argocd) Central(ct *backends.ClusterType, deploymentTargets []string) []backends.Object {
	o, _ := optionsOf(ct.Reconciler)
	kind := applicationKind
	if o.eachCluster() {
		kind = setKind
	}
	out := make([]backends.Object, len(deploymentTargets))
	for i, target := range deploymentTargets {
		out[i] = backends.Object{
			Group: kind.Group, Kind: kind.Kind,
			Namespace: o.Namespace, Name: applicationName(ct.Environment, ct.Name, target),
		}
	}
	return out
}

// Accounts returns the account of Argo CD's controller, for the cluster that it runs on, and
// the account that `argocd cluster add` creates on other clusters.
func (argocd) Accounts(ct *backends.ClusterType) backends.Accounts {
	o, _ := optionsOf(ct.Reconciler)
	return backends.Accounts{Folders: []backends.Account{{Namespace: o.Namespace,
		Name: "argocd-application-controller"}, {Namespace: "kube-system", Name: "argocd-manager"}}}
}

func needsGitOps(a *backends.Assignment, o options) []diag.Diagnostic {
	if a.GitOps != nil {
		return nil
	}
	var ds []diag.Diagnostic
	if len(a.DependsOn) > 0 {
		ds = append(ds,
			delivery.NeedsGitOps(a.Environment, "dependsOn of "+a.DeploymentTarget).At(a.Ref.At("dependsOn"),
				""))
	}
	if o.remote() {
		field := "argocd.destination"
		if o.eachCluster() {
			field = "argocd.clusters"
		}
		ds = append(ds,
			delivery.NeedsGitOps(a.Environment, "a destination other than Argo CD's own cluster").
				On(field).At(a.Reconciler.Ref.At(field), ""))
	}
	return ds
}

// reachesArgoCD returns an error if the workload's namespace is Argo CD's own. Any object
// there may use all rights of Argo CD.
func reachesArgoCD(a *backends.Assignment, o options) []diag.Diagnostic {
	if a.Namespace != o.Namespace || !o.eachCluster() && o.destination().remote() {
		return nil
	}
	return []diag.Diagnostic{diag.New(diag.BadSpec,
		fmt.Sprintf("the namespace of %s would be %s, where Argo CD itself runs", a.DeploymentTarget,
			a.Namespace)).
		At(a.NamespaceService.Ref, "").At(a.Reconciler.Ref.At("argocd.namespace"), "").
		Hinting("give the namespace service a pattern that makes another name")}
}

// applicationName returns the name of the workload's Application. Argo CD uses
// it as a label value, so it has at most 63 characters.
func applicationName(environment, clusterType, deploymentTarget string) string {
	return model.ShortName(environment+"-"+clusterType+"-"+deploymentTarget, model.MaxLabel)
}

// workload returns the Application that deploys the manifests.
func workload(a *backends.Assignment, o options, s source) kubernetes.Object {
	project := o.Project
	if project == "" {
		project = workloadProject(a.Environment, a.ClusterType, a.DeploymentTarget)
	}
	meta := kubernetes.Meta(a, applicationName(a.Environment, a.ClusterType, a.DeploymentTarget),
		o.Namespace)
	if o.remote() {
		// The root Application applies it together with the folder's, in the same wave.
		inWave(&meta, a.Wave-manyWaves)
	}
	return applicationObject(meta, application{
		Project: project, Source: s,
		Destination:       o.destination().inNamespace(a.Namespace),
		SyncPolicy:        o.workloadSync(),
		IgnoreDifferences: o.IgnoreDifferences,
	})
}

// inWave puts an object in a sync wave.
func inWave(meta *kubernetes.Metadata, wave int) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations["argocd.argoproj.io/sync-wave"] = strconv.Itoa(wave)
}
