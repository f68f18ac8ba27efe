package compose_test

import (
	"context"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/internal/generate"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// BenchmarkCompose composes 5,000 assignments whose configurations many share,
// and 5,000 that differ in each.
func BenchmarkCompose(b *testing.B) {
	for name, distinct := range map[string]bool{"shared": false, "distinct": true} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			size := generate.ForAssignments(5_000)
			size.DistinctTuples = distinct
			if _, err := generate.Write(dir, 1, size); err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			p, _, err := source.Open(dir)
			if err != nil {
				b.Fatal(err)
			}
			pkg, ds, err := evaluate.Environment(ctx, p, "dev", nil, nil)
			if err != nil || len(ds) > 0 {
				b.Fatal(err, ds)
			}
			satisfies := expr.New().Satisfies
			s, _ := schedule.Assign(pkg.Model, satisfies)
			tuples := 0
			b.ReportAllocs()
			for b.Loop() {
				plan, _, err := compose.NewPlan(ctx, pkg.Model, s, pkg, satisfies)
				if err != nil {
					b.Fatal(err)
				}
				all := make([]int32, len(plan.Tuples))
				for i := range all {
					all[i] = int32(i)
				}
				prepared, err := plan.Prepare(ctx, all)
				if err != nil {
					b.Fatal(err)
				}
				composer := plan.NewComposer()
				for _, tuple := range all {
					if g := composer.Compose(tuple, prepared); g.Failed {
						b.Fatal(g.Diagnostics())
					}
				}
				tuples = len(all)
			}
			b.ReportMetric(float64(tuples), "tuples")
		})
	}
}
