package helm

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
	"github.com/kalypso-io/kalypso/internal/testing/commandtest"
)

const chartYAML = "-- Chart.yaml --\napiVersion: v2\nname: app\nversion: 1.0.0\n"

// configMap is a template that makes a ConfigMap with one value.
func configMap(value string) string {
	return "-- templates/config.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata:\n  value: " + value + "\n"
}

func packed(t testing.TB, text string) []byte {
	t.Helper()
	return commandtest.Chart(t, txtar.Parse([]byte(text)), "")
}

func request(t testing.TB, text string) Request {
	return Request{Chart: packed(t, text), ReleaseName: "demo", Namespace: "apps"}
}

// refusedAs returns why a request is refused.
func refusedAs(t *testing.T, req Request, code diag.Code) *refusal.Error {
	t.Helper()
	objects, err := Render(req)
	var refused *refusal.Error
	switch {
	case err == nil:
		t.Fatalf("renders to %v", values(objects))
	case !errors.As(err, &refused):
		t.Fatalf("%T: %v", err, err)
	case refused.Code != code:
		t.Errorf("%s: %s, want %s", refused.Code, refused.Message, code)
	case refused.Hint == "" || strings.ContainsAny(refused.Message, "\n") || strings.HasSuffix(refused.Message, "."):
		t.Errorf("%q, hint %q", refused.Message, refused.Hint)
	}
	return refused
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, chart, values string
		code                diag.Code
		want                string
	}{
		{"no Chart.yaml", configMap("x"), "", diag.BadSource, "Chart.yaml file is missing"},
		{"broken Chart.yaml", "-- Chart.yaml --\n{\n", "", diag.BadSource, "cannot load Chart.yaml"},
		{"no version", "-- Chart.yaml --\napiVersion: v2\nname: app\n", "", diag.BadSource, "chart.metadata.version is required"},
		{"name with a path", "-- Chart.yaml --\napiVersion: v2\nname: ../app\nversion: 1.0.0\n", "", diag.BadSource, "chart.metadata.name \"../app\" is invalid"},
		{"library", chartYAML + "type: library\n", "", diag.Render, "chart app is a library"},
		{"unknown type", chartYAML + "type: plugin\n", "", diag.BadSource, "chart.metadata.type must be application or library"},
		{"not vendored", chartYAML + "dependencies: [{name: db, version: 1.x, repository: https://charts.example.com}, {name: cache, version: 1.x}]\n", "", diag.BadSource,
			"chart app has dependencies that are not in its charts folder: db, cache"},
		{"two of one", chartYAML + "-- charts/a/Chart.yaml --\nname: db\nversion: 1.0.0\n-- charts/b/Chart.yaml --\nname: db\nversion: 1.0.0\ndescription: other\n", "", diag.BadSource,
			"chart app has two different dependencies named db of version 1.0.0"},
		{"template syntax", chartYAML + configMap("{{ if }}"), "", diag.Render, "parse error at (app/templates/config.yaml:5): missing value for if"},
		{"unknown function", chartYAML + configMap(`{{ env "HOME" }}`), "", diag.Render, `function "env" not defined`},
		{"expandenv", chartYAML + configMap(`{{ expandenv "$HOME" }}`), "", diag.Render, `function "expandenv" not defined`},
		{"fail", chartYAML + configMap(`{{ fail "no way" }}`), "", diag.Render, "execution error at (app/templates/config.yaml:5:12): no way"},
		{"required", chartYAML + configMap(`{{ required "host is needed" .Values.host }}`), "", diag.Render, "host is needed"},
		{"nil pointer", chartYAML + configMap(`{{ .Values.a.b }}`), "", diag.Render, "nil pointer evaluating interface {}.b"},
		{"panic", chartYAML + configMap(`{{ index (list 1) 7 }}`), "", diag.Render, "out of range"},
		{"recursion by include", chartYAML + "-- templates/_a.tpl --\n{{ define \"a\" }}{{ include \"a\" . }}{{ end }}\n" + configMap(`{{ include "a" . }}`), "", diag.Render, "rendering template has a nested reference name: a"},
		{"not YAML", chartYAML + configMap("[}"), "", diag.Render, "YAML parse error on app/templates/config.yaml"},
		{"twice", chartYAML + configMap("a\n  value: b"), "", diag.Render, `app/templates/config.yaml: not YAML that Kubernetes reads: line 6: key "value" is given twice`},
		{"no manifest", chartYAML + "-- templates/a.yaml --\nhello: world\n", "", diag.NotRendered, "app/templates/a.yaml: has no apiVersion"},
		{"bomb", chartYAML + configMap("x") + "-- templates/bomb.yaml --\n" + bomb(12), "", diag.Unbounded, "app/templates/bomb.yaml: the manifests are larger than 64 MiB"},
		{"long anchor", chartYAML + "-- templates/bomb.yaml --\na: &a {{ repeat 999999 \"x\" }}\nb: [{{ repeat 99 \"*a, \" }}]\n", "", diag.Unbounded, "app/templates/bomb.yaml: the manifests are larger than 64 MiB"},
		{"bomb of values", chartYAML + "-- values.yaml --\n" + bomb(12), "", diag.Unbounded, "cannot be read: chart/values.yaml: the manifests are larger than 64 MiB"},
		{"too much", chartYAML + configMap(`{{ repeat 1000 (repeat 100000 "x") }}`), "", diag.Unbounded, "chart app renders to 95 MiB, more than 64 MiB"},
		{"schema", chartYAML + configMap("x") + "-- values.schema.json --\n{\"properties\": {\"a\": {\"type\": \"integer\"}}}\n", "a: b", diag.Render,
			"values don't meet the schema of the chart: app: - at '/a': got string, want integer"},
		{"schema of a dependency", chartYAML + "-- charts/db/Chart.yaml --\nname: db\nversion: 1.0.0\n-- charts/db/values.schema.json --\n{\"required\": [\"size\"]}\n", "", diag.Render,
			"db: - at '': missing property 'size'"},
		{"schema is not JSON", chartYAML + "-- values.schema.json --\n{\n", "", diag.Render, "values.schema.json is not JSON"},
		{"schema of a file", chartYAML + "-- values.schema.json --\n{\"$ref\": \"file:///etc/hostname\"}\n", "", diag.Render,
			"values.schema.json of chart app refers to file:///etc/hostname, and a build fetches nothing"},
		{"schema beside it", chartYAML + "-- values.schema.json --\n{\"$ref\": \"other.json\"}\n", "", diag.Render, "refers to file:///other.json"},
		{"values of a dependency", chartYAML + configMap("x") + "-- charts/db/Chart.yaml --\nname: db\nversion: 1.0.0\n", "db: 1", diag.Render, "type mismatch on db"},
		{"values are a list", chartYAML + configMap("x"), "[a]", diag.Render, "the values of a chart are a list, not a struct"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := request(t, c.chart)
			if c.values != "" {
				req.Values = value(t, []byte(c.values))
			}
			if refused := refusedAs(t, req, c.code); !strings.Contains(refused.Message, c.want) {
				t.Errorf("%s\nwant %s", refused.Message, c.want)
			}
		})
	}
}

