package gotemplate

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const written = `apiVersion: v1
kind: ConfigMap
metadata:
  name: x
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/app-main
data:
  a: "no"
`

// The output of a template matches its content type. Otherwise there is an error with the line in
// the output and the line in the template.
func TestContent(t *testing.T) {
	a := assignment(t)
	for name, c := range map[string]struct{ contentType, text, want, problem string }{
		"yaml-object":        {"yaml", "kind: ConfigMap\napiVersion: v1 # ours\nmetadata: {name: x}\ndata: {a: 'no'}", written, ""},
		"yaml-other":         {"yaml", "# ours\nhosts:  [a,  b]\nport: 22:22", "# ours\nhosts:  [a,  b]\nport: 22:22\n", ""},
		"yaml-several":       {"yaml", "---\n# none\n---\na: 1\n---\n\n--- # nothing\n---\nnull\n---\nb: 2\n...\n", "a: 1\n---\nb: 2\n", ""},
		"yaml-on-marker":     {"yaml", "--- {a: 1}\n--- >\n x\n", "    {a: 1}\n---\n    >\n x\n", ""},
		"yaml-in-block":      {"yaml", "a: |\n  x\n  ---\n  y\n", "a: |\n  x\n  ---\n  y\n", ""},
		"yaml-empty":         {"yaml", "# nothing\n---\n", "", ""},
		"yaml-crlf":          {"yaml", "a: 1\r\n---\r\nb: 2\r\n", "a: 1\r\n---\nb: 2\r\n", ""},
		"yaml-mixed":         {"yaml", "a: 1\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\ndata: {a: 'no'}", "a: 1\n---\n" + written, ""},
		"yaml-list":          {"yaml", "apiVersion: v1\nkind: List\nitems: [{kind: ConfigMap, apiVersion: v1, metadata: {name: x}, data: {a: 'no'}}]", written, ""},
		"yaml-config":        {"yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  {{ stringify (dict \"a\" \"no\") | nindent 2 }}", written, ""},
		"yaml-broken":        {"yaml", "a: 1\n{{ range until 2 }}x:\n{{ end }}\n  b: [\n", "", "no YAML, in line"},
		"yaml-line":          {"yaml", "a: 1\n---\nb: 2\n\n{{ .Workload }}\n  - c: d\n", "", "in line 6 from line 6 of the template: "},
		"yaml-parser":        {"yaml", "a: 1\nb: 2\nc: {{ list 1 | toJson }} x\nd: 4", "", "in line 3 from line 3 of the template: did not find expected key"},
		"yaml-flow":          {"yaml", "a: 1\n---\nb: 2\nc: {x: 1\nd: 4", "", "in line 5 from line 5 of the template"},
		"yaml-scanner":       {"yaml", "a: 1\nb: 2\nc: x: y\nd: 4", "", "in line 3 from line 3 of the template: mapping values"},
		"yaml-twice":         {"yaml", "a: 1\nb: 2\n---\nc: 3\nc: 4\n", "", `in line 5 from line 5 of the template: key "c" already set in map`},
		"yaml-twice-far":     {"yaml", "{{ range until 3 }}a: {{ . }}\n\n{{ end }}", "", `in line 3 from line 1 of the template: key "a" already set in map`},
		"yaml-two":           {"yaml", "a: 1\u2028---\u2028b: 2\n", "", ""},
		"yaml-name":          {"yaml", "\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: y\n", "", "in line 2 from line 2 of the template: metadata.name is true, which is no string"},
		"yaml-namespace":     {"yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n  namespace: n\n", "", "metadata.namespace is false, which is no string"},
		"yaml-label":         {"yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {port: 80}}\n", "", "metadata.labels.port of Pod x is 80"},
		"yaml-data":          {"yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {{ toJson .ConfigData }}\n", "", "data.ON is true, which is no string: quote it"},
		"yaml-type":          {"yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {hostNetwork: 'no'}\n", "", `spec.hostNetwork of Pod x is "no", which is no bool`},
		"yaml-bomb":          {"yaml", bomb(), "", "no YAML"},
		"yaml-deep":          {"yaml", strings.Repeat("[", 100000), "", "no YAML"},
		"yaml-template":      {"yaml", `a: "{{ "{{ .Workload }}" }}"`, "a: \"{{ .Workload }}\"\n", ""},
		"json":               {"json", "{\"a\":  1,\n \"b\": [1.0]}", "{\"a\":  1,\n \"b\": [1.0]}", ""},
		"json-object":        {"json", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}`, "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Pod\",\n  \"metadata\": {\n    \"annotations\": {\n      \"kalypso.io/assignment\": \"dev/large/app-main\"\n    },\n    \"labels\": {\n      \"app.kubernetes.io/managed-by\": \"kalypso\"\n    },\n    \"name\": \"x\"\n  }\n}\n", ""},
		"json-broken":        {"json", "{\"a\": 1,\n{{ if true }}}{{ end }}", "", "no JSON, in line 2 from line 2 of the template: "},
		"json-two":           {"json", "{}\n{}", "", "no JSON, in line 2"},
		"json-twice":         {"json", `{"a": 1, "a": 2}`, "", `duplicate field "a"`},
		"json-name":          {"json", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 5}}`, "", "metadata.name is 5"},
		"json-deep":          {"json", strings.Repeat("[", 1000000), "", "no JSON"},
		"sh":                 {"sh", "export A='x'\nif true; then echo \"$A\"; fi\n", "export A='x'\nif true; then echo \"$A\"; fi\n", ""},
		"sh-bash":            {"sh", "#!/usr/bin/env -S LC_ALL=C bash -e\nx=(a b)\n", "#!/usr/bin/env -S LC_ALL=C bash -e\nx=(a b)\n", ""},
		"sh-not-bash":        {"sh", "#!/bin/sh\n{{ range until 2 }}x=(a b)\n{{ end }}", "", "no script for sh, in line 2 from line 2 of the template: "},
		"sh-broken":          {"sh", "echo 1\n{{ .Workload }}\nif true; then\n", "", "no script for sh, in line 3 from line 3 of the template: "},
		"sh-quote":           {"sh", "x='a\n", "", "without closing quote"},
		"sh-python":          {"sh", "#!/usr/bin/python3\nimport os\n", "", "its first line names python3"},
		"sh-deep":            {"sh", strings.Repeat("$((", 1000000), "", "nested too deeply"},
		"sh-deep-arithmetic": {"sh", "((" + strings.Repeat("(", 4000000), "", "nested too deeply"},
		"text":               {"text", "<<<\x00{{ .Wave }}", "<<<\x001", ""},
		"text-blank":         {"text", " {{- if false }}x{{ end }}\n\n", "", ""},
		"unknown":            {"toml", "x", "", "there are yaml, json, sh and text"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ds := render(t, a, c.text, c.contentType)
			switch {
			case name == "yaml-two":
				if got != "" && !strings.Contains(got, "b: 2") {
					t.Errorf("a document is lost: %q", got)
				}
			case c.problem != "":
				if len(ds) != 1 || ds[0].Code != diag.Template || !strings.Contains(ds[0].Message, c.problem) || ds[0].Hint == "" {
					t.Errorf("got %q, %+v\nwant %s", got, ds, c.problem)
				}
			case len(ds) > 0 || got != c.want:
				t.Errorf("got %q, %v\nwant %q", got, ds, c.want)
			}
		})
	}
}

