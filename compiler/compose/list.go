package compose

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// listRule is the strategy for the lists at a path, and the config schema that sets it.
type listRule struct {
	model.ListStrategy
	ref model.Ref
}

// list composes the lists at a path by a strategy, in the order of the layers, then of
// the configs' names. An element of a default stays unless a value contains an element
// that is equal by the strategy.
func (m *merger) list(path string, rule listRule, parts, replaced []*node) (model.Value, bool) {
	opens := only(parts, isOpen)
	from := withoutNulls(only(parts, func(p *node) bool { return isFinal(p) || hasDefault(p) }))
	for _, p := range from {
		if valueOf(p).Kind() != model.List {
			return m.noList(path, rule, p, "is no list")
		}
	}
	if len(from) == 0 {
		return m.noList(path, rule, opens[0], "is not final")
	}
	for _, p := range opens {
		if !hasDefault(p) && listsElements(p.tree.Open.Constraint) {
			return m.noList(path, rule, p, "has elements that are not final")
		}
	}
	v, ok := (&combination{m, path, rule, from}).value()
	if !ok {
		return model.Value{}, false
	}
	if isOverride(from[0]) {
		m.overridden(path, from, replaced)
	} else if v, ok = m.satisfies(path, v, from, opens); !ok {
		return v, false
	}
	m.add(path, v, from, replaced)
	return v, true
}

// valueOf returns the list of a part, or its default list.
func valueOf(p *node) model.Value {
	if isOpen(p) {
		return defaultOf(p)
	}
	return p.tree.Final
}

// listsElements reports whether a constraint is a list of named elements. A list like [...string],
// which only constrains its elements, is not.
func listsElements(e model.Expr) bool {
	inner, isList := strings.CutPrefix(strings.TrimSpace(string(e)), "[")
	inner = strings.TrimSpace(inner)
	return isList && !strings.HasPrefix(inner, "...") && !strings.HasPrefix(inner, "]")
}

// noList reports a part that cannot be combined by a list strategy.
func (m *merger) noList(path string, rule listRule, p *node, why string) (model.Value, bool) {
	d := diag.New(diag.ListStrategy,
		fmt.Sprintf("%s %s, and its lists compose by %s", path, why, rule.ListStrategy)).On(path).
		Hinting("lists under a strategy are written out: [\"a\", \"b\"]")
	m.fail(sites(d, []*node{p}).At(rule.ref, rule.String()))
	return model.Value{}, false
}

// element is an element of a list under a strategy: its value in defaults, and its value in values.
type element struct {
	sides [2]model.Value
	has   [2]bool
}

// Sides of an element: from defaults, or from values.
const (
	openSide = iota
	finalSide
)

// sideOf returns the side of the elements in a part.
func sideOf(p *node) int {
	if hasDefault(p) {
		return openSide
	}
	return finalSide
}

// value returns the element, with the values over the defaults.
func (e *element) value() model.Value {
	if !e.has[finalSide] {
		return e.sides[openSide]
	}
	if !e.has[openSide] {
		return e.sides[finalSide]
	}
	return model.Merge(e.sides[openSide], e.sides[finalSide])
}

// collection is the combination of lists: the elements, and their positions by the key
// that makes elements equal.
type collection struct {
	elems []element
	index map[string]int
}

// reset empties the collection, and keeps its memory.
func (c *collection) reset() {
	clear(c.index)
	c.elems = c.elems[:0]
}

// elementAt returns the element with a key. It adds the element if the key is new, or
// nil, which is always new.
func (c *collection) elementAt(key []byte) *element {
	i, there := len(c.elems), false
	if key != nil {
		if i, there = c.index[string(key)]; !there {
			i = len(c.elems)
			c.index[string(key)] = i
		}
	}
	if !there {
		c.elems = append(c.elems, element{})
	}
	return &c.elems[i]
}

// combination combines the lists at a path, which are in the order of their layers.
type combination struct {
	*merger
	path string
	rule listRule
	from []*node
}

// value unifies the elements of each layer, and then combines the layers. A default of a higher
// layer then replaces the default of a lower one, and values unify.
func (m *combination) value() (model.Value, bool) {
	from := m.from
	m.combined.reset()
	for start := 0; start < len(from); {
		layer := from[start].root.layer
		m.ofLayer.reset()
		for ; start < len(from) && from[start].root.layer == layer; start++ {
			side := sideOf(from[start])
			for _, e := range valueOf(from[start]).Elems() {
				key, ok := m.key(e)
				if !ok || !m.collect(m.ofLayer.elementAt(key), e, side, inLayerAlike) {
					return model.Value{}, false
				}
			}
		}
		for i := range m.ofLayer.elems {
			of := &m.ofLayer.elems[i]
			key, ok := m.key(of.value())
			if !ok {
				return model.Value{}, false
			}
			into := m.combined.elementAt(key)
			if of.has[openSide] && into.has[openSide] {
				into.sides[openSide] = model.Merge(into.sides[openSide], of.sides[openSide])
				of.has[openSide] = false
			}
			for side, e := range of.sides {
				if of.has[side] && !m.collect(into, e, side, fromSecond) {
					return model.Value{}, false
				}
			}
		}
	}
	elems := make([]model.Value, len(m.combined.elems))
	for i := range elems {
		elems[i] = m.combined.elems[i].value()
	}
	return model.ListOf(elems...), true
}

