package selector

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// satisfies replaces CUE in tests: it knows =~, !~ and != with a plain string.
func satisfies(e model.Expr, value string) bool {
	text := strings.Trim(string(e), " ()")
	operator, operand := text[:2], strings.Trim(text[2:], ` "`)
	switch operator {
	case "=~":
		return regexp.MustCompile(operand).MatchString(value)
	case "!~":
		return !regexp.MustCompile(operand).MatchString(value)
	case "!=":
		return value != operand
	}
	panic("expression " + text)
}

var (
	everything = model.Selector{Op: model.OpAll}
	nothing    = model.Selector{Op: model.OpNone}
)

func and(s ...model.Selector) model.Selector { return model.Selector{Op: model.OpAnd, Args: s} }
func or(s ...model.Selector) model.Selector  { return model.Selector{Op: model.OpOr, Args: s} }
func is(text string) model.Selector          { return model.Selector{Op: model.OpEqual, Text: text} }
func expr(e model.Expr) model.Selector       { return model.Selector{Op: model.OpSatisfy, Expr: e} }

func field(key string, s model.Selector) model.Selector {
	return model.Selector{Op: model.OpField, Key: key, Args: []model.Selector{s}}
}

func optional(key string, s model.Selector) model.Selector {
	return model.Selector{Op: model.OpOptional, Key: key, Args: []model.Selector{s}}
}

// entity has the fields name, which is "e", region and labels.
func entity(labels map[string]string, regions ...string) Facts {
	nested := Facts{}
	for k, v := range labels {
		nested[k] = Values(v)
	}
	f := Facts{"name": Values("e"), "labels": Struct(nested)}
	if len(regions) > 0 {
		f["region"] = Values(regions...)
	}
	return f
}

type labels = map[string]string

// rules are the semantics of selectors, each on one entity.
var rules = []struct {
	name     string
	selector model.Selector
	facts    Facts
	want     bool
	why      string
}{
	{"{} selects all", everything, entity(nil), true, ""},
	{"_|_ selects nothing", nothing, entity(nil), false, `wants _|_, is "{}"`},
	{"no alternatives", or(), entity(nil), false, `wants _|_, is "{}"`},
	{"equal", field("name", is("e")), entity(nil), true, ""},
	{"not equal", field("name", is("x")), entity(nil), false, `name: wants "x", is "e"`},
	{"a string for the entity", is("e"), entity(nil), false, `wants "e", is "{}"`},
	{"absent", field("region", is("east")), entity(nil), false, `region: wants "east", is absent`},
	{"present", field("region", everything), entity(nil, "east"), true, ""},
	{"not present", field("region", everything), entity(nil), false, `region: wants present, is absent`},
	{"expression", field("region", expr(`=~"^east"`)), entity(nil, "east-us"), true, ""},
	{"expression fails", field("region", expr(`=~"^east"`)), entity(nil, "west"), false, `region: wants =~"^east", is "west"`},
	{"an exclusion demands presence", field("region", expr(`!="x"`)), entity(nil), false, `region: wants !="x", is absent`},
	{"a set", field("region", or(is("a"), is("b"))), entity(nil, "c"), false, `region: wants "a" | "b", is "c"`},
	{"precedence", field("region", and(or(is("a"), is("b")), expr(`!="b"`))), entity(nil, "b"), false,
		`region: wants ("a" | "b") & !="b", is "b"`},
	{"optional and absent", optional("region", is("east")), entity(nil), true, ""},
	{"optional and there", optional("region", is("east")), entity(nil, "west"), false, `region: wants absent or "east", is "west"`},
	{"forbidden and absent", optional("region", nothing), entity(nil), true, ""},
	{"forbidden and there", optional("region", nothing), entity(nil, "west"), false, `region: wants absent, is "west"`},

	{"either value", field("region", is("b")), entity(nil, "a", "b"), true, ""},
	{"neither value", field("region", is("c")), entity(nil, "b", "a"), false, `region: wants "c", is "a" and "b"`},
	{"either value of a set", field("region", or(is("x"), is("b"))), entity(nil, "a", "b"), true, ""},
	{"one value for the whole constraint", field("region", and(expr(`=~"^a"`), expr(`=~"z$"`))), entity(nil, "ab", "cz"), false,
		`region: wants =~"^a" & =~"z$", is "ab" and "cz"`},
	{"exclusions hold for both", field("region", expr(`!="b"`)), entity(nil, "a", "b"), false, `region: wants !="b", is "a" and "b"`},
	{"patterns that exclude, too", field("region", expr(` ( !~"^b")`)), entity(nil, "a", "b"), false,
		`region: wants ( !~"^b"), is "a" and "b"`},
	{"a demand by one, an exclusion by both", field("region", and(is("a"), expr(`!="b"`))), entity(nil, "a", "b"), false,
		`region: wants "a" & !="b", is "a" and "b"`},
	{"optional holds for both", optional("region", is("a")), entity(nil, "a", "b"), false, `region: wants absent or "a", is "a" and "b"`},
	{"a value twice is one", optional("region", is("a")), entity(nil, "a", "a"), true, ""},

	{"nested", field("labels", field("edge", is("true"))), entity(labels{"edge": "true"}), true, ""},
	{"nested and different", field("labels", and(field("edge", is("true")), field("size", is("large")))), entity(labels{"size": "small"}), false,
		`labels.edge: wants "true", is absent; labels.size: wants "large", is "small"`},
	{"nested and forbidden", field("labels", optional("edge", nothing)), entity(nil), true, ""},
	{"an empty struct is present", field("labels", everything), entity(nil), true, ""},
	{"quoted", field("labels", field("use-case", is("a"))), entity(nil), false, `labels."use-case": wants "a", is absent`},
	{"an optional struct", optional("labels", field("edge", is("true"))), entity(nil), false, `labels.edge: wants "true", is absent`},
	{"an optional struct that is absent", optional("metadata", field("edge", is("true"))), entity(nil), true, ""},
	{"a struct that is absent", field("metadata", field("edge", is("true"))), entity(nil), false, `metadata: wants {edge: "true"}, is absent`},
	{"fields of a string", field("name", optional("edge", is("true"))), entity(nil), false, `name: wants {edge?: "true"}, is "e"`},
	{"a string for a struct", field("labels", is("e")), entity(nil), false, `labels: wants "e", is "{}"`},
	{"an exclusion for a struct", field("labels", expr(`!="e"`)), entity(nil), false, `labels: wants !="e", is "{}"`},

	{"alternatives", or(field("name", is("x")), field("region", is("east"))), entity(nil, "east"), true, ""},
	{"the nearest alternative", or(
		and(field("name", is("x")), field("region", is("east"))),
		and(field("name", is("e")), field("region", is("north"))),
	), entity(nil, "west"), false, `region: wants "north", is "west"`},
}

