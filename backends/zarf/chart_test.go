package zarf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/kalypso-io/kalypso/backends/zarf"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
	"github.com/kalypso-io/kalypso/internal/testing/crdtest"
)

// If the workload is a chart, the workspace is a chart too. Helm's own code renders it to
// exactly the workspace's objects, whatever the values contain.
func TestWorkspaceChart(t *testing.T) {
	p := bt.Platform{Options: defaults}
	a := p.Assignment(t, bt.Target{
		Name: "app/main", Projection: projected(t, "1.2.3", deployment("app", pinned)),
		Manifests: model.Manifests{Helm: &model.Helm{OCI: "oci://registry.example.test/app", Version: "1.x", PlatformValues: "platform"}},
		Service:   `{"name": "x", "deletion": "delete", "quota": {"requests.cpu": "4"}, "annotations": {"example.test/text": "{{ fail \"rendered\" }}"}}`,
	})
	a.Values = bt.Value(t, `{"TEMPLATE": "{{ .Values.x }} {{ fail \"rendered\" }}", "LINES": "a\n---\nb\n", "db": {"host": "db.example.test"}}`)
	emission, ds := zarf.New().Emit(a)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	dir := t.TempDir()
	var want []string
	for _, f := range emission.Files {
		file := filepath.Join(dir, f.Path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
		if f.Path == "namespace.yaml" || f.Path == "platform-config.yaml" {
			want = append(want, documents(t, f.Data)...)
		}
	}
	chart, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Validate(); err != nil {
		t.Error(err)
	}
	if len(chart.Values) > 0 {
		t.Errorf("the workload's values are those of the workspace: %v", chart.Values)
	}
	values, err := chartutil.ToRenderValues(chart, nil, chartutil.ReleaseOptions{Name: "x", Namespace: a.Namespace}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, text := range rendered {
		got = append(got, documents(t, []byte(text))...)
	}
	if strings.Join(got, "\n---\n") != strings.Join(want, "\n---\n") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// documents returns the documents of a stream, as text.
func documents(t testing.TB, stream []byte) []string {
	t.Helper()
	docs, err := crdtest.Split(stream)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, doc := range docs {
		out = append(out, strings.TrimSpace(string(doc)))
	}
	return out
}
