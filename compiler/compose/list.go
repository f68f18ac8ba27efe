package compose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// listRule is the strategy for the lists at a path, and the config schema that
// gives it.
type listRule struct {
	model.ListStrategy
	ref model.Ref
}

// list composes the lists at a path by a strategy, in the order of the layers,
// then of the configs' names. Any value replaces all defaults; without values,
// the defaults of the highest layer compose.
func (m *merger) list(path string, rule listRule, parts, replaced []*node) (model.Value, bool) {
	opens := only(parts, isOpen)
	from := only(parts, func(p *node) bool { return isFinal(p) && !isDefault(p) })
	if defaults := only(parts, hasDefault); len(from) == 0 && len(defaults) > 0 {
		from = only(defaults, inLayer(top(defaults)))
		replaced = append(slices.Clip(replaced), only(defaults, not(inLayer(top(defaults))))...)
	} else {
		replaced = append(slices.Clip(replaced), defaults...)
	}
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
	elems, ok := m.combine(path, rule, from)
	if !ok {
		return model.Value{}, false
	}
	v := model.ListOf(slices.Clone(elems)...)
	if isOverride(from[0]) {
		m.overridden(path, from, replaced)
	} else if v, ok = m.satisfies(path, v, from, opens); !ok {
		return v, false
	}
	m.add(path, v, from, replaced)
	return v, true
}

// valueOf returns the list that a part has, or has as its default.
func valueOf(p *node) model.Value {
	if isOpen(p) {
		return defaultOf(p)
	}
	return p.tree.Final
}

// listsElements says whether a constraint is a list that names elements, and not
// only what all must be, as [...string] does.
func listsElements(e model.Expr) bool {
	inner, isList := strings.CutPrefix(strings.TrimSpace(string(e)), "[")
	inner = strings.TrimSpace(inner)
	return isList && !strings.HasPrefix(inner, "...") && !strings.HasPrefix(inner, "]")
}

func (m *merger) noList(path string, rule listRule, p *node, why string) (model.Value, bool) {
	d := diag.New(diag.ListStrategy, fmt.Sprintf("%s %s, and its lists compose by %s", path, why, rule.ListStrategy)).On(path).
		Hinting("lists under a strategy are written out: [\"a\", \"b\"]")
	m.fail(sites(d, []*node{p}).At(rule.ref, rule.String()))
	return model.Value{}, false
}

// collection is what lists are combined into: elements, and where they are by what
// makes them the same.
type collection struct {
	elems []model.Value
	index map[string]int
}

func (c *collection) reset() {
	clear(c.index)
	c.elems = c.elems[:0]
}

// combine combines the elements of lists, which are in the order of their layers:
// those of each layer, and then the layers'. The result is good until the next list.
func (m *merger) combine(path string, rule listRule, from []*node) ([]model.Value, bool) {
	m.combined.reset()
	for start := 0; start < len(from); {
		layer := from[start].root.layer
		m.ofLayer.reset()
		for ; start < len(from) && from[start].root.layer == layer; start++ {
			for _, e := range valueOf(from[start]).Elems() {
				if !m.collect(&m.ofLayer, path, rule, e, inLayerAlike, from) {
					return nil, false
				}
			}
		}
		for _, e := range m.ofLayer.elems {
			if !m.collect(&m.combined, path, rule, e, fromSecond, from) {
				return nil, false
			}
		}
	}
	return m.combined.elems, true
}

// collect adds an element, or unifies it with the one that is the same by the
// strategy.
func (m *merger) collect(into *collection, path string, rule listRule, e model.Value, as meeting, from []*node) bool {
	switch {
	case rule.Unique:
		// JSON does not tell a secret from a struct.
		m.bytes = e.Canonical().AppendJSON(append(m.bytes[:0], byte(e.Kind())))
	case rule.MergeBy != "":
		key, there := e.Lookup(rule.MergeBy)
		if e.Kind() != model.Struct || !there {
			d := diag.New(diag.ListStrategy, fmt.Sprintf("an element of %s has no field %s, by which its lists compose: %s", path, rule.MergeBy, e)).On(path).
				Hinting("give every element the field")
			m.fail(sites(d, from).At(rule.ref, rule.String()))
			return false
		}
		m.bytes = key.Canonical().AppendJSON(m.bytes[:0])
	default:
		into.elems = append(into.elems, e)
		return true
	}
	i, seen := into.index[string(m.bytes)]
	if !seen {
		into.index[string(m.bytes)] = len(into.elems)
		into.elems = append(into.elems, e)
		return true
	}
	u, at, ok := unify(into.elems[i], e, as)
	if !ok {
		m.differ(path, rule, e, at, from)
		return false
	}
	into.elems[i] = u
	return true
}

// differ reports elements that are the same by the strategy and do not unify.
func (m *merger) differ(path string, rule listRule, e model.Value, at string, from []*node) {
	if rule.Unique {
		m.fail(sites(diag.New(diag.ConflictingValues, fmt.Sprintf("conflicting values for %s: an element has one number in two texts: %s", path, e)).On(path).
			Hinting("applications get a number as it is written: write it in one way"), from))
		return
	}
	key, _ := e.Lookup(rule.MergeBy)
	in := fmt.Sprintf("%s[%s=%s]", path, rule.MergeBy, key)
	if at != "" {
		in += "." + at
	}
	m.fail(sites(diag.New(diag.ConflictingValues, "conflicting values for "+in).On(path).
		Hinting("elements that are the same by "+rule.MergeBy+" unify: give the field one value"), from))
}