func TestReleaseName(t *testing.T) {
	for _, name := range []string{"", "Not A Name", "../up", strings.Repeat("x", 54)} {
		req := request(t, chartYAML+configMap("x"))
		req.ReleaseName = name
		if refused := refusedAs(t, req, diag.Render); !strings.Contains(refused.Message, fmt.Sprintf("release name %q", name)) {
			t.Error(refused)
		}
	}
}

// bomb is a document where each of n levels is ten of the one before.
func bomb(n int) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\na0: &a0 x\n")
	for i := range n {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	return b.String()
}

// A schema is not fetched, even if a server would answer.
func TestSchemaIsNotFetched(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	refused := refusedAs(t, request(t, chartYAML+fmt.Sprintf("-- values.schema.json --\n{\"$ref\": %q}\n", server.URL+"/schema.json")), diag.Render)
	if asked || !strings.HasPrefix(refused.Message, "values.schema.json of chart app refers to "+server.URL) || !strings.Contains(refused.Hint, "$defs") {
		t.Errorf("asked %v: %s (%s)", asked, refused.Message, refused.Hint)
	}
}

// A schema is not read from this machine, and the hint names the right place for it.
func TestSchemaIsNotRead(t *testing.T) {
	for _, url := range []string{"file:///etc/passwd", "http://x.invalid/s.json", "other.json"} {
		refused := refusedAs(t, request(t, chartYAML+fmt.Sprintf("-- values.schema.json --\n{\"$ref\": %q}\n", url)), diag.Render)
		if !strings.HasPrefix(refused.Message, "values.schema.json of chart app refers to ") || !strings.Contains(refused.Hint, "$defs") {
			t.Errorf("%s (%s)", refused.Message, refused.Hint)
		}
	}
}

// Names that resolve on this machine do not resolve in a chart.
func TestNothingResolves(t *testing.T) {
	objects, err := Render(request(t, chartYAML+configMap(`"<{{ getHostByName "localhost" }}>"`)))
	if err != nil {
		t.Fatal(err)
	}
	data, _ := objects[0].Value.Lookup("data")
	if v, _ := data.Lookup("value"); v.Text() != "<>" {
		t.Errorf("localhost is %s", v)
	}
}

// The environment and the files of this machine are out of a chart's reach.
func TestHermetic(t *testing.T) {
	t.Setenv("KALYPSO_SECRET", "do-not-tell")
	file := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(file, []byte("do-not-tell"), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := Render(request(t, chartYAML+configMap(fmt.Sprintf(`"{{ .Files.Get %q }}{{ .Files.Get "../../secret.txt" }}{{ range $n, $_ := .Files.Glob "/**" }}{{ $n }}{{ end }}"`, file))))
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(values(objects)); strings.Contains(text, "do-not-tell") {
		t.Error(text)
	}
}
