package yaml

import (
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// BenchmarkMarshal writes the typical objects of an assignment's folder: an object of a reconciler,
// a namespace, and a ConfigMap.
func BenchmarkMarshal(b *testing.B) {
	type metadata struct {
		Name        string            `yaml:"name"`
		Namespace   string            `yaml:"namespace,omitempty"`
		Labels      map[string]string `yaml:"labels,omitempty"`
		Annotations map[string]string `yaml:"annotations,omitempty"`
	}
	type object struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Metadata   metadata `yaml:"metadata"`
		Spec       any      `yaml:"spec,omitempty"`
		Data       Mapping  `yaml:"data,omitempty"`
	}
	meta := metadata{
		Name: "hello-world-app-functional-test", Namespace: "dev-large-hello-world-app-functional-test",
		Labels:      map[string]string{"app.kubernetes.io/managed-by": "kalypso", "environment": "dev", "workload": "hello-world-app"},
		Annotations: map[string]string{"kalypso.io/assignment": "dev/large/hello-world-app-functional-test"},
	}
	docs := []any{
		object{"source.toolkit.fluxcd.io/v1", "GitRepository", meta,
			Mapping{{"interval", "5m0s"}, {"url", "https://git.example.test/app"}, {"ref", Mapping{{"branch", "dev"}}}}, nil},
		object{"v1", "Namespace", meta, nil, nil},
		object{"v1", "ConfigMap", meta, nil, Mapping{
			{"REGION", "us-east-1"}, {"RETRIES", "3"}, {"DATABASE_URL", "mysql://east:3306/db"}, {"ENABLED", "yes"},
			{"LIMITS", "cpu: 500m\nmemory: 2Gi\n"}, {"VERSION", "1.20.3"}, {"GREETING", "Hello, World!"},
		}},
		model.StructOf(
			model.Field{Name: "ports", Value: model.ListOf(model.IntOf(80), model.IntOf(443))},
			model.Field{Name: "hosts", Value: model.ListOf(model.StringOf("a.example.com"), model.StringOf("b.example.com"))},
		),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Marshal(docs...); err != nil {
			b.Fatal(err)
		}
	}
}
