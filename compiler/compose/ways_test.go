package compose_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// leafTexts are leaves of configs: first leaves that often agree, then lists, then open
// expressions and secrets.
var leafTexts = []string{
	`1`, `1`, `2`, `"x"`, `"x"`, `"y"`, `true`, `null`, `1.5`, `[1]`, `[1, 2]`, `["a"]`, `["a", "b"]`, `[{n: "p", v: 1}]`, `[{n: "p", w: 2}, {n: "q"}]`, `[]`,
	`*1 | int`, `*2 | int`, `int`, `string`, `>1`, `*"x" | string`, `[...string]`, `*["x"] | [...string]`, `*["y"] | [...string]`, `[...{n: string, v: *7 | int}]`,
	`{a: int, b?: string}`, `{a: *1 | int, s: x?: int}`, `{a: 1, [=~"^b"]: string}`, `*{a: 1} | {b: 2}`, `close({a: 1, b?: int})`, `{a: int, b: a + 1}`, `{a!: int}`, `{c: {}, d?: {}}`,
	`{#secret: true, store: "s", key: "k"}`, `{#secret: true, store: "s", key: "l"}`, `[{#secret: true, store: "s", key: "k"}]`, `{[string]: int}`, `_`, `{...}`, `{password?: string}`,
}

// wayKeys are names whose paths sort differently from the names, and names of secrets.
var wayKeys = []string{"a", "b", "s", "api-token", "password", "a1", "a$", "L", "M"}

// trees makes random trees of configs.
type trees struct {
	choices
	eval   *expr.Evaluator
	known  map[string]model.Tree
	gentle bool // most keys have the same values in all configs
}

// leaf returns the tree of an expression, as for a field of a config.
func (g *trees) leaf(text string) model.Tree {
	t, there := g.known[text]
	if there {
		return t
	}
	if s, ok := g.eval.Split("{k: " + text + "\nz?: int}"); ok {
		t = s.Regular.Fields[0].Tree
	} else {
		t = model.Tree{Kind: model.OpenLeaf, Open: &model.Open{Text: text, Constraint: model.Expr(strings.ReplaceAll(text, "*", ""))}}
	}
	g.known[text] = t
	return t
}

func (g *trees) tree(depth int, concrete bool) model.Tree {
	var fields []model.TreeField
	for _, k := range wayKeys {
		if g.choices(3) > 0 {
			continue
		}
		fields = append(fields, model.TreeField{Name: k, Tree: g.field(k, depth, concrete)})
	}
	return model.StructTreeOf(fields...)
}

func (g *trees) field(name string, depth int, concrete bool) model.Tree {
	switch {
	case depth > 0 && (g.choices(3) == 0 || g.gentle && name == "s"):
		return g.tree(depth-1, concrete)
	case (name == "L" || name == "M") && g.choices(3) > 0:
		return g.leaf(leafTexts[9+g.choices(7)])
	case g.gentle && g.choices(4) > 0:
		return g.leaf(leafTexts[(len(name)*3+int(name[len(name)-1]))%9])
	}
	for {
		text := leafTexts[g.choices(len(leafTexts))]
		if g.choices(3) > 0 {
			text = leafTexts[g.choices(6)]
		}
		if t := g.leaf(text); !concrete || t.Kind == model.FinalLeaf {
			return t
		}
	}
}

// configs makes configs, sorted by layer and name.
func (g *trees) configs() []model.Config {
	var out []model.Config
	at, simple := 0, g.choices(2) == 0
	g.gentle = g.choices(4) > 0
	depth := g.choices(3)
	for i := range 1 + g.choices(5) {
		at += g.choices(2)
		c := model.Config{Name: fmt.Sprintf("c%d", i), Layer: at}
		if g.choices(4) == 0 {
			c.Plain = []string{"password", `s."api-token"`}
		}
		if !simple || i == 0 {
			c.Values = g.tree(depth, simple && g.choices(3) > 0)
		}
		if g.choices(2) == 0 {
			c.Defaults = g.tree(2, true)
		}
		if g.choices(8) == 0 {
			c.Overrides = g.tree(1, true)
		}
		out = append(out, c)
	}
	return out
}

func (g *trees) lists() map[string]model.ListStrategy {
	out := map[string]model.ListStrategy{}
	for _, path := range []string{"L", "s.L", "M", "s.M"} {
		if g.choices(2) == 0 {
			out[path] = []model.ListStrategy{{Append: true}, {Unique: true}, {MergeBy: "n"}}[g.choices(3)]
		}
	}
	return out
}

