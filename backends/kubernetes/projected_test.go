package kubernetes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

func manifests(t *testing.T, objects ...string) (string, []backends.Object, []diag.Diagnostic) {
	t.Helper()
	a := bt.Platform{Options: "{}"}.Assignment(t, bt.Target{Name: "app/main", Manifests: bt.Chart, Render: true})
	files, identities, ds := kubernetes.Manifests(a, bt.Projected(t, objects...).Objects)
	if len(files) == 0 {
		return "", identities, ds
	}
	return string(files[0].Data), identities, ds
}

// Each object has the correct namespace: its own, the assignment's or no namespace, as its kind or
// its CRD says.
func TestManifestsScopes(t *testing.T) {
	crd := func(kind, scope string) string {
		return fmt.Sprintf(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "%s"},
			"spec": {"group": "example.test", "scope": %q, "names": {"kind": %q}}}`, strings.ToLower(kind), scope, kind)
	}
	of := func(api, kind, metadata string) string {
		return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": "x"%s}}`, api, kind, metadata)
	}
	for name, c := range map[string]struct {
		objects []string
		want    string // the namespace of the last object
	}{
		"namespaced":       {[]string{of("apps/v1", "Deployment", "")}, "dev-large-app-main"},
		"elsewhere":        {[]string{of("v1", "ConfigMap", `, "namespace": "kube-system"`)}, "kube-system"},
		"cluster":          {[]string{of("rbac.authorization.k8s.io/v1", "ClusterRole", "")}, ""},
		"cluster anyway":   {[]string{of("rbac.authorization.k8s.io/v1", "ClusterRole", `, "namespace": "x"`)}, ""},
		"unknown":          {[]string{of("example.test/v1", "Shop", "")}, "dev-large-app-main"},
		"crd cluster":      {[]string{crd("Shop", "Cluster"), of("example.test/v1", "Shop", "")}, ""},
		"crd namespaced":   {[]string{crd("Shop", "Namespaced"), of("example.test/v1", "Shop", "")}, "dev-large-app-main"},
		"crd afterwards":   {[]string{`{"apiVersion": "v1", "kind": "List", "items": [` + crd("Shop", "Cluster") + `]}`, of("example.test/v2", "Shop", "")}, ""},
		"crd of others":    {[]string{crd("Shop", "Cluster"), of("other.test/v1", "Shop", "")}, "dev-large-app-main"},
		"core and grouped": {[]string{of("example.test/v1", "Namespace", "")}, "dev-large-app-main"},
	} {
		_, objects, ds := manifests(t, c.objects...)
		if len(ds) > 0 || len(objects) != len(c.objects) {
			t.Errorf("%s: got %v, %v", name, objects, ds)
			continue
		}
		if got := objects[len(objects)-1].Namespace; got != c.want {
			t.Errorf("%s: got namespace %q, want %q", name, got, c.want)
		}
	}
}

// kalypso's labels and annotations replace the object's own. Everything else stays, including
// strings that YAML would read as another type.
func TestManifestsKeep(t *testing.T) {
	text, objects, ds := manifests(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "finalizers": ["example.test/x"],
		"labels": {"app.kubernetes.io/managed-by": "Helm", "app": "app"}, "annotations": {"kalypso.io/assignment": "someone/else", "note": "no"}},
		"data": {"answer": "no", "port": "8080", "script": "echo ${HOME}\n"}, "immutable": false}`)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	want := `apiVersion: v1
kind: ConfigMap
metadata:
  name: app
  namespace: dev-large-app-main
  labels:
    app: app
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/app-main
    note: "no"
  finalizers:
  - example.test/x
data:
  answer: "no"
  port: "8080"
  script: |
    echo ${HOME}
immutable: false
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if !slices.Equal(objects, []backends.Object{{Kind: "ConfigMap", Namespace: "dev-large-app-main", Name: "app"}}) {
		t.Errorf("got %v", objects)
	}
}

