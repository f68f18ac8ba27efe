package application_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	sigs "sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/internal/testing/commandtest"
)

// valuesOf returns the values of a target, as JSON.
func valuesOf(t *testing.T, dir, environment, name string) string {
	t.Helper()
	a, err := application.Project(t.Context(), request(dir))
	must(t, err)
	if len(a.Diagnostics) > 0 {
		t.Fatalf("%q", lines(a.Diagnostics))
	}
	for _, target := range a.Targets {
		if target.Environment == environment && target.Name == name {
			return target.Values.String()
		}
	}
	t.Fatalf("there is no target %s/%s", environment, name)
	return ""
}

// The values of the target's folder override, key by key, the values of the folders above
// it. The contracts of all these folders fill in open fields.
func TestValuesAreInherited(t *testing.T) {
	for _, c := range []struct{ name, files, want string }{
		{"nothing", "", `{}`},
		{"the root's", "-- values.yaml --\na: 1\n", `{a: 1}`},
		{"values.yml", "-- values.yml --\na: 1\n", `{a: 1}`},
		{"each folder over the one above", `
-- values.yaml --
{a: root, b: root, c: root}
-- environments/dev/values.yaml --
{b: dev, c: dev}
-- environments/dev/east/values.yaml --
{c: east}
`, `{a: root, b: dev, c: east}`},
		{"deep", `
-- values.yaml --
a: {b: {c: root, d: root}, e: root}
-- environments/dev/east/values.yaml --
a: {b: {c: east}}
`, `{a: {b: {c: east, d: root}, e: root}}`},
		{"lists as a whole", "-- values.yaml --\na: [1, 2, 3]\n-- environments/dev/values.yaml --\na: [4]\n", `{a: [4]}`},
		{"null is a value", "-- values.yaml --\na: 1\n-- environments/dev/east/values.yaml --\na: null\n", `{a: null}`},
		{"other targets and environments do not count", `
-- environments/dev/west/values.yaml --
a: west
-- environments/prod/values.yaml --
a: prod
`, `{}`},
		{"nor do folders that are none of a target", "-- environments/values.yaml --\nb: 1\n-- chart/values.yaml --\na: chart\n", `{b: 1}`},
		{"a default of the root", "-- values.cue --\na: *1 | int\n", `{a: 1}`},
		{"values before defaults", `
-- values.yaml --
a: 2
-- environments/dev/east/values.cue --
a: *1 | int
`, `{a: 2}`},
		{"contracts of all folders at once", `
-- values.cue --
a: *1 | 2 | 3
-- environments/dev/values.cue --
a: >1
b: *"dev" | string
-- environments/dev/east/values.cue --
c: *"east" | string
-- environments/dev/east/values.yaml --
a: 3
`, `{a: 3, b: dev, c: east}`},
		{"what depends on a value", "-- values.cue --\na: int\nif a > 2 {b: true}\nfor c in [1] if a > c {d: c}\n-- values.yaml --\na: 3\n", `{a: 3, b: true, d: 1}`},
		{"what depends on another folder's", "-- values.cue --\na: int\nb: *false | bool\n-- environments/dev/values.cue --\na: *3 | int\nif a > 2 {b: true}\n", `{a: 3, b: true}`},
		{"what depends on a default", "-- values.cue --\na: *1 | int\nif a > 2 {b: true}\nif a < 2 {c: true}\n", `{a: 1, c: true}`},
		{"deep defaults", "-- values.cue --\na: {b: *1 | int, c: int}\n-- values.yaml --\na: {c: 2}\n", `{a: {b: 1, c: 2}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := parse(chart).with(folder{"environments/dev/east/values.yaml": ""}).with(parse(c.files))
			got := valuesOf(t, files.in(t), "dev", "east")
			if !reflect.DeepEqual(objects(t, []byte(got)), objects(t, []byte(c.want))) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// objects reads a stream of YAML, or JSON, as kubectl does.
func objects(t *testing.T, text []byte) []any {
	t.Helper()
	var out []any
	for _, doc := range bytes.Split(append([]byte("\n"), text...), []byte("\n---")) {
		var v any
		must(t, sigs.Unmarshal(doc, &v))
		if v != nil {
			out = append(out, v)
		}
	}
	return out
}

// randomValues returns YAML with some of the keys of a fixed shape. A key with a mapping in
// one file has one in most files.
func randomValues(r *rand.Rand, depth int) string {
	var out []string
	for _, key := range []string{"s1", "s2", "i", "l", "b", "m1", "m2"} {
		if r.IntN(3) == 0 {
			continue
		}
		value := "null"
		switch {
		case key[0] == 'm' && r.IntN(5) == 0:
			value = []string{"null", "[1]", "{}"}[r.IntN(3)]
		case key[0] == 'm' && depth == 0:
			value = "{}"
		case key[0] == 'm':
			value = randomValues(r, depth-1)
		case r.IntN(8) == 0:
		case key[0] == 's':
			value = []string{`""`, `"1"`, `"no"`, "a b", `"{{ x }}"`, "é"}[r.IntN(6)]
		case key[0] == 'i':
			value = fmt.Sprint([]any{0, -7, 1.5, 1 << 30, 12345678}[r.IntN(5)])
		case key[0] == 'l':
			value = []string{"[]", "[1, 2]", "[{a: 1}, {b: [x]}]", "[a, null]"}[r.IntN(4)]
		default:
			value = fmt.Sprint(r.IntN(2) == 0)
		}
		out = append(out, key+": "+value)
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// rich is a chart that uses its values in the ways that charts do.
var rich = parse(chart + `
-- chart/values.yaml --
{s1: own, i: 5, l: [own], m1: {s1: own, s2: own, m1: {i: 1}}, part: {s1: own}}
-- chart/templates/more.yaml --
{{- range $name, $value := .Values.m1 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-{{ $name }}, namespace: {{ $.Release.Namespace }}}
data: {value: {{ $value | toString | quote }}}
{{- end }}
-- chart/templates/account.yaml --
{{ if .Values.b }}
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Values.s1 | default "none" | quote }}}
{{ end }}
-- chart/charts/part/Chart.yaml --
apiVersion: v2
name: part
version: 1.0.0
-- chart/charts/part/templates/it.yaml --
apiVersion: shop.example/v1
kind: ConfigMap
metadata: {name: part}
data: {{ .Values | toJson }}
`)

// A target renders to the output of helm template for the values of the folders above it
// and its own, in this order.
func TestSameAsHelm(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	app := rich.with(folder{"values.yaml": randomValues(r, 2)})
	for _, environment := range []string{"dev", "prod"} {
		app["environments/"+environment+"/values.yaml"] = randomValues(r, 2)
		for i := range 4 {
			app[fmt.Sprintf("environments/%s/t%d/values.yaml", environment, i)] = randomValues(r, 2)
		}
	}
	dir, out := app.in(t), t.TempDir()
	a, _, err := application.Write(t.Context(), request(dir), application.Output{Dir: out})
	must(t, err)
	if len(a.Diagnostics) > 0 {
		t.Fatalf("%q", lines(a.Diagnostics))
	}
	seen := map[string]bool{}
	for _, target := range a.Targets {
		got, err := os.ReadFile(filepath.Join(out, target.Environment, target.Name, "manifests.yaml"))
		must(t, err)
		folders := []string{".", "environments/" + target.Environment, target.Dir}
		args := []string{"template", "shop-" + target.Name, filepath.Join(dir, "chart"), "--include-crds"}
		for _, f := range folders {
			args = append(args, "--values", filepath.Join(dir, filepath.FromSlash(f), "values.yaml"))
		}
		byHelm, err := commandtest.Helm(t, args...)
		must(t, err)
		if got, want := objects(t, got), objects(t, byHelm); !reflect.DeepEqual(got, want) {
			t.Errorf("%s/%s: got\n%v\nwant\n%v", target.Environment, target.Name, got, want)
		}
		seen[string(got)] = true
	}
	if len(seen) < 6 {
		t.Errorf("only %d targets differ", len(seen))
	}
}

// A value that a contract fills in reaches the chart as if a file had it.
func TestDefaultsReachTheChart(t *testing.T) {
	t.Parallel()
	dir, out := rich.with(parse(`
-- values.cue --
s1: *"by default" | string
m1: s2: *"deep" | string
part: s1: *null | string
-- environments/dev/east/values.yaml --
b: true
`)).in(t), t.TempDir()
	written(t, dir, out)
	values := filepath.Join(t.TempDir(), "values.yaml")
	must(t, os.WriteFile(values, []byte(valuesOf(t, dir, "dev", "east")), 0o666))
	byHelm, err := commandtest.Helm(t, "template", "shop-east", filepath.Join(dir, "chart"), "--values", values)
	must(t, err)
	got, want := objects(t, []byte(read(t, out)["dev/east/manifests.yaml"])), objects(t, byHelm)
	if !reflect.DeepEqual(got, want) || len(got) < 4 || !slices.ContainsFunc(got, func(o any) bool { return strings.Contains(fmt.Sprint(o), "by default") }) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}
