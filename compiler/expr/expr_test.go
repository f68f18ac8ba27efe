package expr

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/cuecontext"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// value reads a value from CUE.
func value(t testing.TB, text string) model.Value {
	t.Helper()
	v, err := Data(cuecontext.New().CompileString(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func exprs(texts ...string) []model.Expr {
	var out []model.Expr
	for _, text := range texts {
		out = append(out, model.Expr(text))
	}
	return out
}

// said returns a result as one line: the value, or the paths and kinds of the problems.
func said(r Result) string {
	if len(r.Problems) == 0 {
		return r.Value.String()
	}
	var out []string
	for _, p := range r.Problems {
		s := p.Path
		switch {
		case p.Missing:
			s += " missing"
		case p.Unknown:
			s += " unknown"
		case len(p.Allowed) > 0:
			s += " allowed " + strings.Join(p.Allowed, "|")
		default:
			s += " wrong"
		}
		out = append(out, strings.TrimSpace(s))
	}
	return strings.Join(out, ", ")
}

func TestEval(t *testing.T) {
	for _, test := range []struct {
		terms    []string
		contract string
		value    string
		want     string
	}{
		{terms: []string{`*1 | int`}, want: `1`},
		{terms: []string{`int`, `>2`}, value: `3`, want: `3`},
		{terms: []string{`int`, `>2`}, value: `2`, want: `wrong`},
		{terms: []string{`int`}, want: `missing`},
		{terms: []string{`"a" | "b"`}, value: `"c"`, want: `allowed a|b`},
		{terms: []string{`"a" | "b"`}, value: `1`, want: `wrong`},
		{terms: []string{`strings.MinRunes(3)`}, value: `"abc"`, want: `"abc"`},
		{terms: []string{`{a?: int, [=~"^x"]: string}`}, value: `{a: 1, x1: "s", other: null}`, want: `{"a":1,"other":null,"x1":"s"}`},
		{terms: []string{`{a?: int}`}, value: `{a: "x"}`, want: `a wrong`},
		{terms: []string{`nowhere`}, want: `wrong`},
		{terms: []string{`{`}, want: `wrong`},

		{contract: `{a: int}`, value: `{a: 1, b: 2}`, want: `{"a":1,"b":2}`},
		{contract: `{a: int, b?: string}`, value: `{}`, want: `a missing`},
		{contract: `{a!: int}`, value: `{}`, want: `a missing`},
		{contract: `{a: *1 | int, s: {t: *"x" | string}}`, value: `{}`, want: `{"a":1,"s":{"t":"x"}}`},
		{contract: `close({a: int})`, value: `{a: 1, b: 2}`, want: `b unknown`},
		{contract: `{s: close({a: int})}`, value: `{s: {a: 1, "b.c": 2}}`, want: `s."b.c" unknown`},
		{contract: `{a: "x" | "y"}`, value: `{a: "z"}`, want: `a allowed x|y`},
		{contract: `{l: [...string]}`, value: `{l: ["a", 1]}`, want: `l[1] wrong`},
		{contract: `{l: [_, ...]}`, value: `{l: []}`, want: `l wrong`},
		{contract: `{"a b": int, "1": int}`, value: `{"a b": "x", "1": "y"}`, want: `"1" wrong, "a b" wrong`},
		{contract: `{a: int, b: int, s: {c!: int, d: int}}`, value: `{a: "x", s: d: "y"}`, want: `a wrong, b missing, s.c missing, s.d wrong`},
		{contract: `{n: number & >=0.5}`, value: `{n: 1}`, want: `{"n":1}`},
		{contract: `{n: int}`, value: `{n: 1.0}`, want: `n wrong`},
		{contract: `{p: {#secret: true, store!: string, key!: string}}`, value: `{p: {#secret: true, store: "s", key: "k"}}`, want: `{"p":{"key":"k","store":"s"}}`},
		{contract: `{p: string}`, value: `{p: {#secret: true, store: "s", key: "k"}}`, want: `p wrong`},
		{contract: `{`, value: `{}`, want: `wrong`},
	} {
		t.Run(strings.Join(test.terms, " & ")+test.contract+" "+test.value, func(t *testing.T) {
			e := New(nil)
			c := Call{Terms: exprs(test.terms...), Contract: model.Expr(test.contract)}
			if test.value != "" {
				v := value(t, test.value)
				c.Value = &v
			}
			for range 2 { // the second time from memory
				if got := said(e.Eval([]Call{c})[0]); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			}
		})
	}
}

// TestPartial checks that a result with problems contains the fields that have a value.
func TestPartial(t *testing.T) {
	v := value(t, `{s: {a: 1}}`)
	r := New(nil).Eval([]Call{{Contract: `{missing: int, filled: *1 | int, s: {a: int, b: *2 | int, c: string}}`, Value: &v}})[0]
	if got, want := r.Value.String(), `{"filled":1,"s":{"a":1,"b":2}}`; got != want || len(r.Problems) != 2 {
		t.Errorf("got %s, want %s (%v)", got, want, r.Problems)
	}
}

func TestSatisfies(t *testing.T) {
	e := New(nil)
	for _, test := range []struct {
		constraint, s string
		want          bool
	}{
		{`=~"^east"`, "east-us", true}, {`=~"^east"`, "west", false}, {`!="x"`, "y", true}, {`!="x"`, "x", false},
		{`"a" | "b"`, "b", true}, {`strings.MinRunes(4)`, "abc", false}, {`string`, "", true}, {`string`, "\x00\"\\(x)", true},
		// For a constraint on numbers, a string counts as the number that it writes in decimal.
		{`3`, "3", true}, {`3`, "3.0", false}, {`>80`, "85", true}, {`>80`, "9", false}, {`>80`, "80.5", true}, {`>80`, "085", false}, {`>80`, "1e3", false},
		{`>80`, "", false}, {`<0`, "-3", true}, {`int`, "3.5", false}, {`!=3`, "4", true}, {`!=3`, "many", false}, {`number | string`, "many", true}, {`>"80"`, "9", true},
	} {
		if got := e.Satisfies(model.Expr(test.constraint), test.s); got != test.want {
			t.Errorf("%q satisfies %s: got %v", test.s, test.constraint, got)
		}
	}
}

func TestSplit(t *testing.T) {
	e := New(nil)
	for _, test := range []struct{ text, want string }{
		{`int`, "none"},
		{`*{a: 1} | {b: 2}`, "none"},
		{`close({a: 1})`, "none"},
		{`{a: int, b: a + 1}`, "none"},
		{`{[X=string]: X}`, "none"},
		{`{a: 1, #b: 2}`, "none"},
		{`{if true {a: 1}}`, "none"},
		{`{a: 1, b?: int, ...}`, "a=1 b?=int"},
		{`{a!: int, b!: int} & {b: 1}`, "b=1 a!=int"},
		{`{a: *1 | int} & {a: >0, "c d": [...string]}`, `a=(*1 | int) & >0 (default 1) "c d"=[...string] (default [])`},
		{`{a: {b: 1, c?: int}, [=~"^x"]: int}`, "a={b: 1, c?: int} rest { [=~\"^x\"]: int }"},
		{`{s: {#secret: true, store: "s", key: "k"}, t?: int}`, `s={"key":"k","store":"s"} t?=int`},
		{"{let X = {#x: int}\n{a: X.#x, b: *2 | X.#x} & {b: >1}}", "a={ let X = {#x: int} (X.#x) } b={ let X = {#x: int} ((*2 | X.#x) & >1) } (default 2)"},
		{`{a: strings.MinRunes(2), b?: string}`, "a=strings.MinRunes(2) b?=string"},
	} {
		t.Run(test.text, func(t *testing.T) {
			s, ok := e.Split(test.text)
			var parts []string
			add := func(fields []model.TreeField, mark string) {
				for _, f := range fields {
					text := f.Tree.Final.String()
					if f.Tree.Open != nil {
						text = strings.Join(strings.Fields(strings.ReplaceAll(f.Tree.Open.Text, "\n", " ")), " ")
						if f.Tree.Open.Default != nil {
							text += fmt.Sprintf(" (default %s)", f.Tree.Open.Default)
						}
					}
					parts = append(parts, model.Label(f.Name)+mark+"="+text)
				}
			}
			if !ok {
				parts = []string{"none"}
			} else {
				add(s.Regular.Fields, "")
				for _, f := range s.Optional {
					mark := "?"
					if slices.Contains(s.Required, f.Name) {
						mark = "!"
					}
					add([]model.TreeField{f}, mark)
				}
				if s.Rest != "" {
					parts = append(parts, "rest "+strings.Join(strings.Fields(string(s.Rest)), " "))
				}
			}
			if got := strings.Join(parts, " "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestLiteralReadsBack(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `null`, `-1`, `-1.5`, `1.0`, `1e400`, `123456789012345678901234567890`, `"\(1)"`, `"\u0000\n\"\\"`, `{"a b": {"_h": 1, "#d": 2, "": 3, "null": 4}}`,
		`{#secret: true, store: "s", key: "k"}`, `[{#secret: true, store: "s", key: "k"}, [1, 1.0]]`, `"é"`,
	} {
		v := value(t, text)
		if back := value(t, Text(v)); !back.Equal(v) {
			t.Errorf("%s is written %s, which is %s", text, Text(v), back)
		}
	}
}

// FuzzContract checks any contract against any value. The Evaluator must not panic, must return
// the same answer twice, and must return either a value or a reason.
func FuzzContract(f *testing.F) {
	for _, s := range [][2]string{
		{`{a: int}`, `{a: 1}`}, {`close({a?: string})`, `{b: 1}`}, {`{a: "x" | "y"}`, `{a: "z"}`}, {`{l: [...{n!: int}]}`, `{l: [{}]}`},
		{`{a: *1 | int, b: a}`, `{}`}, {`matchN(1, [{a!: _}, {b!: _}])`, `{a: 1, b: 1}`}, {`{[string]: int}`, `{"a b": "x"}`}, {`{a: b: c: _|_}`, `{}`},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, contract, text string) {
		if len(contract) > 200 || len(text) > 200 || strings.Contains(contract, "*") && strings.Count(contract, "*") > 8 {
			return
		}
		v, err := Data(cuecontext.New().CompileString(text))
		if err != nil || v.Kind() != model.Struct {
			return
		}
		e := New(nil)
		call := []Call{{Contract: model.Expr(contract), Value: &v}}
		first := e.Eval(call)[0]
		if again := e.Eval(call)[0]; said(again) != said(first) {
			t.Errorf("%s, then %s", said(first), said(again))
		}
		if !slices.IsSortedFunc(first.Problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) }) {
			t.Errorf("problems are not sorted: %v", first.Problems)
		}
		for _, p := range first.Problems {
			if p.Message == "" {
				t.Errorf("a problem without a message at %q", p.Path)
			}
		}
		e.Split(contract)
	})
}
