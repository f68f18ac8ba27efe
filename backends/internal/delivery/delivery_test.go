package delivery_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

func TestExact(t *testing.T) {
	for v, want := range map[string]bool{
		"1.2.3": true, "1.2.3-rc.1+build.5": true,
		"1.2": false, "v1.2.3": false, "1.x": false, ">=1.2.3": false, "=1.2.3": false, "latest": false, "": false,
	} {
		if got := delivery.Exact(v); got != want {
			t.Errorf("%s: got %v", v, got)
		}
	}
}

func TestPath(t *testing.T) {
	for want, elem := range map[string][]string{
		".": {"."}, "a": {"./a/"}, "a/b/c": {"a", "./b", "/c"}, "etc": {"..", "..", "etc"}, "x": {"a/../../x"}, "large": {"", "large"},
	} {
		if got := delivery.Path(elem...); got != want {
			t.Errorf("%q: got %s, want %s", elem, got, want)
		}
	}
}

// FuzzPathStaysInside checks that a join of any two paths is relative and stays inside the
// folder.
func FuzzPathStaysInside(f *testing.F) {
	f.Add("a/../..", "../b")
	f.Fuzz(func(t *testing.T, a, b string) {
		p := delivery.Path(a, b)
		if p == "" || strings.HasPrefix(p, "/") || p == ".." || strings.HasPrefix(p, "../") {
			t.Errorf("%q and %q make %q", a, b, p)
		}
	})
}

// The platform's values are added to the application's values, which do not change. Neither input
// changes.
func TestChartValues(t *testing.T) {
	for _, c := range []struct{ values, path, want string }{
		{``, "", ``},
		{`{}`, "", ``},
		{`{"a": 1}`, "", `{"a": 1}`},
		{``, "p", `{"p": V}`},
		{``, "p.q.r", `{"p": {"q": {"r": V}}}`},
		{`{"a": 1, "p": {"x": [1]}}`, "p.q", `{"a": 1, "p": {"x": [1], "q": V}}`},
		{`{"p": {"q": {}}}`, "p.q.r", `{"p": {"q": {"r": V}}}`},
	} {
		h := &model.Helm{OCI: "oci://x/y", Version: "1.2.3", PlatformValues: c.path}
		a := bt.Platform{Options: "{}"}.Assignment(t, bt.Target{Name: "app/main", Manifests: model.Manifests{Helm: h}})
		var before model.Value
		if c.values != "" {
			before = bt.Value(t, c.values)
			given := bt.Value(t, c.values)
			h.Values = &given
		}
		got := delivery.ChartValues(a, h)
		if h.Values != nil && !h.Values.Equal(before) {
			t.Errorf("%s at %q: the application's values were changed", c.values, c.path)
		}
		switch want := strings.ReplaceAll(c.want, "V", a.Values.String()); {
		case c.want == "":
			if got != nil {
				t.Errorf("%s at %q: got %v, want none", c.values, c.path, got)
			}
		case got == nil || !got.Equal(bt.Value(t, want)):
			t.Errorf("%s at %q: got %v, want %s", c.values, c.path, got, want)
		}
	}
}

// The files of a namespace service are beside the files of the reconciler. Files that contain only
// objects are applied with the folder.
func TestEmissionWithFiles(t *testing.T) {
	service := func(described string) *backends.Assignment {
		return bt.Platform{Options: "{}"}.Assignment(t, bt.Target{Name: "app/main", Manifests: bt.Git, Service: `{"name": "default", "files": ` + described + `}`})
	}
	content := delivery.Content{Reconciler: []kubernetes.Object{{APIVersion: "v1", Kind: "ConfigMap", Metadata: kubernetes.Metadata{Name: "x"}}}}
	e, ds := delivery.Emission(service(`{
		"catalog.yaml": {"yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "catalog"}}},
		"docs/notes.md": {"text": "# Notes"}, "values.yaml": {"yaml": {"a": 1}}}`), content)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	var paths []string
	for _, f := range e.Files {
		paths = append(paths, f.Path)
		if want := "- catalog.yaml\n- namespace.yaml\n- platform-config.yaml\n- reconciler.yaml\n"; f.Path == "kustomization.yaml" && !strings.HasSuffix(string(f.Data), want) {
			t.Errorf("got %s", f.Data)
		}
	}
	if want := "catalog.yaml docs/notes.md kustomization.yaml namespace.yaml platform-config.yaml reconciler.yaml values.yaml"; strings.Join(paths, " ") != want {
		t.Errorf("got %v, want %s", paths, want)
	}
	if !slices.Contains(e.Objects, backends.Object{Kind: "ConfigMap", Name: "catalog"}) {
		t.Errorf("got %v", e.Objects)
	}
	for _, name := range []string{"kustomization.yaml", "namespace.yaml", "Reconciler.yaml"} {
		if _, ds := delivery.Emission(service(`{"`+name+`": {"text": ""}}`), content); !slices.Equal(bt.Codes(ds), []diag.Code{diag.BadFile}) {
			t.Errorf("%s: got %v", name, ds)
		}
	}
}

// A rendered chart has one text, so clusters' own values do not reach it: SameOnAll warns about it.
func TestSameOnAll(t *testing.T) {
	values := bt.Value(t, `{"REGION": "here"}`)
	own := []model.Cluster{{Name: "one"}, {Name: "two", Values: &values}}
	chart := model.Manifests{Helm: &model.Helm{OCI: "oci://x/y", Version: "1.2.3", PlatformValues: "platform"}}
	for name, c := range map[string]struct {
		clusters  []model.Cluster
		manifests model.Manifests
		render    bool
		want      int
	}{
		"rendered":           {own, chart, true, 1},
		"installed":          {own, chart, false, 0},
		"no values":          {own[:1], chart, true, 0},
		"not the platform's": {own, bt.Registry, true, 0},
		"no chart":           {own, bt.Git, true, 0},
	} {
		a := bt.Platform{Options: "{}", Clusters: c.clusters}.Assignment(t, bt.Target{Name: "app/main", Manifests: c.manifests, Render: c.render})
		if ds := delivery.SameOnAll(a); len(ds) != c.want {
			t.Errorf("%s: got %v", name, ds)
		}
	}
}
