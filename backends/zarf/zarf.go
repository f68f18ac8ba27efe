// Package zarf emits a package definition of Zarf 0.84 (https://docs.zarf.dev)
// for each cluster type: zarf.yaml, with a component for each assignment, which
// `zarf package create` makes a package that a site without a connection gets.
//
// A component has the assignment's workspace, its workload, and all that the
// workload fetches: images, git repositories and files. Components stand in the
// order of their dependencies, which is the order that Zarf deploys them in.
// Everything is pinned as kalypso.lock has it: what is created from one
// zarf.yaml today and tomorrow holds the same.
//
// What Zarf does that the definition has to take care of:
//
//   - It installs a component's charts before its manifests, whatever their
//     order. So where the workload is a chart, the workspace is one too, made of
//     the folder: else the chart's pods would wait for a config that waits for them.
//   - It makes every entry of manifests a Helm release, in which hooks are hooks,
//     and for which the definitions of custom resources must be there before.
//   - It replaces ###ZARF_...### in all that it deploys, and drops what follows a
//     line of a mebibyte. Both are refused here.
package zarf

import (
	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const backend = "zarf"

type zarf struct{}

// New returns the backend.
func New() backends.Backend { return zarf{} }

// Name is the backend's key in #Reconciler.
func (zarf) Name() string { return backend }

// Support says what a package can hold. Of what Zarf fetches itself, the backend
// wants to see the images.
func (zarf) Support(kind model.SourceKind) backends.Support {
	switch kind {
	case model.OCISource:
		return backends.Support{Referenced: "Zarf takes no manifests from OCI artifacts"}
	case model.PackageSource:
		return backends.Support{Rendered: "a package has nothing to render"}
	case model.AnsibleSource:
		const why = "a package runs no playbooks"
		return backends.Support{Referenced: why, Rendered: why}
	}
	return backends.Support{Looks: true}
}

// Traits are those of Zarf: one package is for all clusters of a type.
func (zarf) Traits() backends.Traits {
	return backends.Traits{}
}

// Reconciled says that nothing in a cluster tells.
func (zarf) Reconciled(string, string, backends.Folder) backends.Reconciled {
	return backends.Reconciled{}
}

// Emit returns the folder that the assignment's component is made of.
func (zarf) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	o, ds := optionsOf(a.Reconciler)
	if diag.Errors(ds) {
		return backends.Emission{}, about(a, ds)
	}
	f := &folder{a: a, options: o, component: component{
		Name:        a.DeploymentTarget,
		Description: a.Origin() + ", of workspace " + a.Workspace,
		Required:    o.Required, Default: o.Default, Only: o.Only,
	}}
	f.workspace()
	f.workload()
	f.fetched()
	if !a.Render {
		f.report(backends.NoRestart(a, "a package changes nothing of what it holds",
			"render it: set render: true on the deployment target")...)
	}
	f.checkFiles()
	if diag.Errors(f.ds) {
		return backends.Emission{}, about(a, f.ds)
	}
	return f.emission(), about(a, f.ds)
}

// about says that diagnostics are about an assignment.
func about(a *backends.Assignment, ds []diag.Diagnostic) []diag.Diagnostic {
	for i := range ds {
		ds[i] = ds[i].For(a.ID())
	}
	return ds
}

// Central returns nothing: every site has its own copy of the package.
func (zarf) Central(*backends.ClusterType, []string) []backends.Object { return nil }

// Accounts says that there is none in particular.
func (zarf) Accounts(*backends.ClusterType) backends.Accounts {
	return backends.Accounts{Unknown: "a package is applied by whoever runs zarf package deploy, in their own name"}
}

// Bootstrap returns a diagnostic that says what to do instead: there is nothing
// that a cluster could pull.
func (zarf) Bootstrap(ct *backends.ClusterType, _ []backends.Folder) ([]byte, []diag.Diagnostic) {
	return nil, []diag.Diagnostic{diag.New(diag.NoBootstrap,
		"a cluster of type "+ct.Name+" pulls nothing: it gets a package of Zarf").
		At(ct.Ref, "").At(ct.Reconciler.Ref, "").
		Hinting("in the environment's folder, run zarf package create " + ct.Dir() +
			" where there is a connection, and zarf package deploy with what it makes at the site")}
}
