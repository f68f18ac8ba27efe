package helm

import (
	"errors"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

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
