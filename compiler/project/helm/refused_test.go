package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
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
	"github.com/kalypso-io/kalypso/compiler/project/internal/commandtest"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
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
		{"bomb of values", chartYAML + "-- values.yaml --\n" + bomb(12), "", diag.BadSource, "cannot be read: chart/values.yaml: the manifests are larger than 64 MiB"},
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

// A schema is not fetched, even where a server would answer.
func TestSchemaIsNotFetched(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	refused := refusedAs(t, request(t, chartYAML+fmt.Sprintf("-- values.schema.json --\n{\"$ref\": %q}\n", server.URL+"/schema.json")), diag.Render)
	if asked || !strings.Contains(refused.Message, server.URL) {
		t.Errorf("asked %v: %s", asked, refused.Message)
	}
}

func TestUnstable(t *testing.T) {
	helpers := "-- templates/_helpers.tpl --\n{{ define \"password\" }}{{ template \"inner\" }}{{ end }}{{ define \"inner\" }}{{ randAlphaNum 1 }}{{ end }}\n"
	for _, c := range []struct{ name, chart, values, want string }{
		{"password", configMap("{{ randAlphaNum 16 | quote }}"), "", "see app/templates/config.yaml, which uses randAlphaNum"},
		{"lookup first", configMap(`{{ $old := lookup "v1" "Secret" "a" "b" }}{{ if $old }}{{ $old.data.x }}{{ else }}{{ uuidv4 }}{{ end }}`), "", "which uses uuidv4"},
		{"included", helpers + configMap(`{{ include "password" . | quote }}`), "", "see app/templates/config.yaml, which uses randAlphaNum"},
		{"time", configMap("{{ now | unixEpoch | quote }}"), "", "which uses now"},
		{"day", configMap(`{{ date "2006" now | quote }}`), "", "which uses now"},
		{"time in a branch", configMap(`{{ if gt now.Year 2010 }}new{{ else }}old{{ end }}`), "", "which uses now"},
		{"age", configMap(`{{ ago (toDate "2006-01-02" "2020-01-01") }}`), "", "which uses ago"},
		{"certificate", configMap(`{{ (genCA "ca" 1).Cert | quote }}`), "", "which uses genCA"},
		{"one digit", configMap(`{{ randInt 0 2 | quote }}`), "", "which uses randInt"},
		{"as a number", configMap(`{{ add 1 (randNumeric 1 | int) }}`), "", "which uses randNumeric"},
		{"shuffled", configMap(`{{ shuffle "ab" }}`), "", "which uses shuffle"},
		{"bcrypt", configMap(`{{ bcrypt "x" | quote }}`), "", "which uses bcrypt"},
		{"htpasswd", configMap(`{{ htpasswd "a" "b" | quote }}`), "", "which uses htpasswd"},
		{"keys", configMap(`{{ keys .Values | join "" }}`), "{a: 1, b: 2}", "which uses keys"},
		{"keys in a range", configMap(`{{- range (.Values | keys) -}} {{ . }} {{- end -}}`), "{a: 1, b: 2}", "which uses keys"},
		{"values", configMap(`{{ values .Values | join "" }}`), "{a: 1, b: 2, c: 3, d: 4, e: 5, f: 6}", "which uses values"},
		{"tpl of a value", configMap(`{{ tpl .Values.text . | quote }}`), `text: "{{ randAscii 20 | b64enc }}"`, "which uses randAscii"},
		{"in a dependency", "-- charts/db/Chart.yaml --\nname: db\nversion: 1.0.0\n-- charts/db/templates/a.yaml --\na: {{ randBytes 9 }}\n", "", "see app/charts/db/templates/a.yaml, which uses randBytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := request(t, chartYAML+c.chart)
			if c.values != "" {
				req.Values = value(t, []byte(c.values))
			}
			refused := refusedAs(t, req, diag.Unstable)
			if !strings.HasPrefix(refused.Message, "chart app renders to something else each time: ") || !strings.Contains(refused.Message, c.want) {
				t.Errorf("%s\nwant %s", refused.Message, c.want)
			}
		})
	}
}

