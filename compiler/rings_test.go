package compiler_test

import (
	"context"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Builds of all rings, one after the other, give the tree of the whole environment.
func TestRingsAreTheWhole(t *testing.T) {
	whole, err := compiler.Compile(context.Background(), compiler.Request{Dir: "../testdata/platform", Environments: []string{"dev"}})
	if err != nil || whole.Failed() {
		t.Fatal(err, whole.Diagnostics)
	}
	want := writeTo(t, t.TempDir(), whole, tree.Options{})
	rings := []model.Ring{{Name: "canary", Select: sizeOf(`=~"^s"`)}, {Name: "rest"}}
	dir := t.TempDir()
	var got *tree.Record
	for _, ring := range rings {
		b, err := compiler.Compile(context.Background(), compiler.Request{
			Dir: "../testdata/platform", Environments: []string{"dev"}, Ring: ring.Name, Rings: rings,
			Source:   &tree.Source{Base: "s-" + tree.Revision(ring.Name), Environment: "e"},
			Previous: map[string]*tree.Record{"dev": got},
		})
		if err != nil || b.Failed() {
			t.Fatal(err, b.Diagnostics)
		}
		got = writeTo(t, dir, b, tree.Options{Ring: ring.Name})
	}
	if got.Tree != want.Tree {
		t.Errorf("rings give tree %s, and the whole %s", got.Tree, want.Tree)
	}
	for name, ring := range map[string]string{"small": "canary", "large": "rest"} {
		if got.RingOf(name) != ring {
			t.Errorf("%s was built for %q", name, got.RingOf(name))
		}
	}
	for _, e := range got.ClusterTypes {
		if of := got.RingOf(e.Name); of == "canary" && (e.Source == nil || e.Source.Base != "s-canary") {
			t.Errorf("%s does not say that it is of s-canary: %v", e.Name, e.Source)
		}
	}
}

// writeTo writes the only environment of a build, and returns the record.
func writeTo(t *testing.T, dir string, b *compiler.Build, o tree.Options) *tree.Record {
	t.Helper()
	e := b.Environments[0]
	options := b.Options(e)
	options.Ring = o.Ring
	to, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { to.Close() })
	c, ds, err := to.Write(t.Context(), e.Tree, options)
	if err != nil || len(ds) > 0 {
		t.Fatal(err, ds)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return c.Record
}

func sizeOf(constraint model.Expr) model.Selector {
	satisfies := model.Selector{Op: model.OpSatisfy, Expr: constraint}
	of := model.Selector{Op: model.OpField, Key: "size", Args: []model.Selector{satisfies}}
	return model.Selector{Op: model.OpField, Key: "labels", Args: []model.Selector{of}}
}

// If a cluster type is in none of the rings of another commit, the error is at its declaration.
func TestRingsOfAnotherCommit(t *testing.T) {
	canary := model.Ring{Name: "canary", Select: sizeOf(`=~"^s"`)}
	b, err := compiler.Compile(context.Background(), compiler.Request{
		Dir: "../testdata/platform", Environments: []string{"dev"}, Ring: "canary", Rings: []model.Ring{canary},
	})
	if err != nil {
		t.Fatal(err)
	}
	ds := slices.DeleteFunc(b.Diagnostics, func(d diag.Diagnostic) bool { return d.Code != diag.RingMembership })
	if len(ds) != 1 || len(ds[0].Sites) != 1 || ds[0].Sites[0].Position.File != "environments/dev/dev.cue" {
		t.Errorf("got %v", b.Diagnostics)
	}
}
