package compose

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// sameDecoded checks that a graph is the same after its binary form, and that the
// form is the same after that.
func sameDecoded(t *testing.T, g *Graph) {
	t.Helper()
	b := g.AppendBinary([]byte("before"))
	if !bytes.HasPrefix(b, []byte("before")) {
		t.Fatal("what was there is gone")
	}
	b = b[len("before"):]
	got, err := DecodeGraph(b)
	if err != nil {
		t.Errorf("%v: %x", err, b)
		return
	}
	sameGraph(t, got, g)
	if again := got.AppendBinary(nil); !bytes.Equal(again, b) {
		t.Errorf("written again as\n%q\nand not\n%q", again, b)
	}
}

// sameGraph checks that nothing tells two graphs apart.
func sameGraph(t *testing.T, got, want *Graph) {
	t.Helper()
	for what, same := range map[string]bool{
		"values":       got.Values.Equal(want.Values),
		"plain values": got.Plain.Equal(want.Plain),
		"secrets":      slices.EqualFunc(got.Secrets, want.Secrets, func(a, b Secret) bool { return a.Path == b.Path && a.Ref.Equal(b.Ref) }),
		"failed":       got.Failed == want.Failed,
		"digest":       got.Digest == want.Digest,
		"needs":        slices.Equal(got.Needs, want.Needs),
		"lists":        slices.Equal(got.Lists(), want.Lists()),
		"leaves":       slices.EqualFunc(got.Leaves(), want.Leaves(), sameLeaf),
		"diagnostics":  fmt.Sprintf("%+v", got.Diagnostics()) == fmt.Sprintf("%+v", want.Diagnostics()),
	} {
		if !same {
			t.Errorf("other %s:\ngot  %+v\nwant %+v", what, got, want)
		}
	}
}

func sameLeaf(a, b Leaf) bool {
	return a.Path == b.Path && a.Value.Equal(b.Value) && slices.Equal(a.From, b.From) && slices.Equal(a.Replaced, b.Replaced)
}

// exampleGraphs are graphs with everything that a graph may have.
func exampleGraphs(t testing.TB) []*Graph {
	t.Helper()
	text := func(s string) model.Tree { return *treeOf(model.StringOf(s)) }
	in := func(fields ...model.TreeField) model.Tree { return model.StructTreeOf(fields...) }
	one := model.IntOf(1)
	open := model.Tree{Kind: model.OpenLeaf, Open: &model.Open{Text: "*1 | int", Constraint: "1 | int", Default: &one}}
	secret := model.SecretOf(model.Field{Name: "store", Value: model.StringOf("s")}, model.Field{Name: "key", Value: model.StringOf("k")})
	base := layer{config: &model.Config{Name: "base"}, values: in(
		model.TreeField{Name: "a", Tree: text("x")},
		model.TreeField{Name: "c d", Tree: in(model.TreeField{Name: "token", Tree: text("y")}, model.TreeField{Name: "none", Tree: in()})},
		model.TreeField{Name: "n", Tree: open},
		model.TreeField{Name: "s", Tree: model.Tree{Kind: model.FinalLeaf, Final: secret}},
	), defaults: in(model.TreeField{Name: "l", Tree: *treeOf(model.ListOf(one, model.BoolOf(true), model.Value{}))})}
	same := layer{config: &model.Config{Name: "same", Layer: -1}, values: in(model.TreeField{Name: "a", Tree: text("x")}, model.TreeField{Name: "l", Tree: *treeOf(model.ListOf())})}
	other := layer{config: &model.Config{Name: "other", Layer: 3}, values: in(model.TreeField{Name: "a", Tree: text("z")})}
	over := layer{config: &model.Config{Name: "over", Layer: 4}, overrides: in(model.TreeField{Name: "a", Tree: in(model.TreeField{Name: "b", Tree: text("z")})})}
	contract := &model.Contract{Ref: model.Ref{Collection: "workloads", Name: "w", Path: "requires"}, Expr: "{a: string | {...}, f: g: *1.5 | float}", Advise: true,
		Fields: []model.ContractField{{Path: "a", Text: "string"}, {Path: "z", Optional: true}}}
	var out []*Graph
	for _, layers := range [][]layer{nil, {base}, {same, base}, {base, other}, {same, base, over}} {
		m := (&memo{}).merger(expr.New(nil))
		m.lists = map[string]listRule{"l": {ListStrategy: model.ListStrategy{Append: true}}}
		m.compose(layers)
		if !m.graph.Failed {
			m.contracted([]*model.Contract{contract})
			m.plaintexts(layers)
		}
		out = append(out, m.finish())
	}
	return out
}

func TestBinary(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range exampleGraphs(t) {
		sameDecoded(t, g)
		b := g.AppendBinary(nil)
		if seen[string(b)] {
			t.Errorf("two graphs have one form: %+v", g)
		}
		seen[string(b)] = true
		for n := range b {
			if got, err := DecodeGraph(b[:n]); err == nil {
				t.Errorf("%+v is read from the first %d of %d bytes", got, n, len(b))
			}
		}
		if got, err := DecodeGraph(append(b, 0)); err == nil {
			t.Errorf("%+v is read with a byte too many", got)
		}
		g.DropProvenance()
		sameDecoded(t, g)
		if len(g.Leaves()) > 0 {
			t.Error("a graph without provenance has leaves")
		}
	}
}

// TestDecodeGraphIsBounded decodes what claims much more than its own length.
func TestDecodeGraphIsBounded(t *testing.T) {
	digest := []byte{0, 1, 'd'}
	start := append([]byte{format, 0}, digest...)
	long := strings.Repeat("x", 4_000)
	for why, b := range map[string][]byte{
		"more elements than bytes": append(slices.Clone(start), bytes.Repeat([]byte{byte(tagList), 0xff, 0x3f}, 4_000)...),
		"too many levels":          append(slices.Clone(start), bytes.Repeat([]byte{byte(tagList), 1}, 4_000)...),
		"paths are too long":       longPaths(append(slices.Clone(start), byte(tagStruct), 1, 0, 0xa0, 0x1f), long),
	} {
		t.Run(why, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if g, err := DecodeGraph(b); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("read as %+v: %v", g, err)
			}
			runtime.ReadMemStats(&after)
			if got, most := after.TotalAlloc-before.TotalAlloc, uint64(600*len(b)); got > most {
				t.Errorf("%d bytes allocated for %d, more than %d", got, len(b), most)
			}
		})
	}
}

// longPaths nests structs under a long name, which is written once.
func longPaths(b []byte, name string) []byte {
	b = append(b, name...)
	for range 500 {
		b = append(b, byte(tagStruct), 1, 2)
	}
	return append(b, byte(tagNull), 0, 0, 0, 0, 0)
}

// FuzzDecodeGraph: what is read behaves as any graph does.
func FuzzDecodeGraph(f *testing.F) {
	for _, g := range exampleGraphs(f) {
		f.Add(g.AppendBinary(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := DecodeGraph(b)
		if err != nil {
			return
		}
		again, err := DecodeGraph(g.AppendBinary(nil))
		if err != nil {
			t.Fatal(err)
		}
		if !again.Values.Equal(g.Values) || !slices.EqualFunc(again.Leaves(), g.Leaves(), sameLeaf) || !slices.Equal(again.Needs, g.Needs) {
			t.Errorf("read as %+v, and then as %+v", g, again)
		}
	})
}
