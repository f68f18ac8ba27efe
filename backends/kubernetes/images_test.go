package kubernetes_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

const digest = "sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

func TestParseImage(t *testing.T) {
	for text, want := range map[string]string{
		"nginx":                               "docker.io/library/nginx:latest",
		"nginx:1.29":                          "docker.io/library/nginx:1.29",
		"team/app:1":                          "docker.io/team/app:1",
		"localhost/app:1":                     "localhost/app:1",
		"registry.example.test:5000/a/b":      "registry.example.test:5000/a/b:latest",
		"index.docker.io/library/nginx:1":     "docker.io/library/nginx:1",
		"oci://registry.example.test/app:1":   "registry.example.test/app:1",
		"nginx@" + digest:                     "docker.io/library/nginx@" + digest,
		"ghcr.example.test/a:1.2.3@" + digest: "ghcr.example.test/a:1.2.3@" + digest,
	} {
		got, err := kubernetes.ParseImage(text)
		if err != nil || got.Name != want || got.Pinned != strings.Contains(text, "@") {
			t.Errorf("%s: got %+v, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                      "empty",
		"{{ .image }}":          "template",
		"$(params.image)":       "template",
		"registry/${IMAGE}":     "template",
		"###ZARF_REGISTRY###/x": "template",
		"Nginx":                 "no image",
		"nginx:":                "no image",
		"nginx: 1.2":            "no image",
		"nginx@sha256:0a":       "no image",
		"https://example.test/": "no image",
		strings.Repeat("a", 64): "no image", // Docker reads it as the id of an image
	} {
		if _, err := kubernetes.ParseImage(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestImages(t *testing.T) {
	pod := func(name string) string { return `{"containers": [{"name": "main", "image": "` + name + `"}]}` }
	template := func(name string) string { return `{"template": {"spec": ` + pod(name) + `}}` }
	for name, c := range map[string]struct {
		object string
		want   string // the names' last parts
	}{
		"pod":                   {`{"apiVersion": "v1", "kind": "Pod", "spec": ` + pod("a") + `}`, "a"},
		"deployment":            {`{"apiVersion": "apps/v1", "kind": "Deployment", "spec": ` + template("a") + `}`, "a"},
		"cron job":              {`{"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": ` + template("a") + `}}}`, "a"},
		"replication":           {`{"apiVersion": "v1", "kind": "ReplicationController", "spec": ` + template("a") + `}`, "a"},
		"pod template":          {`{"apiVersion": "v1", "kind": "PodTemplate", "template": {"spec": ` + pod("a") + `}}`, "a"},
		"init and ephemeral":    {`{"apiVersion": "v1", "kind": "Pod", "spec": {"initContainers": [{"name": "x", "image": "b"}], "ephemeralContainers": [{"name": "y", "image": "c"}], "containers": [{"name": "z", "image": "a"}]}}`, "a b c"},
		"each once":             {`{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "x", "image": "b"}, {"name": "y", "image": "b"}, {"name": "z", "image": "docker.io/library/b:latest"}]}}`, "b"},
		"image volume":          {`{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [], "volumes": [{"name": "m", "image": {"reference": "models:1"}}, {"name": "e", "emptyDir": {}}]}}`, "models:1"},
		"list":                  {`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "spec": ` + pod("a") + `}, {"apiVersion": "v1", "kind": "PodList", "items": [{"apiVersion": "v1", "kind": "Pod", "spec": ` + pod("b") + `}]}]}`, "a b"},
		"knative":               {`{"apiVersion": "serving.knative.dev/v1", "kind": "Service", "spec": ` + template("a") + `}`, "a"},
		"rollout":               {`{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "spec": ` + template("a") + `}`, "a"},
		"workflow":              {`{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": {"templates": [{"name": "x", "container": {"image": "a"}}, {"name": "y", "script": {"image": "b"}, "sidecars": [{"name": "s", "image": "c"}]}]}}`, "a b c"},
		"task":                  {`{"apiVersion": "tekton.dev/v1", "kind": "Task", "spec": {"steps": [{"image": "a"}], "sidecars": [{"image": "b"}]}}`, "a b"},
		"prometheus":            {`{"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "spec": {"image": "a:1", "containers": [{"name": "patch"}]}}`, "a:1"},
		"postgres":              {`{"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "spec": {"imageName": "a:17"}}`, "a:17"},
		"catalog":               {`{"apiVersion": "postgresql.cnpg.io/v1", "kind": "ImageCatalog", "spec": {"images": [{"major": 17, "image": "a:17"}]}}`, "a:17"},
		"virtual machine":       {`{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "spec": {"template": {"spec": {"volumes": [{"name": "d", "containerDisk": {"image": "a"}}]}}}}`, "a"},
		"provider":              {`{"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "spec": {"package": "registry.example.test/p:1"}}`, "registry.example.test/p:1"},
		"collector":             {`{"apiVersion": "opentelemetry.io/v1beta1", "kind": "OpenTelemetryCollector", "spec": {"image": "a"}}`, "a"},
		"unknown with pods":     {`{"apiVersion": "example.test/v1", "kind": "App", "spec": {"deep": [{"er": ` + template("a") + `}]}}`, "a"},
		"repository and tag":    {`{"apiVersion": "example.test/v1", "kind": "App", "spec": {"image": {"repository": "a", "tag": "1"}}}`, ""},
		"unknown field":         {`{"apiVersion": "example.test/v1", "kind": "App", "spec": {"image": "ubuntu-22.04"}}`, ""},
		"other containers":      {`{"apiVersion": "example.test/v1", "kind": "Bucket", "spec": {"containers": ["a", "b"], "volumes": "none"}}`, ""},
		"injected":              {`{"apiVersion": "apps/v1", "kind": "Deployment", "spec": ` + template("auto") + `}`, ""},
		"definition":            {`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {"versions": [{"schema": {"default": ` + pod("a") + `}}]}}`, ""},
		"config":                {`{"apiVersion": "v1", "kind": "ConfigMap", "data": {"pod.yaml": "containers:\n- name: a\n  image: b\n"}}`, ""},
		"text":                  {`"containers"`, ""},
		"field of another kind": {`{"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "spec": {"image": null}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			images, bad := kubernetes.Images([]model.Value{bt.Value(t, c.object)})
			var got []string
			for _, image := range images {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(image.Name, "docker.io/library/"), ":latest"))
			}
			if strings.Join(got, " ") != c.want || len(bad) > 0 {
				t.Errorf("got %q and %+v, want %q", got, bad, c.want)
			}
		})
	}
}

func TestBadImages(t *testing.T) {
	container := func(fields string) string {
		return `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "app"}, "spec": {"template": {"spec": {"containers": [{"name": "main"` + fields + `}]}}}}`
	}
	const path = "spec.template.spec.containers[0]"
	for name, c := range map[string]struct{ object, path, why string }{
		"none":      {container(``), path, "no image"},
		"empty":     {container(`, "image": ""`), path + ".image", "empty"},
		"null":      {container(`, "image": null`), path + ".image", "no string"},
		"template":  {container(`, "image": "{{ .Values.image }}"`), path + ".image", "template"},
		"malformed": {container(`, "image": "App"`), path + ".image", "no image"},
	} {
		t.Run(name, func(t *testing.T) {
			images, bad := kubernetes.Images([]model.Value{bt.Value(t, c.object)})
			if len(images) > 0 || len(bad) != 1 || bad[0].Object != "Deployment app" || bad[0].Path != c.path || !strings.Contains(bad[0].Why, c.why) {
				t.Errorf("got %+v and %+v", images, bad)
			}
		})
	}
}

// FuzzImages runs the finder on any object. ParseImage must accept each image that the finder
// returns, and return the same image.
func FuzzImages(f *testing.F) {
	f.Add([]byte(`{"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod", "spec": {"containers": [{"name": "a", "image": "b"}], "volumes": [{"image": {"reference": 1}}]}}]}`))
	f.Add([]byte(`{"apiVersion": "tekton.dev/v1", "spec": {"steps": [1, {"image": ["a"]}]}, "containers": {"image": "x"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v model.Value
		if json.Unmarshal(text, &v) != nil {
			return
		}
		images, _ := kubernetes.Images([]model.Value{v})
		if !slices.IsSortedFunc(images, func(a, b kubernetes.Image) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("not sorted: %+v", images)
		}
		for _, image := range images {
			if again, err := kubernetes.ParseImage(image.Name); err != nil || again != image {
				t.Errorf("%+v is %+v, %v", image, again, err)
			}
		}
	})
}