// What looks unstable and is not renders.
func TestStable(t *testing.T) {
	for name, template := range map[string]string{
		"not reached":  `{{ if .Values.roll }}{{ now }}{{ else }}x{{ end }}`,
		"sorted keys":  `{{ keys .Values | sortAlpha | join "," | quote }}`,
		"sorted later": `{{- $k := keys (dict "a)}}" 1 "b" 2) (dict "'" (keys .Values | len)) -}} {{ range sortAlpha $k }}{{ . | quote | squote }}{{ end }}`,
		"derived":      `{{ derivePassword 1 "long" "password" "user" "example.com" | quote }}`,
		"a fixed date": `{{ toDate "2006-01-02" "2020-02-03" | date "2006" | quote }}`,
		"a string":     `{{ "now" }} randInt $now`,
		"unused":       `{{ $ca := genCA "x" 1 }}x`,
		"a field":      `{{ .Values.now | default "x" }}`,
	} {
		if _, err := Render(request(t, chartYAML+configMap(template))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKubernetesVersion(t *testing.T) {
	db := "-- charts/db/Chart.yaml --\nname: db\nversion: 1.0.0\n-- charts/db/templates/a.yaml --\n"
	for _, c := range []struct{ name, chart, values, want string }{
		{"version", configMap("{{ .Capabilities.KubeVersion.Version }}"), "", "app/templates/config.yaml:5:25 looks at .Capabilities"},
		{"APIs", configMap(`{{ if .Capabilities.APIVersions.Has "policy/v1" }}x{{ end }}`), "", "looks at .Capabilities"},
		{"by name", configMap(`{{ (index . "Capabilities").KubeVersion.Minor }}`), "", "looks at .Capabilities"},
		{"dot", configMap(`{{ with .Capabilities }}{{ .KubeVersion }}{{ end }}`), "", "looks at .Capabilities"},
		{"printed", configMap(`{{ .Capabilities | toJson | quote }}`), "", "a template prints .Capabilities"},
		{"pretty", configMap(`{{ .Capabilities | toYamlPretty | quote }}`), "", "prints .Capabilities"},
		{"as text", configMap(`{{ .Capabilities | toString | quote }}`), "", "prints .Capabilities"},
		{"tpl", configMap("{{ tpl .Values.text . }}"), `text: "{{ .Capabilities.KubeVersion.Major }}"`, "looks at .Capabilities"},
		{"include", "-- templates/_h.tpl --\n{{ define \"v\" }}{{ .Capabilities.KubeVersion }}{{ end }}\n" + configMap(`{{ include "v" . }}`), "", "looks at .Capabilities"},
		{"dependency", db + "a: {{ .Capabilities.KubeVersion }}\n", "", "looks at .Capabilities"},
		{"Chart.yaml", configMap("x") + "-- Chart.yaml --\napiVersion: v2\nname: app\nversion: 1.0.0\nkubeVersion: '>=1.20'\n", "", "its Chart.yaml has kubeVersion: >=1.20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.chart
			if !strings.Contains(text, "-- Chart.yaml --") {
				text = chartYAML + text
			}
			req := request(t, text)
			if c.values != "" {
				req.Values = value(t, []byte(c.values))
			}
			refused := refusedAs(t, req, diag.KubernetesVersion)
			if !strings.Contains(refused.Message, c.want) || !strings.Contains(refused.Hint, "kubernetesVersion") {
				t.Errorf("%s (%s)\nwant %s", refused.Message, refused.Hint, c.want)
			}
			// Given a version, it renders, or fails for another reason.
			req.KubernetesVersion = "1.34.2"
			if _, err := Render(req); errors.As(err, &refused) && refused.Code == diag.KubernetesVersion {
				t.Error(err)
			}
		})
	}
	for name, template := range map[string]string{
		"not reached":      `{{ if .Values.ingress }}{{ .Capabilities.KubeVersion }}{{ end }}x`,
		"Helm's version":   `{{ .Capabilities.HelmVersion.Version | quote }}`,
		"a word of a text": `".Capabilities.KubeVersion"`,
	} {
		if _, err := Render(request(t, chartYAML+configMap(template))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	req := request(t, chartYAML+"kubeVersion: '>=1.40'\n"+configMap("x"))
	req.KubernetesVersion = "1.34"
	if refused := refusedAs(t, req, diag.Render); !strings.Contains(refused.Message, "is for Kubernetes >=1.40, and the cluster type has v1.34") {
		t.Error(refused)
	}
	req.KubernetesVersion = "newest"
	refusedAs(t, req, diag.KubernetesVersion)
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

func TestArchives(t *testing.T) {
	plain := tar.Header{Name: "app/Chart.yaml", Typeflag: tar.TypeReg, Mode: 0o644}
	entry := func(name string, kind byte) tar.Header {
		return tar.Header{Name: name, Typeflag: kind, Linkname: "/etc/hostname", Mode: 0o644}
	}
	nested := func(depth int) []byte {
		archive := packed(t, chartYAML)
		for range depth {
			archive = commandtest.Archive(t, map[string][]byte{"Chart.yaml": []byte("name: app\nversion: 1.0.0\n"), "charts/app.tgz": archive})
		}
		return archive
	}
	zeros := gzipped(t, maxUnpacked+1)
	many := make([]tar.Header, maxEntries+1)
	for i := range many {
		many[i] = entry(fmt.Sprintf("app/%d", i), tar.TypeReg)
	}
	for _, c := range []struct {
		name    string
		archive []byte
		want    string
	}{
		{"empty", nil, "it is no gzip archive"},
		{"text", []byte("apiVersion: v2\n"), "it is no gzip archive"},
		{"cut short", packed(t, chartYAML+configMap(strings.Repeat("x", 9999)))[:100], "unexpected EOF"},
		{"symlink", commandtest.Tar(t, []tar.Header{plain, entry("app/values.yaml", tar.TypeSymlink)}, nil), "app/values.yaml is a link"},
		{"hard link", commandtest.Tar(t, []tar.Header{plain, entry("app/values.yaml", tar.TypeLink)}, nil), "app/values.yaml is a link"},
		{"device", commandtest.Tar(t, []tar.Header{plain, entry("app/null", tar.TypeChar)}, nil), "app/null is no plain file"},
		{"pipe", commandtest.Tar(t, []tar.Header{plain, entry("app/fifo", tar.TypeFifo)}, nil), "app/fifo is no plain file"},
		{"up", commandtest.Tar(t, []tar.Header{plain, entry("app/../../etc/passwd", tar.TypeReg)}, nil), "chart illegally"},
		{"absolute", commandtest.Tar(t, []tar.Header{plain, entry("app//etc/passwd", tar.TypeReg)}, nil), "absolute paths"},
		{"drive", commandtest.Tar(t, []tar.Header{plain, entry(`app\c:\x`, tar.TypeReg)}, nil), "illegally named files"},
		{"zeros", zeros, "it is larger than 256 MiB when unpacked"},
		{"zeros in a dependency", commandtest.Archive(t, map[string][]byte{"charts/a.tgz": zeros}), "it is larger than 256 MiB when unpacked"},
		{"many files", commandtest.Tar(t, many, nil), "it has more than 100000 files"},
		{"nested", nested(20), "nests more than 16 archives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if refused := refusedAs(t, Request{Chart: c.archive, ReleaseName: "demo"}, diag.BadSource); !strings.Contains(refused.Message, c.want) {
				t.Errorf("%s\nwant %s", refused.Message, c.want)
			}
		})
	}
	if _, err := Render(Request{Chart: nested(10), ReleaseName: "demo"}); err != nil {
		t.Error(err)
	}
}

// gzipped returns a tar archive with one file of zeros.
func gzipped(t *testing.T, size int64) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	tw := tar.NewWriter(zw)
	if err := tw.WriteHeader(&tar.Header{Name: "app/zeros", Typeflag: tar.TypeReg, Size: size, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for left := size; left > 0; left -= int64(len(zeros)) {
		if _, err := tw.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// FuzzArchive: no archive panics, whatever Helm makes of it.
func FuzzArchive(f *testing.F) {
	for _, file := range examples(f) {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(commandtest.Chart(f, a, "chart/"))
	}
	f.Add(packed(f, chartYAML))
	f.Fuzz(func(t *testing.T, archive []byte) {
		if err := checkArchive(archive); err != nil {
			return
		}
		_, _ = load(archive)
	})
}

// FuzzRewrite: a template that parses still does with its unstable functions
// called otherwise, and what has none stays as it is.
func FuzzRewrite(f *testing.F) {
	for _, s := range []string{"{{ now }}", "a {{- randInt 1 2 | int -}} b {{ `now` }}", `{{ define "x" }}{{ (now).Year }}{{ end }}{{/* now */}}`, "{{ if now }}{{ else if ago now }}{{ end }}", "{{- keys (dict `}}` \"a\\\")\" 'x') | join ` ` -}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		after := string(rewrite([]byte(text), "| sortAlpha | reverse"))
		if parseTemplates("", text) == nil {
			if after != text {
				t.Errorf("%q becomes %q", text, after)
			}
		} else if parseTemplates("", after) == nil {
			t.Errorf("%q becomes %q, which does not parse", text, after)
		}
	})
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
