package helm

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
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

// value reads YAML as kubectl does.
func value(t testing.TB, text []byte) model.Value {
	t.Helper()
	b, err := sigs.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	var v model.Value
	if err := v.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return v
}

// example is a chart of testdata with the request that renders it.
type example struct {
	Request
	args []string // of helm template
}

func readExample(t testing.TB, file string) example {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e := example{Request: Request{Chart: commandtest.Chart(t, a, "chart/"), ReleaseName: "demo", Namespace: "apps"}}
	dir := t.TempDir()
	archive := filepath.Join(dir, "chart.tgz")
	if err := os.WriteFile(archive, e.Chart, 0o600); err != nil {
		t.Fatal(err)
	}
	e.args = []string{"template", "demo", archive, "--namespace", "apps", "--include-crds"}
	for _, f := range a.Files {
		switch f.Name {
		case "args":
			args := strings.Fields(string(f.Data))
			e.args = append(e.args, args...)
			for i := 0; i < len(args); i += 2 {
				if args[i] == "--kube-version" {
					e.KubernetesVersion = args[i+1]
				} else {
					e.APIVersions = append(e.APIVersions, args[i+1])
				}
			}
		case "values.yaml":
			e.Values = value(t, f.Data)
			values := filepath.Join(dir, "values.yaml")
			if err := os.WriteFile(values, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
			e.args = append(e.args, "--values", values)
		}
	}
	return e
}

func examples(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	return files
}

// printedBy splits the output of helm into objects. The line feed before a separator ends
// the line before it.
func printedBy(t testing.TB, out []byte) []model.Value {
	t.Helper()
	var objects []model.Value
	for _, doc := range bytes.Split(append([]byte("\n"), bytes.TrimSuffix(out, []byte("\n"))...), []byte("\n---")) {
		if v := value(t, append(doc[:len(doc):len(doc)], '\n')); v.Kind() != model.Null {
			objects = append(objects, v)
		}
	}
	return objects
}

// TestSameAsHelm compares the objects of Render with the output of the helm command.
func TestSameAsHelm(t *testing.T) {
	for _, file := range examples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			e := readExample(t, file)
			out, err := commandtest.Helm(t, e.args...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Render(e.Request)
			if err != nil {
				t.Fatal(err)
			}
			same(t, values(got), printedBy(t, out))
		})
	}
}

