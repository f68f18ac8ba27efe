// Package fleet emits the input of Rancher Fleet 0.15 (https://fleet.rancher.io). Each assignment
// gets a folder with a fleet.yaml, and Fleet makes a Bundle of it. If Fleet fetches the workload
// itself, the folder also contains the object that makes it do so.
//
// There are two places. Clusters get bundles, each a Helm release there. The management cluster,
// where Fleet runs, has the GitRepos and HelmOps that create the bundles. Two GitRepos therefore
// pull the tree, and Bootstrap prints both. One takes every folder of the cluster type to its
// clusters. The other takes each folder's reconciler.yaml to the management cluster. Neither
// changes when assignments come and go.
//
// The bundles of an assignment, each named <environment>-<clusterType>-<workload>-<target>-<part>:
//
//   - workspace: the namespace service and the platform config, with an overlay
//     for each cluster that has values of its own.
//   - crds and workload: the rendered objects. CRDs come first, because Helm does not
//     install an object whose kind the cluster does not know. Both are separate from
//     the workspace, because hooks run before anything else of their release and need
//     the namespace.
//   - workload, of a HelmOp: a chart. A fleet.yaml could also name the chart. But Fleet
//     reads all folders of a GitRepo in one job, and a chart that it cannot fetch would
//     stop every other assignment.
//   - workload, of a GitRepo: a folder of the application's repository. Fleet names
//     its bundles after the GitRepo.
//
// Fleet ignores unknown keys of fleet.yaml without a message. The types here therefore match its
// FleetYAML.
//
// An example: the deployment target performance-test of examples/hello-world has
//
//	manifests: git: {repo: "https://git.example.com/hello/app", branch: "dev", path: "./performance-test"}
//
// If the cluster type large has the reconciler fleet: {}, fleet.yaml of its folder is the
// bundle dev-large-hello-world-performance-test-workspace, and reconciler.yaml has the
// GitRepo dev-large-hello-world-performance-test-workload:
//
//	spec:
//	  repo: https://git.example.com/hello/app
//	  branch: dev
//	  paths: [performance-test]
//	  targetNamespace: dev-large-hello-world-performance-test
package fleet

import (
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const backend = "fleet"

type fleet struct{}

// New returns the backend.
func New() backends.Backend { return fleet{} }

// Name is the backend's key in #Reconciler.
func (fleet) Name() string { return backend }

// Support reports that Fleet fetches git repositories and charts, and that it delivers all
// manifests that render to Kubernetes objects.
func (fleet) Support(kind model.SourceKind) backends.Support {
	s := delivery.Support(kind)
	switch kind {
	case model.OCISource:
		s.Referenced = "Fleet fetches git repositories and charts, and no other OCI artifacts"
	case model.HelmGitSource:
		s.Referenced = "a HelmOp of Fleet takes no chart from git, and a GitRepo takes the values of a " +
			"chart only from the fleet.yaml beside it"
	case model.KustomizeSource:
		// A bundle contains the files below its folder, and an overlay's base is not one of
		// them.
		s.Referenced = "Fleet reads the overlay's folder alone, without the bases beside it"
	}
	return s
}

// Traits returns the traits of Fleet: values of single clusters reach them in customizations.
func (fleet) Traits() backends.Traits {
	return backends.Traits{PerCluster: true,
		Bootstraps: "two GitRepos; apply them to the management cluster"}
}

// Reconciled returns the zero value, because no object in a cluster shows a rollout.
func (fleet) Reconciled(string, string, backends.Folder) backends.Reconciled {
	return backends.Reconciled{}
}

// Emit returns the folder with the bundles of the workspace and of the rendered objects. If nothing
// is rendered, reconciler.yaml contains the object that makes Fleet fetch the workload.
func (fleet) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	o, ds := optionsOf(a.Reconciler)
	f := &folder{assignment: a, options: o}
	if !diag.Errors(ds) {
		f.workspace()
		if a.Render {
			f.rendered()
		} else {
			f.referenced()
		}
		f.bundle()
		if len(f.ignored) > 0 {
			// Without this file, the workspace's bundle would also contain the files of folders
			// with bundles of their own, and would be twice as large. The file cannot name
			// reconciler.yaml: Fleet reads it for every bundle that contains the folder, and one is
			// the management cluster's bundle.
			f.files = append(f.files, ignoreFile(nil, f.ignored))
		}
	}
	return delivery.Finish(a, backends.Emission{Files: f.files, Objects: f.objects},
		indexInput{Reconciler: !a.Render}, append(ds, f.ds...))
}

