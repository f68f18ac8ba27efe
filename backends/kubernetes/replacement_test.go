package kubernetes_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/filters/imagetag"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

var imageDigest = "sha256:" + strings.Repeat("0a", 32)

func yamlValue(t *testing.T, text string) model.Value {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "\t", "")))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return bt.Value(t, string(json))
}

// References of images become others by name, or by the longest registry that they are in.
func TestReplaceImages(t *testing.T) {
	named := func(i model.KustomImage) model.Image { return model.Image{KustomImage: i} }
	images := []model.Image{
		{Registry: "docker.io", NewRegistry: "mirror.example.com:5000/hub"},
		{Registry: "docker.io/bitnami", NewRegistry: "mirror.example.com/bitnami"},
		{Registry: "localhost:5000", NewRegistry: "mirror.example.com/local"},
		{Registry: "ghcr.io/shop", NewRegistry: "ghcr.io/copy/shop"},
		named(model.KustomImage{Name: "renamed", NewName: "example.com/new"}),
		named(model.KustomImage{Name: "tagged", NewTag: "2"}),
		named(model.KustomImage{Name: "localhost:5000/pinned", Digest: imageDigest}),
		named(model.KustomImage{Name: "docker.io/library/full", NewName: "example.com/full"}),
	}
	for text, want := range map[string]string{
		"nginx":                               "mirror.example.com:5000/hub/library/nginx",
		"nginx:1.29":                          "mirror.example.com:5000/hub/library/nginx:1.29",
		"nginx@" + imageDigest:                "mirror.example.com:5000/hub/library/nginx@" + imageDigest,
		"nginx:1.29@" + imageDigest:           "mirror.example.com:5000/hub/library/nginx:1.29@" + imageDigest,
		"library/nginx":                       "mirror.example.com:5000/hub/library/nginx",
		"index.docker.io/nginx":               "mirror.example.com:5000/hub/library/nginx",
		"docker.io/team/app:1":                "mirror.example.com:5000/hub/team/app:1",
		"bitnami/redis:7":                     "mirror.example.com/bitnami/redis:7",
		"bitnamilegacy/redis:7":               "mirror.example.com:5000/hub/bitnamilegacy/redis:7",
		"localhost:5000/a":                    "mirror.example.com/local/a",
		"localhost:5000/a:1":                  "mirror.example.com/local/a:1",
		"localhost:5000/a:1@" + imageDigest:   "mirror.example.com/local/a:1@" + imageDigest,
		"localhost/a:1":                       "localhost/a:1",
		"ghcr.io/shop/till:1":                 "ghcr.io/copy/shop/till:1",
		"ghcr.io/shops/till:1":                "ghcr.io/shops/till:1",
		"quay.io/nginx":                       "quay.io/nginx",
		"renamed:1":                           "example.com/new:1",
		"renamed:1@" + imageDigest:            "example.com/new:1@" + imageDigest,
		"renamed/other:1":                     "mirror.example.com:5000/hub/renamed/other:1",
		"tagged":                              "tagged:2",
		"tagged:1":                            "tagged:2",
		"tagged:1@" + imageDigest:             "tagged:2",
		"localhost:5000/pinned:1":             "localhost:5000/pinned@" + imageDigest,
		"full":                                "mirror.example.com:5000/hub/library/full",
		"docker.io/library/full:1":            "example.com/full:1",
		"auto":                                "auto",
		"$(IMAGE)":                            "$(IMAGE)",
		"registry.example.com/{{ .image }}:1": "registry.example.com/{{ .image }}:1",
		"":                                    "",
	} {
		pod := func(image string) string {
			return `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: "` + image + `"}]}}`
		}
		got, bad := kubernetes.ReplaceImages(yamlValue(t, pod(text)), images)
		if !got.Equal(yamlValue(t, pod(want))) {
			t.Errorf("%q becomes %s, want %q", text, got, want)
		}
		unreadable := text == "" || strings.ContainsAny(text, "${")
		if unreadable != (len(bad) == 1) || unreadable && (bad[0].Object != "Pod p" || bad[0].Path != "spec.containers[0].image") {
			t.Errorf("%q: bad images %v", text, bad)
		}
	}
}

