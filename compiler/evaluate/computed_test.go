package evaluate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// TestComputedEntities compares computed values, their defaults and constraints, and selectors
// with CUE's own results. Nested comprehensions compute them, over names that are not
// identifiers. Evaluating the units of the package must have the same result as evaluating the
// whole.
func TestComputedEntities(t *testing.T) {
	seeds := uint64(4)
	if os.Getenv("KALYPSO_LONG") != "" {
		seeds = 150
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			files := computed(rand.New(rand.NewPCG(seed, 3)))
			p := open(t, files)
			compareWays(t, p, "dev")
			pkg, ds := environment(t, p)
			for _, d := range ds {
				if d.Severity == diag.Error {
					t.Errorf("%+v", d)
				}
			}
			if pkg.Model != nil {
				l, _, err := loader.Platform(t.Context(), p, "environments/dev", nil)
				if err != nil || l == nil {
					t.Fatal(err)
				}
				sameAsCUE(t, l, pkg.Model)
			}
			if t.Failed() {
				t.Logf("%s\n%s", files["facts.cue"], files["environments/dev/dev.cue"])
			}
		})
	}
}

// words are names and values, some of which CUE writes with quotes, and some without.
var words = []string{"east", "edge-1", "x-y-z", "0", "if", "a b", "größe", "_h", "#d", "k8s.io/zone", "true", "", "EDGE", "schema", `a"b`}

// computed returns a platform whose entities are computed from facts.
func computed(r *rand.Rand) map[string]string {
	quote := func(s string) string { return fmt.Sprintf("%q", s) }
	word := func() string { return words[r.IntN(len(words))] }
	var facts strings.Builder
	facts.WriteString("package platform\n\n_types: {\n")
	var names []string
	for i := range 1 + r.IntN(3) {
		name := []string{"edge-1", "edge-2x", "plain", "0-9"}[(i+r.IntN(2)*2)%4]
		if slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		fmt.Fprintf(&facts, "\t%s: labels: region: %s\n", quote(name), quote(word()))
		for range r.IntN(3) {
			w := word()
			fmt.Fprintf(&facts, "\t%s: labels: %s: %s\n", quote(name), quote("l-"+w), quote(w))
		}
	}
	facts.WriteString("}\n")
	from := "_types"
	if r.IntN(2) == 0 {
		from = "clusterTypes"
	}
	facts.WriteString("clusterTypes: {for c, t in _types {(c): t & {reconciler: \"flux\"}}}\n")
	fmt.Fprintf(&facts, "_facts: {for c, t in %s {(c): {for k, l in t.labels {(k): l}}}}\n", from)
	fmt.Fprintf(&facts, "_regions: {for c, t in %s if t.labels.region != %s {(c): t.labels.region}}\n", from, quote(word()))

	name := names[r.IntN(len(names))]
	values := []string{
		`for k, l in v {"L_\(k)": *l | string}`,
		`for k, l in v {"L_\(k)": l}`,
		`_own: {for k, l in v {(k): *l | "z"}}, for k, l in _own {"L_\(k)": l}`,
		`A: *v["region"] | =~"^[a-z]"`,
		`A: or([for k, _ in v {k}])`,
		`A: {for k, l in v {(k): {x: *l | string, y?: *"q" | string}}}`,
		`A: [for k, l in v {*l | string}]`,
		`A: *[for k, l in v {l}] | [...string]`,
		`A: {[=~"^L"]: string, for k, l in v {"L_\(k)": *l | string}}`,
		`for k, l in v for j, m in v if k != j {"\(k)\(j)": *(l + m) | string}`,
		`let f = {for k, l in v {(k): {of: l}}}, for k, l in f {"L_\(k)": *l.of | string}`,
		`A: *_facts[` + quote(name) + `].region | string, B: _types[` + quote(name) + `].labels.region`,
		`if v.region == "east" {A: *"yes" | "no"}, if v.region != "east" {A: *"no" | "yes"}`,
		`A: *v.region | null | {deep: v.region}`,
		`A: strings.MinRunes(len(v)) & (*"\(v.region)-and-more" | string)`,
	}
	sides := []string{
		`name: or([for c, _ in _regions {c}, "none"])`,
		`labels: region: or([for _, l in _regions {l}, "none"])`,
		`labels: {for k, l in _facts[` + quote(name) + `] {(k): l}}`,
		`labels: {for k, _ in _facts[` + quote(name) + `] if k != "region" {(k)?: _|_}}`,
		`name: =~strings.Join(["^(x", for c, _ in _regions {c}, "y)"], "|")`,
		`or([for c, l in _regions {name: c, labels: region: l}, {name: "none"}])`,
	}
	one := func(of []string) string { return of[r.IntN(len(of))] }
	var dev strings.Builder
	dev.WriteString("package platform\n\nimport \"strings\"\n\n_used: strings.ToUpper(\"x\")\n")
	for i := range 1 + r.IntN(3) {
		fmt.Fprintf(&dev, "configs: {for c, v in _facts {\"c%d-\\(c)\": {match: clusterType: c, values: {%s}}}}\n", i, one(values))
	}
	if r.IntN(2) == 0 {
		fmt.Fprintf(&dev, "configSchemas: {for c, v in _facts {\"s-\\(c)\": {match: clusterType: c, schema: {for k, l in v {\"L_\\(k)\"?: *l | string}}}}}\n")
	}
	for i := range 1 + r.IntN(3) {
		fmt.Fprintf(&dev, "schedulingPolicies: p%d: {deploymentTargets: {}, clusterTypes: {%s}}\n", i, one(sides))
	}
	return map[string]string{"facts.cue": facts.String(), "environments/dev/dev.cue": dev.String()}
}

