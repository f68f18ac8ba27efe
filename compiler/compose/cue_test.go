package compose_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
)

// byCUE returns the result of CUE for an expression, in a context of its own; ok is false if it has
// no concrete value.
func byCUE(text string) (v model.Value, ok bool) {
	c := cuecontext.New().CompileString("x: " + text).LookupPath(cue.ParsePath("x"))
	if c.Validate(cue.Concrete(true), cue.Final()) != nil {
		return model.Value{}, false
	}
	v, err := expr.Data(c)
	return v, err == nil
}

// planOf plans one assignment of an environment. All configs, sorted by name, list strategies and
// contracts apply to it.
func planOf(t *testing.T, configs []model.Config, lists map[string]model.ListStrategy, contracts ...*model.Contract) *compose.Plan {
	t.Helper()
	env := &model.Environment{
		Name:              "dev",
		ClusterTypes:      []model.ClusterType{{Name: "small", NamespaceService: "plain"}},
		NamespaceServices: []model.NamespaceService{{Name: "plain"}},
		Configs:           configs,
		ConfigSchemas:     []model.ConfigSchema{{Name: "lists", Lists: lists}},
	}
	for _, contract := range contracts {
		env.ConfigSchemas = append(env.ConfigSchemas, model.ConfigSchema{Name: contract.Ref.Name, Schema: contract})
	}
	s := &schedule.Schedule{Environment: env.Name, Assignments: []schedule.Assignment{{
		Workload:    &model.Workload{Name: "shop"},
		Target:      &model.DeploymentTarget{Name: "test", FullName: "shop-test"},
		ClusterType: &env.ClusterTypes[0],
	}}}
	plan, _, err := compose.NewPlan(t.Context(), env, s, nil, nil, nil)
	if err != nil || len(plan.Tuples) != 1 {
		t.Fatal(plan, err)
	}
	return plan
}

// graphOf composes the one assignment of a plan.
func graphOf(t *testing.T, plan *compose.Plan) *compose.Graph {
	t.Helper()
	prepared, err := plan.Prepare(t.Context(), []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	return plan.NewComposer().Compose(0, prepared)
}

// treeOf returns the tree of a value, as in a config.
func treeOf(v model.Value) model.Tree {
	if v.Kind() != model.Struct {
		return model.Tree{Kind: model.FinalLeaf, Final: v}
	}
	fields := make([]model.TreeField, len(v.Fields()))
	for i, f := range v.Fields() {
		fields[i] = model.TreeField{Name: f.Name, Tree: treeOf(f.Value)}
	}
	return model.StructTreeOf(fields...)
}

// choices makes values from random or fuzzed numbers.
type choices func(n int) int

func random(r *rand.Rand) choices { return r.IntN }

// drawn makes choices from data, and then only 0.
func drawn(data []byte) choices {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		c := int(data[0]) % n
		data = data[1:]
		return c
	}
}

// scalars are similar to each other, so that they often conflict or agree.
var scalars = func() []model.Value {
	out := []model.Value{{}, model.BoolOf(true), model.BoolOf(false)}
	for _, s := range []string{"", "a", "b", "1", "true", "null", "é", "é", "a\nb", "\x00", `"`, `\(x)`} {
		out = append(out, model.StringOf(s))
	}
	for _, n := range []string{"0", "1", "10", "-1", "100", "123456789012345678901234567890", "1.0", "1.00", "1e1", "1e2", "100.0", "-0.0", "0.0", "0.1", "0.10", "1e400", "1.5"} {
		v, err := model.NumberOf(n)
		if err != nil {
			panic(err)
		}
		out = append(out, v)
	}
	return out
}()

var keys = []string{"a", "b", "c d", "1", "e.f"}

func (c choices) value(depth int) model.Value {
	switch kind := c(10); {
	case kind < 4 && depth > 0:
		return c.structure(depth - 1)
	case kind < 6 && depth > 0:
		elems := make([]model.Value, c(3))
		for i := range elems {
			elems[i] = c.value(depth - 1)
		}
		return model.ListOf(elems...)
	}
	return scalars[c(len(scalars))]
}

