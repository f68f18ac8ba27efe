package delivery_test

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// kalypso refuses the changes that kustomize would refuse on the cluster, and names the field.
func TestOverlayChanges(t *testing.T) {
	patch := func(text string, target map[string]string) model.Kustomize {
		return model.Kustomize{Patches: []model.KustomPatch{{Patch: text, Target: target}}}
	}
	image := func(i model.KustomImage) model.Kustomize { return model.Kustomize{Images: []model.KustomImage{i}} }
	deployments := map[string]string{"kind": "Deployment"}
	digest := "sha256:" + strings.Repeat("0a", 32)
	for name, c := range map[string]struct {
		change  model.Kustomize
		message string // "" for no error
	}{
		"none":              {model.Kustomize{}, ""},
		"json":              {patch("- {op: remove, path: /spec/x}", deployments), ""},
		"json as json":      {patch(`[{"op": "remove", "path": "/spec/x"}]`, deployments), ""},
		"json no target":    {patch("- {op: remove, path: /spec/x}", nil), "does not say which objects"},
		"json no op":        {patch("- {path: /spec/x}", deployments), "has no op"},
		"json no operation": {patch("- remove", deployments), "has no op"},
		"merge":             {patch("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", nil), ""},
		"merge target":      {patch("spec: {replicas: 1}", deployments), ""},
		"merge no name":     {patch("apiVersion: v1\nkind: ConfigMap\n", nil), "names the object"},
		"delete":            {patch("$patch: delete\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", nil), ""},
		"text":              {patch("replicas", deployments), "neither"},
		"no yaml":           {patch("a: [", deployments), "cannot be read"},
		"bomb":              {patch(bomb, deployments), "cannot be read"},
		"bad target":        {patch("spec: {replicas: 1}", map[string]string{"name": "app("}), "no regular expression"},
		"tag":               {image(model.KustomImage{Name: "app", NewTag: "1"}), ""},
		"port":              {image(model.KustomImage{Name: "registry.example.test:5000/app", NewTag: "1"}), ""},
		"digest":            {image(model.KustomImage{Name: "app", Digest: digest}), ""},
		"nothing":           {image(model.KustomImage{Name: "app"}), "nothing of the image app is replaced"},
		"tag in name":       {image(model.KustomImage{Name: "app:1", NewTag: "2"}), "no name of an image"},
		"equals in name":    {image(model.KustomImage{Name: "app", NewName: "x=y"}), "no name of an image"},
		"digest in name":    {image(model.KustomImage{Name: "app", NewName: "app@" + digest}), "no name of an image"},
		"bad tag":           {image(model.KustomImage{Name: "app", NewTag: "1 2"}), "no tag"},
		"tag and digest":    {image(model.KustomImage{Name: "app", NewTag: "1", Digest: digest}), "takes the digest alone"},
		"prefix":            {model.Kustomize{NamePrefix: "dev-"}, ""},
		"prefix upper":      {model.Kustomize{NamePrefix: "Dev-"}, "begins with"},
		"prefix dash":       {model.Kustomize{NamePrefix: "-dev"}, "begins with"},
	} {
		t.Run(name, func(t *testing.T) {
			c.change.Git, c.change.Path = &model.Git{Repo: "https://git.example.test/app", Tag: "v1"}, "overlay"
			a := bt.Platform{Options: "{}"}.Assignment(t, bt.Target{Name: "app/main", Manifests: model.Manifests{Kustomize: &c.change}})
			s, ds := delivery.SourceOf(a)
			switch {
			case c.message == "" && len(ds) > 0:
				t.Errorf("got %+v", ds)
			case c.message == "" && (s.Overlay != &c.change || s.Git == nil || s.Git.Path != "overlay"):
				t.Errorf("got %+v", s)
			case c.message != "" && (len(ds) != 1 || ds[0].Code != diag.UnsupportedManifests || !strings.Contains(ds[0].Message, c.message) || len(ds[0].Sites) == 0):
				t.Errorf("got %+v, want %q", ds, c.message)
			}
		})
	}
}

// bomb is a YAML document of a few hundred bytes with millions of nodes.
var bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + func() (text string) {
	for _, level := range "12345678" {
		alias := "*a" + string(level-1)
		text += "a" + string(level) + ": &a" + string(level) + " [" + strings.Repeat(alias+", ", 9) + alias + "]\n"
	}
	return text
}()