func TestRules(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			x := NewIndex(slices.Values([]Facts{r.facts}), satisfies)
			if got := x.Holds(r.selector, 0); got != r.want {
				t.Errorf("Holds: %v", got)
			}
			if got := len(x.Select(r.selector)) == 1; got != r.want {
				t.Errorf("Select: %v", got)
			}
			if got := naive(r.selector, Struct(r.facts)); got != r.want {
				t.Errorf("naive: %v", got)
			}
			var lines []string
			for _, m := range NewIndex(slices.Values([]Facts{r.facts}), satisfies).Why(r.selector, 0) {
				lines = append(lines, m.String())
			}
			if got := strings.Join(lines, "; "); got != r.why {
				t.Errorf("Why:\n got %s\nwant %s", got, r.why)
			}
		})
	}
}

// CUE evaluates each expression and value once, however many entities have the value and
// goroutines select.
func TestAsksOnce(t *testing.T) {
	var asked, running atomic.Int32
	ask := func(e model.Expr, v string) bool {
		if running.Add(1) > 1 {
			t.Error("two questions at a time")
		}
		asked.Add(1)
		running.Add(-1)
		return satisfies(e, v)
	}
	var facts []Facts
	for i := range 300 {
		facts = append(facts, entity(labels{"zone": fmt.Sprint("z", i%3)}, fmt.Sprint("z", i%3)))
	}
	x := NewIndex(slices.Values(facts), ask)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, key := range []string{"region", "missing"} {
				x.Select(field(key, expr(`=~"1$"`)))
			}
			x.Select(field("labels", field("zone", expr(`=~"1$"`))))
		})
	}
	wg.Wait()
	if n := asked.Load(); n != 3 {
		t.Errorf("asked %d times for 3 values", n)
	}
}

// If an equality is rare, the other constraints are not evaluated for values that do not
// matter.
func TestRarestFirst(t *testing.T) {
	asked := 0
	ask := func(e model.Expr, v string) bool { asked++; return satisfies(e, v) }
	var facts []Facts
	for i := range 1000 {
		facts = append(facts, Facts{"name": Values(fmt.Sprint("n", i)), "team": Values(fmt.Sprint("t", i/2))})
	}
	x := NewIndex(slices.Values(facts), ask)
	got := x.Select(and(field("name", expr(`=~"n"`)), field("team", is("t7"))))
	if !slices.Equal(got, []int{14, 15}) || asked != 2 {
		t.Errorf("selected %v with %d questions", got, asked)
	}
}
