package zarf

import (
	"encoding/json"
	"fmt"
	"path"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// folder collects what an assignment's folder and its component hold.
type folder struct {
	a         *backends.Assignment
	options   options
	files     []backends.File
	objects   []backends.Object
	listed    []string // files of kustomization.yaml
	component component
	ds        []diag.Diagnostic
}

// in returns the path of one of the folder's files in zarf.yaml.
func (f *folder) in(name string) string { return path.Join(f.a.DeploymentTarget, name) }

func (f *folder) report(ds ...diag.Diagnostic) { f.ds = append(f.ds, ds...) }

// add adds files that hold objects.
func (f *folder) add(files []backends.File, objects []backends.Object) {
	for _, file := range files {
		f.listed = append(f.listed, file.Path)
	}
	f.files = append(f.files, files...)
	f.objects = append(f.objects, objects...)
}

// emission returns the folder. Its kustomization.yaml shows what the folder
// itself brings to a cluster; Zarf does not read it.
func (f *folder) emission() backends.Emission {
	shared, err := json.Marshal(f.component)
	if err != nil {
		panic(fmt.Sprintf("zarf: writing a component: %v", err)) // it is made of strings
	}
	files := append(f.files, delivery.Kustomization(f.listed))
	return backends.Emission{Files: delivery.Sorted(files), Objects: f.objects, Shared: shared}
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
		Files: []string{f.in(kubernetes.NamespaceFile), f.in(kubernetes.PlatformConfigFile)},
	}}
}

// The files that make a chart of the folder.
const (
	chartFile      = "Chart.yaml"
	helmIgnoreFile = ".helmignore"
	templateFile   = "templates/workspace.yaml"
	valuesFile     = "values.yaml"
)

// workspaceTemplate writes the workspace as it is: what .Files.Get returns is no
// template. The line between the two ends the first one's last document.
const workspaceTemplate = `{{ .Files.Get "` + kubernetes.NamespaceFile + `" }}
---
{{ .Files.Get "` + kubernetes.PlatformConfigFile + `" }}
`

// workspaceChart makes a chart of the folder, for the workspace: Zarf installs
// charts before manifests, and in their order.
func (f *folder) workspaceChart() {
	const version = "1.0.0" // a chart needs one; Zarf's package tells releases apart
	f.files = append(f.files,
		backends.File{Path: chartFile, Data: yaml.Must(struct {
			APIVersion  string `yaml:"apiVersion"`
			Name        string `yaml:"name"`
			Description string `yaml:"description"`
			Type        string `yaml:"type"`
			Version     string `yaml:"version"`
		}{"v2", workspaceName, "The workspace of " + f.a.Origin(), "application", version})},
		backends.File{Path: helmIgnoreFile, Data: []byte(kubernetes.KustomizationFile + "\n" + valuesFile + "\n")},
		backends.File{Path: templateFile, Data: []byte(workspaceTemplate)},
	)
	f.component.Charts = []chart{{
		Name: workspaceName, LocalPath: f.a.DeploymentTarget, Version: version, Namespace: f.a.Namespace,
		// It differs from the workload's release, whatever that is called.
		ReleaseName: model.ShortName(delivery.ReleaseName(f.a, f.a.Manifests.Helm)+"-"+workspaceName, model.MaxHelmRelease),
	}}
}
