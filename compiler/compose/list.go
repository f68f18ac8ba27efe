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
	elems := m.elems[:0]
	for _, p := range from {
		v := valueOf(p)
		if v.Kind() != model.List {
			return m.noList(path, rule, p, "is no list")
		}
		elems = append(elems, v.Elems()...)
	}
	if len(from) == 0 {
		return m.noList(path, rule, opens[0], "is not final")
	}
	for _, p := range opens {
		if !hasDefault(p) && listsElements(p.tree.Open.Constraint) {
			return m.noList(path, rule, p, "has elements that are not final")
		}
	}
	m.elems = elems
	elems, ok := m.combine(path, rule, elems, from)
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

// combine combines elements in place.
func (m *merger) combine(path string, rule listRule, elems []model.Value, from []*node) ([]model.Value, bool) {
	switch {
	case rule.Unique:
		clear(m.index)
		out := elems[:0]
		for _, e := range elems {
			m.bytes = e.AppendJSON(append(m.bytes[:0], byte(e.Kind()))) // JSON does not tell a secret from a struct
			if _, seen := m.place(len(out)); !seen {
				out = append(out, e)
			}
		}
		return out, true
	case rule.MergeBy != "":
		return m.mergeBy(path, rule, elems, from)
	}
	return elems, true
}

// mergeBy unifies the elements that have the same value in a field.
func (m *merger) mergeBy(path string, rule listRule, elems []model.Value, from []*node) ([]model.Value, bool) {
	clear(m.index)
	out := elems[:0]
	for _, e := range elems {
		key, there := e.Lookup(rule.MergeBy)
		if e.Kind() != model.Struct || !there {
			d := diag.New(diag.ListStrategy, fmt.Sprintf("an element of %s has no field %s, by which its lists compose: %s", path, rule.MergeBy, e)).On(path).
				Hinting("give every element the field")
			m.fail(sites(d, from).At(rule.ref, rule.String()))
			return nil, false
		}
		m.bytes = key.AppendJSON(m.bytes[:0])
		i, seen := m.place(len(out))
		if !seen {
			out = append(out, e)
			continue
		}
		u, at, ok := unify(out[i], e)
		if !ok {
			in := fmt.Sprintf("%s[%s=%s]", path, rule.MergeBy, key)
			if at != "" {
				in += "." + at
			}
			m.fail(sites(diag.New(diag.ConflictingValues, "conflicting values for "+in).On(path).
				Hinting("elements that are the same by "+rule.MergeBy+" unify: give the field one value"), from))
			return nil, false
		}
		out[i] = u
	}
	return out, true
}

// place returns the place of the element whose key is in bytes, which is the next
// one where the key is new.
func (m *merger) place(next int) (i int, seen bool) {
	if i, seen = m.index[string(m.bytes)]; !seen {
		i = next
		m.index[string(m.bytes)] = i
	}
	return i, seen
}