// A chart that helm packages from a folder renders to the same objects as the folder does
// in helm, and .helmignore applies.
func TestPackaged(t *testing.T) {
	a, err := txtar.ParseFile("testdata/templates.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "chart/"); ok {
			file := filepath.Join(dir, "templates", filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	set := []string{"--set", "count=3,title=x,port=80,text=a,ratio=1"}
	out, err := commandtest.Helm(t, append([]string{"template", "demo", filepath.Join(dir, "templates"), "--namespace", "apps", "--include-crds", "--kube-version", "1.34"}, set...)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commandtest.Helm(t, "package", filepath.Join(dir, "templates"), "--destination", dir); err != nil {
		t.Fatal(err)
	}
	chart, err := os.ReadFile(filepath.Join(dir, "templates-0.0.1-rc.1.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Render(Request{Chart: chart, ReleaseName: "demo", Namespace: "apps", KubernetesVersion: "1.34",
		Values: value(t, []byte("{count: 3, title: x, port: 80, text: a, ratio: 1}"))})
	if err != nil {
		t.Fatal(err)
	}
	same(t, values(got), printedBy(t, out))
	if strings.Contains(fmt.Sprint(values(got)), "an archive has what it has") {
		t.Error("an ignored file is there")
	}
}

// The chart that `helm create` writes has the features of most charts.
func TestCreated(t *testing.T) {
	dir := t.TempDir()
	chart := filepath.Join(dir, "shop")
	if _, err := commandtest.Helm(t, "create", chart); err != nil {
		t.Fatal(err)
	}
	if _, err := commandtest.Helm(t, "package", chart, "--destination", dir); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(filepath.Join(dir, "shop-0.1.0.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("replicaCount: 3\ningress: {enabled: true, className: web}\nautoscaling: {enabled: true}\nresources: {limits: {cpu: 100m}}\nimage: {tag: \"1.27\"}\n")
	file := filepath.Join(dir, "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := commandtest.Helm(t, "template", "demo", chart, "--namespace", "apps", "--include-crds", "--values", file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Render(Request{Chart: archive, ReleaseName: "demo", Namespace: "apps", Values: value(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	same(t, values(got), printedBy(t, out))
}

func values(objects []model.Projected) []model.Value {
	var vs []model.Value
	for _, o := range objects {
		vs = append(vs, o.Value)
	}
	return vs
}

func same(t *testing.T, got, want []model.Value) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if !got[i].Equal(want[i]) {
			t.Errorf("object %d:\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%d objects, want %d", len(got), len(want))
	}
}

func TestHooks(t *testing.T) {
	got, err := Render(readExample(t, "testdata/hooks.txtar").Request)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, o := range got {
		kind, _ := o.Value.Lookup("kind")
		metadata, _ := o.Value.Lookup("metadata")
		name, _ := metadata.Lookup("name")
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", kind.Text(), name.Text(), strings.Join(o.Hooks, ","))))
	}
	want := []string{
		"CustomResourceDefinition ones.example.com", "CustomResourceDefinition twos.example.com", "CustomResourceDefinition {{ not a template }}.example.com",
	}
	if len(lines) < 3 || !sameSet(lines[:3], want) {
		t.Errorf("CRDs: %q", lines)
	}
	for _, line := range []string{"Job migrate pre-install,pre-upgrade", "ConfigMap migrate pre-install", "Pod test test", "ConfigMap annotated"} {
		if !slices.Contains(lines, line) {
			t.Errorf("no %q in %q", line, lines)
		}
	}
}

// One chart is rendered alike by many at once, and as often as one likes.
func TestConcurrent(t *testing.T) {
	e := readExample(t, "testdata/umbrella.txtar")
	first, err := Render(e.Request)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 4 {
				again, err := Render(e.Request)
				if err != nil || !slices.EqualFunc(first, again, func(a, b model.Projected) bool { return a.Value.Equal(b.Value) && slices.Equal(a.Hooks, b.Hooks) }) {
					t.Errorf("renders differ: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// Helm's messages on the standard logger do not reach the user.
func TestSilent(t *testing.T) {
	var said bytes.Buffer
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	if _, err := Render(readExample(t, "testdata/hooks.txtar").Request); err != nil {
		t.Fatal(err)
	}
	if said.Len() > 0 {
		t.Errorf("Helm says %q", said.Bytes())
	}
	if log.Writer() != io.Writer(&said) {
		t.Error("the logger is not what it was")
	}
}

func BenchmarkRender(b *testing.B) {
	for _, file := range examples(b) {
		e := readExample(b, file)
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		b.Run(name+"/in-process", func(b *testing.B) {
			for b.Loop() {
				if _, err := Render(e.Request); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/helm-template", func(b *testing.B) {
			// The command is built before it is measured.
			_, _ = commandtest.Helm(b, e.args...)
			for b.Loop() {
				if _, err := commandtest.Helm(b, e.args...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Files of values replace the chart's values, each those of the files before it, and the values of
// the request replace theirs. A null removes a value.
func TestValuesFiles(t *testing.T) {
	chart := commandtest.Chart(t, txtar.Parse([]byte("-- chart/Chart.yaml --\napiVersion: v2\nname: app\nversion: 1.0.0\n"+
		"-- chart/values.yaml --\na: 0\nb: 0\nc: {d: 0, e: 0}\nf: 0\n-- chart/more.yaml --\na: 1\nb: 1\nc: {d: 1}\n"+
		"-- chart/templates/t.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {all: {{ toJson .Values | quote }}}\n")), "chart/")
	req := Request{Chart: chart, ReleaseName: "x", Values: value(t, []byte("b: 3")), ValuesFiles: []ValuesFile{
		{Name: "./more.yaml"}, {Name: "other.yaml", Data: []byte("a: 2\nb: 2\nf: null\n")}}}
	out, err := Render(req)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := out[0].Value.Lookup("data")
	if all, _ := data.Lookup("all"); all.Text() != `{"a":2,"b":3,"c":{"d":1,"e":0}}` {
		t.Errorf("got %s", all.Text())
	}
	for want, f := range map[string]ValuesFile{
		"chart app has no file of values none.yaml":    {Name: "none.yaml"},
		"the file of values a.yaml cannot be read: ":   {Name: "a.yaml", Data: []byte("- a\n")},
		"a.yaml cannot be read: error converting YAML": {Name: "a.yaml", Data: []byte("a: [\n")},
	} {
		req.ValuesFiles = []ValuesFile{f}
		if _, err := Render(req); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
