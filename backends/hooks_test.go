package backends_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// hookWarnings are the warnings about rendered hooks, by backend. The first list is for a test
// whose name differs with each render, together with a hook of Argo CD's own. The second list is
// for a hook of a deletion that differs. A list is empty if the
// build fails, because the reconciler runs the hook.
var hookWarnings = map[string][2][]string{
	"flux": {
		{"hooks among the rendered manifests of app-main are applied as ordinary objects: Job argo (PreSync); left out: Pod probe (test)"},
		{"hooks among the rendered manifests of app-main are left out: ConfigMap drain (post-delete)"}},
	"argocd": {{"hooks among the rendered manifests of app-main are left out: Pod probe (test)"}},
	"zarf": {{"the tests among the rendered manifests of app-main are left out: Zarf runs none",
		"hooks among the rendered manifests of app-main are applied as ordinary objects: Job argo (PreSync)"}},
	"fleet": {{"hooks among the rendered manifests of app-main are applied as ordinary objects: Job argo (PreSync); left out: Pod probe (test)"}},
	"gotemplate": {
		{"the chart of app-main has hooks, which no template can run: those of an installation or upgrade are applied with the rest, the others not at all"},
		{"the chart of app-main has hooks, which no template can run: those of an installation or upgrade are applied with the rest, the others not at all"}},
	"cue": {
		{"hooks among the rendered manifests of app-main are left out: Pod probe (test)"},
		{"hooks among the rendered manifests of app-main are left out: ConfigMap drain (post-delete)"}},
}

// A hook that differs with each render is in no file: it is left out with a warning, or an error
// where the reconciler would run it. A hook of Argo CD's own is named where nothing knows it.
func TestHooks(t *testing.T) {
	const app = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}}`
	tests := bt.Projected(t, app, `test {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "annotations": {"helm.sh/hook": "test"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}`,
		`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "argo", "annotations": {"argocd.argoproj.io/hook": "PreSync"}}}`)
	deletion := bt.Projected(t, app, `post-delete {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "drain", "annotations": {"helm.sh/hook": "post-delete"}}}`)
	tests.Objects[1].Unstable, deletion.Objects[1].Unstable = "it differs", "it differs"
	options := strings.Replace(settings, "data: {}", `data: {names: "{{ range .Rendered }}{{ .metadata.name }} {{ end }}"}`, 1)
	for _, b := range all {
		if reason(b, model.HelmSource, true) != "" {
			continue
		}
		for i, p := range []*model.Projection{tests, deletion} {
			tree := bt.Build(t, b, bt.Platform{Options: strings.Replace(b.options, bt.JSON(settings), bt.JSON(options), 1), GitOps: bt.GitOps,
				Targets: []bt.Target{{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: p}}})
			var warnings []string
			var refused []diag.Diagnostic
			for _, d := range tree.Diagnostics {
				switch d.Code {
				case diag.Hook:
					warnings = append(warnings, d.Message)
				case diag.Unstable:
					refused = append(refused, d)
				}
			}
			if want := hookWarnings[b.Name()][i]; !slices.Equal(warnings, want) {
				t.Errorf("%s: got %q, want %q", b.Name(), warnings, want)
			} else if want == nil {
				if len(refused) != 1 || refused[0].Message != "it differs" || refused[0].Hint == "" || len(refused[0].Sites) == 0 || len(refused[0].Assignments) != 1 || len(tree.Folders) > 0 {
					t.Errorf("%s: got %+v, want one K3016 and no folder", b.Name(), refused)
				}
			} else if len(tree.Folders) != 1 {
				t.Errorf("%s: %v", b.Name(), tree.Diagnostics)
			}
			if text := tree.Files["app-main/manifests.yaml"]; i == 0 && b.Name() == "flux" && !bytes.Contains(text, []byte("kustomize.toolkit.fluxcd.io/force: enabled")) {
				t.Errorf("Flux cannot change the Job of a hook:\n%s", text)
			}
			for file, text := range tree.Files {
				for _, name := range []string{"probe", "drain"} {
					if bytes.Contains(text, []byte(name)) {
						t.Errorf("%s: %s has %s:\n%s", b.Name(), file, name, text)
					}
				}
			}
		}
	}
}
