package backends_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/argocd"
	"github.com/kalypso-io/kalypso/backends/fleet"
	"github.com/kalypso-io/kalypso/backends/flux"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/zarf"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

const restartOptions = `{"namespace": "x", "interval": "10m", "prune": true, "wait": true, "pollingInterval": "1m", "architecture": "amd64", "required": true, "syncPolicy": {"automated": {"prune": true, "selfHeal": true}}}`

// digestIn returns the digest that causes restarts in a tree. It returns "" if the tree has no
// digest.
func digestIn(tree bt.Tree) string {
	for _, data := range tree.Files {
		if _, rest, found := bytes.Cut(data, []byte(kubernetes.RestartAnnotation+": ")); found {
			digest, _, _ := bytes.Cut(rest, []byte("\n"))
			return string(digest)
		}
	}
	return ""
}

// The digest on pod templates changes only with the platform config. If there is no digest,
// a warning says so.
func TestRestart(t *testing.T) {
	rendered := bt.Projected(t, bt.Rendered...)
	for name, c := range map[string]struct {
		backend backends.Backend
		target  bt.Target
		warns   bool
	}{
		"flux git":         {flux.New(), bt.Target{Manifests: bt.Git}, false},
		"flux chart":       {flux.New(), bt.Target{Manifests: bt.Chart}, false},
		"flux overlay":     {flux.New(), bt.Target{Manifests: bt.Overlay}, false},
		"flux rendered":    {flux.New(), bt.Target{Manifests: bt.Chart, Render: true, Projection: rendered}, false},
		"argocd git":       {argocd.New(), bt.Target{Manifests: bt.Git}, true},
		"argocd chart":     {argocd.New(), bt.Target{Manifests: bt.Registry}, true},
		"argocd overlay":   {argocd.New(), bt.Target{Manifests: bt.Overlay}, false},
		"argocd rendered":  {argocd.New(), bt.Target{Manifests: bt.Git, Render: true, Projection: rendered}, false},
		"fleet git":        {fleet.New(), bt.Target{Manifests: bt.Git}, true},
		"fleet rendered":   {fleet.New(), bt.Target{Manifests: bt.Git, Render: true, Projection: rendered}, false},
		"zarf rendered":    {zarf.New(), bt.Target{Manifests: bt.Git, Render: true, Projection: rendered}, false},
		"rendered no pods": {flux.New(), bt.Target{Manifests: bt.Git, Render: true, Projection: bt.Projected(t, bt.Rendered[1])}, true},
	} {
		t.Run(name, func(t *testing.T) {
			build := func(restart bool, values string) bt.Tree {
				target := c.target
				target.Name, target.Restart, target.Values = "app/main", restart, values
				return bt.Build(t, c.backend, bt.Platform{Options: restartOptions, GitOps: bt.GitOps, Targets: []bt.Target{target}})
			}
			without, one := build(false, `{"A": 1}`), build(true, `{"A": 1}`)
			if digest := digestIn(without); digest != "" || slices.Contains(bt.Codes(without.Diagnostics), diag.NoRestart) {
				t.Errorf("nobody asked for restarts: %q, %+v", digest, without.Diagnostics)
			}
			if warned := slices.Contains(bt.Codes(one.Diagnostics), diag.NoRestart); warned != c.warns {
				t.Errorf("got %+v", one.Diagnostics)
			}
			first, again, other := digestIn(one), digestIn(build(true, `{"A": 1}`)), digestIn(build(true, `{"A": 2}`))
			if (first == "") != c.warns || first != again || !c.warns && first == other {
				t.Errorf("got digests %q, %q, and %q for another value", first, again, other)
			}
		})
	}
}

// Kustomize applies the patches to each object of their kinds, and accepts patches without
// an object.
func TestRestartPatches(t *testing.T) {
	a := bt.Platform{Options: "{}"}.Assignment(t, bt.Target{Name: "app/main", Restart: true})
	var patches []types.Patch
	for _, p := range kubernetes.RestartPatches(a) {
		patches = append(patches, types.Patch{Patch: p.Patch, Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Group: p.Target["group"], Kind: p.Target["kind"]}}}})
	}
	objects := ""
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		for _, name := range []string{"one", "two"} {
			objects += "---\napiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: {template: {metadata: {annotations: {own: x}}, spec: {containers: [{name: c, image: i}]}}}\n"
		}
	}
	objects += "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\nspec: {template: {spec: {containers: [{name: c, image: i}]}}}\n"
	k, err := yaml.Marshal(types.Kustomization{Resources: []string{"all.yaml"}, Patches: patches})
	if err != nil {
		t.Fatal(err)
	}
	fs := filesys.MakeFsInMemory()
	if err := fs.WriteFile("/x/kustomization.yaml", k); err != nil {
		t.Fatal(err)
	}
	if err := fs.WriteFile("/x/all.yaml", []byte(objects)); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/x")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range built.Resources() {
		text := r.MustYaml()
		if got := strings.Contains(text, kubernetes.RestartAnnotation); got != (r.GetKind() != "Job") || got && !strings.Contains(text, "own: x") {
			t.Errorf("got\n%s", text)
		}
	}
}

// Values of single clusters and a different format change the config.
func TestRestartOfClusters(t *testing.T) {
	seen := map[string]string{}
	value := bt.Value(t, `{"A": 1}`)
	for name, p := range map[string]struct {
		clusters []model.Cluster
		format   model.ConfigFormat
	}{
		"plain": {}, "json": {format: model.ConfigFormat("json")}, "own": {clusters: []model.Cluster{{Name: "edge-1", Values: &value}}},
	} {
		a := bt.Platform{Options: "{}", Clusters: p.clusters}.Assignment(t, bt.Target{Name: "app/main", Restart: true, Format: p.format})
		patch := kubernetes.RestartPatches(a)[0].Patch
		if other, twice := seen[patch]; twice {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[patch] = name
	}
}
