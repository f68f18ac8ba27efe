package zarf_test

import (
	"path"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends/flux"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/zarf"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

const fluxDefaults = `{"interval": "10m", "namespace": "flux-system", "prune": true, "wait": true}`

// A connected site, which uses Flux, and a site that gets a package share a workload. Both have the
// same workspace and config. Both deploy the same chart with the same values, or the same folder of
// one repository.
func TestConnected(t *testing.T) {
	values := bt.Value(t, `{"replicas": 2}`)
	for name, target := range map[string]bt.Target{
		"chart": {Manifests: model.Manifests{Helm: &model.Helm{OCI: "oci://registry.example.test/charts/app", Version: "1.2.3", Values: &values, PlatformValues: "platform"}},
			Projection: projected(t, "1.2.3", deployment("app", pinned))},
		"git": {Manifests: model.Manifests{Git: &model.Git{Repo: "https://git.example.test/app", Commit: commit, Path: "./deploy"}},
			Projection: projected(t, commit, deployment("app", pinned))},
	} {
		t.Run(name, func(t *testing.T) {
			target.Name = "app/main"
			p := bt.Platform{Options: fluxDefaults, Targets: []bt.Target{target}}
			connected := bt.Build(t, flux.New(), p)
			p.Options = defaults
			packaged := bt.Build(t, zarf.New(), p)
			for _, file := range []string{"namespace.yaml", "platform-config.yaml"} {
				file = path.Join("app-main", file)
				if string(connected.Files[file]) != string(packaged.Files[file]) || len(packaged.Files[file]) == 0 {
					t.Errorf("%s differs", file)
				}
			}
			var d struct{ Components []deployed }
			if err := yaml.Unmarshal(packaged.Files["zarf.yaml"], &d); err != nil {
				t.Fatal(err)
			}
			got, want := d.Components[0].workload(packaged), workloadOfFlux(t, connected)
			if got != want {
				t.Errorf("Zarf deploys %s, and Flux %s", got, want)
			}
		})
	}
}

// deployed is the part of a component that Zarf deploys.
type deployed struct {
	Charts []struct {
		Name, URL, Version, Namespace, ReleaseName string
		ValuesFiles                                []string
	}
	Manifests []struct {
		Name, Namespace string
		Kustomizations  []string
	}
}

func (d deployed) workload(tree bt.Tree) string {
	for _, c := range d.Charts {
		if c.Name == "workload" {
			return strings.Join([]string{c.URL, c.Version, c.Namespace, c.ReleaseName, canonical(tree.Files[c.ValuesFiles[0]])}, " ")
		}
	}
	for _, m := range d.Manifests {
		if m.Name == "workload" {
			return m.Kustomizations[0] + " " + m.Namespace
		}
	}
	return ""
}

// workloadOfFlux describes the workload that Flux deploys, in the same words.
func workloadOfFlux(t testing.TB, tree bt.Tree) string {
	t.Helper()
	var source, workload struct {
		Spec struct {
			URL                          string
			Ref                          struct{ Tag, Commit string }
			Path                         string
			TargetNamespace, ReleaseName string
			Values                       map[string]any
		}
	}
	objects := bt.Objects(t, tree.Files["app-main/reconciler.yaml"])
	for i, into := range []any{&source, &workload} {
		if err := yaml.Unmarshal(objects[i].Text, into); err != nil {
			t.Fatal(err)
		}
	}
	s, w := source.Spec, workload.Spec
	if s.Ref.Tag != "" {
		data, err := yaml.Marshal(w.Values)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join([]string{s.URL, s.Ref.Tag, w.TargetNamespace, w.ReleaseName, canonical(data)}, " ")
	}
	return s.URL + "//" + strings.TrimPrefix(w.Path, "./") + "?ref=" + s.Ref.Commit + " " + w.TargetNamespace
}

// canonical returns YAML as JSON with sorted fields.
func canonical(text []byte) string {
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// Rendered objects are the same for every backend that applies them, because package kubernetes
// writes them. Zarf gets them in two files, and loses nothing.
func TestRenderedAlike(t *testing.T) {
	p := bt.Platform{Options: defaults}
	target := bt.Target{Name: "app/main", Manifests: bt.Git, Render: true,
		Projection: projected(t, commit, widgets, widget, deployment("app", pinned), "pre-install "+deployment("migrate", pinned))}
	a := p.Assignment(t, target)
	files, objects, ds := kubernetes.Manifests(a, a.Projection.Objects)
	emission, problems := zarf.New().Emit(a)
	if len(ds)+len(problems) > 0 || len(files) != 1 {
		t.Fatal(ds, problems, len(files))
	}
	var got []string
	for _, f := range emission.Files { // definitions.yaml comes before manifests.yaml
		if f.Path == "definitions.yaml" || f.Path == "manifests.yaml" {
			got = append(got, documents(t, f.Data)...)
		}
	}
	if want := documents(t, files[0].Data); strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(objects) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
