package selector

import (
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Holds reports whether the selector holds for entity i.
//
// A field's constraint holds if one of the name's values satisfies all of it,
// where the parts that exclude values (!= and !~) must hold for all values. An
// optional field's constraint must hold for each value, if there are any. A
// constraint on strings never holds for a struct, nor one on fields for a
// string.
func (x *Index) Holds(s model.Selector, i int) bool { return x.structHolds(&s, &x.root, int32(i)) }

// MayHold reports whether a selector can hold for an entity with one known fact.
func MayHold(s model.Selector, name, value string, satisfies Satisfier) bool {
	x := NewIndex(slices.Values([]Facts{{name: Values(value)}}), satisfies)
	return x.mayHold(&s, name)
}

func (x *Index) mayHold(s *model.Selector, name string) bool {
	possible := func(s model.Selector) bool { return x.mayHold(&s, name) }
	switch s.Op {
	case model.OpAnd:
		return !slices.ContainsFunc(s.Args, func(s model.Selector) bool { return !possible(s) })
	case model.OpOr:
		return slices.ContainsFunc(s.Args, possible)
	case model.OpField, model.OpOptional:
		return s.Key != name || x.Holds(*s, 0)
	}
	return true
}

// structHolds reports whether s holds for the struct that entity e has in c.
func (x *Index) structHolds(s *model.Selector, c *column, e int32) bool {
	switch s.Op {
	case model.OpAll:
		return true
	case model.OpAnd:
		for i := range s.Args {
			if !x.structHolds(&s.Args[i], c, e) {
				return false
			}
		}
		return true
	case model.OpOr:
		for i := range s.Args {
			if x.structHolds(&s.Args[i], c, e) {
				return true
			}
		}
		return false
	case model.OpField:
		return x.someHolds(&s.Args[0], c.below[s.Key], e)
	case model.OpOptional:
		return x.eachHolds(&s.Args[0], c.below[s.Key], e)
	}
	return false
}

// someHolds reports whether one of the values that e has in c satisfies s.
func (x *Index) someHolds(s *model.Selector, c *column, e int32) bool {
	values := c.valuesOf(e)
	for _, v := range values {
		if x.valueHolds(s, c, e, v, values) {
			return true
		}
	}
	return false
}

// eachHolds reports whether all of the values that e has in c satisfy s.
func (x *Index) eachHolds(s *model.Selector, c *column, e int32) bool {
	values := c.valuesOf(e)
	for i, v := range values {
		if !x.valueHolds(s, c, e, v, values[i:i+1]) {
			return false
		}
	}
	return true
}

// valueHolds reports whether s holds for the value v. The parts of s that exclude values
// must hold for all values.
func (x *Index) valueHolds(s *model.Selector, c *column, e, v int32, values []int32) bool {
	switch s.Op {
	case model.OpAll:
		return true
	case model.OpAnd:
		for i := range s.Args {
			if !x.valueHolds(&s.Args[i], c, e, v, values) {
				return false
			}
		}
		return true
	case model.OpOr:
		for i := range s.Args {
			if x.valueHolds(&s.Args[i], c, e, v, values) {
				return true
			}
		}
		return false
	case model.OpField, model.OpOptional:
		return v == isStruct && x.structHolds(s, c, e)
	case model.OpEqual:
		return v != isStruct && c.distinct[v].value == s.Text
	case model.OpSatisfy:
		if !negated(s.Expr) {
			return x.satisfies(s.Expr, c, v)
		}
		for _, w := range values {
			if !x.satisfies(s.Expr, c, w) {
				return false
			}
		}
		return true
	}
	return false
}

func (x *Index) satisfies(e model.Expr, c *column, v int32) bool {
	return v != isStruct && x.memory.satisfies(e, c.distinct[v].value)
}
