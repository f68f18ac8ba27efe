// Package selector finds the entities for which a compiled selector holds.
//
// Its input is selectors and the facts of entities, which are numbered from 0. Its output
// is the numbers of the entities for which a selector holds, or the reasons why it does not
// hold for one. The cost of a selector depends on the number of entities with its rarest
// equality, not on the number of all entities. For each constraint other than equality and
// presence, CUE decides, once for each expression and distinct value.
//
// An Index is immutable except for its memory, and safe for concurrent use.
//
// For example, the cluster types of dev in examples/hello-world are entity 0, drone, entity 1,
// large, and entity 2, small. The scheduling policy functional-test selects cluster types whose
// label edge is "true". Select of this [model.Selector] returns [0]. For entity 1, Why returns one
// Mismatch, with the text
//
//	labels.edge: wants "true", is absent
package selector

import (
	"iter"
	"slices"
)

// Index has the facts of entities.
type Index struct {
	root   column // of the entities themselves: each is a struct
	memory memory
}

// NewIndex returns an index over entities, numbered in the order of facts. It keeps only
// the strings of the facts, so the sequence may make them one by one, in the same maps and
// slices.
func NewIndex(facts iter.Seq[Facts], satisfies Satisfier) *Index {
	x := &Index{memory: memory{ask: satisfies}}
	var n int32
	for f := range facts {
		x.root.add(n, Struct(f))
		n++
	}
	return x
}

// NewIndexOf returns an index over entities. The sequence yields the facts of each entity,
// in the order of names; it may yield the same slice each time. The facts are not structs,
// and a fact without values does not exist.
func NewIndexOf(names []string, facts iter.Seq[[]Fact], satisfies Satisfier) *Index {
	x := &Index{memory: memory{ask: satisfies}}
	columns := make([]column, len(names))
	var n int32
	for f := range facts {
		x.root.entities, x.root.values = append(x.root.entities, n), append(x.root.values, isStruct)
		for i := range f {
			columns[i].add(n, f[i])
		}
		n++
	}
	x.root.below = make(map[string]*column, len(names))
	for i, name := range names {
		if len(columns[i].entities) > 0 {
			x.root.below[name] = &columns[i]
		}
	}
	return x
}

// column has the facts of all entities under one name. The nil column belongs to a name
// that no entity has.
type column struct {
	// entities have the name: ascending, each as often as it has values.
	entities []int32
	// values are, parallel to entities, positions in distinct, or isStruct.
	values   []int32
	distinct []posting
	number   map[string]int32   // positions in distinct, by value
	below    map[string]*column // the fields of structs
}

// posting are the entities that have one value, ascending.
type posting struct {
	value    string
	entities []int32
}

// isStruct is the value in a column for an entity that has a struct.
const isStruct int32 = -1

// add records the fact of entity e; entities come in ascending order.
func (c *column) add(e int32, f Fact) {
	if f.Facts == nil {
		for i, v := range f.Values {
			if !slices.Contains(f.Values[:i], v) {
				c.addValue(e, v)
			}
		}
		return
	}
	c.entities = append(c.entities, e)
	c.values = append(c.values, isStruct)
	if c.below == nil {
		c.below = make(map[string]*column)
	}
	for name, fact := range f.Facts {
		field := c.below[name]
		if field == nil {
			field = new(column)
			c.below[name] = field
		}
		field.add(e, fact)
	}
}

func (c *column) addValue(e int32, value string) {
	var n int32
	ok := false
	if last := len(c.values) - 1; last >= 0 && c.values[last] != isStruct &&
		c.distinct[c.values[last]].value == value {
		n, ok = c.values[last], true // entities come sorted
	} else {
		n, ok = c.number[value]
	}
	if !ok {
		if c.number == nil {
			c.number = make(map[string]int32)
		}
		n = int32(len(c.distinct))
		c.number[value] = n
		c.distinct = append(c.distinct, posting{value: value})
	}
	c.entities = append(c.entities, e)
	c.values = append(c.values, n)
	c.distinct[n].entities = append(c.distinct[n].entities, e)
}

// valuesOf returns the values of entity e, in the form that they have in c.values.
func (c *column) valuesOf(e int32) []int32 {
	if c == nil {
		return nil
	}
	first, _ := slices.BinarySearch(c.entities, e)
	last := first
	for last < len(c.entities) && c.entities[last] == e {
		last++
	}
	return c.values[first:last]
}

// having returns the entities that have the value.
func (c *column) having(value string) []int32 {
	if n, ok := c.number[value]; ok {
		return c.distinct[n].entities
	}
	return nil
}
