package evaluate_test

import (
	"context"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/internal/generate"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// BenchmarkEnvironment evaluates a platform of 5,000 assignments: some 700
// entities, in the files of several teams.
func BenchmarkEnvironment(b *testing.B) {
	dir := b.TempDir()
	if _, err := generate.Write(dir, 1, generate.ForAssignments(5_000)); err != nil {
		b.Fatal(err)
	}
	p, ds, err := source.Open(dir)
	if err != nil || len(ds) > 0 {
		b.Fatal(err, ds)
	}
	b.ReportAllocs()
	for b.Loop() {
		pkg, ds, err := evaluate.Environment(context.Background(), p, "dev", nil, nil)
		if err != nil || len(ds) > 0 || pkg.Model == nil {
			b.Fatal(err, ds)
		}
	}
}
