package kustomize

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"
	sigs "sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/commandtest"
)

func TestMain(m *testing.M) { commandtest.Main(m) }

// tree returns the files of a txtar archive below prefix.
func tree(a *txtar.Archive, prefix string) map[string][]byte {
	files := map[string][]byte{}
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, prefix); ok {
			files[name] = f.Data
		}
	}
	return files
}

func readExample(t testing.TB, file string) Request {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return Request{Files: tree(a, "tree/"), Path: strings.TrimSpace(string(tree(a, "")["path"]))}
}

// onDisk writes files to a new folder.
func onDisk(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// printedBy splits the output of kustomize into objects. The line feed before a separator
// ends the line before it.
func printedBy(t testing.TB, out []byte) []model.Value {
	t.Helper()
	var objects []model.Value
	for _, doc := range bytes.Split(append([]byte("\n"), bytes.TrimSuffix(out, []byte("\n"))...), []byte("\n---")) {
		b, err := sigs.YAMLToJSON(append(doc[:len(doc):len(doc)], '\n'))
		if err != nil {
			t.Fatal(err)
		}
		var v model.Value
		if err := v.UnmarshalJSON(b); err != nil {
			t.Fatal(err)
		}
		if v.Kind() != model.Null {
			objects = append(objects, v)
		}
	}
	return objects
}

func same(t *testing.T, got []model.Projected, want []model.Value) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if !got[i].Value.Equal(want[i]) {
			t.Errorf("object %d:\n%s\nwant\n%s", i, got[i].Value, want[i])
		}
	}
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%d objects, want %d", len(got), len(want))
	}
}

// TestSameAsKustomize compares the objects of Render with the output of the command.
func TestSameAsKustomize(t *testing.T) {
	for _, file := range []string{"overlay", "components"} {
		t.Run(file, func(t *testing.T) {
			req := readExample(t, "testdata/"+file+".txtar")
			out, err := commandtest.Kustomize(t, "build", filepath.Join(onDisk(t, req.Files), req.Path))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Render(req)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, printedBy(t, out))
		})
	}
}

