package names

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// noReferences are fields with the type of a name whose values are not names of entities.
var noReferences = []string{"#Environment.formerly",
	"#Workload.application", "#Ring.after", "#Secret.store", "#Application.namespace", "#Flux.namespace", "#ArgoCD.namespace", "#Fleet.namespace",
	"#Assignment.dependsOn",
}

// TestReferences checks that model.References has exactly the fields of the schema with the
// type of a name, and the fields that are documented to be a key of a collection.
func TestReferences(t *testing.T) {
	inSchema := map[string]bool{}
	files, err := fs.Glob(kalypso.Module, "schema/*.cue")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var decls []ast.Decl
	for _, file := range files {
		text, err := kalypso.Module.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(file, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, f.Decls...)
	}
	for _, decl := range decls {
		of, ok := decl.(*ast.Field)
		if !ok {
			continue
		}
		definition, _, _ := ast.LabelName(of.Label)
		lit, ok := of.Value.(*ast.StructLit)
		if !ok {
			continue
		}
		for _, decl := range lit.Elts {
			f, ok := decl.(*ast.Field)
			if !ok {
				continue
			}
			name, _, err := ast.LabelName(f.Label)
			if err != nil {
				continue
			}
			doc := ""
			for _, g := range ast.Comments(f) {
				if g.Doc {
					doc = strings.Join(strings.Fields(g.Text()), " ")
				}
			}
			field := definition + "." + name
			inSchema[field] = true
			collection, listed := model.References[field]
			_, key, documented := strings.Cut(doc, "a key of ")
			key, _, _ = strings.Cut(key, ";")
			if key = strings.TrimRight(key, "."); documented && key != collection {
				t.Errorf("%s is documented to be a key of %s, and References say %q", field, key, collection)
			}
			if name != "name" && isNamed(f.Value) && !listed && !slices.Contains(noReferences, field) {
				t.Errorf("%s is a name, and neither References nor this test say of what", field)
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(model.References)) {
		if !inSchema[field] {
			t.Errorf("the schema has no %s", field)
		}
	}
	for _, field := range noReferences {
		if !inSchema[field] || model.References[field] != "" {
			t.Errorf("%s is not what this test says", field)
		}
	}
}

// isNamed reports whether a value, or an element of a list, has a definition of names as its
// type.
func isNamed(e ast.Expr) (found bool) {
	ast.Walk(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && (id.Name == "#Name" || id.Name == "#FullName")
		_, isStruct := n.(*ast.StructLit)
		return !isStruct
	}, nil)
	return found
}
