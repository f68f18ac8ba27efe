package fleet

import (
	"encoding/json"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// shared is what Index needs to know of a folder.
type shared struct {
	// Reconciler says that the folder has a reconciler.yaml.
	Reconciler bool `json:"reconciler,omitempty"`
}

func (f *folder) shared() shared { return shared{Reconciler: !f.assignment.Render} }

// encode returns the JSON of s, nil for the zero value.
func (s shared) encode() json.RawMessage {
	if s == (shared{}) {
		return nil
	}
	return json.RawMessage(`{"reconciler":true}`)
}

// Index returns README.md, kustomization.yaml, which lists each folder's
// reconciler.yaml, and for Fleet the .fleetignore that leaves nothing else of the
// cluster type's folder for the management cluster. Fleet itself cannot use the
// list: its kustomize takes no file from a folder below. What is not there any more
// Fleet deletes, and with it the bundles that came of it. A tree that Fleet cannot
// pull is an error.
func (fleet) Index(ct *backends.ClusterType, folders []backends.Folder) ([]backends.File, []diag.Diagnostic) {
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
		if hasReconciler(f) {
			listed = append(listed, f.DeploymentTarget+"/"+delivery.ReconcilerFile)
		}
	}
	return delivery.Sorted([]backends.File{kubernetes.README(ct, folders),
		delivery.Kustomization(listed), notForManagement()}), nil
}

// notForManagement returns the .fleetignore of the cluster type's root. It does not
// name README.md: without any file there would be no bundle, which to Fleet is an
// error. No folder that it names is an assignment's, for those have a dash.
func notForManagement() backends.File {
	return ignoreFile(
		[]string{kubernetes.KustomizationFile, bundleFile, kubernetes.NamespaceFile, kubernetes.PlatformConfigFile},
		[]string{string(partCRDs), overlaysFolder, string(partWorkload)})
}

// hasReconciler says whether a folder has a reconciler.yaml for the management
// cluster. That of another backend is not for it.
func hasReconciler(f backends.Folder) bool {
	var s shared
	return f.Backend == backend && len(f.Shared) > 0 && json.Unmarshal(f.Shared, &s) == nil && s.Reconciler
}

// Entries says why there are none.
func (fleet) Entries(ct *backends.ClusterType) (func(*model.Cluster) []backends.File, []diag.Diagnostic) {
	return nil, delivery.NoEntries(ct, "Fleet selects them by their labels where it runs, and a "+
		"bundle that goes from one class to another would be uninstalled between")
}
