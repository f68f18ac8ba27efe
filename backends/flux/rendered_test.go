package flux_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends/flux"
	"github.com/kalypso-io/kalypso/compiler/diag"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

func TestRendered(t *testing.T) {
	chart := bt.Target{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, bt.Rendered...)}
	hooked := chart
	hooked.Projection = bt.Projected(t, append(slices.Clone(bt.Rendered), bt.Hooks...)...)
	empty := bt.Target{Name: "app/main", Manifests: bt.Git, Render: true, Projection: bt.Projected(t)}
	const decrypting = `{"interval": "10m", "namespace": "flux-system", "prune": true, "wait": true, ` +
		`"decryption": {"provider": "sops", "secretRef": "sops-age", "serviceAccountName": "sops"}}`
	encrypted := bt.Target{Name: "app/main", Manifests: bt.Git, Render: true, Projection: bt.Projected(t,
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"a": "ENC[AES256_GCM,data:x,type:str]"},`+
			`"sops": {"mac": "ENC[AES256_GCM,data:x,type:str]", "encrypted_regex": "^stringData$"}}`)}
	dependent := bt.Target{Name: "web/main", Manifests: bt.Git, DependsOn: []string{"app-main"}, Wave: 1}
	for name, p := range map[string]bt.Platform{
		"rendered":           {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{chart, dependent}},
		"rendered-alone":     {Options: defaults, Targets: []bt.Target{chart}},
		"rendered-hooks":     {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{hooked}},
		"rendered-hasty":     {Options: hasty, GitOps: bt.GitOps, Targets: []bt.Target{chart, dependent}},
		"rendered-empty":     {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{empty}},
		"rendered-encrypted": {Options: decrypting, GitOps: bt.GitOps, Targets: []bt.Target{encrypted, dependent}},
		"rendered-unread":    {Options: defaults, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git, Render: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, flux.New(), p)
			tree.Check(t)
			tree.Golden(t)
			if _, there := tree.Files["app-main/reconciler.yaml"]; there {
				t.Error("there is an object to apply what is applied with the folder")
			}
		})
	}
}

func TestRenderedRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		options, object string
		want            []diag.Code
		message         string
	}{
		"service-account": {`{"interval": "10m", "namespace": "flux-system", "prune": true, "wait": true, "serviceAccountName": "deployer"}`, bt.Rendered[4],
			[]diag.Code{diag.UnsupportedManifests}, "in the name of a service account"},
		"account-twice":   {defaults, `{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "app"}}`, []diag.Code{diag.NameCollision}, "both create ServiceAccount app"},
		"namespace-twice": {defaults, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dev-large-app-main"}}`, []diag.Code{diag.NameCollision}, "both create Namespace"},
		"no-object":       {defaults, `{"apiVersion": "v1", "kind": "ConfigMap"}`, []diag.Code{diag.NotRendered}, "no metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, flux.New(), bt.Platform{Options: c.options, GitOps: bt.GitOps, Targets: []bt.Target{
				{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, c.object)},
			}})
			if got := bt.Codes(tree.Diagnostics); !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v: %+v", got, c.want, tree.Diagnostics)
			}
			if d := tree.Diagnostics[0]; !strings.Contains(d.Message, c.message) || len(d.Sites) == 0 {
				t.Errorf("got %+v, want a message with %q and a site", d, c.message)
			}
		})
	}
}
