package compiler_test

import (
	"context"
	"maps"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestRings asks of a compiled environment which rings its cluster types would be
// in, as another commit says it.
func TestRings(t *testing.T) {
	b, err := compiler.Compile(context.Background(), compiler.Request{Dir: "../testdata/platform", Environments: []string{"dev"}})
	if err != nil || b.Failed() {
		t.Fatal(err, b.Diagnostics)
	}
	size := func(constraint model.Expr) model.Selector {
		satisfies := model.Selector{Op: model.OpSatisfy, Expr: constraint}
		of := model.Selector{Op: model.OpField, Key: "size", Args: []model.Selector{satisfies}}
		return model.Selector{Op: model.OpField, Key: "labels", Args: []model.Selector{of}}
	}
	canary := model.Ring{Name: "canary", Select: size(`=~"^s"`)}
	of, ds := b.Environments[0].Rings([]model.Ring{canary, {Name: "rest"}})
	if want := map[string]string{"small": "canary", "large": "rest"}; !maps.Equal(of, want) || len(ds) > 0 {
		t.Errorf("got %v, want %v; %v", of, want, ds)
	}
	of, ds = b.Environments[0].Rings([]model.Ring{canary})
	if want := map[string]string{"small": "canary"}; !maps.Equal(of, want) {
		t.Errorf("got %v, want %v", of, want)
	}
	if len(ds) != 1 || ds[0].Code != diag.RingMembership || len(ds[0].Sites) != 1 || ds[0].Sites[0].Position.File != "environments/dev/dev.cue" {
		t.Errorf("got %v", ds)
	}
}
