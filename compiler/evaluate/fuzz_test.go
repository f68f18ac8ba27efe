package evaluate

import (
	"testing"
)

// FuzzValues evaluates arbitrary bytes as the values of an application.
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
