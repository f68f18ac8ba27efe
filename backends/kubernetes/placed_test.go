package kubernetes

import (
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Identities finds all objects that reconcilers would apply, including the items of lists of any
// kind. It ignores definitions that are never applied.
func TestPlaced(t *testing.T) {
	text := model.StringOf
	object := func(apiVersion, kind, namespace, name string, more ...model.Field) model.Projected {
		metadata := []model.Field{{Name: "name", Value: text(name)}}
		if namespace != "" {
			metadata = append(metadata, model.Field{Name: "namespace", Value: text(namespace)})
		}
		return model.Projected{Value: model.StructOf(append([]model.Field{
			{Name: "apiVersion", Value: text(apiVersion)}, {Name: "kind", Value: text(kind)}, {Name: "metadata", Value: model.StructOf(metadata...)},
		}, more...)...)}
	}
	definition := func(apiVersion, group, kind, scope string) model.Projected {
		d := object(apiVersion, "CustomResourceDefinition", "", "d", model.Field{Name: "spec", Value: model.StructOf(
			model.Field{Name: "group", Value: text(group)}, model.Field{Name: "scope", Value: text(scope)},
			model.Field{Name: "names", Value: model.StructOf(model.Field{Name: "kind", Value: text(kind)})},
		)})
		d.Hooks = []string{"test"}
		return d
	}
	hidden := object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "hidden")
	p := &model.Projection{Objects: []model.Projected{
		definition("apiextensions.k8s.io/v1", "rbac.authorization.k8s.io", "ClusterRole", "Namespaced"),
		definition("apiextensions.k8s.io/v1", "", "Secret", "Cluster"),
		definition("apps/v1", "example.com", "Fake", "Cluster"),
		definition("apiextensions.k8s.io/v1", "example.com", "Wide", "Cluster"),
		object("v1", "ConfigMap", "", "cover", model.Field{Name: "items", Value: model.ListOf(hidden.Value)}),
		object("v1", "Secret", "kube-system", "far"),
		object("example.com/v1", "Fake", "", "fake"),
		object("example.com/v1", "Wide", "there", "wide"),
		object("unknown.example.com/v1", "Thing", "", "thing"),
	}}
	want := []PlacedObject{
		{backends.Object{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "hidden"}, "", false},
		{backends.Object{Kind: "Secret", Namespace: "kube-system", Name: "far"}, "kube-system", false},
		// its definition is not a CustomResourceDefinition
		{backends.Object{Group: "example.com", Kind: "Fake", Namespace: "own", Name: "fake"}, "", true},
		{backends.Object{Group: "example.com", Kind: "Wide", Name: "wide"}, "there", false},
		{backends.Object{Group: "unknown.example.com", Kind: "Thing", Namespace: "own", Name: "thing"}, "", true},
	}
	got := Identities(p, "own")[4:]
	if len(got) != len(want) {
		t.Fatalf("%d objects: %+v", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}
