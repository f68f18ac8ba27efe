package files_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/files"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

var ref = model.Ref{Collection: "reconcilers", Name: "main", Path: "cue.files"}

func assignment(t testing.TB, service string) *backends.Assignment {
	p := bt.Platform{Options: "{}"}
	return p.Assignment(t, bt.Target{Name: "app/main", Manifests: bt.Git, Service: service})
}

// TestContent checks the content of each form of a #File, byte by byte.
func TestContent(t *testing.T) {
	for name, c := range map[string]struct{ described, want string }{
		"text":           {`{"text": "a\r\nb"}`, "a\r\nb"},
		"empty-text":     {`{"text": ""}`, ""},
		"yaml":           {`{"yaml": {"b": "no", "a": [1, 1.0, "1"]}}`, "a:\n- 1\n- 1.0\n- \"1\"\nb: \"no\"\n"},
		"yaml-scalar":    {`{"yaml": "x"}`, "x\n"},
		"documents":      {`{"documents": [{"a": 1}, {"b": 2}]}`, "a: 1\n---\nb: 2\n"},
		"json":           {`{"json": {"b": "<", "a": [1, 1.0]}}`, "{\n  \"a\": [\n    1,\n    1.0\n  ],\n  \"b\": \"<\"\n}\n"},
		"no-object":      {`{"yaml": {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration"}}`, "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"},
		"object":         {`{"yaml": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x", "labels": {"a": "b"}, "finalizers": ["f"]}, "data": {}}}`, object},
		"object-in-list": {`{"yaml": {"apiVersion": "v1", "kind": "List", "items": [{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x", "labels": {"a": "b"}, "finalizers": ["f"]}, "data": {}}]}}`, object},
		"json-object":    {`{"json": {"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x", "namespace": "n"}}]}}`, jsonObject},
	} {
		t.Run(name, func(t *testing.T) {
			got, ds := files.Describe(assignment(t, ""), bt.Value(t, `{"f": `+c.described+`}`), ref)
			if len(ds) > 0 {
				t.Fatal(ds)
			}
			if len(got.Files) != 1 || string(got.Files[0].Data) != c.want {
				t.Errorf("got %q, want %q", got.Files[0].Data, c.want)
			}
			if found := len(got.Objects) > 0; found != strings.Contains(c.want, "kalypso.io/assignment") {
				t.Errorf("objects: %v", got.Objects)
			}
			if listed := len(got.Resources) > 0; listed != (c.want == object) {
				t.Errorf("resources: %v", got.Resources)
			}
		})
	}
}

const object = `apiVersion: v1
kind: ConfigMap
metadata:
  name: x
  labels:
    a: b
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/app-main
  finalizers:
  - f
data: {}
`

const jsonObject = `{
  "apiVersion": "v1",
  "items": [
    {
      "apiVersion": "v1",
      "kind": "ConfigMap",
      "metadata": {
        "annotations": {
          "kalypso.io/assignment": "dev/large/app-main"
        },
        "labels": {
          "app.kubernetes.io/managed-by": "kalypso"
        },
        "name": "x",
        "namespace": "n"
      }
    }
  ],
  "kind": "ConfigMapList"
}
`

// A file that cannot be written has one diagnostic, which names the file.
func TestBadFiles(t *testing.T) {
	object := func(metadata string) string {
		return `{"f": {"yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": ` + metadata + `}}}`
	}
	for name, c := range map[string]struct{ described, message string }{
		"nothing":         {`{"f": {}}`, "no content"},
		"two":             {`{"f": {"text": "x", "json": 1}}`, "text and json, and needs exactly one"},
		"mode":            {`{"f": {"text": "", "mode": "0600"}}`, "mode"},
		"empty-text":      {`{"f.yaml": {"text": " \n"}}`, "a text without anything in it"},
		"text-number":     {`{"f": {"text": 1}}`, "a text that is a int"},
		"no-list":         {`{"f": {"documents": {}}}`, "must be a list"},
		"no-documents":    {`{"f": {"documents": []}}`, "no document"},
		"null":            {`{"f": {"documents": [{}, null]}}`, "an empty document"},
		"large":           {`{"f": {"text": "` + strings.Repeat("x", files.MaxSize+1) + `"}}`, "bytes"},
		"name-bool":       {object(`{"name": true}`), "metadata.name is true, which is no string: quote it"},
		"namespace-bool":  {object(`{"name": "x", "namespace": false}`), "metadata.namespace is false"},
		"name-empty":      {object(`{"name": ""}`), "metadata.name is empty"},
		"label-bool":      {object(`{"name": "x", "labels": {"sidecar": true}}`), "metadata.labels.sidecar of ConfigMap x is true"},
		"annotation-list": {object(`{"name": "x", "annotations": []}`), "annotations of ConfigMap x is a list, which is no mapping"},
		"data-number":     {`{"f": {"yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"N": 3}}}}`, "data.N of ConfigMap x is 3"},
		"own-label":       {object(`{"name": "x", "labels": {"app.kubernetes.io/managed-by": "us"}}`), "kalypso's own"},
		"own-annotation":  {object(`{"name": "x", "annotations": {"kalypso.io/assignment": "us"}}`), "kalypso's own"},
		"list-of-others":  {`{"f": {"yaml": {"apiVersion": "v1", "kind": "List", "items": [{}]}}}`, "an item of a List"},
		"case":            {`{"a/F": {"text": ""}, "a/f": {"text": ""}}`, "in case alone"},
		"case-folder":     {`{"A/f": {"text": ""}, "a/g": {"text": ""}}`, "in case alone"},
		"folder":          {`{"a": {"text": ""}, "a/b": {"text": ""}}`, "which is a file"},
		"folder-case":     {`{"A": {"text": ""}, "a/b": {"text": ""}}`, "which is a file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, ds := files.Describe(assignment(t, ""), bt.Value(t, c.described), ref)
			if got := bt.Codes(ds); !slices.Equal(got, []diag.Code{diag.BadFile}) {
				t.Fatalf("got %v", ds)
			}
			if !strings.Contains(ds[0].Message, c.message) || len(ds[0].Sites) == 0 {
				t.Errorf("got %+v, want a message with %q and a site", ds[0], c.message)
			}
		})
	}
}