func (c choices) structure(depth int) model.Value {
	var fields []model.Field
	for _, k := range keys {
		if c(3) == 0 {
			fields = append(fields, model.Field{Name: k, Value: c.value(depth)})
		}
	}
	return model.StructOf(fields...)
}

// similar returns a value that often unifies with v: of the same kind, with
// fields removed or added.
func (c choices) similar(v model.Value, depth int) model.Value {
	if c(12) == 0 {
		return c.value(depth)
	}
	switch v.Kind() {
	case model.Struct:
		var fields []model.Field
		for _, k := range keys {
			if f, there := v.Lookup(k); there && c(4) > 0 {
				fields = append(fields, model.Field{Name: k, Value: c.similar(f, depth)})
			} else if !there && c(6) == 0 {
				fields = append(fields, model.Field{Name: k, Value: c.value(depth)})
			}
		}
		return model.StructOf(fields...)
	case model.List:
		elems := make([]model.Value, len(v.Elems()))
		for i := range elems {
			elems[i] = c.similar(v.Elems()[i], depth)
		}
		return model.ListOf(elems...)
	case model.Float:
		if text := v.Text() + "0"; c(4) == 0 && !strings.Contains(text, "e") {
			v, _ = model.FloatOf(text)
		}
	}
	return v
}

// textsOf notes the texts of the numbers in a value by path; it returns false if a number already
// has another text.
func textsOf(path string, v model.Value, of map[string]string) bool {
	ok := true
	if v.Kind() == model.Float {
		text, there := of[path]
		of[path], ok = v.Text(), !there || text == v.Text()
	}
	for _, f := range v.Fields() {
		ok = textsOf(path+"/"+f.Name, f.Value, of) && ok
	}
	for i, e := range v.Elems() {
		ok = textsOf(fmt.Sprint(path, "/", i), e, of) && ok
	}
	return ok
}

// onlyNulls reports whether v is null, or a struct of only nulls.
func onlyNulls(v model.Value) bool {
	if v.Kind() == model.Struct && len(v.Fields()) > 0 {
		return !slices.ContainsFunc(v.Fields(), func(f model.Field) bool { return !onlyNulls(f.Value) })
	}
	return v.Kind() == model.Null
}

// nullsAsOne returns v with null instead of each struct of only nulls, if another value
// has null there: both remove the same keys. Lists stay unchanged, because null does
// not remove their elements.
func nullsAsOne(v model.Value, others []model.Value) model.Value {
	isNull := func(o model.Value) bool { return o.Kind() == model.Null }
	switch {
	case v.Kind() != model.Struct:
		return v
	case onlyNulls(v) && slices.ContainsFunc(others, isNull):
		return model.Value{}
	}
	fields := slices.Clone(v.Fields())
	for i, f := range fields {
		var below []model.Value
		for _, o := range others {
			if o, there := o.Lookup(f.Name); there {
				below = append(below, o)
			}
		}
		fields[i].Value = nullsAsOne(f.Value, below)
	}
	return model.StructOf(fields...)
}

// sameAsCUE composes concrete configs, in one layer or in a layer each, and unifies them
// with CUE. In one layer a number may not have two texts, which CUE does not detect.
// With several layers the text of the highest one applies. Null and a struct of nulls
// are a conflict only for CUE.
func sameAsCUE(t *testing.T, c choices) {
	t.Helper()
	first := c.structure(3)
	values := []model.Value{first}
	for range c(4) {
		if v := c.similar(first, 2); v.Kind() == model.Struct { // like all values of a config
			values = append(values, v)
		}
	}
	apart := c(2)
	var configs []model.Config
	var terms []string
	written, oneText := map[string]string{}, true
	for i, v := range values {
		configs = append(configs, model.Config{Name: fmt.Sprintf("c%d", i), Layer: apart * i, Values: treeOf(v)})
		terms = append(terms, expr.Text(nullsAsOne(v, values)))
		oneText = textsOf("", v, written) && oneText
	}
	g := graphOf(t, planOf(t, configs, nil))
	text := strings.Join(terms, " & ")
	want, ok := byCUE(text)
	want, _ = want.WithoutNulls()
	ok = ok && (oneText || apart == 1)
	switch {
	case ok == g.Failed:
		t.Errorf("failed is %v, with CUE %v: %s", g.Failed, !ok, text)
	case ok && (!g.Values.Same(want) || !textsOf("", g.Values, written)):
		t.Errorf("%s\ngot  %s\nwant %s", text, g.Values, want)
	}
	checkLeaves(t, g)
}

