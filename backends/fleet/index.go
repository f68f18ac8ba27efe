package fleet

import (
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// indexInput is the data of a folder that Index needs.
type indexInput struct {
	// Reconciler says that the folder has a reconciler.yaml for the management cluster.
	Reconciler bool `json:"reconciler,omitempty"`
}

// Index returns README.md, and kustomization.yaml with each folder's reconciler.yaml. For Fleet it
// also returns a .fleetignore that leaves only these files of the cluster type's folder for the
// management cluster. Fleet itself cannot use the list, because its kustomize does not read files
// from a folder below. If a file leaves the tree, Fleet deletes its objects, with the bundles that
// they created. A tree that Fleet cannot pull is an error.
func (fleet) Index(ct *backends.ClusterType, folders []backends.Folder) ([]backends.File,
	[]diag.Diagnostic) {
	if _, ds := optionsOf(ct.Reconciler); diag.Errors(ds) {
		return nil, ds
	}
	if ct.GitOps != nil {
		if ds := delivery.NeedsRepository(ct, "Fleet"); len(ds) > 0 {
			return nil, ds
		}
	}
	var listed []string
	for _, f := range folders {
		if delivery.SharedOf[indexInput](f, backend).Reconciler {
			listed = append(listed, f.DeploymentTarget+"/"+delivery.ReconcilerFile)
		}
	}
	// The list does not name README.md: a folder without files makes no bundle, which is an error
	// for Fleet. It names no folder of an assignment, because their names have a dash.
	notForManagement := ignoreFile(
		[]string{kubernetes.KustomizationFile, bundleFile, kubernetes.NamespaceFile,
			kubernetes.PlatformConfigFile},
		[]string{string(partCRDs), overlaysFolder, string(partWorkload)})
	return delivery.Sorted([]backends.File{kubernetes.README(ct, folders),
		kubernetes.Kustomization(listed), notForManagement}), nil
}

// Entries returns the reason why Fleet's clusters cannot have entries.
func (fleet) Entries(ct *backends.ClusterType) (func(*model.Cluster) []backends.File,
	[]diag.Diagnostic) {
	return nil, delivery.NoEntries(ct, "Fleet selects them by their labels where it runs, and a "+
		"bundle that goes from one class to another would be uninstalled between")
}

// Bootstrap returns the objects that the management cluster needs to pull the cluster type's
// folder. One GitRepo takes each assignment's folder to the clusters. Another one, in fleet-local,
// takes each folder's reconciler.yaml to the management cluster itself. Both name only the cluster
// type's folder, so they never change.
//
// The first GitRepo finds folders by a pattern. It must not search the cluster type's folder as a
// whole, because Fleet would also make a bundle of the files at its root.
func (fleet) Bootstrap(ct *backends.ClusterType, _ []backends.Folder) ([]byte, []diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if !diag.Errors(ds) {
		ds = append(ds, checkGitOps(ct)...)
	}
	if diag.Errors(ds) {
		return nil, ds
	}
	g := ct.GitOps
	root := delivery.Path(g.Path, ct.Dir())
	pull := gitRepo{
		Repo: g.Repo, Branch: g.Branch,
		ClientSecretName: o.OfTree(&model.GitOps{Repo: g.Repo}), PollingInterval: o.PollingInterval,
		CorrectDrift: o.drift(),
	}
	clusters, management := pull, pull
	clusters.Paths = []string{root + "/*"}
	clusters.Targets = []target{{Name: ct.Name, ClusterSelector: o.selector(ct.Environment, ct.Name)}}
	// of the local cluster, because there are no targets
	management.Bundles = []bundlePath{{Base: root}}
	// It is not RootName, for a cluster type may be the management cluster itself.
	managementName := model.ShortName(delivery.RootName(ct)+"-management", model.MaxLabel)
	return yaml.Must(
		gitRepoObject(delivery.ClusterTypeMeta(delivery.RootName(ct), o.Namespace), clusters),
		gitRepoObject(delivery.ClusterTypeMeta(managementName, localNamespace), management),
	), ds
}

// checkGitOps reports the reason if Fleet cannot pull the tree.
func checkGitOps(ct *backends.ClusterType) []diag.Diagnostic {
	refuse := func(field, message, hint string) []diag.Diagnostic {
		return []diag.Diagnostic{diag.New(diag.BadSpec, message).On("gitops."+field).
			At(delivery.Environment(ct.Environment, "gitops."+field), "").At(ct.Reconciler.Ref,
			"").Hinting(hint)}
	}
	switch g := ct.GitOps; {
	case g == nil:
		return []diag.Diagnostic{delivery.NeedsGitOps(ct.Environment,
			"the root GitRepo of cluster type "+ct.Name).
			At(delivery.Environment(ct.Environment, ""), "")}
	case g.Repo == "":
		return delivery.NeedsRepository(ct, "Fleet")
	case local(g.Repo):
		return refuse("repo", "to Fleet "+g.Repo+" is a folder of its own pods",
			"give the URL by which Fleet reaches the repository")
	case pattern(delivery.Path(g.Path)):
		return refuse("path", "Fleet would read the path "+g.Path+" as a pattern",
			`keep the tree in a folder without *, ?, [ and \ in its path`)
	}
	return nil
}

// onCluster returns the values of the assignment on a cluster, and the cluster's own values.
// differs reports whether the cluster's values change the composed ones.
func (f *folder) onCluster(c *model.Cluster) (merged, own model.Value, differs bool) {
	own = c.ValuesOf(f.assignment.DeploymentTarget)
	merged = model.Merge(f.assignment.Values, own)
	return merged, own, !merged.Equal(f.assignment.Values)
}

// Divide returns the parts of a file that are for single clusters, by cluster, and the part
// for all clusters under "". It returns nil if the whole file is for all clusters.
func (fleet) Divide(file string, data []byte, own bool) map[string][]byte {
	if own {
		return nil
	}
	if rest, is := strings.CutPrefix(file, overlaysFolder+"/"); is {
		cluster, _, _ := strings.Cut(rest, "/")
		return map[string][]byte{cluster: data}
	}
	if file != bundleFile && file != delivery.ReconcilerFile {
		return nil
	}
	return delivery.Divide(data, func(doc *yamlnode.Node, part func(string, *yamlnode.Node)) {
		delivery.TakeElements(delivery.Node(doc, "targetCustomizations"), "clusterName", part)
		delivery.TakeElements(delivery.Node(doc, "spec", "targets"), "clusterName", part)
	})
}

// Takes reports that a cluster type's own files have no values.
func (fleet) Takes(backends.Folder, string) (string, bool) { return "", false }