func TestManifestsRefuses(t *testing.T) {
	for object, want := range map[string]string{
		`{"kind": "ConfigMap", "metadata": {"name": "x"}}`:                                                    "ConfigMap x has no apiVersion",
		`{"apiVersion": "v1", "metadata": {"name": "x"}}`:                                                     "an object x has no kind",
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}`:                       "ConfigMap has no metadata.name",
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": 3}}`:                                  "no metadata.name",
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": "x"}`:                                          "no metadata.name",
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"a": true}}}`:         "has a, which is no string: true",
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": {"a": 1}}}`:       "has a, which is no string: 1",
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "` + strings.Repeat("x", 254) + `"}}`: "too long for Kubernetes",
		`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap"}]}`:          "no metadata.name",
		`{"apiVersion": "v1", "kind": "List", "items": [` + strings.Repeat(twice+",", 1) + twice + `]}`:       "ConfigMap x is there twice",
		`{}`: "an object has no apiVersion",
	} {
		text, _, ds := manifests(t, object)
		if len(ds) == 0 || ds[0].Code != diag.NotRendered || !strings.Contains(ds[0].Message, want) || len(ds[0].Sites) == 0 || len(ds[0].Assignments) == 0 {
			t.Errorf("%s: got %+v, want %q", object, ds, want)
		}
		if len(ds) > 0 && ds[0].Hint == "" {
			t.Errorf("%s: %s has no hint", object, ds[0].Message)
		}
		if text != "" {
			t.Errorf("%s: there is a file all the same", object)
		}
	}
}

const twice = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}`

// Secrets with their data in plain text are reported once, together.
func TestManifestsWarnsOfSecrets(t *testing.T) {
	secret := func(name, data string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": %q}%s}`, name, data)
	}
	text, _, ds := manifests(t, secret("a", `, "data": {"x": "eA=="}`), secret("b", `, "stringData": {"x": "x"}`), secret("c", ""), secret("d", `, "data": {}`))
	if len(ds) != 1 || ds[0].Code != diag.Plaintext || ds[0].Severity != diag.Warning || !strings.HasSuffix(ds[0].Message, "plain text: a, b") {
		t.Errorf("got %+v", ds)
	}
	if text == "" {
		t.Error("a warning keeps the file")
	}
}

func TestWithoutHooks(t *testing.T) {
	objects := bt.Projected(t, append(slices.Clone(bt.Rendered[:1]), bt.Hooks...)...).Objects
	names := func(objects []model.Projected) (out []string) {
		for _, o := range objects {
			metadata, _ := o.Value.Lookup("metadata")
			name, _ := metadata.Lookup("name")
			out = append(out, name.Text())
		}
		return out
	}
	applied, left := kubernetes.WithoutHooks(objects)
	if got := names(applied); !slices.Equal(got, []string{"shops.example.test", "migrate", "migrate", "announce"}) {
		t.Errorf("applied are %v", got)
	}
	if got := names(left); !slices.Equal(got, []string{"drain", "undo", "test"}) {
		t.Errorf("left out are %v", got)
	}
}

// FuzzManifests writes whatever charts may render: every file that comes out has
// as many objects as are listed.
func FuzzManifests(f *testing.F) {
	for _, object := range bt.Rendered {
		f.Add(object)
	}
	f.Add(`{"apiVersion": "v1", "kind": "List", "items": [{"kind": "List", "items": [null, 1, []]}]}`)
	a := bt.Platform{Options: "{}"}.Assignment(f, bt.Target{Name: "app/main", Manifests: bt.Chart, Render: true})
	f.Fuzz(func(t *testing.T, text string) {
		var v model.Value
		if v.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		files, objects, ds := kubernetes.Manifests(a, []model.Projected{{Value: v}})
		if len(files) == 0 {
			if len(objects) > 0 {
				t.Errorf("%s: objects without a file", text)
			}
			return
		}
		if got := bt.Objects(t, files[0].Data); diag.Errors(ds) || len(got) != len(objects) {
			t.Errorf("%s: %d objects are written, %d listed, %v", text, len(got), len(objects), ds)
		}
	})
}
