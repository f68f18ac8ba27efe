package evaluate

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/evaluate/incremental"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestApplyInUnits checks that a function has the same result after an evaluation of its
// package in one piece, in units, or from the cache, and for several goroutines at once.
func TestApplyInUnits(t *testing.T) {
	p := open(t, map[string]string{
		"environments/dev/shared.cue": "package platform\n\n_suffix: \"x\"\n",
		"environments/dev/configs.cue": `package platform

configs: f: {
	#assignment: _
	match: {}
	values: {WHERE: "\(#assignment.clusterType)-\(_suffix)", if #assignment.environment == "dev" {DEV: true}}
	defaults: ZONE: *#assignment.labels.zone | "none"
}
configs: broken: {#assignment: _, match: {}, values: ZONE: "in \(#assignment.labels.zone)"}
`,
		"environments/dev/more.cue": `package platform

namespaceServices: n: {#assignment: _, pattern: "\(#assignment.workload)-\(_suffix)"}
reconcilers: r: {#assignment: _, flux: interval: "\(#assignment.labels.interval)"}
`,
		"environments/dev/other.cue": "package platform\n\nconfigs: o: match: {}\n",
	})
	facts := model.StructOf(
		model.Field{Name: "environment", Value: model.StringOf("dev")},
		model.Field{Name: "clusterType", Value: model.StringOf("small")},
		model.Field{Name: "workload", Value: model.StringOf("shop")},
		model.Field{Name: "labels", Value: model.StructOf(model.Field{Name: "interval", Value: model.StringOf("5m")})},
	)
	none := model.StructOf(model.Field{Name: "labels", Value: model.StructOf()})
	calls := []function.Call{
		{Entity: model.Ref{Collection: "configs", Name: "f"}, Facts: facts},
		{Entity: model.Ref{Collection: "configs", Name: "broken"}, Facts: facts},
		{Entity: model.Ref{Collection: "namespaceServices", Name: "n"}, Facts: facts, Field: "pattern"},
		{Entity: model.Ref{Collection: "namespaceServices", Name: "n"}, Facts: facts},
		{Entity: model.Ref{Collection: "reconcilers", Name: "r"}, Facts: facts},
		{Entity: model.Ref{Collection: "reconcilers", Name: "r"}, Facts: none, Shared: true},
	}
	apply := func(how string, c memo.Cache) []function.Outcome {
		e := incremental.New(p, "dev", c)
		e.AsOne = how == "whole"
		if how == "each" {
			e.Least = 1
		}
		pkg, ds, err := evaluateEnvironment(context.Background(), e, nil, Options{Cache: c})
		if err != nil || len(ds) > 0 {
			t.Fatal(err, ds)
		}
		outs := make([][]function.Outcome, 3)
		var group sync.WaitGroup
		for i := range outs {
			group.Go(func() {
				out, err := pkg.Apply(context.Background(), calls)
				if err != nil {
					t.Error(err)
				}
				outs[i] = out
				for n := range outs[i] {
					diag.Resolve(outs[i][n].Diagnostics, pkg.Model.Positions)
				}
			})
		}
		group.Wait()
		for _, other := range outs[1:] {
			if !reflect.DeepEqual(other, outs[0]) {
				t.Errorf("%s: one says %+v, another %+v", how, outs[0], other)
			}
		}
		return outs[0]
	}
	want := apply("whole", nil)
	if len(want[1].Diagnostics) == 0 || len(want[5].Diagnostics) == 0 || len(want[0].Diagnostics) > 0 {
		t.Fatalf("%+v", want)
	}
	c := newMemory()
	for i, how := range []string{"each", "", "", "each"} {
		var of memo.Cache = c
		if i == 0 {
			of = nil
		}
		if got := apply(how, of); !reflect.DeepEqual(got, want) {
			t.Errorf("%d: got %+v, want %+v", i, got, want)
		}
	}
}