// bomb is a document of a few lines with a billion values.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		name, of := string(rune('b'+i)), string(rune('a'+i))
		if i == 0 {
			of = "a0"
		}
		b.WriteString(name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat("*"+of+", ", 10), ", ") + "]\n")
	}
	return b.String()
}

// The set of functions is a promise. If a newer sprig adds a function, someone must check it
// before templates may use it.
func TestFunctions(t *testing.T) {
	got := strings.Join(sortedKeys(functions()), "\n") + "\n"
	if os.Getenv("KALYPSO_UPDATE") == "1" {
		if err := os.WriteFile("testdata/functions.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile("testdata/functions.txt"); err != nil || got != string(want) {
		t.Errorf("the functions are others than in testdata/functions.txt (KALYPSO_UPDATE=1 accepts): %v\n%s", err, got)
	}
	all := sprig.TxtFuncMap()
	for name := range refused {
		if all[name] == nil {
			t.Errorf("sprig has no function %s that could be refused", name)
		}
		if functions()[name] != nil || instead(name) == "" {
			t.Errorf("%s is refused, and there", name)
		}
	}
	for name := range shallow {
		if functions()[name] == nil {
			t.Errorf("there is no function %s", name)
		}
	}
	for name := range arithmetic {
		if functions()[name] == nil {
			t.Errorf("there is no function %s", name)
		}
	}
	for name := range growth {
		if functions()[name] == nil {
			t.Errorf("there is no function %s", name)
		}
	}
}

// Whatever a template and its values contain, a run ends with an error or with a file of its
// content type. A second run gives the same result.
//
// Slow: each input is rendered three times.
func FuzzRender(f *testing.F) {
	for _, text := range []string{`{{ range $k, $v := .ConfigData }}{{ $k }}: {{ $v | quote }}{{ "\n" }}{{ end }}`, `{{ toYaml . }}`, `{{ .X | indent 2 }}`,
		"a: &a [*a]", "{{ define \"x\" }}{{ template \"x\" }}{{ end }}", "--- |\n---", "#!/bin/bash\n$((", "{{ index .Labels .Workload }}{{ break }}"} {
		for _, contentType := range []string{"yaml", "json", "sh", "text"} {
			f.Add(text, contentType, "x: {{")
		}
	}
	f.Fuzz(func(t *testing.T, text, contentType, value string) {
		a := assignment(t)
		a.Workload = value
		got, ds := render(t, a, text, contentType)
		again, _ := render(t, a, text, contentType)
		if got != again {
			t.Errorf("two runs differ: %q, %q", got, again)
		}
		for _, d := range ds {
			if !slices.Contains([]diag.Code{diag.Template, diag.BadFile}, d.Code) || strings.Contains(d.Message, "\n") || len(d.Sites) == 0 {
				t.Errorf("%+v", d)
			}
		}
		// Canonical text stays as it is.
		if contentType == "yaml" && got != "" {
			a.Workload = got
			if once, ds := render(t, a, "{{ .Workload }}", "yaml"); once != got || len(ds) > 0 {
				t.Errorf("%q becomes %q, %v", got, once, ds)
			}
		}
	})
}

// FuzzSplit compares the documents of split with the documents of a reader of YAML.
func FuzzSplit(f *testing.F) {
	for _, stream := range []string{"a: 1\n---\nb: 2\n", "--- x\n...\ny", "a: |\n  ---\n---\n", "%YAML 1.1\n---\na", "\ufeff---\na", "'\n---\n'"} {
		f.Add(stream)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		lines := strings.Count(stream, "\n") + 1
		last, read, sound := 0, 0, true
		for _, d := range split(stream) {
			if d.line <= last || d.line > lines || strings.Trim(d.text, " \t\r\n") == "" {
				t.Errorf("%q: document at line %d after %d of %d: %q", stream, d.line, last, lines, d.text)
			}
			last = d.line
			v, _, err := d.read()
			if sound = sound && err == nil; sound && v.Kind() != model.Null {
				read++
			}
		}
		sound = sound && !strings.Contains(stream, "!") // a tag gives an empty document a value
		want := 0
		for reader := yamlv3.NewDecoder(strings.NewReader(stream)); sound; {
			var v any
			if err := reader.Decode(&v); err == io.EOF {
				break
			} else if err != nil {
				return // a document may be valid although the stream is not
			}
			if v != nil {
				want++
			}
		}
		if sound && read != want {
			t.Errorf("%q: %d documents are read, and there are %d", stream, read, want)
		}
	})
}
