// Package zarf emits a package definition of Zarf 0.84 (https://docs.zarf.dev) for each cluster
// type. It is zarf.yaml, with a component for each assignment. `zarf package create` makes a
// package of it, for a site without a connection.
//
// A component has the assignment's workspace, its workload, and everything that the workload
// fetches: images, git repositories and files. Components are in the order of their dependencies,
// and Zarf deploys them in that order. Everything is pinned to the versions in kalypso.lock:
// packages from one zarf.yaml have the same content, today and tomorrow.
//
// The definition allows for three properties of Zarf:
//
//   - It installs a component's charts before its manifests, whatever their
//     order. If the workload is a chart, the workspace is therefore also a chart, made
//     of the folder. Otherwise the chart's pods would wait for a config that waits for
//     them.
//   - It makes every entry of manifests a Helm release. Hooks are hooks in a release,
//     and the definitions of custom resources must exist before it.
//   - It replaces ###ZARF_...### in everything that it deploys, and drops the rest of
//     a file after a line of a mebibyte. The package refuses both.
//
// An example is the platform that kalypso init --reconciler zarf writes. Its workload has
//
//	manifests: package: files: "/etc/hello.conf": {mode: "0600", content: "greeting = hello\n"}
//
// The component of it in dev/cloud/zarf.yaml installs the workspace and the file:
//
//	name: hello-dev
//	required: true
//	manifests:
//	- name: workspace
//	  namespace: dev-cloud-hello-dev
//	  files: [hello-dev/namespace.yaml, hello-dev/platform-config.yaml]
//	files:
//	- source: hello-dev/files/etc/hello.conf
//	  target: /etc/hello.conf
package zarf

