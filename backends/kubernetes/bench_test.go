package kubernetes

import "testing"

// BenchmarkWorkspace measures most of the work of a Kubernetes backend for one assignment.
func BenchmarkWorkspace(b *testing.B) {
	for name, service := range map[string]string{
		"plain":    plainService,
		"isolated": `{"podSecurity": "restricted", "quota": {"pods": 10}, "networkPolicy": "isolated", "rbac": {"a": {"role": "a", "groups": ["a"]}}}`,
	} {
		b.Run(name, func(b *testing.B) {
			a := assignment(b, service)
			a.Values = value(b, allKinds)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, ds := Workspace(a); len(ds) > 0 {
					b.Fatal(ds)
				}
			}
		})
	}
}
