package registration

import (
	"slices"
	"testing"

	"cuelang.org/go/cue/ast"

	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
)

// FuzzWorkloads reads arbitrary bytes as the Workloads of another team. The result must be a
// file of the package that CUE can write, or diagnostics.
func FuzzWorkloads(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {name: x}\nspec: {deploymentTargets: [{name: y, environment: dev, manifests: {repo: z, branch: b}}]}\n",
		"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: &a {name: *a}\n---\n- 1\n---\n",
		"apiVersion: scheduler.kalypso.io/v1\nkind: [Workload]\nspec: null\n", "? {a: b}\n: c\n", "a: !!binary x\n", "<<: *x\n",
		"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: &a\n  <<: *a\n",
		"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {name: x}\nspec:\n  configSchemas:\n  - |\n    {\"type\": \"object\", \"$ref\": \"#/definitions/a\", \"definitions\": {\"a\": {}}}\n  - \"{required: [a]}\"\n",
		"apiVersion: scheduler.kalypso.io/v1alpha1\r\rkind: Workload\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &checkout{Prefix: "x@0/", Package: "x"}
		s := c.workloads("w.yaml", data)
		ds := s.ds
		for _, f := range s.failures {
			ds = append(ds, f.d)
		}
		for _, d := range ds {
			if d.Message == "" || len(d.Sites) == 0 {
				t.Errorf("%+v says nothing, or not where", d)
			}
		}
		for _, file := range s.files {
			if _, err := cuevalue.Write(&ast.StructLit{Elts: slices.DeleteFunc(file.Decls[1:], func(d ast.Decl) bool { _, imports := d.(*ast.ImportDecl); return imports })}); err != nil {
				t.Errorf("%q: %v", data, err)
			}
		}
	})
}