import (
	"fmt"
	"path"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const backend = "zarf"

type zarf struct{}

// New returns the backend.
func New() backends.Backend { return zarf{} }

// Name is the backend's key in #Reconciler.
func (zarf) Name() string { return backend }

// Support reports the kinds of manifests that a package can contain. If Zarf fetches the manifests
// itself, the backend needs their projection for the images.
func (zarf) Support(kind model.SourceKind) backends.Support {
	switch kind {
	case model.OCISource:
		return backends.Support{Referenced: "Zarf takes no manifests from OCI artifacts"}
	case model.HelmGitSource:
		return backends.Support{Referenced: "a package holds charts of repositories and registries"}
	case model.HelmPathSource:
		return backends.Support{Referenced: backends.OwnChart}
	case model.PackageSource:
		return backends.Support{Rendered: "a package has nothing to render"}
	case model.AnsibleSource:
		const why = "a package runs no playbooks"
		return backends.Support{Referenced: why, Rendered: why}
	}
	return backends.Support{Looks: true}
}

// Traits returns the traits of Zarf: one package is for all clusters of a type.
func (zarf) Traits() backends.Traits { return backends.Traits{} }

// Reconciled returns the zero value, because no object in a cluster shows a rollout.
func (zarf) Reconciled(string, string, backends.Folder) backends.Reconciled {
	return backends.Reconciled{}
}

// Emit returns the folder that the assignment's component is made of.
func (zarf) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	o, ds := optionsOf(a.Reconciler)
	if diag.Errors(ds) {
		return delivery.Finish(a, backends.Emission{}, nil, ds)
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
	// kustomization.yaml lists the objects of the folder itself. Zarf does not read it.
	f.files = append(f.files, kubernetes.Kustomization(f.listed))
	return delivery.Finish(a, backends.Emission{Files: f.files, Objects: f.objects}, f.component, f.ds)
}

// Central returns nil, because every site has its own copy of the package.
func (zarf) Central(*backends.ClusterType, []string) []backends.Object { return nil }

// Accounts reports that the accounts are not known.
func (zarf) Accounts(*backends.ClusterType) backends.Accounts {
	return backends.Accounts{Unknown: "a package is applied by whoever runs zarf package deploy, in " +
		"their own name"}
}

// Bootstrap returns a diagnostic about the alternative, because a cluster has nothing to
// pull.
func (zarf) Bootstrap(ct *backends.ClusterType, _ []backends.Folder) ([]byte, []diag.Diagnostic) {
	return nil, []diag.Diagnostic{diag.New(diag.NoBootstrap,
		"a cluster of type "+ct.Name+" pulls nothing: it gets a package of Zarf").
		At(ct.Ref, "").At(ct.Reconciler.Ref, "").
		Hinting("in the environment's folder, run zarf package create " + ct.Dir() +
			" where there is a connection, and zarf package deploy with what it makes at the site")}
}

// options are the fields of #Zarf.
type options struct {
	Architecture string
	Version      string
	Required     bool
	Default      bool
	Only         *only
	Images       []string
}

// optionsOf returns the reconciler's fields. It reports fields that Zarf does not allow
// together.
func optionsOf(s backends.Spec) (options, []diag.Diagnostic) {
	var o options
	if ds := s.Fields(&o); diag.Errors(ds) {
		return o, ds
	}
	if only := o.Only; only != nil && only.LocalOS == "" &&
		(only.Cluster == nil || only.Cluster.Architecture == "" && len(only.Cluster.Distros) == 0) {
		o.Only = nil // the component is deployed everywhere
	}
	var ds []diag.Diagnostic
	if o.Required && o.Default {
		ds = append(ds,
			diag.New(diag.BadSpec, "a component that is required is not one that is deployed by default").
				On("zarf.default").At(s.Ref.At("zarf.default"), "").At(s.Ref.At("zarf.required"), "").
				Hinting("set required: false with default: true, or remove default"))
	}
	if o.Only != nil && o.Only.Cluster != nil {
		if wanted := o.Only.Cluster.Architecture; wanted != "" && wanted != o.Architecture {
			ds = append(ds, diag.New(diag.BadSpec,
				fmt.Sprintf("a component for clusters of %s would be left out of a package for %s", wanted,
					o.Architecture)).
				On("zarf.only.cluster.architecture").At(s.Ref.At("zarf.only.cluster.architecture"),
				"").At(s.Ref.At("zarf.architecture"), "").
				Hinting("set architecture to that of the clusters"))
		}
	}
	return o, ds
}

// folder collects the content of an assignment's folder and its component.
type folder struct {
	a         *backends.Assignment
	options   options
	files     []backends.File
	objects   []backends.Object
	listed    []string // files of kustomization.yaml
	component component
	ds        []diag.Diagnostic
}

// pathOf returns the path of one of the folder's files, as zarf.yaml refers to it.
func (f *folder) pathOf(name string) string { return path.Join(f.a.DeploymentTarget, name) }

func (f *folder) report(ds ...diag.Diagnostic) { f.ds = append(f.ds, ds...) }

// add adds files with objects.
func (f *folder) add(files []backends.File, objects []backends.Object) {
	for _, file := range files {
		f.listed = append(f.listed, file.Path)
	}
	f.files = append(f.files, files...)
	f.objects = append(f.objects, objects...)
}

// workspace adds the assignment's workspace.
func (f *folder) workspace() {
	files, objects, ds := kubernetes.Workspace(f.a)
	f.report(ds...)
	for _, o := range objects {
		if o.Group == "" && o.Kind == "ServiceAccount" && o.Name == "default" {
			f.report(diag.New(diag.BadSpec, "Kubernetes makes the service account default in each "+
				"namespace, and Helm, which Zarf deploys with, takes over nothing that is there").
				On(f.a.NamespaceService.Ref.At("serviceAccount.name").String()).
				At(f.a.NamespaceService.Ref.At("serviceAccount.name"), "").
				Hinting("give the service account of the namespace service another name"))
		}
	}
	f.add(files, objects)
	if f.a.Manifests.Helm != nil && !f.a.Render {
		f.workspaceChart()
		return
	}
	f.component.Manifests = []manifest{{
		Name: workspaceName, Namespace: f.a.Namespace,
		Files: []string{f.pathOf(kubernetes.NamespaceFile), f.pathOf(kubernetes.PlatformConfigFile)},
	}}
}

// The files that make a chart of the folder.
const (
	chartFile      = "Chart.yaml"
	helmIgnoreFile = ".helmignore"
	templateFile   = "templates/workspace.yaml"
	valuesFile     = "values.yaml"
)

// workspaceTemplate writes the workspace unchanged, because the result of .Files.Get is not a
// template. The line between the two ends the first one's last document.
const workspaceTemplate = `{{ .Files.Get "` + kubernetes.NamespaceFile + `" }}
---
{{ .Files.Get "` + kubernetes.PlatformConfigFile + `" }}
`

// workspaceChart makes a chart of the folder, for the workspace: Zarf installs
// charts before manifests, and in their order.
func (f *folder) workspaceChart() {
	// A chart needs a version. The version of Zarf's package distinguishes releases.
	const version = "1.0.0"
	f.files = append(f.files,
		backends.File{Path: chartFile, Data: yaml.Must(struct {
			APIVersion  string `yaml:"apiVersion"`
			Name        string `yaml:"name"`
			Description string `yaml:"description"`
			Type        string `yaml:"type"`
			Version     string `yaml:"version"`
		}{"v2", workspaceName, "The workspace of " + f.a.Origin(), "application", version})},
		backends.File{Path: helmIgnoreFile,
			Data: []byte(kubernetes.KustomizationFile + "\n" + valuesFile + "\n")},
		backends.File{Path: templateFile, Data: []byte(workspaceTemplate)},
	)
	f.component.Charts = []chart{{
		Name: workspaceName, LocalPath: f.a.DeploymentTarget, Version: version, Namespace: f.a.Namespace,
		// The name differs from the name of the workload's release.
		ReleaseName: model.ShortName(delivery.ReleaseName(f.a, f.a.Manifests.Helm)+"-"+workspaceName,
			model.MaxHelmRelease),
	}}
}