func TestSameAsCUE(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		sameAsCUE(t, random(r))
	}
}

// FuzzSameAsCUE: values in any layers compose to the same result as in CUE.
//
// Slow: CUE evaluates each input.
func FuzzSameAsCUE(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) { sameAsCUE(t, drawn(data)) })
}

// formula is the text of one config for one key.
type formula struct {
	layer  int
	kind   string // final, default, defaults, constraint
	value  string // of every kind except a constraint
	domain string // of a default and a constraint
}

// closed returns the closed formula: the constraints of all terms, without the marks of
// defaults, and all final values. If there are no final values, it has the default of the
// highest layer with a default.
func closed(terms []formula) string {
	var all, defaults []string
	top := -1
	for _, f := range terms {
		if f.kind == "default" || f.kind == "defaults" {
			top = max(top, f.layer)
		}
	}
	for _, f := range terms {
		switch f.kind {
		case "final":
			all = append(all, f.value)
		case "constraint":
			all = append(all, "("+f.domain+")")
		case "default":
			all = append(all, "("+f.value+" | "+f.domain+")")
		}
		if f.layer == top && (f.kind == "default" || f.kind == "defaults") {
			defaults = append(defaults, "(*"+f.value+" | _)")
		}
	}
	if !hasFinal(terms) {
		all = append(all, defaults...)
	}
	return strings.Join(all, " & ")
}

// held returns the default that must apply: the default of the highest layer with one. ok is false
// if the defaults in that layer differ.
func held(terms []formula) (text string, ok bool) {
	top := 0
	for _, f := range slices.Backward(terms) { // in the order of their layers
		if f.kind != "default" && f.kind != "defaults" {
			continue
		}
		if text != "" && f.layer < top {
			break
		}
		if text != "" && f.value != text {
			return "", false
		}
		top, text = f.layer, f.value
	}
	return text, true
}

func hasFinal(terms []formula) bool {
	return slices.ContainsFunc(terms, func(f formula) bool { return f.kind == "final" })
}

// TestLayeredDefaults composes one key from several layers, and compares with the closed formula.
// Plain CUE would choose another value if the default is not possible. This happens with two
// defaults in one layer, one of them impossible, or with a default that a constraint forbids. Here
// it is an error to lose a default without a message.
func TestLayeredDefaults(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	values := []string{"1", "2", "3", `"a"`, `"b"`, "1.0", "true", "[1]", "[1, 2]"} // null takes keys away: see TestRules
	domains := []string{"int", "string", "number", "_", "int & >1", `"a" | "b"`, "bool", "[...int]", "null | int"}
	failed := 0
	for range 3000 {
		c := random(r)
		var terms []formula
		var configs []model.Config
		for i := range 1 + c(4) {
			f := formula{layer: c(3), kind: []string{"final", "default", "default", "defaults", "defaults", "constraint"}[c(6)], value: values[c(len(values))], domain: domains[c(len(domains))]}
			if len(terms) > 0 && f.layer < terms[len(terms)-1].layer {
				f.layer = terms[len(terms)-1].layer
			}
			if c(2) == 0 && len(terms) > 0 {
				f.value, f.domain = terms[0].value, terms[0].domain
			}
			v, _ := byCUE(f.value)
			tree := model.Tree{Kind: model.FinalLeaf, Final: v}
			switch f.kind {
			case "default":
				tree = model.Tree{Kind: model.OpenLeaf, Open: &model.Open{Text: "*" + f.value + " | " + f.domain, Constraint: model.Expr(f.value + " | " + f.domain), Default: &v}}
			case "constraint":
				tree = model.Tree{Kind: model.OpenLeaf, Open: &model.Open{Text: f.domain, Constraint: model.Expr(f.domain)}}
			}
			config := model.Config{Name: fmt.Sprintf("c%d", i), Layer: f.layer}
			in := model.StructTreeOf(model.TreeField{Name: "k", Tree: tree})
			if f.kind == "defaults" {
				config.Defaults = in
			} else {
				config.Values = in
			}
			terms, configs = append(terms, f), append(configs, config)
		}
		g := graphOf(t, planOf(t, configs, nil))
		got, there := g.Values.Lookup("k")
		want, ok := byCUE(closed(terms))
		if !hasFinal(terms) {
			if text, one := held(terms); !one {
				ok = false
			} else if text != "" && ok {
				v, _ := byCUE(text)
				ok = v.Equal(want)
			}
		}
		if !ok {
			failed++
		}
		switch {
		case ok == g.Failed:
			t.Errorf("failed is %v, with the formula %v (%s): %+v", g.Failed, !ok, closed(terms), terms)
		case ok && (!there || !got.Equal(want)):
			t.Errorf("got %s, want %s = %s: %+v", got, closed(terms), want, terms)
		}
	}
	if failed == 0 || failed > 2500 {
		t.Errorf("%d of 3000 fail: the test does not test much", failed)
	}
}