// sameAsCUE compares the model with CUE's own answers.
func sameAsCUE(t *testing.T, l *loader.Package, m *model.Environment) {
	answers := expr.New(nil)
	for _, c := range m.Configs {
		sameTree(t, l.Value.LookupPath(cue.MakePath(cue.Str("configs"), cue.Str(c.Name), cue.Str("values"))), c.Values, c.Name, answers)
	}
	index := selector.NewIndex(func(yield func(selector.Facts) bool) {
		for _, c := range m.ClusterTypes {
			labels := selector.Facts{}
			for k, v := range c.Labels {
				labels[k] = selector.Values(v)
			}
			if !yield(selector.Facts{"name": selector.Values(c.Name), "labels": selector.Struct(labels)}) {
				return
			}
		}
	}, answers.Satisfies)
	for _, p := range m.SchedulingPolicies {
		sel := l.Value.LookupPath(cue.MakePath(cue.Str("schedulingPolicies"), cue.Str(p.Name), cue.Str("clusterTypes")))
		var want []int
		for i, c := range m.ClusterTypes {
			v := sel.Unify(l.Context.Encode(map[string]any{"name": c.Name, "labels": c.Labels}))
			if v.Validate(cue.Concrete(true)) == nil && len(missing(sel, c)) == 0 {
				want = append(want, i)
			}
		}
		if got := index.Select(p.ClusterTypes); !slices.Equal(got, want) {
			t.Errorf("policy %s selects %v, and CUE %v", p.Name, got, want)
		}
	}
}

// missing returns the labels that a selector requires and a cluster type lacks. Unification
// would add them to the cluster type.
func missing(sel cue.Value, c model.ClusterType) (out []string) {
	it, err := sel.LookupPath(cue.ParsePath("labels")).Fields()
	for err == nil && it.Next() {
		if _, has := c.Labels[it.Selector().Unquoted()]; !has {
			out = append(out, it.Selector().Unquoted())
		}
	}
	return out
}

func sameTree(t *testing.T, v cue.Value, tree model.Tree, at string, answers *expr.Evaluator) {
	switch tree.Kind {
	case model.StructTree:
		n := 0
		for name, of := range cuevalue.Fields(v) {
			n++
			next, ok := tree.Field(name)
			if !ok {
				t.Errorf("%s has no %q", at, name)
				continue
			}
			sameTree(t, of, next, at+"."+name, answers)
		}
		if n != len(tree.Fields) {
			t.Errorf("%s has %d fields, and CUE %d", at, len(tree.Fields), n)
		}
	case model.FinalLeaf:
		want, err := v.MarshalJSON()
		if got := tree.Final.AppendJSON(nil); err != nil || !sameJSON(got, want) {
			t.Errorf("%s is %s, and CUE says %s, %v", at, got, want, err)
		}
	case model.OpenLeaf:
		if want, err := v.MarshalJSON(); err == nil {
			r := answers.Eval([]expr.Call{{Terms: []model.Expr{model.Expr(tree.Open.Text)}}})[0]
			if len(r.Problems) > 0 || !sameJSON(r.Value.AppendJSON(nil), want) {
				t.Errorf("%s, %s, is %v, and CUE says %s", at, tree.Open.Text, r, want)
			}
		}
		own := cuecontext.New()
		for _, w := range words {
			want := v.Unify(own.Encode(w)).Validate(cue.Concrete(true)) == nil
			if got := answers.Satisfies(tree.Open.Constraint, w); got != want {
				t.Errorf("%s, %s, holds for %q: %v, and CUE says %v", at, tree.Open.Constraint, w, got, want)
			}
		}
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}
