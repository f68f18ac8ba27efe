package flux

import (
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// BenchmarkEmit makes the folder of an assignment.
func BenchmarkEmit(b *testing.B) {
	for name, source := range map[string]model.Manifests{"git": backendtest.Git, "helm": backendtest.Chart} {
		b.Run(name, func(b *testing.B) {
			p := backendtest.Platform{Options: `{"interval": "5m", "prune": true}`, GitOps: backendtest.GitOps}
			a := p.Assignment(b, backendtest.Target{Name: "shop/test", Manifests: source})
			backend := New()
			b.ReportAllocs()
			for b.Loop() {
				if _, ds := backend.Emit(a); len(ds) > 0 {
					b.Fatal(ds)
				}
			}
		})
	}
}
