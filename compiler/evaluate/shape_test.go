package evaluate

import (
	"github.com/kalypso-io/kalypso/compiler/model"
	"io/fs"
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso"
)

// Every field of the schema is known by its name, has its documentation, and
// every definition its shape, so that no misspelt field can go unreported.
func TestShapesCoverTheSchema(t *testing.T) {
	files, err := fs.Glob(kalypso.Module, "schema/*.cue")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	shapes := schemaShapes()
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
				if f, known := s.fields[name]; !known || f.doc == "" {
					t.Errorf("%s.%s is not known, or not documented", definition, name)
				}
			}
		}
	}
	for _, name := range model.CollectionNames {
		if s := entityShape(name); s == nil || len(s.fields) == 0 {
			t.Errorf("%s has no entities", name)
		}
	}
}

func TestShapes(t *testing.T) {
	target := entityShape("workloads").fields["deploymentTargets"].pattern
	if f := target.fields["environment"]; !f.required || f.is == "" {
		t.Errorf("environment: %+v", f)
	}
	if s := target.fields["manifests"].shape; len(s.oneOf) != 1 || strings.Join(s.oneOf[0], " ") != "git oci helm kustomize package ansible" {
		t.Errorf("manifests: %+v", s.oneOf)
	}
	if s := target.fields["requires"].shape; !s.open {
		t.Error("requires is not open")
	}
	if s := entityShape("clusterTypes").fields["configFormat"].shape; strings.Join(s.enum, " ") != "configmap env sh json yaml" {
		t.Errorf("configFormat: %v", s.enum)
	}
	service := entityShape("namespaceServices")
	if s := service.fields["limits"].shape; s.fields["Container"].shape == nil || s.pattern != nil {
		t.Errorf("limits: %+v", s)
	}
	if s := service.fields["networkPolicy"].shape; s.def != "#NetworkPolicy" || strings.Join(s.enum, " ") != "none isolated" {
		t.Errorf("networkPolicy: %+v", s)
	}
	if k := service.fields["labels"].keys; k.allows("a b") || !k.allows("example.com/a") {
		t.Errorf("labels: %+v", k)
	}
}