// The label that buildMetadata adds has the version of the command.
func TestManagedByLabel(t *testing.T) {
	files := tree(txtar.Parse([]byte(configMap)), "")
	files["app/kustomization.yaml"] = []byte("resources: [a.yaml]\nbuildMetadata: [managedByLabel]\n")
	want, err := commandtest.Kustomize(t, "build", filepath.Join(onDisk(t, files), "app"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command("go", "run", "./testdata/label").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(got, []byte("kustomize-v")) || !bytes.Contains(want, append([]byte("app.kubernetes.io/managed-by: "), got...)) {
		t.Errorf("%s, want that of\n%s", got, want)
	}
}

// The changes of a request are an overlay over the folder, as if it were written.
func TestChanges(t *testing.T) {
	for _, file := range []string{"overlay", "components"} {
		t.Run(file, func(t *testing.T) {
			req := readExample(t, "testdata/"+file+".txtar")
			inSource := map[string][]byte{}
			for name, data := range req.Files {
				inSource["source/"+name] = data
			}
			overlay := filepath.Join(onDisk(t, inSource), "changed")
			written := map[string]any{
				"resources":  []string{"../source/" + req.Path},
				"namePrefix": "blue-",
				"images":     []map[string]string{{"name": "example.com/app", "newTag": "9"}, {"name": "registry.example.com/web", "newName": "mirror.example.com/web"}},
				"patches": []map[string]any{
					{"patch": "- {op: add, path: /metadata/annotations, value: {x: y}}", "target": map[string]string{"kind": "Deployment"}},
					{"patch": "{apiVersion: v1, kind: Service, metadata: {name: none}, spec: {type: ClusterIP}}", "target": map[string]string{"version": "v1", "kind": "Service", "name": ".*"}},
				},
			}
			if file == "components" {
				written["sortOptions"] = map[string]string{"order": "fifo"}
				written["buildMetadata"] = []string{"originAnnotations"}
				written["openapi"] = map[string]string{"path": "schema.json"}
			}
			text, err := json.Marshal(written)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(overlay, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, data := range map[string][]byte{"kustomization.yaml": text, "schema.json": req.Files["site/schema.json"]} {
				if err := os.WriteFile(filepath.Join(overlay, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := commandtest.Kustomize(t, "build", overlay)
			if err != nil {
				t.Fatal(err)
			}
			req.NamePrefix = "blue-"
			req.Images = []model.KustomImage{{Name: "example.com/app", NewTag: "9"}, {Name: "registry.example.com/web", NewName: "mirror.example.com/web"}}
			req.Patches = []model.KustomPatch{
				{Patch: "- {op: add, path: /metadata/annotations, value: {x: y}}", Target: map[string]string{"kind": "Deployment"}},
				{Patch: "{apiVersion: v1, kind: Service, metadata: {name: none}, spec: {type: ClusterIP}}", Target: map[string]string{"version": "v1", "kind": "Service", "name": ".*"}},
			}
			got, err := Render(req)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, printedBy(t, out))
		})
	}
}

func names(objects []model.Projected) []string {
	var out []string
	for _, o := range objects {
		kind, _ := o.Value.Lookup("kind")
		metadata, _ := o.Value.Lookup("metadata")
		name, _ := metadata.Lookup("name")
		out = append(out, kind.Text()+"/"+name.Text())
	}
	return out
}

func object(kind, name string) []byte {
	return []byte("apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n")
}

func TestFolder(t *testing.T) {
	files := map[string][]byte{
		"README.md":                        []byte("# read me"),
		"deploy/10-service.yaml":           object("Service", "b"),
		"deploy/20-other.yml":              slices.Concat(object("ConfigMap", "c"), []byte("---\n# empty\n---\n"), object("CustomResourceDefinition", "crds.example.com")),
		"deploy/05.json":                   object("ConfigMap", "json-is-not-taken"),
		"deploy/empty.yaml":                []byte("# nothing\n"),
		"deploy/sub/namespace.yaml":        object("Namespace", "ns"),
		"deploy/sub/deep/a.yaml":           object("ConfigMap", "a"),
		"deploy/.github/ci.yaml":           []byte("on: push"),
		"deploy/.hidden.yaml":              []byte("a: b"),
		"deploy/sub/.git/x.yaml":           []byte("a: b"),
		"deploy/appveyor.yml":              []byte("a: b"),
		"deploy/over/kustomization.yaml":   []byte("namePrefix: over-\nresources: [x.yaml]\n"),
		"deploy/over/x.yaml":               object("ConfigMap", "x"),
		"deploy/over/not-listed.yaml":      object("ConfigMap", "not-listed"),
		"deploy/over/in/kustomization.yml": []byte("resources: [https://example.com/]\n"),
		"elsewhere/a.yaml":                 object("ConfigMap", "elsewhere"),
	}
	want := []string{"CustomResourceDefinition/crds.example.com", "Namespace/ns", "Service/b", "ConfigMap/c", "ConfigMap/over-x", "ConfigMap/a"}
	got, err := Render(Request{Files: files, Path: "./deploy"})
	if err != nil || !slices.Equal(names(got), want) {
		t.Errorf("%q, %v", names(got), err)
	}
	got, err = Render(Request{Files: files, Path: "deploy/sub", NamePrefix: "p-"})
	if err != nil || !slices.Equal(names(got), []string{"Namespace/ns", "ConfigMap/p-a"}) {
		t.Errorf("%q, %v", names(got), err)
	}
	got, err = Render(Request{Files: map[string][]byte{"a.yaml": object("ConfigMap", "a")}, Path: "."})
	if err != nil || !slices.Equal(names(got), []string{"ConfigMap/a"}) {
		t.Errorf("%q, %v", names(got), err)
	}
}

// Kustomize also reads folders, and to Kustomize yes and on are two keys.
func TestFolderOfYAML12(t *testing.T) {
	files := map[string][]byte{"a.yaml": slices.Concat(object("ConfigMap", "a"), []byte("data: {yes: no, on: \"1\"}\n"))}
	dir := onDisk(t, files)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [a.yaml]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := commandtest.Kustomize(t, "build", dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Render(Request{Files: files, Path: "."})
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, printedBy(t, out))
}

// Builds do not disturb each other, and leave no schema behind.
func TestConcurrent(t *testing.T) {
	with, without := readExample(t, "testdata/components.txtar"), readExample(t, "testdata/components.txtar")
	without.Path = "site/north"
	without.Patches = []model.KustomPatch{{Patch: "{apiVersion: example.com/v1, kind: Widget, metadata: {name: north-widget}, spec: {parts: [{name: a, size: 2}]}}"}}
	var want [2][]model.Projected
	for i, req := range []Request{without, with} {
		var err error
		if want[i], err = Render(req); err != nil {
			t.Fatal(err)
		}
	}
	if i := slices.IndexFunc(want[0], func(o model.Projected) bool { return strings.Contains(o.Value.String(), "Widget") }); strings.Contains(want[0][i].Value.String(), "color") {
		t.Error("a patch without a schema merges lists")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i, req := range []Request{without, with} {
				got, err := Render(req)
				if err != nil || !slices.EqualFunc(got, want[i], func(a, b model.Projected) bool { return a.Value.Equal(b.Value) }) {
					t.Errorf("%s differs: %v", req.Path, err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkRender(b *testing.B) {
	for _, name := range []string{"overlay", "components"} {
		req := readExample(b, "testdata/"+name+".txtar")
		dir := filepath.Join(onDisk(b, req.Files), req.Path)
		b.Run(name+"/in-process", func(b *testing.B) {
			for b.Loop() {
				if _, err := Render(req); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/kustomize-build", func(b *testing.B) {
			// The command is built before it is measured.
			_, _ = commandtest.Kustomize(b, "build", dir)
			for b.Loop() {
				if _, err := commandtest.Kustomize(b, "build", dir); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
