package selector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// naive evaluates a selector on a fact as the rules read, without an index: a
// fact with several values is each of them in turn.
func naive(s model.Selector, f Fact) bool {
	if f.Facts == nil {
		return slices.ContainsFunc(f.Values, func(v string) bool { return naiveValue(s, v, f.Values) })
	}
	switch s.Op {
	case model.OpAll:
		return true
	case model.OpAnd:
		return !slices.ContainsFunc(s.Args, func(a model.Selector) bool { return !naive(a, f) })
	case model.OpOr:
		return slices.ContainsFunc(s.Args, func(a model.Selector) bool { return naive(a, f) })
	case model.OpField:
		g, ok := f.Facts[s.Key]
		return ok && naive(s.Args[0], g)
	case model.OpOptional:
		g, ok := f.Facts[s.Key]
		if !ok || g.Facts != nil {
			return !ok || naive(s.Args[0], g)
		}
		return !slices.ContainsFunc(g.Values, func(v string) bool { return !naive(s.Args[0], Values(v)) })
	}
	return false
}

func naiveValue(s model.Selector, v string, all []string) bool {
	switch s.Op {
	case model.OpAll:
		return true
	case model.OpEqual:
		return v == s.Text
	case model.OpSatisfy:
		if negated(s.Expr) {
			return !slices.ContainsFunc(all, func(w string) bool { return !satisfies(s.Expr, w) })
		}
		return satisfies(s.Expr, v)
	case model.OpAnd:
		return !slices.ContainsFunc(s.Args, func(a model.Selector) bool { return !naiveValue(a, v, all) })
	case model.OpOr:
		return slices.ContainsFunc(s.Args, func(a model.Selector) bool { return naiveValue(a, v, all) })
	}
	return false
}

// dice makes random facts and selectors over few names and values, so that
// they meet.
type dice struct{ *rand.Rand }

func (d dice) word() string { return fmt.Sprintf("%c%c", 'a'+d.IntN(3), 'x'+d.IntN(3)) }
func (d dice) key() string  { return string(rune('p' + d.IntN(4))) }

func (d dice) facts(depth int) Facts {
	f := Facts{}
	for range d.IntN(5) {
		switch k := d.key(); {
		case depth > 0 && d.IntN(3) == 0:
			f[k] = Struct(d.facts(depth - 1))
		case d.IntN(3) == 0:
			f[k] = Values(d.word(), d.word())
		default:
			f[k] = Values(d.word())
		}
	}
	return f
}

func (d dice) selector(depth int) model.Selector {
	if depth == 0 {
		switch d.IntN(7) {
		case 0:
			return everything
		case 1:
			return nothing
		case 2:
			return expr(model.Expr([]string{`=~"^a"`, `=~"x$"`}[d.IntN(2)]))
		case 3:
			return expr(model.Expr([]string{`!~"^a"`, `!="ax"`}[d.IntN(2)]))
		}
		return is(d.word())
	}
	switch d.IntN(6) {
	case 0, 1:
		return field(d.key(), d.selector(depth-1))
	case 2:
		return optional(d.key(), d.selector(depth-1))
	case 3:
		return d.selector(0)
	}
	args := make([]model.Selector, d.IntN(4))
	for i := range args {
		args[i] = d.selector(depth - 1)
	}
	if d.IntN(2) == 0 {
		return and(args...)
	}
	return or(args...)
}

// The index agrees with the naive evaluator, and Why finds a mismatch exactly if the
// selector does not hold.
func TestIndexAgreesWithNaive(t *testing.T) {
	for seed := range uint64(40) {
		d := dice{rand.New(rand.NewPCG(seed, 0))}
		facts := make([]Facts, 1+d.IntN(150))
		for i := range facts {
			facts[i] = d.facts(2)
		}
		x := NewIndex(slices.Values(facts), satisfies)
		for range 300 {
			s := d.selector(5)
			var want []int
			for i, f := range facts {
				holds := naive(s, Struct(f))
				if holds {
					want = append(want, i)
				}
				if x.Holds(s, i) != holds {
					t.Fatalf("seed %d: Holds(%s) of %v is not %v", seed, text(&s), f, holds)
				}
				if why := x.Why(s, i); (len(why) == 0) != holds {
					t.Fatalf("seed %d: Why(%s) of %v is %v, and it holds: %v", seed, text(&s), f, why, holds)
				}
			}
			if got := x.Select(s); !slices.Equal(got, want) {
				t.Fatalf("seed %d: Select(%s)\n got %v\nwant %v", seed, text(&s), got, want)
			}
		}
	}
}
