package argocd_test

import (
	"cmp"
	"encoding/json"
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

// The API server merges an object that is too large for an annotation, even in a list. The
// object's own options stay.
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

// Argo CD's own hooks, and negative waves, find the workspace as Helm's hooks do. Each object is
// "name", or "events name", with its annotations. The wanted text is its hook annotation and its
// wave, or - for an object that is left out.
func TestRenderedOwnHooks(t *testing.T) {
	const hook, wave, helm, weight = "argocd.argoproj.io/hook", "argocd.argoproj.io/sync-wave", "helm.sh/hook", "helm.sh/hook-weight"
	type annotations = map[string]string
	for name, c := range map[string]struct {
		objects   map[string]annotations
		workspace string
		want      map[string]string
	}{
		"alone": {map[string]annotations{"a": {hook: "PreSync"}, "c": nil}, "-2", map[string]string{"a": "Sync -1", "c": " "}},
		"several": {map[string]annotations{"a": {hook: "PreSync, PostSync"}, "b": {hook: "Sync,PreSync"}, "c": {hook: "Skip,PreSync,PreSync"}}, "-2",
			map[string]string{"a": "PostSync,Sync -1", "b": "Sync -1", "c": "Skip,Sync -1"}},
		"among themselves": {map[string]annotations{"a": {hook: "PreSync", wave: "-5"}, "b": {hook: "PreSync", wave: "3"}, "pre-install h": {helm: "pre-install", weight: "1"}, "pre-upgrade i": {helm: "pre-upgrade", weight: "1", wave: "2"}}, "-10",
			map[string]string{"a": "Sync -9", "b": "Sync -1", "h": "Sync -3", "i": "Sync -2"}},
		"negative waves": {map[string]annotations{"a": {wave: "-3"}, "b": {hook: "Sync", wave: "-7"}, "c": {wave: "4"}}, "-8",
			map[string]string{"a": " -3", "b": "Sync -7", "c": " 4"}},
		"a weight of no hook": {map[string]annotations{"a": {weight: "-2"}}, "-3",
			map[string]string{"a": " "}},
		"before negative waves": {map[string]annotations{"a": {hook: "PreSync"}, "b": {wave: "-3"}, "pre-install c": {helm: "pre-install", weight: "-1"}}, "-6",
			map[string]string{"a": "Sync -4", "b": " -3", "c": "Sync -5"}},
		"other phases": {map[string]annotations{"a": {hook: "PostSync", wave: "-3"}, "b": {hook: "SyncFail", wave: "-4"}, "c": {hook: "Skip", wave: "-5"}, "d": {hook: "PreDelete", wave: "-6"}, "e": {hook: "PostDelete"}, "f": {hook: "Sync"}}, "",
			map[string]string{"a": "PostSync -3", "b": "SyncFail -4", "c": "Skip -5", "d": "PreDelete -6", "e": "PostDelete ", "f": "Sync "}},
		"no numbers": {map[string]annotations{"a": {hook: "PreSync", wave: "first"}, "pre-install b": {helm: "pre-install", weight: "last"}, "pre-install c": {helm: "pre-install", weight: "-1", wave: "x"}, "d": {wave: "-1.5"}}, "-3",
			map[string]string{"a": "Sync -1", "b": "Sync -1", "c": "Sync -2", "d": " -1.5"}},
		"its own wins": {map[string]annotations{"post-install a": {helm: "post-install", hook: "PreSync"}, "pre-install b": {helm: "pre-install", hook: "PostSync"}, "test c": {helm: "test", hook: "PostSync"}}, "-2",
			map[string]string{"a": "Sync -1", "b": "PostSync ", "c": "PostSync "}},
		"its own is of another": {map[string]annotations{"pre-install a": {helm: "pre-install", hook: "PreDelete"}, "post-delete,pre-install b": {helm: "pre-install,post-delete", hook: "PreSync"}}, "-2",
			map[string]string{"a": "PreDelete,Sync -1", "b": "PostDelete,Sync -1"}},
		"what Argo CD passes by": {map[string]annotations{"a": {hook: "BeforeSync"}, "b": {helm: "test"}, "test c": {helm: "test"}, "d": {helm: "pre-install"}}, "-2",
			map[string]string{"a": "-", "b": "-", "c": "-", "d": "Sync -1"}},
	} {
		var objects []string
		for key, a := range c.objects {
			events, name, isHook := strings.Cut(key, " ")
			if !isHook {
				events, name = "", key
			}
			text, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "annotations": a}})
			objects = append(objects, strings.TrimSpace(events+" "+string(text)))
		}
		objects = append(objects, bt.Rendered[0], `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "item", "annotations": {"argocd.argoproj.io/hook": "Sync"}}}]}`)
		tree := bt.Build(t, argocd.New(), bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, objects...)},
		}})
		tree.Check(t)
		got := map[string]string{}
		for _, file := range []string{"namespace.yaml", "platform-config.yaml", "manifests.yaml"} {
			for _, o := range bt.Objects(t, tree.Files["app-main/"+file]) {
				got[o.Metadata.Name] = o.Metadata.Annotations[hook] + " " + o.Metadata.Annotations[wave]
			}
		}
		for _, first := range []string{"dev-large-app-main", "platform-config", "shops.example.test"} {
			if got[first] != " "+c.workspace {
				t.Errorf("%s: %s is in wave%s, want %s", name, first, got[first], c.workspace)
			}
		}
		var left []string
		for object, want := range c.want {
			if is := cmp.Or(got[object], "-"); is != want {
				t.Errorf("%s: got %q for %s, want %q", name, is, object, want)
			}
			if want == "-" {
				left = append(left, object)
			}
		}
		if (len(tree.Diagnostics) > 0) != (len(left) > 0) || len(left) > 0 && strings.Count(tree.Diagnostics[0].Message, "ConfigMap ") != len(left) {
			t.Errorf("%s: got %v, want a warning that names %v", name, tree.Diagnostics, left)
		}
	}
}

func TestRenderedRefusals(t *testing.T) {
	for annotations, want := range map[string][]diag.Code{
		`"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "7"`: nil, `"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "-3"`: nil,
		`"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "first"`:                                nil,
		`"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "99999999999"`:                          {diag.NotRendered},
		`"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/sync-wave": "-99999999999"`:         {diag.NotRendered},
		`"argocd.argoproj.io/sync-wave": "-99999999999"`:                                               {diag.NotRendered},
		`"argocd.argoproj.io/hook": "PostSync", "argocd.argoproj.io/sync-wave": "-99999999999"`:        nil,
		`"argocd.argoproj.io/sync-wave": "99999999999"`:                                                nil,
		`"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/sync-wave": "99999999999999999999"`: nil,
	} {
		hook := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": {` + annotations + `}}}`
		tree := bt.Build(t, argocd.New(), bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, hook)},
		}})
		if got := bt.Codes(tree.Diagnostics); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", annotations, got, want)
		}
	}
}