// openStruct writes a struct with optional fields, patterns and defaults. The default of a key is
// always the same, and differs from its other possible values.
func (c choices) openStruct(depth int) string {
	var b strings.Builder
	b.WriteString("{")
	for i, k := range []string{"a", "ab", "c"} {
		switch c(9) {
		case 0:
			fmt.Fprintf(&b, "%s: %d\n", k, c(2))
		case 1:
			fmt.Fprintf(&b, "%s: *%d | int\n", k, 10+i)
		case 2:
			fmt.Fprintf(&b, "%s: int\n", k)
		case 3:
			fmt.Fprintf(&b, "%s?: int\n", k)
		case 4:
			fmt.Fprintf(&b, "%s?: string\n", k)
		case 5:
			fmt.Fprintf(&b, "%s!: int | {...}\n", k)
		case 6:
			if depth > 0 {
				fmt.Fprintf(&b, "%s: %s\n", k, c.openStruct(depth-1))
			}
		case 7:
			if depth > 0 {
				fmt.Fprintf(&b, "%s?: %s\n", k, c.openStruct(depth-1))
			}
		}
	}
	b.WriteString([]string{"", "", "...", "[=~\"^a\"]: int | {...}", "[string]: int | string | {...}"}[c(5)] + "}")
	return b.String()
}

// TestOpenStructs composes an open struct with others and with values, and compares with CUE.
func TestOpenStructs(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	eval := expr.New(nil)
	failed, split := 0, 0
	const all = 3000
	for range all {
		c := random(r)
		var configs []model.Config
		var texts []string
		for i := range 1 + c(3) {
			text := c.openStruct(2)
			if c(3) == 0 && i > 0 {
				text = []string{`{a: 1}`, `{ab: 2, c: {a: 1}}`, `{a: {ab: 1}}`, `{c: "x"}`, `{a: {a: 3, c: {ab: 4}}}`}[c(5)]
			}
			if _, ok := eval.Split(text); ok {
				split++
			}
			tree := model.Tree{Kind: model.OpenLeaf, Open: &model.Open{Text: text, Constraint: model.Expr(strings.ReplaceAll(text, "*", ""))}}
			in := model.StructTreeOf(model.TreeField{Name: "k", Tree: tree})
			configs = append(configs, model.Config{Name: fmt.Sprintf("c%d", i), Values: in})
			texts = append(texts, text)
		}
		text := strings.Join(texts, " & ")
		g := graphOf(t, planOf(t, configs, nil))
		got, _ := g.Values.Lookup("k")
		want, ok := byCUE(text)
		if !ok {
			failed++
		}
		switch {
		case ok == g.Failed:
			t.Errorf("failed is %v, with CUE %v: %s", g.Failed, !ok, text)
		case ok && !got.Equal(want):
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
		checkLeaves(t, g)
		if t.Failed() {
			return
		}
	}
	if failed == 0 || failed > all*9/10 || split == 0 {
		t.Errorf("%d of %d fail, and %d leaves are split: the test does not test much", failed, all, split)
	}
}
