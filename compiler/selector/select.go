package selector

import (
	"math/bits"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Select returns the entities for which the selector holds, in ascending order. The caller
// owns the slice.
func (x *Index) Select(s model.Selector) []int {
	list := x.Selected(s)
	if list == nil {
		return nil
	}
	out := make([]int, len(list))
	for i, e := range list {
		out[i] = int(e)
	}
	return out
}

// Selected is Select, and returns a slice that must not be changed.
func (x *Index) Selected(s model.Selector) []int32 {
	if list, ok := x.equal(&s); ok {
		return list
	}
	var out []int32
	for _, e := range x.union(x.candidates(&s, &x.root, nil)) {
		if x.structHolds(&s, &x.root, e) {
			out = append(out, e)
		}
	}
	return out
}

// equal returns the entities of a selector that only compares fields with values, as most
// selectors do. These are the entities in the lists of all of its values. It returns false
// for another selector.
func (x *Index) equal(s *model.Selector) ([]int32, bool) {
	switch {
	case s.Op == model.OpField && s.Args[0].Op == model.OpEqual:
		field := x.root.below[s.Key]
		if field == nil {
			return nil, true
		}
		return distinct(field.having(s.Args[0].Text)), true
	case s.Op == model.OpAnd && len(s.Args) > 0:
		list, ok := x.equal(&s.Args[0])
		for i := 1; i < len(s.Args) && ok; i++ {
			var other []int32
			other, ok = x.equal(&s.Args[i])
			list = intersection(list, other)
		}
		return list, ok
	}
	return nil, false
}

// intersection returns the elements that are in both of two ascending lists.
func intersection(a, b []int32) []int32 {
	if len(a) > len(b) {
		a, b = b, a
	}
	var out []int32
	for _, e := range a {
		n, found := slices.BinarySearch(b, e)
		if b = b[n:]; found {
			out = append(out, e)
		}
	}
	return out
}

// candidates appends ascending lists of entities to lists. Together they have all entities
// that satisfy s in c. For a conjunction, they are the entities of its rarest part.
func (x *Index) candidates(s *model.Selector, c *column, lists [][]int32) [][]int32 {
	if c == nil {
		return lists
	}
	switch s.Op {
	case model.OpNone:
		return lists
	case model.OpAnd:
		if len(s.Args) == 0 {
			break
		}
		rarest, least := 0, len(c.entities)+1
		for i := range s.Args {
			if n := limit(&s.Args[i], c); n < least {
				rarest, least = i, n
			}
		}
		return x.candidates(&s.Args[rarest], c, lists)
	case model.OpOr:
		for i := range s.Args {
			lists = x.candidates(&s.Args[i], c, lists)
		}
		return lists
	case model.OpField:
		return x.candidates(&s.Args[0], c.below[s.Key], lists)
	case model.OpEqual:
		return append(lists, c.having(s.Text))
	case model.OpSatisfy:
		for _, p := range c.distinct {
			if x.memory.satisfies(s.Expr, p.value) {
				lists = append(lists, p.entities)
			}
		}
		return lists
	}
	return append(lists, c.entities)
}

// limit returns the largest possible number of candidates, without using CUE.
func limit(s *model.Selector, c *column) int {
	if c == nil {
		return 0
	}
	n := len(c.entities)
	switch s.Op {
	case model.OpNone:
		return 0
	case model.OpAnd:
		for i := range s.Args {
			n = min(n, limit(&s.Args[i], c))
		}
	case model.OpOr:
		sum := 0
		for i := range s.Args {
			sum += limit(&s.Args[i], c)
		}
		n = min(n, sum)
	case model.OpField:
		return limit(&s.Args[0], c.below[s.Key])
	case model.OpEqual:
		return len(c.having(s.Text))
	}
	return n
}

// union returns the entities of ascending lists, ascending, each once. The
// caller must not change them.
func (x *Index) union(lists [][]int32) []int32 {
	switch len(lists) {
	case 0:
		return nil
	case 1:
		return distinct(lists[0])
	}
	total := 0
	marks := make([]uint64, (len(x.root.entities)+63)/64)
	for _, list := range lists {
		total += len(list)
		for _, e := range list {
			marks[e/64] |= 1 << (e % 64)
		}
	}
	out := make([]int32, 0, min(total, len(x.root.entities)))
	for i, word := range marks {
		for ; word != 0; word &= word - 1 {
			out = append(out, int32(i*64+bits.TrailingZeros64(word)))
		}
	}
	return out
}

// distinct returns an ascending list without repetitions. It returns the list itself if it
// has none.
func distinct(list []int32) []int32 {
	for i := 1; i < len(list); i++ {
		if list[i] != list[i-1] {
			continue
		}
		out := append([]int32(nil), list[:i]...)
		for _, e := range list[i:] {
			if e != out[len(out)-1] {
				out = append(out, e)
			}
		}
		return out
	}
	return list
}
