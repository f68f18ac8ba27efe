package helm

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
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
