package expr

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestFields(t *testing.T) {
	for _, test := range []struct{ contract, want string }{
		{`int`, "none"},
		{`*{a: 1} | {b: 2}`, "none"},
		{`close({a: 1})`, "none"},
		{`{a: int, b: a + 1}`, "none"},
		{`{a: int, b: c: a}`, "none"},
		{`{[string]: int}`, "none"},
		{`{a: int, ...string}`, "none"},
		{`{a: 1, #b: 2}`, "none"},
		{`{a: 1, _b: 2}`, "none"},
		{`{if true {a: 1}}`, "none"},
		{`{a: int, matchN(1, [{b!: _}])}`, "none"},
		{"{let X = 1\na: X}", "none"},
		{`{`, "none"},
		{`{}`, ""},
		{`{...}`, ""},
		{`{a: int, b?: string, "c d"!: {e: 1}, ...}`, `{"a": int} {"b"?: string}? {"c d"!: {e: 1}}`},
		{`{a!: int} & {a: >1, b?: int} & {b!: <5}`, `{"a": int & >1} {"b"!: int & <5}`},
		{`{a: 1 | 2} & {a: *2 | int}`, `{"a": (1 | 2) & (*2 | int)}`},
	} {
		t.Run(test.contract, func(t *testing.T) {
			fields, ok := Fields(model.Expr(test.contract))
			parts := []string{}
			for _, f := range fields {
				text := strings.ReplaceAll(strings.Join(strings.Fields(string(f.Contract)), " "), " }", "}")
				if f.Optional {
					text += "?"
				}
				parts = append(parts, text)
			}
			got := strings.Join(parts, " ")
			if !ok {
				got = "none"
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestFieldsAreTheContract compares a contract on a value as a whole with its fields. Both must
// hold or fail together, and fill in the same values.
func TestFieldsAreTheContract(t *testing.T) {
	e := New(nil)
	holding, apart := 0, 0
	for _, contract := range []string{
		`{a: int, ...}`, `{a: *5 | int, b?: string}`, `{a!: int | string, s?: {...}}`, `{s: {a: *1 | int, b: *"q" | string}}`, `{s: x: y: *1 | int}`,
		`{l?: [...int]}`, `{l: *["z"] | [...]}`, `{s: close({a: *1 | int, b?: _})}`, `{a?: 1 | 2, b?: "x" | "y"}`, `{s: {}} & {s: a: *1 | int}`,
		`{s: string | {...}}`, `{s?: {...} & {a?: >0}}`, `{s: null | *{a: 1} | {...}}`, `{a: strings.MinRunes(1) | int}`, `{p?: {#secret: true, store: string, key: string}}`,
		`{s!: {a!: int}, l!: [_, ...]}`, `{s: {a: int, b: int}, a: _|_}`,
	} {
		fields, ok := Fields(model.Expr(contract))
		if !ok {
			t.Errorf("%s is not taken apart", contract)
		}
		for _, text := range []string{
			`{}`, `{a: 1}`, `{a: "x", b: "x"}`, `{a: 3, b: "z", s: {}}`, `{s: {a: 1}}`, `{s: {a: 0, b: 2, c: 3}}`, `{s: "x"}`, `{s: null}`, `{s: [1]}`, `{l: [1, 2]}`, `{l: ["a"]}`, `{l: []}`,
			`{p: {#secret: true, store: "s", key: "k"}}`, `{s: {#secret: true, store: "s", key: "k"}}`, `{a: 1, s: {a: 1}, l: [1], b: "y"}`,
		} {
			v := value(t, text)
			whole := e.Eval([]Call{{Contract: model.Expr(contract), Value: &v}})[0]
			holds := true
			got := slices.DeleteFunc(slices.Clone(v.Fields()), func(f model.Field) bool {
				return slices.ContainsFunc(fields, func(c Field) bool { return c.Name == f.Name })
			})
			for _, f := range fields {
				of := model.StructOf()
				if field, there := v.Lookup(f.Name); there {
					of = model.StructOf(model.Field{Name: f.Name, Value: field})
				} else if f.Optional {
					continue
				}
				r := e.Eval([]Call{{Contract: f.Contract, Value: &of}})[0]
				holds = holds && len(r.Problems) == 0
				got = append(got, r.Value.Fields()...)
			}
			apart++
			if holds != (len(whole.Problems) == 0) {
				t.Errorf("%s with %s: by field %v, as a whole %v", contract, v, holds, whole.Problems)
				continue
			}
			if !holds {
				continue
			}
			holding++
			if all := model.StructOf(got...); !all.Equal(whole.Value) {
				t.Errorf("%s with %s: by field %s, as a whole %s", contract, v, all, whole.Value)
			}
		}
	}
	if holding == 0 || holding == apart {
		t.Errorf("%d of %d hold: the test does not test much", holding, apart)
	}
}
