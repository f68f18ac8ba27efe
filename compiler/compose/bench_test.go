package compose_test

import (
	"context"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/testing/generate"
)

// planned returns a function that plans a generated platform.
func planned(b *testing.B, size generate.Size) func() *compose.Plan {
	b.Helper()
	dir := b.TempDir()
	if _, err := generate.Write(dir, 1, size); err != nil {
		b.Fatal(err)
	}
	p, _, err := source.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	pkg, ds, err := evaluate.Environment(context.Background(), p, "dev", nil, evaluate.Options{})
	if err != nil || len(ds) > 0 {
		b.Fatal(err, ds)
	}
	satisfies := expr.New(nil).Satisfies
	s, _ := schedule.Assign(pkg.Model, satisfies)
	return func() *compose.Plan {
		plan, _, err := compose.NewPlan(context.Background(), pkg.Model, s, pkg, satisfies, nil)
		if err != nil {
			b.Fatal(err)
		}
		return plan
	}
}

// graphs composes all tuples of a plan.
func graphs(b *testing.B, plan *compose.Plan) []*compose.Graph {
	b.Helper()
	all := make([]int32, len(plan.Tuples))
	for i := range all {
		all[i] = int32(i)
	}
	prepared, err := plan.Prepare(context.Background(), all)
	if err != nil {
		b.Fatal(err)
	}
	composer := plan.NewComposer()
	out := make([]*compose.Graph, len(all))
	for _, tuple := range all {
		if out[tuple] = composer.Compose(tuple, prepared); out[tuple].Failed {
			b.Fatal(out[tuple].Diagnostics())
		}
	}
	return out
}

// BenchmarkCompose plans and composes 5,000 assignments with few different configurations, and
// 5,000 with a configuration each.
func BenchmarkCompose(b *testing.B) {
	for name, distinct := range map[string]bool{"shared": false, "distinct": true} {
		b.Run(name, func(b *testing.B) {
			size := generate.ForAssignments(5_000)
			size.DistinctTuples = distinct
			plan := planned(b, size)
			tuples := 0
			b.ReportAllocs()
			for b.Loop() {
				tuples = len(graphs(b, plan()))
			}
			b.ReportMetric(float64(tuples), "tuples")
		})
	}
}

// BenchmarkPlan plans 20,000 assignments, which every build does.
func BenchmarkPlan(b *testing.B) {
	plan := planned(b, generate.ForAssignments(20_000))
	b.ReportAllocs()
	for b.Loop() {
		plan()
	}
}
