package zarftest_test

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/zarftest"
)

// valid is a definition that each case breaks in one way.
const valid = `apiVersion: zarf.dev/v1alpha1
kind: ZarfPackageConfig
metadata:
  name: dev-edge
  architecture: amd64
components:
- name: app
  required: true
  charts:
  - name: workspace
    localPath: app
    version: 1.0.0
    namespace: app
    releaseName: app-workspace
  - name: workload
    url: oci://registry.example.test/charts/app
    version: 1.2.3
    namespace: app
    releaseName: app
    valuesFiles:
    - app/values.yaml
  manifests:
  - name: workload
    namespace: app
    files:
    - app/manifests.yaml
  files:
  - source: https://files.example.test/app.conf
    target: /etc/app.conf
    shasum: "00000000000000000000000000000000"
  images:
  - docker.io/library/nginx:1.29
`

func folder(definition string) map[string][]byte {
	return map[string][]byte{
		"zarf.yaml": []byte(definition), "app/Chart.yaml": nil, "app/values.yaml": nil, "app/manifests.yaml": nil,
	}
}

func TestCheck(t *testing.T) {
	if err := zarftest.Check(folder(valid)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown field":   {"  required: true", "  require: true", "require"},
		"wrong type":      {"  required: true", "  required: yes please", "required"},
		"bad name":        {"- name: app\n", "- name: App\n", "name"},
		"no components":   {valid[strings.Index(valid, "components:"):], "components: []\n", "components"},
		"another version": {"v1alpha1", "v1beta1", "not allowed"},
		"unknown version": {"v1alpha1", "v1", "apiVersion is"},
		"number":          {`"00000000000000000000000000000000"`, "00000000000000000000000000000000", "shasum"},
		"both":            {"  required: true", "  required: true\n  default: true", "required and default"},
		"twice":           {"  - name: workload\n    url", "  - name: workspace\n    url", "twice"},
		"no file":         {"app/manifests.yaml", "app/manifest.yaml", "there is no file"},
		"no chart":        {"localPath: app", "localPath: ap", "there is no file"},
		"no values":       {"app/values.yaml", "values.yaml", "there is no file"},
		"two sources":     {"    localPath: app", "    localPath: app\n    url: https://x", "one of url and localPath"},
		"release":         {"releaseName: app\n", "releaseName: 1app\n", "release name"},
		"long manifest":   {"manifests:\n  - name: workload", "manifests:\n  - name: " + strings.Repeat("x", 41), "too long"},
		"short image":     {"docker.io/library/nginx:1.29", "nginx:1.29", "in full"},
		"no tag":          {"docker.io/library/nginx:1.29", "docker.io/library/nginx", "in full"},
		"no shasum":       {"    shasum: \"00000000000000000000000000000000\"\n", "", "no shasum"},
		"two definitions": {"  name: dev-edge\n", "  name: dev-edge\n  name: dev-edge\n", "already set"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := strings.Replace(valid, c.old, c.new, 1)
			if broken == valid {
				t.Fatal("the case changes nothing")
			}
			if err := zarftest.Check(folder(broken)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error about %s", err, c.want)
			}
		})
	}
	if err := zarftest.Check(nil); err == nil {
		t.Error("no zarf.yaml is no error")
	}
}