// ReplaceImages finds images in the pods of all kinds, and nowhere else.
func TestReplaceImagesIn(t *testing.T) {
	const object = `{apiVersion: OF, kind: KIND, metadata: {name: o, containers: "a:1"}, image: "a:1", spec: {
		image: "a:1",
		jobTemplate: {spec: {template: {spec: {
			containers: [{name: a, image: "a:1"}, {name: b, image: "b:1"}, {name: none}, {image: 7}, "a:1"],
			initContainers: [{image: "a:1@DIGEST"}], ephemeralContainers: [{image: a}],
			volumes: [{name: v, image: {reference: "a:1"}}, {name: w, configMap: {name: "a:1"}}]}}}}}}`
	fill := strings.NewReplacer("DIGEST", imageDigest)
	images := []model.Image{{KustomImage: model.KustomImage{Name: "a", NewTag: "2"}}}
	for kind, changed := range map[[2]string]bool{
		{"batch/v1", "CronJob"}: true, {"v1", "Pod"}: true, {"example.com/v1", "Custom"}: true,
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition"}: false,
	} {
		text := strings.NewReplacer("OF", kind[0], "KIND", kind[1]).Replace(object)
		want := text
		if changed {
			want = strings.NewReplacer(`{name: a, image: "a:1"}`, `{name: a, image: "a:2"}`, `"a:1@DIGEST"`, `"a:2"`,
				`{image: a}`, `{image: "a:2"}`, `{reference: "a:1"}`, `{reference: "a:2"}`).Replace(text)
		}
		list := func(text string) model.Value {
			return yamlValue(t, `{apiVersion: v1, kind: List, items: [`+fill.Replace(text)+`]}`)
		}
		if got, bad := kubernetes.ReplaceImages(list(text), images); !got.Equal(list(want)) || len(bad) > 0 {
			t.Errorf("%s: got %s, bad %v", kind[1], got, bad)
		}
	}
}

// Elements with a name change references as kustomize does.
func TestReplaceImagesAsKustomize(t *testing.T) {
	for _, image := range []model.KustomImage{
		{Name: "app", NewName: "example.com:5000/app"}, {Name: "app", NewTag: "2"}, {Name: "app", Digest: imageDigest},
		{Name: "app", NewName: "new", NewTag: "2"}, {Name: "localhost:5000/app", NewName: "new"},
		{Name: "example.com/team/app", NewTag: "2"},
	} {
		for _, name := range []string{"app", "localhost:5000/app", "example.com/team/app", "example.com/app", "apps", "my/app"} {
			for _, revision := range []string{"", ":1", "@" + imageDigest, ":1@" + imageDigest} {
				object := `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{image: "` + name + revision + `"}]}}`
				var out strings.Builder
				err := kio.Pipeline{
					Inputs: []kio.Reader{&kio.ByteReader{Reader: strings.NewReader(object), OmitReaderAnnotations: true}},
					Filters: []kio.Filter{imagetag.LegacyFilter{ImageTag: types.Image{Name: image.Name, NewName: image.NewName,
						NewTag: image.NewTag, Digest: image.Digest}}},
					Outputs: []kio.Writer{&kio.ByteWriter{Writer: &out}},
				}.Execute()
				if err != nil {
					t.Fatal(err)
				}
				got, _ := kubernetes.ReplaceImages(yamlValue(t, object), []model.Image{{KustomImage: image}})
				if !got.Equal(yamlValue(t, out.String())) {
					t.Errorf("%+v, %s%s: got %s, and kustomize makes %s", image, name, revision, got, out.String())
				}
			}
		}
	}
}
