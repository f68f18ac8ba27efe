// Package cue is the backend of reconcilers that kalypso does not know: the platform team describes
// the files itself, as a function of the assignment.
//
// kalypso evaluates the function before it calls the backend. The input is the result of the
// function: files by path, each a text, YAML, or JSON. The output is these files, with checked
// paths, and the files of the namespace service, without any other file. The backend traces the
// Kubernetes objects in the files to their assignment, and checks them for collisions.
//
// An example is the platform that kalypso init --reconciler cue writes. Its reconciler has
//
//	cue: files: "deployment.json": json: {
//		name: "\(#assignment.environment)-\(#assignment.deploymentTarget)"
//		...
//	}
//
// The backend gets files with {"name": "dev-hello-dev", ...} for the assignment of hello-dev,
// and returns deployment.json with that as indented JSON.
package cue

import (
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/internal/files"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const backend = "cue"

type cue struct{}

// New returns the backend.
func New() backends.Backend { return cue{} }

// Name is the backend's key in #Reconciler.
func (cue) Name() string { return backend }

// Support reports that a function may use all manifests as it likes.
func (cue) Support(kind model.SourceKind) backends.Support {
	switch kind {
	case model.PackageSource:
		return backends.Support{Rendered: "a package has nothing to render"}
	case model.HelmPathSource:
		return backends.Support{Referenced: backends.OwnChart}
	}
	return backends.Support{Images: true, Registries: true}
}

// Traits returns the traits of a team's own function: one folder is for all clusters of a type.
func (cue) Traits() backends.Traits { return backends.Traits{AnyGroup: true} }

// Reconciled returns the zero value, because no object in a cluster shows a rollout.
func (cue) Reconciled(string, string, backends.Folder) backends.Reconciled {
	return backends.Reconciled{}
}

// Emit returns the files of the function, and the files of the namespace service. A function
// without files is an error, because an empty folder deploys nothing.
func (cue) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	described, _ := a.Reconciler.Value.Lookup("files")
	ref := a.Reconciler.Ref.At(backend + ".files")
	folder, ds := files.Describe(a, described, ref)
	if len(described.Fields()) == 0 {
		ds = append(ds, files.Bad(ref, "the reconciler gives no file for "+a.DeploymentTarget).
			Hinting("let files give at least one for every assignment, or leave the deployment target out "+
				"of the policy that selects the cluster type"))
	}
	ds = append(ds, folder.Projected(a)...)
	_, unstable := kubernetes.Split(delivery.Rendered(a), kubernetes.IsStable)
	ds = append(ds, delivery.Hooks(a, nil, unstable)...)
	ds = append(ds, backends.NoRestart(a, "the reconciler's files are a function of the assignment",
		"let files hold an annotation that changes with the config on pod templates")...)
	ds = append(ds, folder.OfService(a)...)
	ds = append(ds, folder.Twice(ref)...)
	return delivery.Finish(a, backends.Emission{Files: folder.Files, Objects: folder.Objects}, nil, ds)
}

// Central returns nil, because kalypso does not know where the reconciler runs.
func (cue) Central(*backends.ClusterType, []string) []backends.Object { return nil }

// Index returns the files of the reconciler's index, and a README.md unless the index has
// one. A file in the place of an assignment's folder is an error.
func (cue) Index(ct *backends.ClusterType, folders []backends.Folder) ([]backends.File,
	[]diag.Diagnostic) {
	described, _ := ct.Reconciler.Value.Lookup("index")
	ref := ct.Reconciler.Ref.At(backend + ".index")
	index, ds := files.Describe(nil, described, ref)
	readme := false
	for _, f := range index.Files {
		first, _, _ := strings.Cut(f.Path, "/")
		readme = readme || strings.EqualFold(first, kubernetes.ReadmeFile)
		for _, folder := range folders {
			if strings.EqualFold(first, folder.DeploymentTarget) {
				ds = append(ds, files.Bad(ref.At(model.Label(f.Path)), f.Path+" is in the place of the "+
					"folder of "+folder.DeploymentTarget).
					Hinting("give the file another path").For(delivery.FolderID(ct, folder.DeploymentTarget)))
			}
		}
	}
	if diag.Errors(ds) {
		return nil, ds
	}
	if !readme {
		index.Add(kubernetes.README(ct, folders), nil, false)
	}
	return index.Files, ds
}

// Accounts reports that only the platform team knows the accounts.
func (cue) Accounts(*backends.ClusterType) backends.Accounts {
	return backends.Accounts{Unknown: "only the platform team knows what applies the files"}
}

// Bootstrap returns only a diagnostic with the reason: only the platform team knows its reconciler.
func (cue) Bootstrap(ct *backends.ClusterType, _ []backends.Folder) ([]byte, []diag.Diagnostic) {
	return nil, []diag.Diagnostic{delivery.NoBootstrap(ct)}
}

// Entries returns the reason why clusters cannot have entries.
func (cue) Entries(ct *backends.ClusterType) (func(*model.Cluster) []backends.File,
	[]diag.Diagnostic) {
	return nil, delivery.NoEntries(ct,
		"kalypso does not know how its reconciler would follow a folder")
}
