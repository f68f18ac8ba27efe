package helm

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

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
		{"tpl of a file", "-- files/x.tpl --\nyear: {{ now | date \"2006\" }}\n" + configMap(`{{ tpl (.Files.Get "files/x.tpl") . | quote }}`), "", "see app/templates/config.yaml, which uses now"},
		{"tpl of the chart's value", "-- values.yaml --\nmotd: '{{ now | date \"2006-01-02\" }}'\n" + configMap(`{{ tpl .Values.motd . }}`), "", "which uses now"},
		{"tpl of its own text", configMap("{{ tpl `{{ now | date \"2006-01\" }}` . }}"), "", "which uses now"},
		{"tpl of what is piped", configMap("{{ . | tpl  (print `{{ now | date \"(2006\" ` \"}}\")|upper|trim }}"), "", "which uses now"},
		{"tpl of what is made", configMap(`{{ tpl (printf "{{ %s 0 2 }}" "randInt") . }}`), "", "which uses randInt"},
		{"tpl in tpl", configMap("{{ tpl .Values.a . }}"), `{a: "{{ tpl .Values.b $ | upper }}", b: "{{ randInt 0 2 }}"}`, "which uses randInt"},
		{"tpl that defines", configMap("{{ tpl .Values.a . }}"), `{a: "{{ define \"x\" }}{{ now.Year }}{{ end }}{{ include \"x\" . }}"}`, "which uses now"},
		{"keys by tpl", configMap("{{ tpl `{{ keys .Values.m | first }}` . }}"), "{m: {a: 1, b: 2}}", "which uses keys"},
		{"first of two values", configMap("{{ values .Values.m | first }}"), "{m: {a: 1, b: 2}}", "which uses values"},
		{"last of two values", configMap("{{ last (values .Values.m) }}"), "{m: {a: 1, b: 2}}", "which uses values"},
		{"middle of three keys", configMap("{{ index (keys .Values.m) 1 }}"), "{m: {a: 1, b: 2, c: 3}}", "which uses keys"},
		{"date of no time", configMap(`{{ date "2006-01-02" "x" }}`), "", "which uses date"},
		{"htmlDate of nothing", configMap(`{{ htmlDate .Values.nope }}`), "", "which uses htmlDate"},
		{"htmlDate piped", configMap(`{{ .Values.nope | htmlDate }}`), "", "which uses htmlDate"},
		{"dateInZone", configMap(`{{ dateInZone "2006" "x" "UTC" }}`), "", "which uses dateInZone"},
		{"rounded age", configMap(`{{ durationRound (toDate "2006-01-02" "2001-02-03") }}`), "", "which uses durationRound"},
		{"before a year", configMap(`{{ lt now.Year 2100 }}`), "", "which uses now"},
		{"weekday", configMap(`{{ now | date "Mon" }}`), "", "which uses now"},
		{"half of the dice", configMap(`{{ gt (randInt 0 1000) 998 }}`), "", "which uses randInt"},
		{"any digit", configMap(`{{ randAlphaNum 1000 | regexMatch "[0-9]" }}`), "", "which uses randAlphaNum"},
		{"a byte", configMap(`{{ randBytes 1 | trunc 1 }}`), "", "which uses randBytes"},
		{"a hex digit", configMap(`{{ uuidv4 | trunc 1 | quote }}`), "", "which uses uuidv4"},
		{"signed", configMap(`{{ $ca := genCAWithKey "x" 1 (genPrivateKey "ecdsa") }}{{ (genSignedCert "x" (list "127.0.0.1") nil 1 $ca).Cert | b64enc }}`), "", "which uses genCAWithKey, genPrivateKey, genSignedCert"},
		{"encrypted", configMap(`{{ encryptAES "secret" "x" }}`), "", "which uses encryptAES"},
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

