package selector

import (
	"fmt"
	"iter"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

const fleet = 100_000

// fleetFacts are the fleet facts of 100,000 assignments with 12 facts each.
func fleetFacts() iter.Seq[Facts] {
	return func(yield func(Facts) bool) {
		f := Facts{}
		for i := range fleet {
			clear(f)
			f["clusterType"] = Values(fmt.Sprint("type-", i%300))
			f["deploymentTarget"] = Values(fmt.Sprint("target-", i/100))
			f["region"] = Values(fmt.Sprint("region-", i%20), fmt.Sprint("region-", i%7))
			for k := range 9 {
				f[fmt.Sprint("label-", k)] = Values(fmt.Sprint("value-", i%(2000>>k)))
			}
			if !yield(f) {
				return
			}
		}
	}
}

func BenchmarkNewIndex(b *testing.B) {
	for b.Loop() {
		NewIndex(fleetFacts(), satisfies)
	}
}

// 2,000 selectors over 100,000 entities.
func BenchmarkSelect(b *testing.B) {
	x := NewIndex(fleetFacts(), satisfies)
	for _, c := range []struct {
		name     string
		selector func(i int) model.Selector
	}{
		{"equality", func(i int) model.Selector { return field("label-0", is(fmt.Sprint("value-", i))) }},
		{"conjunction", func(i int) model.Selector {
			return and(field("region", is("region-1")), field("label-0", is(fmt.Sprint("value-", i))), optional("label-7", nothing))
		}},
		{"pattern", func(i int) model.Selector {
			return and(field("region", expr(`=~"1$"`)), field("label-0", is(fmt.Sprint("value-", i))))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			selected := 0
			for b.Loop() {
				selected = 0
				for i := range 2000 {
					selected += len(x.Select(c.selector(i)))
				}
			}
			b.ReportMetric(float64(selected), "selected")
		})
	}
}
