package argocd_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends/argocd"
	"github.com/kalypso-io/kalypso/compiler/diag"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

func TestRendered(t *testing.T) {
	chart := bt.Target{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, bt.Rendered...)}
	hooked := chart
	hooked.Projection = bt.Projected(t, append(slices.Clone(bt.Rendered), bt.Hooks...)...)
	fetched := bt.Target{Name: "web/main", Manifests: bt.Git, DependsOn: []string{"app-main"}, Wave: 1}
	for name, p := range map[string]bt.Platform{
		"rendered":         {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{chart, fetched}},
		"rendered-alone":   {Options: defaults, Targets: []bt.Target{chart}},
		"rendered-only":    {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{chart}},
		"rendered-far":     {Options: remote, GitOps: bt.GitOps, Targets: []bt.Target{chart, fetched}},
		"rendered-hooks":   {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{hooked}},
		"rendered-options": {Options: all, GitOps: bt.GitOps, Targets: []bt.Target{chart}},
		"rendered-by-hand": {Options: byHand, GitOps: bt.GitOps, Targets: []bt.Target{chart}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, argocd.New(), p)
			tree.Check(t)
			checkArgoCD(t, tree)
			tree.Golden(t)
			if _, there := tree.Files["app-main/reconciler.yaml"]; there {
				t.Error("there is an Application for what the folder's own applies")
			}
		})
	}
}

// An object that is too large for an annotation is merged by the API server, also
// one of a list, and what it asks for itself stays.
func TestRenderedLarge(t *testing.T) {
	large := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large", "annotations": {"argocd.argoproj.io/sync-options": "Prune=false"}}, "data": {"x": %q}}`, strings.Repeat("x", 300<<10))
	small := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "small"}}`
	tree := bt.Build(t, argocd.New(), bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{
		{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, `{"apiVersion": "v1", "kind": "List", "items": [`+large+`, `+small+`]}`)},
	}})
	tree.Check(t)
	objects := bt.Objects(t, tree.Files["app-main/manifests.yaml"])
	if len(objects) != 2 {
		t.Fatalf("got %d objects, want those of the list", len(objects))
	}
	for i, want := range []string{"Prune=false,ServerSideApply=true", ""} {
		if got := objects[i].Metadata.Annotations["argocd.argoproj.io/sync-options"]; got != want {
			t.Errorf("%s: got %q, want %q", objects[i].Metadata.Name, got, want)
		}
	}
}

// A hook that must come first finds its namespace: the workspace is in an earlier
// wave, and the hooks follow each other by their weights.
func TestRenderedWaves(t *testing.T) {
	tree := bt.Build(t, argocd.New(), bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{
		{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, append(slices.Clone(bt.Rendered), bt.Hooks...)...)},
	}})
	waves := map[string]string{}
	for _, file := range []string{"namespace.yaml", "platform-config.yaml", "manifests.yaml"} {
		for _, o := range bt.Objects(t, tree.Files["app-main/"+file]) {
			waves[o.Kind+" "+o.Metadata.Name] = o.Metadata.Annotations["argocd.argoproj.io/hook"] + " " + o.Metadata.Annotations["argocd.argoproj.io/sync-wave"]
		}
	}
	for object, want := range map[string]string{
		"Namespace dev-large-app-main": " -12", "ServiceAccount app": " -12", "ConfigMap platform-config": " -12",
		"CustomResourceDefinition shops.example.test": " -12", "ConfigMap migrate": "Sync -11", "Job migrate": "Sync -1",
		"Deployment app": " ", "Job announce": " ", "Job drain": " ",
	} {
		if waves[object] != want {
			t.Errorf("%s: got %q, want %q", object, waves[object], want)
		}
	}
	for _, gone := range []string{"Pod test", "ConfigMap undo"} {
		if _, there := waves[gone]; there {
			t.Errorf("%s is a hook that Argo CD never runs", gone)
		}
	}
}

// A hook for several events runs at all of them.
func TestRenderedHookOfSeveralEvents(t *testing.T) {
	hook := `post-delete,pre-install,pre-upgrade {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": {"helm.sh/hook": "pre-install,pre-upgrade,post-delete"}}}`
	tree := bt.Build(t, argocd.New(), bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{
		{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, hook)},
	}})
	if got := bt.Objects(t, tree.Files["app-main/manifests.yaml"])[0].Metadata.Annotations["argocd.argoproj.io/hook"]; got != "PostDelete,Sync" {
		t.Errorf("got %s", got)
	}
}

func TestRenderedRefusals(t *testing.T) {
	for weight, want := range map[string][]diag.Code{"7": nil, "-3": nil, "first": {diag.NotRendered}, "99999999999": {diag.NotRendered}} {
		hook := fmt.Sprintf(`pre-install {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": {"helm.sh/hook": "pre-install", "helm.sh/hook-weight": %q}}}`, weight)
		tree := bt.Build(t, argocd.New(), bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, hook)},
		}})
		if got := bt.Codes(tree.Diagnostics); !slices.Equal(got, want) {
			t.Errorf("weight %s: got %v, want %v", weight, got, want)
		}
	}
}