func TestManyFiles(t *testing.T) {
	var fields []model.Field
	for i := range 1001 {
		fields = append(fields, model.Field{Name: "f" + model.IntOf(int64(i)).Text(), Value: bt.Value(t, `{"text": ""}`)})
	}
	if _, ds := files.Describe(nil, model.StructOf(fields...), ref); !diag.Errors(ds) {
		t.Error("1001 files are written")
	}
}

func TestPaths(t *testing.T) {
	for path, good := range map[string]bool{
		"a": true, "a/b.c/d_e-f": true, "_x": true, "CONFIG": true, "console/null": true, "com.yaml": true, "README.md": true,
		"": false, ".": false, "..": false, "../a": false, "/a": false, "a/": false, "a//b": false, "a/../b": false, "a/./b": false,
		".git": false, ".git/config": false, "a/.git": false, "-rf": false, "a\\b": false, "a:b": false, "a b": false, "a\n": false, "é": false,
		"git~1": false, "a.": false, "a./b": false, "con": false, "NUL.txt": false, "x/Aux": false, "com1": false, "lpt9.log": false,
		strings.Repeat("a", 150): true, strings.Repeat("a", 151): false,
	} {
		if err := files.CheckPath(path); (err == nil) != good {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// FuzzPathStaysInside checks that a join of any two paths is relative and stays inside the
// folder.
func FuzzPathStaysInside(f *testing.F) {
	f.Add("a/b", "a")
	f.Add("../x", ".git/config")
	f.Fuzz(func(t *testing.T, a, b string) {
		described := model.StructOf(model.Field{Name: a, Value: bt.Value(t, `{"text": ""}`)})
		if a != b {
			described = model.StructOf(append(slices.Clone(described.Fields()), model.Field{Name: b, Value: bt.Value(t, `{"json": 1}`)})...)
		}
		got, ds := files.Describe(nil, described, ref)
		if diag.Errors(ds) {
			return
		}
		for _, file := range got.Files {
			elements := strings.Split(strings.ToLower(file.Path), "/")
			if strings.HasPrefix(file.Path, "/") || slices.Contains(elements, "..") || slices.Contains(elements, ".git") {
				t.Errorf("%q is written", file.Path)
			}
		}
	})
}

// A namespace service adds files to the reconciler's files, and does not replace any of them.
func TestOfService(t *testing.T) {
	service := func(described string) string { return `{"name": "default", "files": ` + described + `}` }
	folder := func() files.Files {
		fs := files.Files{}
		fs.Add(backends.File{Path: "reconciler.yaml"}, []backends.Object{{Kind: "ConfigMap", Name: "taken"}}, true)
		return fs
	}
	fs := folder()
	ds := fs.OfService(assignment(t, service(`{"b": {"text": "x", "mode": "0755"}, "z.yaml": {"yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}}}`)))
	if len(ds) > 0 || len(fs.Files) != 3 || fs.Files[0].Path != "b" || !fs.Files[0].Executable || !slices.Equal(fs.Resources, []string{"reconciler.yaml", "z.yaml"}) {
		t.Errorf("got %+v, %v", fs, ds)
	}
	if ds := fs.Twice(ref); len(ds) > 0 {
		t.Error(ds)
	}
	for _, described := range []string{`{"reconciler.yaml": {"text": ""}}`, `{"Reconciler.yaml": {"text": ""}}`, `{"reconciler.yaml/x": {"text": ""}}`, `{"../x": {"text": ""}}`} {
		fs := folder()
		if ds := fs.OfService(assignment(t, service(described))); !slices.Equal(bt.Codes(ds), []diag.Code{diag.BadFile}) || len(ds[0].Assignments) != 1 {
			t.Errorf("%s: got %v", described, ds)
		}
	}
	fs = folder()
	_ = fs.OfService(assignment(t, service(`{"x.yaml": {"yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"}}}}`)))
	if ds := fs.Twice(ref); !slices.Equal(bt.Codes(ds), []diag.Code{diag.BadFile}) {
		t.Errorf("got %v", ds)
	}
}
