// Package gotemplate is the backend of teams that write their reconciler's files
// with templates of Go's text/template, as the original Kalypso had it: a
// template for each file, which sees the assignment.
//
// In go the templates and the assignment; out come the files that they make, the
// workspace as Kubernetes objects where no template makes it, and what was
// rendered. A template can do nothing but make text: it reads no environment, no
// clock and no network, and is bounded in what it may take and make. A key that
// is not there is an error, what a template makes is never a template again, and
// it must be what its content type says. Every error names the template and its
// line.
package gotemplate

import (
	"encoding/json"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const backend = "gotemplate"

type gotemplate struct{}

// New returns the backend.
func New() backends.Backend { return gotemplate{} }

// Name is the backend's key in #Reconciler.
func (gotemplate) Name() string { return backend }

// Support says that a template may do with any manifests what it likes.
func (gotemplate) Support(kind model.SourceKind) backends.Support {
	if kind == model.PackageSource {
		return backends.Support{Rendered: "a package has nothing to render"}
	}
	return backends.Support{}
}

// shared is what Index needs to know of a folder. It is recorded only where it
// differs from the zero value.
type shared struct {
	// Kustomization says that the folder can be listed by a kustomization.
	Kustomization bool `json:"kustomization,omitempty"`
}

var withKustomization = json.RawMessage(`{"kustomization":true}`)

// Traits are those of what a team wrote: one folder is for all clusters of a type.
func (gotemplate) Traits() backends.Traits {
	return backends.Traits{AnyGroup: true}
}

// Reconciled says that nothing in a cluster tells.
func (gotemplate) Reconciled(string, string, backends.Folder) backends.Reconciled {
	return backends.Reconciled{}
}

// Emit returns the folder: what the templates make, what they leave to kalypso,
// and kustomization.yaml where some of it holds Kubernetes objects.
func (gotemplate) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	e := &emission{assignment: a}
	e.build()
	if !a.Render {
		e.ds = append(e.ds, backends.NoRestart(a, "templates write what brings the workload",
			"let the template add an annotation to pod templates, or render the manifests")...)
	}
	for i := range e.ds {
		e.ds[i] = e.ds[i].For(a.ID())
	}
	if diag.Errors(e.ds) {
		return backends.Emission{}, e.ds
	}
	out := backends.Emission{Files: e.folder.Files, Objects: e.folder.Objects}
	if e.kustomized {
		out.Shared = withKustomization
	}
	return out, e.ds
}

// Central returns nothing: kalypso does not know where the reconciler runs.
func (gotemplate) Central(*backends.ClusterType, []string) []backends.Object { return nil }

// Index returns README.md, and kustomization.yaml with the folders that have one.
// It is there, if only with an empty list, wherever a folder of the reconciler
// would have one: a cluster that pulls it must not lose it with the last folder.
func (gotemplate) Index(ct *backends.ClusterType, folders []backends.Folder) ([]backends.File, []diag.Diagnostic) {
	var names []string
	for _, f := range folders {
		var s shared
		if len(f.Shared) > 0 && f.Backend == backend && json.Unmarshal(f.Shared, &s) == nil && s.Kustomization {
			names = append(names, f.DeploymentTarget)
		}
	}
	out := []backends.File{kubernetes.README(ct, folders)}
	_, namespace := ct.Reconciler.Value.Lookup("namespace")
	_, config := ct.Reconciler.Value.Lookup("config")
	if len(names) > 0 || !namespace || !config {
		out = append(out, delivery.Kustomization(names))
	}
	return delivery.Sorted(out), nil
}

// Accounts says that only the platform team knows them.
func (gotemplate) Accounts(*backends.ClusterType) backends.Accounts {
	return backends.Accounts{Unknown: "only the platform team knows what applies the files"}
}

// Bootstrap returns nothing but why: only the platform team knows its reconciler.
func (gotemplate) Bootstrap(ct *backends.ClusterType, _ []backends.Folder) ([]byte, []diag.Diagnostic) {
	return nil, []diag.Diagnostic{delivery.NoBootstrap(ct)}
}

// Entries says why there are none.
func (gotemplate) Entries(ct *backends.ClusterType) (func(*model.Cluster) []backends.File, []diag.Diagnostic) {
	return nil, delivery.NoEntries(ct, "kalypso does not know how its reconciler would follow a folder")
}