var contractTexts = []string{
	`{a: int, ...}`, `{a: *5 | int, b?: string}`, `{a!: int | string, s?: {...}}`, `{s: {a: *1 | int, b: *"q" | string}}`, `{s: {x: y: *1 | int}}`, `close({a?: _, b?: _, s?: _})`,
	`{[string]: _}`, `{L?: [...int]}`, `{L: *["z"] | [...]}`, `{s?: {a?: int, ...}, b: *"dflt" | string}`, `{a: int, b: a}`, `{s: close({a: *1 | int, b?: _})}`, `{c: password: *"x" | string}`,
	`{a?: 1 | 2, b?: "x" | "y"}`, `{a: *6 | int}`, `{s: {}} & {s: a: *1 | int}`, `{"api-token"?: string, t: {u: *1 | int, v: *[1] | [...]}}`, `{s: string | {...}}`, `{a: *1 | int, matchN(1, [{b!: _}, {s!: _}])}`,
	`{M?: [...{n: string, v: *3 | int}]}`, `{s?: {...} & {a?: >0}}`, `{password?: {#secret: true, store: string, key: string}}`, `{s: null | *{a: 1} | {...}}`, `{d: {}}`, `{d: {...}, e?: {f: int}}`,
}

// wayContracts returns contracts that block, and the same contracts as advice.
func wayContracts() []*model.Contract {
	var out []*model.Contract
	for i, text := range contractTexts {
		for _, advise := range []bool{false, true} {
			c := &model.Contract{Ref: model.Ref{Collection: "configSchemas", Name: "cs" + strconv.Itoa(i), Path: "schema"}, Expr: model.Expr(text), Advise: advise}
			if fields, ok := expr.Fields(c.Expr); ok && i%2 == 0 {
				c.Mentions = []string{}
				for _, f := range fields {
					c.Mentions = append(c.Mentions, f.Name)
				}
				slices.Sort(c.Mentions)
			}
			for _, path := range []string{"a", "s.a", `"api-token"`} {
				c.Fields = append(c.Fields, model.ContractField{Path: path, Text: "int", Optional: i%2 == 0})
			}
			out = append(out, c)
		}
	}
	return out
}

// TestShortWays composes random configs under random contracts, with and without
// the short ways for data and for contracts. The results must be the same, and so
// must their binary forms.
func TestShortWays(t *testing.T) {
	eval := expr.New(nil)
	g := &trees{eval: eval, known: map[string]model.Tree{}}
	all := wayContracts()
	const rounds = 800
	failed := 0
	for round := range rounds {
		g.choices = random(rand.New(rand.NewPCG(11, uint64(round))))
		configs, lists := g.configs(), g.lists()
		var contracts []*model.Contract
		for range g.choices(4) {
			contracts = append(contracts, all[g.choices(len(all))])
		}
		short, long := planOf(t, configs, lists, contracts...), planOf(t, configs, lists, contracts...)
		long.LongWays()
		want := graphOf(t, long)
		got := graphOf(t, short)
		sameGraph(t, got, want)
		sameGraph(t, graphOf(t, short), want) // from the remembered answers
		if t.Failed() {
			for _, c := range configs {
				t.Logf("%s in layer %d: %+v", c.Name, c.Layer, c)
			}
			t.Fatalf("round %d, contracts %v, lists %v", round, contracts, lists)
		}
		if got.Failed {
			failed++
		}
	}
	if failed == 0 || failed > rounds*9/10 {
		t.Errorf("%d of %d fail: the test does not test much", failed, rounds)
	}
}

// sameGraph checks that two graphs do not differ.
func sameGraph(t *testing.T, got, want *compose.Graph) {
	t.Helper()
	for what, same := range map[string]bool{
		"values":       got.Values.Equal(want.Values),
		"plain values": got.Plain.Equal(want.Plain),
		"secrets":      slices.EqualFunc(got.Secrets, want.Secrets, func(a, b compose.Secret) bool { return a.Path == b.Path && a.Ref.Equal(b.Ref) }),
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

func sameLeaf(a, b compose.Leaf) bool {
	return a.Path == b.Path && a.Value.Equal(b.Value) && slices.Equal(a.From, b.From) && slices.Equal(a.Replaced, b.Replaced)
}