// Central returns the workspaces' Bundles, because one Fleet may serve many cluster types.
// If the Bundles have different names, so do an assignment's other objects there.
func (fleet) Central(ct *backends.ClusterType, deploymentTargets []string) []backends.Object {
	o, _ := optionsOf(ct.Reconciler)
	out := make([]backends.Object, len(deploymentTargets))
	for i, target := range deploymentTargets {
		out[i] = backends.Object{
			Group: group, Kind: "Bundle",
			Namespace: o.Namespace, Name: bundleName(ct.Environment, ct.Name, target, partWorkspace),
		}
	}
	return out
}

// Accounts returns the accounts of Fleet's agents, on clusters and on the management cluster, and
// the account that the reconciler names in addition.
func (fleet) Accounts(ct *backends.ClusterType) backends.Accounts {
	o, _ := optionsOf(ct.Reconciler)
	out := backends.Accounts{Namespaces: []string{"cattle-fleet-system", "cattle-fleet-local-system"}}
	for _, namespace := range out.Namespaces {
		out.Folders = append(out.Folders, backends.Account{Namespace: namespace, Name: "fleet-agent"})
		if o.ServiceAccount != "" {
			out.Fetched = append(out.Fetched, backends.Account{Namespace: namespace, Name: o.ServiceAccount})
		}
	}
	return out
}

// folder collects an assignment's folder.
type folder struct {
	assignment *backends.Assignment
	options    options
	files      []backends.File
	objects    []backends.Object
	ds         []diag.Diagnostic
	// customizations of the workspace's bundle.
	customizations []target
	// bare says that there is no workload. Bundles that depend on it then wait for the
	// workspace.
	bare bool
	// ignored are the folders with bundles of their own.
	ignored []string
}

// management adds reconciler.yaml with the objects of the management cluster.
func (f *folder) management(o kubernetes.Object) {
	f.files = append(f.files, backends.File{Path: delivery.ReconcilerFile, Data: yaml.Must(o)})
	f.objects = append(f.objects, o.Identity())
}

// The labels with which Fleet selects the clusters of a cluster type, unless the reconciler
// names others. The first two are also on every bundle.
const (
	environmentLabel = "kalypso.io/environment"
	clusterTypeLabel = "kalypso.io/cluster-type"
)

// localNamespace is Fleet's workspace of the management cluster itself
// (https://fleet.rancher.io/namespaces).
const localNamespace = "fleet-local"

// options are the fields of #Fleet.
type options struct {
	delivery.Secrets
	Namespace       string
	ClusterSelector *map[string]string
	PollingInterval string
	CorrectDrift    bool
	ServiceAccount  string
}

func optionsOf(s backends.Spec) (options, []diag.Diagnostic) {
	var o options
	if ds := s.Fields(&o); diag.Errors(ds) {
		return o, ds
	}
	if o.ClusterSelector != nil && len(*o.ClusterSelector) == 0 {
		return o, []diag.Diagnostic{diag.New(diag.BadSpec, "a clusterSelector without labels selects "+
			"every cluster of the Fleet workspace").
			On("fleet.clusterSelector").At(s.Ref.At("fleet.clusterSelector"), "").
			Hinting("name the labels of the cluster type's clusters, or leave clusterSelector out")}
	}
	return o, nil
}

// selector returns the selector of the clusters of a cluster type. It includes the environment,
// because another environment may have a cluster type of the same name.
func (o options) selector(environment, clusterType string) *selector {
	if o.ClusterSelector != nil {
		return &selector{*o.ClusterSelector}
	}
	return &selector{map[string]string{environmentLabel: environment, clusterTypeLabel: clusterType}}
}

func (o options) drift() *correctDrift {
	if !o.CorrectDrift {
		return nil
	}
	return &correctDrift{Enabled: true}
}

// local reports whether the repository is a path. For Fleet it would be a path in the pod
// that fetches the repository.
func local(repo string) bool { return strings.HasPrefix(repo, "file://") }

// pattern reports whether Fleet would read a path as a pattern for several
// (path/filepath.Match).
func pattern(path string) bool { return strings.ContainsAny(path, `*?[\`) }