// key returns the text that makes elements equal by the strategy; nil if no elements are equal. It
// is valid until the next call of key.
func (m *combination) key(e model.Value) ([]byte, bool) {
	switch {
	case m.rule.Unique:
		// JSON does not distinguish a secret from a struct, so add the kind.
		m.bytes = e.Canonical().AppendJSON(append(m.bytes[:0], byte(e.Kind())))
	case m.rule.MergeBy != "":
		key, there := e.Lookup(m.rule.MergeBy)
		if e.Kind() != model.Struct || !there {
			d := diag.New(diag.ListStrategy,
				fmt.Sprintf("an element of %s has no field %s, by which its lists compose: %s",
					m.path, m.rule.MergeBy, e)).On(m.path).
				Hinting("give every element the field")
			m.fail(sites(d, m.from).At(m.rule.ref, m.rule.String()))
			return nil, false
		}
		m.bytes = key.Canonical().AppendJSON(m.bytes[:0])
	default:
		return nil, true
	}
	return m.bytes, true
}

// collect adds a part's value of an element to one of its sides.
func (m *combination) collect(into *element, e model.Value, side int, as numberText) bool {
	if into.has[side] {
		u, at, ok := unify(into.sides[side], e, as)
		if !ok {
			m.differ(e, at, side)
			return false
		}
		e = u
	}
	into.sides[side], into.has[side] = e, true
	return true
}

// differ reports elements that are equal by the strategy and do not unify.
func (m *combination) differ(e model.Value, at string, side int) {
	from := only(m.from, func(p *node) bool { return sideOf(p) == side })
	code, what := diag.ConflictingValues, "conflicting values for "
	if side == openSide {
		code, what = diag.ConflictingDefaults, "conflicting defaults for "
	}
	if m.rule.Unique {
		d := diag.New(code,
			fmt.Sprintf("%s%s: an element has one number in two texts: %s", what, m.path, e)).On(m.path)
		m.fail(sites(d.Hinting("applications get a number as it is written: write it in one way"), from))
		return
	}
	key, _ := e.Lookup(m.rule.MergeBy)
	in := fmt.Sprintf("%s[%s=%s]", m.path, m.rule.MergeBy, key)
	if at != "" {
		in += "." + at
	}
	m.fail(sites(diag.New(code, what+in).On(m.path).
		Hinting("elements that are the same by "+m.rule.MergeBy+" unify: give the field one value"),
		from))
}

// numberText determines the text of a number if two values write it differently.
type numberText int

const (
	inLayerAlike numberText = iota // in one layer neither text has priority, so they conflict
	fromSecond                     // the second value belongs to a higher layer
)

// unify is CUE's `a & b` for data: it compares scalars of one kind, unifies lists element by
// element, and unifies structs field by field. If they do not unify, it returns the path, below the
// values, of the first difference. Numbers are equal as in CUE, such as 1.5 and 1.50. In CUE, the
// order of files determines the text.
func unify(a, b model.Value, as numberText) (v model.Value, conflict string, ok bool) {
	if a.Kind() != b.Kind() {
		return a, "", false
	}
	switch a.Kind() {
	case model.Struct:
		// Unify structs field by field; both have sorted fields.
		if len(b.Fields()) == 0 {
			return a, "", true
		}
		if len(a.Fields()) == 0 {
			return b, "", true
		}
		fa, fb := a.Fields(), b.Fields()
		fields := make([]model.Field, 0, len(fa)+len(fb))
		for len(fa) > 0 || len(fb) > 0 {
			switch {
			case len(fb) == 0 || len(fa) > 0 && fa[0].Name < fb[0].Name:
				fields, fa = append(fields, fa[0]), fa[1:]
			case len(fa) == 0 || fb[0].Name < fa[0].Name:
				fields, fb = append(fields, fb[0]), fb[1:]
			default:
				v, at, ok := unify(fa[0].Value, fb[0].Value, as)
				if !ok {
					return a, model.JoinPath(model.Label(fa[0].Name), at), false
				}
				fields, fa, fb = append(fields, model.Field{Name: fa[0].Name, Value: v}), fa[1:], fb[1:]
			}
		}
		return model.StructOf(fields...), "", true
	case model.List:
		if len(a.Elems()) != len(b.Elems()) {
			return a, "", false
		}
		elems := make([]model.Value, len(a.Elems()))
		for i := range elems {
			e, at, ok := unify(a.Elems()[i], b.Elems()[i], as)
			if !ok {
				return a, model.JoinPath("["+strconv.Itoa(i)+"]", at), false
			}
			elems[i] = e
		}
		return model.ListOf(elems...), "", true
	}
	if as == fromSecond {
		return b, "", a.Same(b)
	}
	return a, "", a.Equal(b)
}

// united unifies the values of nodes, which are in the order of their layers. Numbers in one layer
// must have one text. If layers differ, a number has the text of the highest layer.
func united(from []*node, valueOf func(*node) model.Value) (v model.Value, conflict string,
	ok bool) {
	for start := 0; start < len(from); {
		u, end := valueOf(from[start]), start+1
		for ; end < len(from) && from[end].root.layer == from[start].root.layer; end++ {
			if u, conflict, ok = unify(u, valueOf(from[end]), inLayerAlike); !ok {
				return u, conflict, false
			}
		}
		if start == 0 {
			v = u
		} else if v, conflict, ok = unify(v, u, fromSecond); !ok {
			return v, conflict, false
		}
		start = end
	}
	return v, "", true
}
