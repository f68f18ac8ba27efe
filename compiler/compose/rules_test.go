package compose_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// platform has one assignment, of shop-test to small in dev.
const platform = `
import "kalypso.io/schema"

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
workloads:          schema.#Workloads
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
configSchemas:      schema.#ConfigSchemas
namespaceServices:  schema.#NamespaceServices
reconcilers:        schema.#Reconcilers

environments: dev: {}
reconcilers: flux: flux: {}
clusterTypes: small: {labels: {region: "east", side: "cluster"}, reconciler: "flux"}
workloads: shop: {
	workspace: "team"
	deploymentTargets: test: {
		environment: "dev"
		labels: {purpose: "test", side: "target"}
		manifests: git: {repo: "https://git.example/shop", branch: "main"}
	}
}
schedulingPolicies: all: {deploymentTargets: {}, clusterTypes: {}}
`

// composed returns the configuration of the one assignment of a platform with additional files, and
// the diagnostics, resolved.
func composed(t *testing.T, files ...string) (g *compose.Graph, failed bool, ds []diag.Diagnostic) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("cue.mod/module.cue", "module: \"platform.example@v0\"\nlanguage: version: \"v0.15.0\"\ndeps: \"kalypso.io@v0\": v: \"v0.1.0\"\n")
	write("platform.cue", "package platform\n"+platform)
	for i, f := range files {
		header := "package platform\n"
		if strings.Contains(f, "schema.") {
			header += "import \"kalypso.io/schema\"\n"
		}
		write("environments/dev/"+string(rune('a'+i))+".cue", header+f)
	}
	p, ds, err := source.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	pkg, more, err := evaluate.Environment(context.Background(), p, "dev", nil, evaluate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ds = slices.Concat(ds, more); pkg.Model == nil {
		t.Fatal(ds)
	}
	var mu sync.Mutex
	eval := expr.New(nil)
	satisfies := func(e model.Expr, s string) bool {
		mu.Lock()
		defer mu.Unlock()
		return eval.Satisfies(e, s)
	}
	s, more := schedule.Assign(pkg.Model, satisfies)
	ds = append(ds, more...)
	plan, more, err := compose.NewPlan(context.Background(), pkg.Model, s, pkg, satisfies, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Assignments) != 1 || len(plan.Tuples) != 1 {
		t.Fatalf("%d assignments, %d tuples", len(s.Assignments), len(plan.Tuples))
	}
	prepared, err := plan.Prepare(context.Background(), []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	g = plan.NewComposer().Compose(0, prepared)
	ds = slices.Concat(ds, more, g.Diagnostics())
	if !g.Failed {
		used := map[string]bool{}
		for _, path := range g.Lists() {
			used[path] = true
		}
		ds = append(ds, plan.UnusedLists(used)...)
	}
	diag.Resolve(ds, pkg.Model.Positions)
	return g, g.Failed || plan.Failed[0], diag.Sort(ds)
}

// TestRules has the rules of the configuration graph, one by one: the composed values, or the codes
// and paths of the diagnostics.
func TestRules(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		// Which configs match.
		{"no configs", ``, `{}`},
		{"implied keys", `configs: a: {match: {environment: "dev", workspace: "team", workload: "shop", deploymentTarget: "shop-test", clusterType: "small"}, values: A: 1}`, `{"A":1}`},
		{"labels of both sides", `configs: a: {match: {region: "east", purpose: "test"}, values: A: 1}`, `{"A":1}`},
		{"either side may satisfy", `configs: {a: {match: side: "cluster", values: A: 1}, b: {match: side: "target", values: B: 1}}`, `{"A":1,"B":1}`},
		{"both sides must not", `configs: {a: {match: side: !="cluster", values: A: 1}, b: {match: side?: _|_, values: B: 1}}`, `K1902 configs.a.match, K1902 configs.b.match`},
		{"a regular expression", `configs: {a: {match: region: =~"^ea", values: A: 1}, b: {match: region: "west" | "east", values: B: 1}}`, `{"A":1,"B":1}`},
		{"a disjunction of structs", `configs: a: {match: {region: "north"} | {purpose: "test"}, values: A: 1}`, `{"A":1}`},
		{"absent and optional", `configs: {a: {match: {zone?: _|_, region?: "east"}, values: A: 1}}`, `{"A":1}`},

		// One layer.
		{"values unify", `configs: {a: {match: {}, values: {A: 1, s: {b: 1}}}, b: {match: {}, values: {A: 1, s: {c: 2}}}}`, `{"A":1,"s":{"b":1,"c":2}}`},
		{"values conflict", `configs: {a: {match: {}, values: A: 1}, b: {match: {}, values: A: 2}}`, `K2003 A`},
		{"a struct and a scalar", `configs: {a: {match: {}, values: A: {b: 1}}, b: {match: {}, values: A: 2}}`, `K2003 A`},
		{"an empty struct and a scalar", `configs: {a: {match: {}, values: A: {}}, b: {match: {}, values: A: 2}}`, `K2003 A`},
		{"an empty struct and a full one", `configs: {a: {match: {}, values: A: {}}, b: {match: {}, values: A: b: 2}}`, `{"A":{"b":2}}`},
		{"null twice", `configs: {a: {match: {}, values: A: null}, b: {match: {}, values: A: null}}`, `{}`},
		{"null over defaults", `configs: {a: {match: {}, defaults: {A: 1, s: {b: 1, c: 2}}, values: B: *"info" | string}, b: {match: {}, layer: 5, values: {A: null, B: null, s: null, C: null}}}`, `{}`},
		{"null over a default of its layer", `configs: {a: {match: {}, values: {A: *"info" | string, C: 1}}, b: {match: {}, values: A: null}}`, `{"C":1}`},
		{"null over a final value", `configs: {a: {match: {}, values: A: 1}, b: {match: {}, layer: 5, values: A: null}}`, `K2005 A`},
		{"null under a final value", `configs: {a: {match: {}, values: A: null}, b: {match: {}, layer: 5, values: A: 1}}`, `K2005 A`},
		{"null over a struct of defaults", `configs: {a: {match: {}, values: s: {a: *1 | int, b: *"x" | string}}, b: {match: {}, layer: 5, values: s: null}}`, `{}`},
		{"null over a struct of nulls", `configs: {a: {match: {}, values: s: {a: null, t: b: null}}, b: {match: {}, values: s: null}}`, `{}`},
		{"null over a struct with a value", `configs: {a: {match: {}, values: s: {a: *1 | int, b: "x"}}, b: {match: {}, layer: 5, values: s: null}}`, `K2005 s`},
		{"null over a constraint below", `configs: {a: {match: {}, values: A: string}, b: {match: {}, layer: 5, values: A: null}}`, `{}`},
		{"null against a constraint of its layer", `configs: {a: {match: {}, values: A: string}, b: {match: {}, values: A: null}}`, `K2003 A`},
		{"null against a constraint above", `configs: {a: {match: {}, values: A: null}, b: {match: {}, layer: 5, values: A: string}}`, `K2003 A`},
		{"null as a default", `configs: {a: {match: {}, defaults: {A: null, B: null}}, b: {match: {}, layer: 5, values: A: 1}}`, `{"A":1}`},
		{"null as a higher default", `configs: {a: {match: {}, values: A: *"info" | string}, b: {match: {}, layer: 5, defaults: A: null}}`, `{}`},
		{"null as an override", `configs: {a: {match: {}, values: {A: 1, B: 2}}, b: {match: {}, overrides: A: null}}`, `{"B":2}; K2901 A`},
		{"null as an override of a list with a strategy", `configs: {a: {match: {}, values: {L: ["a"], B: 2}}, b: {match: {}, layer: 5, overrides: L: null}}
			configSchemas: l: {match: {}, lists: L: "append"}`, `{"B":2}; K2901 L`},
		{"null as a higher default of a list with a strategy", `configs: {a: {match: {}, defaults: L: ["a"]}, b: {match: {}, layer: 5, defaults: L: null}}
			configSchemas: l: {match: {}, lists: L: "append"}`, `{}`},
		{"null as a lower default of a list with a strategy", `configs: {a: {match: {}, defaults: L: null}, b: {match: {}, layer: 5, defaults: L: ["b"]}}
			configSchemas: l: {match: {}, lists: L: "append"}`, `{"L":["b"]}`},
		{"null as a default between lists with a strategy", `configs: {
				a: {match: {}, defaults: L: ["a"]}, b: {match: {}, layer: 5, defaults: L: null}, c: {match: {}, layer: 9, values: L: ["c"]}
			}
			configSchemas: l: {match: {}, lists: L: "append"}`, `{"L":["c"]}`},
		{"null over a final list with a strategy", `configs: {a: {match: {}, values: L: ["a"]}, b: {match: {}, layer: 5, values: L: null}}
			configSchemas: l: {match: {}, lists: L: "append"}`, `K2005 L`},
		{"null in lists", `configs: a: {match: {}, values: L: [null, {a: null}]}`, `{"L":[null,{"a":null}]}`},
		{"null in a struct", `configs: {a: {match: {}, values: {s: {b: 1, t: c: null}}}}`, `{"s":{"b":1}}`},
		{"null, and required", `configs: {a: {match: {}, defaults: A: 1}, b: {match: {}, layer: 5, values: A: null}}
			workloads: shop: requires: A: int`, `K2009 A`},
		{"null, and a contract's default", `configs: {a: {match: {}, defaults: {A: 1, s: b: 1}}, b: {match: {}, layer: 5, values: {A: null, s: null}}}
			workloads: shop: requires: {A: *7 | int, s: b: *8 | int}`, `{"A":7,"s":{"b":8}}`},
		{"null against a value", `configs: {a: {match: {}, values: A: null}, b: {match: {}, values: A: 1}}`, `K2003 A`},
		{"an int is no float", `configs: {a: {match: {}, values: A: 10}, b: {match: {}, values: A: 1e1}}`, `K2003 A`},
		{"one float, two texts", `configs: {a: {match: {}, values: A: 100.0}, b: {match: {}, values: A: 1e2}}`, `K2003 A`},
		{"one float, two texts in a list", `configs: {a: {match: {}, values: L: [{a: 1.5}]}, b: {match: {}, values: L: [{a: 1.50}]}}`, `K2003 L`},
		{"one float, one text", `configs: {a: {match: {}, values: A: 3.10}, b: {match: {}, values: A: 3.10}}`, `{"A":3.10}`},
		{"texts of numbers", `configs: a: {match: {}, values: {A: 3.10, B: 10.10, C: 1e3, D: 1E3, E: 0x1F, F: 4Ki, G: 1_000, H: -1.50, I: 1_0.50, J: .5, K: [1.0, {x: -0.0}], L: 0b11, M: 1.5M, N: +2.50}}`,
			`{"A":3.10,"B":10.10,"C":1e3,"D":1e3,"E":31,"F":4096,"G":1000,"H":-1.50,"I":10.50,"J":0.5,"K":[1.0,{"x":-0.0}],"L":3,"M":1500000,"N":2.50}`},
		{"texts of computed numbers", `_n: 1.50
			configs: a: {match: {}, values: {A: 1.50*2, B: _n, C: _n & number, D: "\(_n)", E: *1.50 | number, F: number & (*2.50 | _), G: (1.5 | 2.5) & 1.50, H: [for x in [1.10, 2.0] {x}]}}`,
			`{"A":3.00,"B":1.50,"C":1.50,"D":"1.50","E":1.50,"F":2.50,"G":1.50,"H":[1.10,2.0]}`},
		{"one config, two texts", `configs: a: {match: {}, values: A: 1.5}
			configs: a: values: A: 1.50`, `K2003 configs.a.values.A, K2008 configs.a`},
		{"one config, two texts by reference", `_n: 1.5
			configs: a: {match: {}, values: A: _n & 1.50}`, `K2003 configs.a.values.A, K2008 configs.a`},
		{"beyond all numbers", `configs: a: {match: {}, values: {A: 1e1000000, B: -1e-1000000, C: 1e99999999999}}`, `K2008 configs.a, K2014 configs.a.values.A, K2014 configs.a.values.B, K2014 configs.a.values.C`},
		{"large numbers", `configs: a: {match: {}, values: {A: 1e100000, B: 1.50e-400}}`, `{"A":1e100000,"B":1.50e-400}`},
		{"lists unify element by element", `configs: {a: {match: {}, values: L: [{a: 1}, 2]}, b: {match: {}, values: L: [{b: 1}, 2]}}`, `{"L":[{"a":1,"b":1},2]}`},
		{"lists of two lengths", `configs: {a: {match: {}, values: L: [1]}, b: {match: {}, values: L: [1, 2]}}`, `K2003 L`},
		{"every conflict", `configs: {a: {match: {}, values: {A: 1, B: 1}}, b: {match: {}, values: {A: 2, B: 2}}}`, `K2003 A, K2003 B`},

		// Constraints.
		{"a value satisfies", `configs: {a: {match: {}, values: A: >1 & int}, b: {match: {}, values: A: 2}}`, `{"A":2}`},
		{"a value does not", `configs: {a: {match: {}, values: A: >1 & int}, b: {match: {}, values: A: 1}}`, `K2003 A`},
		{"of a higher layer", `configs: {a: {match: {}, values: A: >1 & int}, b: {match: {}, layer: 9, values: A: 1}}`, `K2003 A`},
		{"no value", `configs: a: {match: {}, values: A: int}`, `K2006 A`},
		{"constraints that make a value", `configs: {a: {match: {}, values: A: "a" | "b"}, b: {match: {}, values: A: "b" | "c"}}`, `{"A":"b"}`},
		{"constraints that exclude each other", `configs: {a: {match: {}, values: A: >1}, b: {match: {}, values: A: <1}}`, `K2003 A`},

		// Defaults.
		{"a default", `configs: a: {match: {}, values: A: *1 | int}`, `{"A":1}`},
		{"a default behind a reference", "#Level: *\"info\" | \"debug\"\nconfigs: {a: {match: {}, values: A: #Level}, b: {match: {}, values: A: \"debug\"}}", `{"A":"debug"}`},
		{"replaced in its layer", `configs: {a: {match: {}, values: A: *1 | int}, b: {match: {}, values: A: 2}}`, `{"A":2}`},
		{"replaced from below", `configs: {a: {match: {}, layer: 3, values: A: *1 | int}, b: {match: {}, values: A: 2}}`, `{"A":2}`},
		{"a higher default", `configs: {a: {match: {}, values: A: *1 | int}, b: {match: {}, layer: 1, values: A: *2 | int}}`, `{"A":2}`},
		{"three layers of defaults", `configs: {a: {match: {}, defaults: A: 1}, b: {match: {}, layer: 1, values: A: *2 | int}, c: {match: {}, layer: 2, defaults: A: 3}}`, `{"A":3}`},
		{"a higher default of another type", `configs: {a: {match: {}, values: A: *1 | int}, b: {match: {}, layer: 1, defaults: A: "text"}}`, `K2006 A`},
		{"two of one layer", `configs: {a: {match: {}, values: A: *1 | int}, b: {match: {}, defaults: A: 2}}`, `K2004 A`},
		{"two of one layer, below", `configs: {a: {match: {}, values: A: *1 | int}, b: {match: {}, defaults: A: 2}, c: {match: {}, layer: 1, defaults: A: 3}}`, `{"A":3}`},
		{"two texts of one number", `configs: {a: {match: {}, defaults: A: 1.5}, b: {match: {}, defaults: A: 1.50}}`, `K2004 A`},
		{"replaced by another text", `configs: {a: {match: {}, defaults: A: 1.5}, b: {match: {}, values: A: 1.50}, c: {match: {}, values: B: 1.50}, d: {match: {}, values: B: *1.5 | number}}`, `{"A":1.50,"B":1.50}`},
		{"a higher default of another text", `configs: {a: {match: {}, defaults: {A: 1.5, B: 1.50}}, b: {match: {}, layer: 1, defaults: A: 1.50, values: B: *1.5 | number}}`, `{"A":1.50,"B":1.5}`},
		{"equal ones", `configs: {a: {match: {}, values: A: *1 | int}, b: {match: {}, defaults: A: 1}}`, `{"A":1}`},
		{"a disjunction of structs", `configs: a: {match: {}, values: A: *{a: 1} | {b: 2}}`, `{"A":{"a":1}}`},

		// defaults:
		{"open to any value", `configs: {a: {match: {}, defaults: {A: 1, B: 1, C: [1], D: 1, E: "x"}}, b: {match: {}, values: {A: "text", B: null, C: [2, 3], D: {e: 1}, E: ["x"]}}}`, `{"A":"text","C":[2,3],"D":{"e":1},"E":["x"]}`},
		{"a struct leaf by leaf", `configs: {a: {match: {}, defaults: s: {a: 1, b: 2}}, b: {match: {}, values: s: {b: 3, c: 4}}}`, `{"s":{"a":1,"b":3,"c":4}}`},
		{"a scalar over a struct", `configs: {a: {match: {}, defaults: s: {a: 1}}, b: {match: {}, values: s: 3}}`, `K2003 s`},
		{"a struct over a scalar, both defaults", `configs: {a: {match: {}, defaults: s: 1}, b: {match: {}, layer: 1, defaults: s: a: 1}}`, `{"s":{"a":1}}`},
		{"a scalar over a struct, both defaults", `configs: {a: {match: {}, defaults: s: a: 1}, b: {match: {}, layer: 1, defaults: s: 1}}`, `{"s":1}`},
		{"must be concrete", `configs: a: {match: {}, defaults: A: int}`, `K1110 configs.a.defaults.A, K2008 configs.a`},

		// Layers.
		{"the same final value", `configs: {a: {match: {}, values: A: 1}, b: {match: {}, layer: 1, values: A: 1}}`, `{"A":1}`},
		{"the same number in another text", `configs: {a: {match: {}, values: {A: 1.5, L: [{a: 1.5, b: 2.0}]}}, b: {match: {}, layer: 1, values: {A: 1.50, L: [{a: 1.50}]}}}`, `{"A":1.50,"L":[{"a":1.50,"b":2.0}]}`},
		{"an int against a float from above", `configs: {a: {match: {}, values: A: 1}, b: {match: {}, layer: 1, values: A: 1.0}}`, `K2005 A`},
		{"three layers of texts", `configs: {a: {match: {}, values: L: [{a: 1.5}]}, b: {match: {}, layer: 1, values: L: [{b: 1}]}, c: {match: {}, layer: 1, values: L: [{a: 1.50}]}, d: {match: {}, layer: 2, values: L: [{a: 1.500}]}}`, `{"L":[{"a":1.500,"b":1}]}`},
		{"two texts in a lower layer", `configs: {a: {match: {}, values: A: 1.5}, b: {match: {}, values: A: 1.50}, c: {match: {}, layer: 1, values: A: 1.500}}`, `K2003 A`},
		{"a text under a constraint", `configs: {a: {match: {}, values: {A: >1 & <2, B: 1.5 | 2.5}}, b: {match: {}, layer: 1, values: {A: 1.50, B: 1.50}}}`, `{"A":1.50,"B":1.50}`},
		{"another from above", `configs: {a: {match: {}, values: A: 1}, b: {match: {}, layer: 1, values: A: 2}}`, `K2005 A`},
		{"a default above a final value", `configs: {a: {match: {}, values: A: 1}, b: {match: {}, layer: 1, defaults: A: 2}}`, `{"A":1}`},
		{"one layer conflicts, above another", `configs: {a: {match: {}, layer: -1, values: A: 1}, b: {match: {}, values: A: 2}, c: {match: {}, values: A: 3}}`, `K2003 A`},

		// overrides:
		{"over a final value", `configs: {a: {match: {}, values: A: 1}, b: {match: {}, overrides: A: 2}}`, `{"A":2}; K2901 A`},
		{"over a final value above", `configs: {a: {match: {}, layer: 9, values: A: 1}, b: {match: {}, overrides: A: "x"}}`, `{"A":"x"}; K2901 A`},
		{"over a conflict", `configs: {a: {match: {}, values: A: 1}, b: {match: {}, values: A: 2}, c: {match: {}, overrides: A: 3}}`, `{"A":3}; K2901 A`},
		{"over a constraint", `configs: {a: {match: {}, values: A: int}, b: {match: {}, overrides: A: "x"}}`, `{"A":"x"}; K2901 A`},
		{"the higher of two", `configs: {a: {match: {}, overrides: A: 1}, b: {match: {}, layer: 1, overrides: A: 2}}`, `{"A":2}; K2901 A`},
		{"two of one layer", `configs: {a: {match: {}, overrides: A: 1}, b: {match: {}, overrides: A: 2}}`, `K2007 A`},
		{"two that agree", `configs: {a: {match: {}, overrides: A: 1}, b: {match: {}, overrides: A: 1}}`, `{"A":1}; K2901 A`},
		{"one field of a struct", `configs: {a: {match: {}, values: s: {a: 1, b: 2}}, b: {match: {}, overrides: s: a: 3}}`, `{"s":{"a":3,"b":2}}; K2901 s.a`},
		{"one field of an open struct", `configs: {a: {match: {}, values: s: {a: 1, b: 2, c?: int}}, b: {match: {}, overrides: s: a: 3}}`, `{"s":{"a":3,"b":2}}; K2901 s.a`},
		{"one field of a closed struct", `configs: {a: {match: {}, values: s: close({a: 1, b: 2, c?: int})}, b: {match: {}, overrides: s: a: 3}}`, `{"s":{"a":3,"b":2}}; K2901 s.a`},
		{"a struct over a scalar", `configs: {a: {match: {}, values: s: 1}, b: {match: {}, overrides: s: a: 3}}`, `{"s":{"a":3}}; K2901 s.a`},
		{"a scalar over a struct", `configs: {a: {match: {}, values: s: {a: 1}}, b: {match: {}, overrides: s: 3}}`, `{"s":3}; K2901 s`},

		// Open structs.
		{"optional fields", "#S: {a: int, b?: string}\nconfigs: {a: {match: {}, values: s: #S & {a: 1}}, b: {match: {}, values: s: b: \"x\"}}", `{"s":{"a":1,"b":"x"}}`},
		{"that constrain", "#S: {a: int, b?: string}\nconfigs: {a: {match: {}, values: s: #S & {a: 1}}, b: {match: {}, values: s: b: 1}}", `K2003 s.b`},
		{"defaults inside", "#S: {a: *1 | int, b?: string}\nconfigs: {a: {match: {}, values: s: #S}, b: {match: {}, layer: 1, values: s: a: *2 | int}}", `{"s":{"a":2}}`},
		{"defaults inside, replaced", "#S: {a: *1 | int, b?: string}\nconfigs: {a: {match: {}, values: s: #S}, b: {match: {}, values: s: a: 3}}", `{"s":{"a":3}}`},
		{"patterns", `configs: {a: {match: {}, values: s: [=~"^x"]: int}, b: {match: {}, values: s: {x1: 1, y: "any"}}}`, `{"s":{"x1":1,"y":"any"}}`},
		{"patterns that constrain", `configs: {a: {match: {}, values: s: [=~"^x"]: int}, b: {match: {}, values: s: {x1: "one", y: "any"}}}`, `K2003 s.x1`},
		{"all values open", `configs: {a: {match: {}, values: {A: *1 | int, [string]: int}}, b: {match: {}, values: {A: 2, C: 3}}}`, `{"A":2,"C":3}`},
		{"a definition does not close the graph", "#S: {a: int, b?: string}\nconfigs: {a: {match: {}, values: s: #S & {a: 1}}, b: {match: {}, values: s: other: 1}}", `{"s":{"a":1,"other":1}}`},
		{"a list in an open struct", `configs: {a: {match: {}, values: s: {l: [1], c?: int}}, b: {match: {}, values: s: l: [2]}}
			configSchemas: l: {match: {}, lists: "s.l": "append"}`, `{"s":{"l":[1,2]}}`},

		{"all required", `configs: {a: {match: {}, values: s: {a!: int, b?: int}}, b: {match: {}, values: s: b: 1}}`, `K2006 s.a`},
		{"an open list is no default", `configs: {a: {match: {}, values: L: [...string]}, b: {match: {}, values: L: *["x"] | [...string]}}`, `{"L":["x"]}`},
		{"an open list is a constraint", `configs: {a: {match: {}, values: L: [...string]}, b: {match: {}, values: L: ["x"]}, c: {match: {}, values: L: [_, ...]}}`, `{"L":["x"]}`},
		{"an open list alone is empty", `configs: a: {match: {}, values: L: [...string]}`, `{"L":[]}`},
		{"open lists together", `configs: {a: {match: {}, values: L: [1, ...]}, b: {match: {}, values: L: [int, *2 | int]}}`, `{"L":[1,2]}`},
		{"defaults of elements", `configs: {a: {match: {}, values: L: [...{n: int, p: *"TCP" | "UDP"}]}, b: {match: {}, values: L: [{n: 1}, {n: 2, p: "UDP"}]}}`, `{"L":[{"n":1,"p":"TCP"},{"n":2,"p":"UDP"}]}`},

		// Keys.
		{"keys that need quotes", `configs: {a: {match: {}, values: {"reject-tags": 1, "a.b": {"c d": 1, "1": 2}, "": 3, "_h": 4, "#d": 5, "ü\"": 6}}, b: {match: {}, values: {"a.b": "1": 2}}}`, `{"":3,"#d":5,"_h":4,"a.b":{"1":2,"c d":1},"reject-tags":1,"ü\"":6}`},
		{"a conflict at one", `configs: {a: {match: {}, values: "a.b": "c\"d": 1}, b: {match: {}, values: "a.b": "c\"d": 2}}`, `K2003 "a.b"."c\"d"`},
		{"definitions stay in their config", `configs: {a: {match: {}, values: {#d: 1, _h: 1, A: #d + _h}}, b: {match: {}, values: {#d: 2, _h: 2, B: #d}}}`, `{"A":2,"B":2}`},

		// Lists.
		{"append", `configs: {b: {match: {}, values: L: ["b"]}, a: {match: {}, layer: 1, values: L: ["a"]}, c: {match: {}, values: L: ["b"]}}
			configSchemas: l: {match: {}, lists: L: "append"}`, `{"L":["b","b","a"]}`},
		{"unique", `configs: {b: {match: {}, values: L: ["b", 1]}, a: {match: {}, values: L: ["a", "b", 1.0]}}
			configSchemas: l: {match: {}, lists: L: "unique"}`, `{"L":["a","b",1.0,1]}`},
		{"mergeBy", `configs: {b: {match: {}, values: L: [{n: "x", a: 1}, {n: "y"}]}, c: {match: {}, values: L: [{n: "x", b: [1]}]}}
			configSchemas: l: {match: {}, lists: L: mergeBy: "n"}`, `{"L":[{"a":1,"b":[1],"n":"x"},{"n":"y"}]}`},
		{"mergeBy conflicts", `configs: {b: {match: {}, values: L: [{n: "x", a: 1}]}, c: {match: {}, values: L: [{n: "x", a: 2}]}}
			configSchemas: l: {match: {}, lists: L: mergeBy: "n"}`, `K2003 L`},
		{"values join default lists", `configs: {b: {match: {}, defaults: L: ["b"]}, c: {match: {}, layer: -1, values: L: ["c"]}}
			configSchemas: l: {match: {}, lists: L: "append"}`, `{"L":["c","b"]}`},
		{"default lists of all layers", `configs: {a: {match: {}, layer: -1, defaults: L: ["a"]}, b: {match: {}, defaults: L: ["b"]}, c: {match: {}, values: L: *["c"] | [...string]}}
			configSchemas: l: {match: {}, lists: L: "append"}`, `{"L":["a","b","c"]}`},
		{"unique with defaults", `configs: {a: {match: {}, defaults: L: [1.5, 2]}, b: {match: {}, layer: 1, values: L: [1.50, 3]}}
			configSchemas: l: {match: {}, lists: L: "unique"}`, `{"L":[1.50,2,3]}`},
		{"mergeBy with defaults", `configs: {
				a: {match: {}, defaults: L: [{n: "x", a: 1, s: {b: 1, c: 1}}, {n: "y", a: 1}]}
				b: {match: {}, layer: 1, defaults: L: [{n: "y", a: 2}, {n: "z"}]}
				c: {match: {}, layer: -1, values: L: [{n: "w"}, {n: "x", s: b: 2}]}
			}
			configSchemas: l: {match: {}, lists: L: mergeBy: "n"}`, `{"L":[{"n":"w"},{"a":1,"n":"x","s":{"b":2,"c":1}},{"a":2,"n":"y"},{"n":"z"}]}`},
		{"mergeBy of defaults in one layer", `configs: {a: {match: {}, defaults: L: [{n: "x", a: 1}]}, b: {match: {}, defaults: L: [{n: "x", a: 2}]}}
			configSchemas: l: {match: {}, lists: L: mergeBy: "n"}`, `K2004 L`},
		{"mergeBy of values over a default that has no key", `configs: {a: {match: {}, defaults: L: [{a: 1}]}, b: {match: {}, values: L: [{n: "x", a: 2}]}}
			configSchemas: l: {match: {}, lists: L: mergeBy: "n"}`, `K2012 L`},
		{"with a constraint", `configs: {a: {match: {}, values: L: ["a"]}, b: {match: {}, values: L: [...string]}, c: {match: {}, values: L: ["c"]}}
			configSchemas: l: {match: {}, lists: L: "append"}`, `{"L":["a","c"]}`},
		{"an override is not appended", `configs: {a: {match: {}, values: L: ["a"]}, b: {match: {}, overrides: L: ["b"]}}
			configSchemas: l: {match: {}, lists: L: "append"}`, `{"L":["b"]}; K2901 L`},
		{"two strategies", `configSchemas: {a: {match: {}, lists: L: "append"}, b: {match: {}, lists: L: "unique"}}`, `K2011 L`},
		{"one strategy twice", `configs: {a: {match: {}, values: L: [1]}, b: {match: {}, values: L: [1]}}
			configSchemas: {a: {match: {}, lists: L: "unique"}, b: {match: {}, lists: L: "unique"}}`, `{"L":[1]}`},
		{"of what is no list", `configs: a: {match: {}, values: L: "x"}
			configSchemas: a: {match: {}, lists: L: "append"}`, `K2012 L`},

		{"unique numbers", `configs: {a: {match: {}, values: L: [1.5, 2.0]}, b: {match: {}, layer: 1, values: L: [1.50]}}
			configSchemas: a: {match: {}, lists: L: "unique"}`, `{"L":[1.50,2.0]}`},
		{"unique numbers of one layer", `configs: {a: {match: {}, values: L: [1.5]}, b: {match: {}, values: L: [1.50]}}
			configSchemas: a: {match: {}, lists: L: "unique"}`, `K2003 L`},
		{"merged by a number", `configs: {a: {match: {}, values: L: [{v: 1.5, a: 1}]}, b: {match: {}, layer: 1, values: L: [{v: 1.50, b: 2}]}, c: {match: {}, layer: 1, values: L: [{v: 1.50, a: 1}]}}
			configSchemas: a: {match: {}, lists: L: mergeBy: "v"}`, `{"L":[{"a":1,"b":2,"v":1.50}]}`},
		{"appended numbers", `configs: {a: {match: {}, values: L: [1.5]}, b: {match: {}, values: L: [1.50]}}
			configSchemas: a: {match: {}, lists: L: "append"}`, `{"L":[1.5,1.50]}`},

		// Contracts.
		{"a contract's text of a number", `configs: a: {match: {}, values: {A: 1.50, C: 2.50}}
			workloads: shop: requires: {A: 1.5 | 2.5, B: *3.10 | number, C: number, D: *1e3 | number}`, `{"A":1.50,"B":3.10,"C":2.50,"D":1e+3}`}, // as CUE writes it in expressions
		{"contracts' texts of one number", `workloads: shop: requires: A: *1.5 | number
			configSchemas: s: {match: {}, schema: A: *1.50 | number}`, `K2010 A`},
		{"satisfied", `configs: a: {match: {}, values: A: 1}
			workloads: shop: requires: {A: int, B?: string}`, `{"A":1}`},
		{"missing", `workloads: shop: requires: {A: int, b: c!: int}`, `K2009 A, K2009 b.c`},
		{"missing beside wrong", `configs: a: {match: {}, values: {A: "x", b: {d: 1}}}
			workloads: shop: requires: {A: int, b: {c!: int, d: string}}`, `K2009 A, K2009 b.c, K2009 b.d`},
		{"defaults fill in", `configs: a: {match: {}, values: {A: 1, e: {}}}
			workloads: shop: requires: {A: *5 | int, B: *6 | int, s: {t: *"x" | string}, e: f: *1 | int}`, `{"A":1,"B":6,"e":{"f":1},"s":{"t":"x"}}`},
		{"one contract's defaults satisfy another", `workloads: shop: {requires: A: int, deploymentTargets: test: requires: {A: *1 | int, B: *2 | int}}
			configSchemas: s: {match: {}, schema: {B: int, C: *3 | int}}`, `{"A":1,"B":2,"C":3}`},
		{"defaults also where a key is missing", `workloads: shop: {requires: {A: int, B: *1 | int}, enforce: "advise"}`, `{"B":1}; K2903 A`},
		{"defaults that differ", `workloads: shop: requires: A: *1 | int
			configSchemas: s: {match: {}, schema: A: *2 | int}`, `K2010 A`},
		{"a definition is opened", "#C: {A: int, s: {t: int}}\nconfigs: a: {match: {}, values: {A: 1, B: 1, s: {t: 1, u: 1}}}\nworkloads: shop: requires: #C", `{"A":1,"B":1,"s":{"t":1,"u":1}}`},
		{"close closes", `configs: a: {match: {}, values: {A: 1, B: 1}}
			workloads: shop: requires: close({A: int})`, `K2009 B`},
		{"a schema that matches nothing", `configSchemas: s: {match: region: "west", schema: A: int}`, `K1902 configSchemas.s.match`},
		{"a wrong element of a list", `configs: a: {match: {}, values: L: ["a", 1]}
			workloads: shop: requires: L: [...string]`, `K2009 L[1]`},
		{"a contract on a secret", `configs: a: {match: {}, values: P: schema.#Secret & {store: "s", key: "k"}}
			workloads: shop: requires: {P: schema.#Secret}`, `{"P":{"key":"k","store":"s"}}`},

		// Secrets.
		{"in a struct", `configs: a: {match: {}, values: s: {p: schema.#Secret & {store: "s", key: "k"}, h: "x"}}`, `{"s":{"h":"x","p":{"key":"k","store":"s"}}}`},
		{"given twice", `configs: {a: {match: {}, values: P: schema.#Secret & {store: "s", key: "k"}}, b: {match: {}, values: P: schema.#Secret & {store: "s", key: "k"}}}`, `{"P":{"key":"k","store":"s"}}`},
		{"given differently", `configs: {a: {match: {}, values: P: schema.#Secret & {store: "s", key: "k"}}, b: {match: {}, values: P: schema.#Secret & {store: "s", key: "l"}}}`, `K2003 P`},
		{"against a string", `configs: {a: {match: {}, values: P: schema.#Secret & {store: "s", key: "k"}}, b: {match: {}, values: P: "x"}}`, `K2003 P`},
		{"in a list", `configs: a: {match: {}, values: P: [{s: schema.#Secret & {store: "s", key: "k"}}]}`, `K3002 P`},
		{"in plain text", `configs: a: {match: {}, values: {DB_PASSWORD: "x", tokens: "x", s: "api-token": "y"}}`, `{"DB_PASSWORD":"x","s":{"api-token":"y"},"tokens":"x"}; K2902 DB_PASSWORD, K2902 s."api-token"`},
		{"in plain text, and told", `configs: {a: {match: {}, values: s: "api-token": "y"}, b: {match: {}, plain: ["s.\"api-token\""]}}`, `{"s":{"api-token":"y"}}`},

		// Functions of the assignment.
		{"facts", `configs: a: {#assignment: schema.#Assignment, match: {}, values: {A: "\(#assignment.clusterType)/\(#assignment.deploymentTarget)", B: #assignment.labels.side}}`, `{"A":"small/shop-test","B":"target"}`},
		{"an absent fact", `configs: a: {#assignment: schema.#Assignment, match: {}, values: A: "\(#assignment.labels.zone)"}`, `K2013 configs.a.values.A`},
		{"an absent fact with a default", `configs: a: {#assignment: schema.#Assignment, match: {}, values: A: *#assignment.labels.zone | "none"}`, `{"A":"none"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, failed, ds := composed(t, test.text)
			var said []string
			for _, d := range ds {
				said = append(said, string(d.Code)+" "+d.Path)
				if len(d.Sites) == 0 {
					t.Errorf("%s %s has no position", d.Code, d.Message)
				}
			}
			slices.Sort(said)
			said = slices.Compact(said)
			got := g.Values.String()
			warned := strings.Join(said, ", ")
			switch {
			case diag.Errors(ds) != failed:
				t.Errorf("failed is %v with %v", failed, ds)
			case diag.Errors(ds) || got == "{}" && warned != "":
				got = warned
			case warned != "":
				got += "; " + warned
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s\n%v", got, test.want, ds)
			}
			checkLeaves(t, g)
		})
	}
}

// checkLeaves checks that the leaves are exactly the values, each with an origin.
func checkLeaves(t *testing.T, g *compose.Graph) {
	t.Helper()
	if g.Failed {
		return
	}
	v := model.StructOf()
	for _, leaf := range g.Leaves() {
		if leaf.Value.Kind() == model.Struct && len(leaf.Value.Fields()) > 0 {
			t.Errorf("leaf %s is a struct", leaf.Path)
		}
		if len(leaf.From) == 0 {
			t.Errorf("leaf %s comes from nowhere", leaf.Path)
		}
		path := model.Elements(leaf.Path)
		if !has(g.Values, path) && leaf.Value.Kind() == model.Null {
			continue // it is removed
		}
		v = withValue(v, path, leaf.Value)
	}
	if !v.Equal(g.Values) {
		t.Errorf("the leaves make %s, and the values are %s", v, g.Values)
	}
}

// has reports whether a value has a field at a path.
func has(v model.Value, path []string) bool {
	for _, name := range path {
		var there bool
		if v, there = v.Lookup(name); !there {
			return false
		}
	}
	return true
}

// withValue returns a struct with another value at a path.
func withValue(v model.Value, path []string, leaf model.Value) model.Value {
	if len(path) == 0 {
		return leaf
	}
	inner, there := v.Lookup(path[0])
	if !there {
		inner = model.StructOf()
	}
	fields := slices.DeleteFunc(slices.Clone(v.Fields()), func(f model.Field) bool { return f.Name == path[0] })
	return model.StructOf(append(fields, model.Field{Name: path[0], Value: withValue(inner, path[1:], leaf)})...)
}
