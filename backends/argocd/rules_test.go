package argocd_test

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

const inCluster = "https://kubernetes.default.svc"

type place struct{ Server, Name, Namespace string }

type application struct {
	Metadata struct {
		Name, Namespace string
		Annotations     map[string]string
		Finalizers      []string
	}
	Spec struct {
		Project string
		Source  struct {
			RepoURL, TargetRevision, Path, Chart string

			Helm struct {
				Values       string
				ValuesObject any
			}
			Kustomize struct{ Patches []struct{ Patch string } }
		}
		Destination place
		SyncPolicy  struct{ Retry struct{ Limit int } }
	}
}

// values returns the values of the chart.
func (a application) values(t *testing.T) any {
	t.Helper()
	values := a.Spec.Source.Helm.ValuesObject
	if text := a.Spec.Source.Helm.Values; text != "" {
		read(t, []byte(text), &values)
	}
	return values
}

type objects struct {
	applications map[string]application
	projects     map[string]project
}

// parse returns the Applications and AppProjects of files, by name. Two objects with the
// same name are an error.
func parse(t *testing.T, files ...backends.File) objects {
	t.Helper()
	out := objects{map[string]application{}, map[string]project{}}
	for _, f := range files {
		for _, o := range bt.Objects(t, f.Data) {
			var app application
			var proj project
			switch o.Kind {
			case "Application":
				read(t, o.Text, &app)
				if _, twice := out.applications[o.Metadata.Name]; twice {
					t.Errorf("two Applications are named %s", o.Metadata.Name)
				}
				out.applications[o.Metadata.Name] = app
			case "ApplicationSet":
				for _, text := range expand(t, o) {
					f := parse(t, backends.File{Data: text})
					for name, app := range f.applications {
						if _, twice := out.applications[name]; twice {
							t.Errorf("two Applications are named %s", name)
						}
						out.applications[name] = app
					}
				}
			case "AppProject":
				read(t, o.Text, &proj)
				if _, twice := out.projects[o.Metadata.Name]; twice {
					t.Errorf("two AppProjects are named %s", o.Metadata.Name)
				}
				out.projects[o.Metadata.Name] = proj
			}
		}
	}
	return out
}

func read(t *testing.T, text []byte, v any) {
	t.Helper()
	if err := yaml.Unmarshal(text, v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// checkArgoCD checks a tree against the rules of Argo CD's controller that its CRDs do not contain.
func checkArgoCD(t *testing.T, tree bt.Tree) {
	t.Helper()
	files := []backends.File{{Path: "bootstrap", Data: tree.Bootstrap}}
	for name, data := range tree.Files {
		if base := path.Base(name); base == "reconciler.yaml" || base == "assignments.yaml" {
			files = append(files, backends.File{Path: name, Data: data})
		}
	}
	all := parse(t, files...)
	for name, app := range all.applications {
		checkApplication(t, all, name, app)
	}
	checkDelivery(t, tree, all)
}

func checkApplication(t *testing.T, all objects, name string, app application) {
	source, to := app.Spec.Source, app.Spec.Destination
	if len(name) > 63 {
		t.Errorf("%s is no label value", name)
	}
	if (source.Path == "") == (source.Chart == "") {
		t.Errorf("%s has path %q and chart %q", name, source.Path, source.Chart)
	}
	if values, _ := json.Marshal(source.Helm.ValuesObject); source.Helm.ValuesObject != nil && bytes.Contains(values, []byte("null")) {
		t.Errorf("%s loses a null of its values when it changes", name)
	}
	if source.TargetRevision == "" {
		t.Errorf("%s has no revision", name)
	}
	if (to.Server == "") == (to.Name == "") || to.Namespace == "" {
		t.Errorf("%s goes to %+v", name, to)
	}
	if !slices.Contains(app.Metadata.Finalizers, "resources-finalizer.argocd.argoproj.io") {
		t.Errorf("%s would leave its objects behind", name)
	}
	p, ours := all.projects[app.Spec.Project]
	switch {
	case app.Spec.Project == "default":
	case !ours:
		t.Errorf("%s is in project %s, which is not there", name, app.Spec.Project)
	case !p.permitsSource(source.RepoURL):
		t.Errorf("project %s does not cover source %s of %s", p.Metadata.Name, source.RepoURL, name)
	case !p.permitsDestination(to):
		t.Errorf("project %s does not cover destination %+v of %s", p.Metadata.Name, to, name)
	}
}

// checkDelivery checks the objects of each Application that kalypso writes for itself. The project
// permits the objects, and Applications only ever go to Argo CD's own cluster.
func checkDelivery(t *testing.T, tree bt.Tree, all objects) {
	for name, app := range all.applications {
		if repo := app.Spec.Source.RepoURL; repo != bt.GitOps.Repo && repo != bt.Registered.OCI {
			continue
		}
		folder := strings.TrimPrefix(strings.TrimPrefix(app.Spec.Source.Path, "fleet/large"), "/")
		local := app.Spec.Destination.Server == inCluster || app.Spec.Destination.Name == "in-cluster"
		for _, o := range applied(t, tree, folder) {
			if o.Group == "argoproj.io" && !local {
				t.Errorf("%s takes %s %s away from Argo CD", name, o.Kind, o.Name)
			}
			if p := all.projects[app.Spec.Project]; !p.permitsObject(o, app.Spec.Destination) {
				t.Errorf("project %s of %s does not permit %+v", app.Spec.Project, name, o)
			}
		}
	}
}

// applied returns the objects that kustomize builds from a folder.
func applied(t *testing.T, tree bt.Tree, folder string) []backends.Object {
	var k struct{ Resources []string }
	read(t, tree.Files[path.Join(folder, "kustomization.yaml")], &k)
	var out []backends.Object
	for _, resource := range k.Resources {
		file := path.Join(folder, resource)
		if tree.Files[file] == nil {
			out = append(out, applied(t, tree, file)...)
			continue
		}
		for _, o := range bt.Objects(t, tree.Files[file]) {
			out = append(out, o.ID())
		}
	}
	return out
}
