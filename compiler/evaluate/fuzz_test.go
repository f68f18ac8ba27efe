package evaluate

import (
	"slices"
	"testing"

	"cuelang.org/go/cue/ast"
)

// Workloads of other teams are any bytes: what comes out is a file of the package
// that CUE can write, or diagnostics.
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
			if _, err := write(&ast.StructLit{Elts: slices.DeleteFunc(file.Decls[1:], func(d ast.Decl) bool { _, imports := d.(*ast.ImportDecl); return imports })}); err != nil {
				t.Errorf("%q: %v", data, err)
			}
		}
	})
}

// The values of an application are any bytes.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{"a: 1\n", "a: no\n", "a: &x [*x]\n", "? [a]\n: b\n", "a: 0x10\nb: 1e3\n", "\xff", "- a\n", "---\na: 1\n---\nb: 2\n",
		"a: &a\n  <<: *a\n", "a: &a {x: 1}\nb: &b {<<: [*a, *a]}\nc: {<<: [*b, *b]}\n", "a: &a [it's]\nb: [*a, *a]\n", "a: &a {x: 1}\nb: &b {<<: *a}\nc: *b\n", "%TAG !a! b\n--- !a!c d\n", "a: !!int 9\nb: 1e1000000000\n", "[[[[{a: [b]}]]]]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, problem := parseValues("values.yaml", "/values.yaml", data)
		if (file == nil) == (problem == nil) {
			t.Errorf("%q: a file %v, a problem %v", data, file, problem)
		}
		if problem != nil && (problem.Message == "" || len(problem.Sites) == 0) {
			t.Errorf("%q: %+v says nothing, or not where", data, problem)
		}
	})
}
