package fleet_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends/fleet"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

const (
	deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1}}`
	crd        = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.test"},
		"spec": {"group": "example.test", "scope": "Cluster", "names": {"kind": "Thing", "plural": "things"}}}`
	thing = `{"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"script": "---\nif {{ .x }}\n---\n${HOME}"}}`
	hook  = `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate", "annotations": {"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-weight": "-5"}}}`
)

// projection returns a projection that contains these objects.
func projection(t testing.TB, objects ...string) *model.Projection {
	t.Helper()
	p := &model.Projection{Revision: "1.2.3"}
	for _, text := range objects {
		o := model.Projected{Value: bt.Value(t, text)}
		if strings.Contains(text, "helm.sh/hook") {
			o.Hooks = []string{"pre-install", "pre-upgrade"}
		}
		p.Objects = append(p.Objects, o)
	}
	return p
}

func rendered(t testing.TB, options string, objects ...string) bt.Platform {
	return bt.Platform{Options: options, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: projection(t, objects...)}}}
}

func TestRendered(t *testing.T) {
	for name, p := range map[string]bt.Platform{
		"objects":   rendered(t, defaults, deployment),
		"crds":      rendered(t, all, crd, deployment, thing),
		"only-crds": rendered(t, defaults, crd),
		"hooks":     rendered(t, defaults, hook, deployment),
		"nothing":   rendered(t, defaults),
	} {
		t.Run("rendered-"+name, func(t *testing.T) { golden(t, p) })
	}
}

func TestRenderedRefusals(t *testing.T) {
	noise := make([]byte, 3<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = 'a' + byte(random.UintN(26))
	}
	for name, c := range map[string]struct {
		platform bt.Platform
		want     diag.Code
		message  string
	}{
		"twice":     {rendered(t, defaults, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "platform-config"}}`), diag.NameCollision, "both create ConfigMap platform-config"},
		"no-object": {rendered(t, defaults, `{"kind": "Service"}`), diag.NotRendered, "no Kubernetes object"},
		"too-large": {rendered(t, defaults, deployment, `{"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": "x"}, "text": "`+string(noise)+`"}`), diag.TooLarge, "in a Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, fleet.New(), c.platform)
			if d := tree.Diagnostics[0]; d.Code != c.want || !strings.Contains(d.Message, c.message) || len(d.Sites) == 0 {
				t.Errorf("got %+v", tree.Diagnostics)
			}
			if len(tree.Folders) > 0 {
				t.Errorf("the assignment is emitted all the same")
			}
		})
	}
}

// Manifests that compress well are not too large, whatever their size on disk.
func TestLargeAndRegular(t *testing.T) {
	text := strings.Repeat("all work and no play ", 1<<17)
	p := rendered(t, defaults, `{"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": "x"}, "text": "`+text+`"}`)
	if tree := bt.Build(t, fleet.New(), p); diag.Errors(tree.Diagnostics) {
		t.Error(bt.Codes(tree.Diagnostics))
	}
}

// CRDs and other objects are split without a change, whatever text they contain.
//
// Slow: each input is a whole folder, which is built.
func FuzzCRDsApart(f *testing.F) {
	f.Add("---\n", "a\n---\nb", "x: |\n---\n")
	f.Add("--- ", "\n---\n", "...\n---")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		object := func(apiVersion, kind, name, text string) model.Projected {
			return model.Projected{Value: model.StructOf(
				model.Field{Name: "apiVersion", Value: model.StringOf(apiVersion)},
				model.Field{Name: "kind", Value: model.StringOf(kind)},
				model.Field{Name: "metadata", Value: model.StructOf(model.Field{Name: "name", Value: model.StringOf(name)})},
				model.Field{Name: text, Value: model.ListOf(model.StringOf(text), model.StructOf(model.Field{Name: text, Value: model.StringOf(text)}))},
			)}
		}
		for _, text := range []string{a, b, c} {
			if slices.Contains([]string{"apiVersion", "kind", "metadata", "items"}, text) {
				return // an object has each field once
			}
		}
		p := rendered(t, defaults)
		p.Targets[0].Projection.Objects = []model.Projected{
			object("v1", "ConfigMap", "a", a), object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "b", b), object("v1", "ConfigMap", "c", c),
		}
		tree := bt.Build(t, fleet.New(), p)
		if diag.Errors(tree.Diagnostics) {
			return // YAML cannot contain the text
		}
		for file, want := range map[string][]string{"crds": {"b"}, "workload": {"a", "c"}} {
			var got []string
			for _, o := range bt.Objects(t, tree.Files["app-main/"+file+"/manifests.yaml"]) {
				got = append(got, o.Metadata.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s holds %v, want %v", file, got, want)
			}
		}
	})
}
