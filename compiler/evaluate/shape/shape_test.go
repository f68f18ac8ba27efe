package shape

import (
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestShapesCoverTheSchema checks that every field of the schema has its name and
// documentation, and every definition its shape. Otherwise a misspelt field could go
// unreported.
func TestShapesCoverTheSchema(t *testing.T) {
	files, err := fs.Glob(kalypso.Module, "schema/*.cue")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	shapes := Definitions()
	for _, name := range files {
		data, err := kalypso.Module.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(name, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			field, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			definition, _, _ := ast.LabelName(field.Label)
			s := shapes[definition]
			if s == nil {
				t.Errorf("%s has no shape", definition)
				continue
			}
			lit, ok := field.Value.(*ast.StructLit)
			if !ok {
				continue
			}
			for _, e := range lit.Elts {
				of, ok := e.(*ast.Field)
				if !ok {
					continue
				}
				name, _, err := ast.LabelName(of.Label)
				if err != nil || strings.HasPrefix(name, "#") {
					continue
				}
				if f, known := s.Fields[name]; !known || f.Doc == "" {
					t.Errorf("%s.%s is not known, or not documented", definition, name)
				}
			}
		}
	}
	for _, name := range model.CollectionNames {
		if s := Of(name); s == nil || len(s.Fields) == 0 {
			t.Errorf("%s has no entities", name)
		}
	}
}

// notInSchema are the fields of the model that no field of the schema declares.
var notInSchema = map[string]string{
	"Digest":                    "it identifies the other fields",
	"Workload.Registration":     "the registration that provides it",
	"Workload.Chart":            "manifests.helm, as values",
	"Workload.Targets":          "deploymentTargets of one environment",
	"DeploymentTarget.FullName": "its name with the workload's",
	"DeploymentTarget.Chart":    "manifests.helm, as values",
	"ClusterType.Class":         "computed of its clusters",
	"ClusterType.SelectedBy":    "computed of its clusters",
	"Cluster.Folder":            "the cluster type or the class of it",
	"Cluster.Inventory":         "the inventory that declares it",
	"Cluster.Composed":          "composed of its values",
}

// TestModelIsInSchema checks that each field of the model's entities has a field of the same name
// in the schema.
func TestModelIsInSchema(t *testing.T) {
	shapes := Definitions()
	for _, entity := range []reflect.Type{
		reflect.TypeFor[model.Workload](), reflect.TypeFor[model.DeploymentTarget](),
		reflect.TypeFor[model.ClusterType](), reflect.TypeFor[model.Cluster](),
	} {
		names := shapes["#"+entity.Name()].Names()
		for field := range entity.Fields() {
			declared := slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, field.Name) })
			computed := notInSchema[field.Name]+notInSchema[entity.Name()+"."+field.Name] != ""
			if declared == computed {
				t.Errorf("%s.%s: in the schema %v, in notInSchema %v", entity.Name(), field.Name, declared, computed)
			}
		}
	}
}

func TestShapes(t *testing.T) {
	target := Of("workloads").Fields["deploymentTargets"].Pattern
	if f := target.Fields["environment"]; !f.Required || f.Is == "" {
		t.Errorf("environment: %+v", f)
	}
	if s := target.Fields["manifests"].Shape; len(s.OneOf) != 1 || strings.Join(s.OneOf[0], " ") != "git oci helm kustomize package ansible" {
		t.Errorf("manifests: %+v", s.OneOf)
	}
	if s := target.Fields["requires"].Shape; !s.Open {
		t.Error("requires is not open")
	}
	if s := Of("clusterTypes").Fields["configFormat"].Shape; strings.Join(s.Enum, " ") != "configmap env sh json yaml" {
		t.Errorf("configFormat: %v", s.Enum)
	}
	service := Of("namespaceServices")
	if s := service.Fields["limits"].Shape; s.Fields["Container"].Shape == nil || s.Pattern != nil {
		t.Errorf("limits: %+v", s)
	}
	if s := service.Fields["networkPolicy"].Shape; s.Def != "#NetworkPolicy" || strings.Join(s.Enum, " ") != "none isolated" {
		t.Errorf("networkPolicy: %+v", s)
	}
	if k := service.Fields["labels"].Keys; k.Allows("a b") || !k.Allows("example.com/a") {
		t.Errorf("labels: %+v", k)
	}
}