// A template that only looks unstable renders.
func TestStable(t *testing.T) {
	for name, template := range map[string]string{
		"not reached":  `{{ if .Values.roll }}{{ now }}{{ else }}x{{ end }}`,
		"sorted keys":  `{{ keys .Values | sortAlpha | join "," | quote }}`,
		"sorted later": `x{{- $k := keys (dict "a)}}" 1 "b" 2) (dict "'" (keys .Values | len)) -}} {{ range sortAlpha $k }}{{ . | quote | squote }}{{ end }}`,
		"derived":      `{{ derivePassword 1 "long" "password" "user" "example.com" | quote }}`,
		"a fixed date": `{{ toDate "2006-01-02" "2020-02-03" | date "2006" | quote }}`,
		"a string":     `{{ "now" }} randInt $now`,
		"unused":       `{{ $ca := genCA "x" 1 }}x`,
		"a field":      `{{ .Values.now | default "x" }}`,
		"unused value": `{{ .Values.password | default (randAlphaNum 9) }}`,
		"for others":   `{{ print (.Files.Get "alert.tpl") .Values.motd | quote }}`,
		"quoted":       "{{ tpl `{{ print \"{{ now }}\" }} now` . | quote }}",
		"tpl":          `{{ tpl "{{ .Values.password }} {{ tpl .Values.again . }}" . }}`,
		"looked up":    `n{{ lookup "v1" "Secret" "" "x" | len }}{{ len (lookup "v1" "Secret" "apps" "") }}`,
		"sum of all":   `{{ $sum := 0 }}{{ range values .Values.m }}{{ $sum = add $sum . }}{{ end }}{{ $sum | quote }}`,
		"all by tpl":   "{{ tpl `{{ keys .Values.m | sortAlpha | join \"\" }}` . }}",
		"no age":       `{{ ago "x" }} {{ durationRound "2h" }} {{ durationRound .Values.nope }}`,
		"a date":       `{{ date "2006" 0 }} {{ dateInZone "2006" (toDate "2006" "2020") "UTC" }}`,
		"form":         `{{ randAlphaNum 9 | len }} {{ uuidv4 | len }} {{ bcrypt "x" | trunc 7 }} {{ randBytes 3 | len }}`,
		"one of one":   `{{ keys .Values.m1 | first }}{{ values .Values.m1 | first }}{{ randInt 3 4 }}{{ shuffle "aa" }}`,
		"there again":  `{{ encryptAES "secret" "text" | decryptAES "secret" }}`,
		"no user":      `{{ htpasswd "a:b" "c" | quote }}`,
	} {
		files := "-- alert.tpl --\n{{ now }} {{ tpl .x . }}\n-- values.yaml --\n{password: x, again: '{{ .Values.m.a }}', motd: '{{ randInt 0 9 }}', m: {a: 1, b: 2, c: 3}, m1: {a: 1}}\n"
		if _, err := Render(request(t, chartYAML+files+configMap(template))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A hook that no installation runs is no reason to refuse a chart: it is the same each
// time, and is marked as unstable. A comment is no reason either, because it is not among
// the objects.
func TestUnstableHooks(t *testing.T) {
	object := func(name, events, data string) string {
		annotations := ""
		if events != "" {
			annotations = ", annotations: {helm.sh/hook: \"" + events + "\"}"
		}
		return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s%s}\ndata: {a: '%s'}\n", name, annotations, data)
	}
	const random = "{{ randAlphaNum 9 }}"
	test := "-- templates/tests/a.yaml --\n" + object("t-{{ randAlphaNum 5 | lower }}", "test", "x") + object("gone", "post-delete", random) + "-- templates/tests/b.yaml --\n" + object("alike", "test-success", "x")
	for name, c := range map[string]struct {
		chart    string
		unstable int
	}{
		"none":    {"-- templates/a.yaml --\n# made at {{ now }}\n" + object("a", "", "x") + "# {{ uuidv4 }}\n---\n# {{ uuidv4 }}\n", 0},
		"tests":   {"-- templates/a.yaml --\n" + object("a", "", "x") + object("b", "pre-install", "x") + test, 2},
		"one":     {"-- templates/a.yaml --\n" + object("a", "", "x") + object("undo", "pre-rollback,post-rollback", random), 1},
		"by luck": {"-- templates/a.yaml --\n{{ if eq (randInt 0 2) 0 }}\n" + object("a", "pre-delete", "x") + "{{ end }}\n", 1},
		"order":   {"-- templates/a.yaml --\n" + object("a", "test", `{{ keys .Values.m | join "" }}`) + "-- values.yaml --\nm: {a: 1, b: 2, c: 3, d: 4}\n", 1},
	} {
		var first []model.Projected
		for range 8 {
			got, err := Render(request(t, chartYAML+c.chart))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if first == nil {
				first = got
			}
			if !reflect.DeepEqual(got, first) {
				t.Fatalf("%s: renders differ: %v and %v", name, first, got)
			}
		}
		unstable := 0
		for _, o := range first {
			if o.Unstable != "" {
				unstable++
				if !strings.HasPrefix(o.Unstable, "chart app renders to something else each time: see app/templates/") || o.Applied() {
					t.Errorf("%s: %+v", name, o)
				}
			}
		}
		if unstable != c.unstable {
			t.Errorf("%s: %d of %v differ, want %d", name, unstable, first, c.unstable)
		}
	}
	for _, events := range []string{"", "post-upgrade", "test,pre-install"} {
		refusedAs(t, request(t, chartYAML+"-- templates/a.yaml --\n"+object("a", events, random)), diag.Unstable)
	}
}

// Worlds differ in every part of the time, and at each place of an unordered result.
func TestWorlds(t *testing.T) {
	all := worlds()
	for _, layout := range []string{"2006", "01", "02", "002", "Mon", "Jan", "15", "PM", "04", "05", ".000000000"} {
		if a, b := all[0].now.Format(layout), all[1].now.Format(layout); a == b {
			t.Errorf("both times are %s by %s", a, layout)
		}
	}
	for n := 2; n < 9; n++ {
		seen := map[string]bool{}
		for _, w := range all {
			letters := strings.Split("abcdefghi"[:n], "")
			w.arrange(letters)
			if n > 2 || w != all[2] {
				for i, l := range letters {
					if at := fmt.Sprint(i, l); seen[at] && w != all[2] {
						t.Errorf("%s is twice in place %d of %d", l, i, n)
					} else {
						seen[at] = true
					}
				}
			}
			slices.Sort(letters)
			if got := strings.Join(letters, ""); got != "abcdefghi"[:n] {
				t.Errorf("%s of %d", got, n)
			}
		}
	}
}

// Each function of a world has as many arguments as Sprig's function, and returns a value
// of the same type.
func TestFunctionsOfWorlds(t *testing.T) {
	library := sprig.TxtFuncMap()
	for name, f := range worlds()[0].functions() {
		want, got := reflect.TypeOf(library[name]), reflect.TypeOf(f)
		if got.NumIn() != want.NumIn() || got.IsVariadic() != want.IsVariadic() || got.Out(0).Kind() != want.Out(0).Kind() {
			t.Errorf("%s is a %s, want %s", name, got, want)
		}
	}
}

// FuzzRewrite checks that a template that parses still parses when its unstable functions
// are replaced. A template without unstable functions stays unchanged.
func FuzzRewrite(f *testing.F) {
	for _, s := range []string{"{{ now }}", "a {{- randInt 1 2 | int -}} b {{ `now` }}", `{{ define "x" }}{{ (now).Year }}{{ end }}{{/* now */}}`, "{{ if now }}{{ else if ago now }}{{ end }}", "{{- keys (dict `}}` \"a\\\")\" 'x') | join ` ` -}}",
		"{{ tpl `{{ now }}` . }}", "{{ . | tpl (print \"a)\" now).x }}", "{{ tpl (tpl .a .) (keys .b) -}}", "{{ tpl now . }}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		after := rewrite(text, byTemplate)
		if parseTemplates("", text) == nil {
			if after != text {
				t.Errorf("%q becomes %q", text, after)
			}
		} else if parseTemplates("", after) == nil {
			t.Errorf("%q becomes %q, which does not parse", text, after)
		}
	})
}
