package compose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// structure composes the fields of structs, by their names.
func (m *merger) structure(path string, parts, replaced []*node) (model.Value, bool) {
	apart := only(parts, isOpened)
	ok := m.required(path, parts, apart)
	queues, fields := len(m.queues), len(m.fields)
	for _, p := range parts {
		if len(p.fields) > 0 {
			m.queues = append(m.queues, queue{p.fields[0].prefix, p.fields})
		}
	}
	for left := m.queues[queues:]; len(left) > 0; {
		start := len(m.parts)
		left = m.take(left)
		name := m.parts[start].name
		// The optional fields of open structs count only if the field exists.
		for _, p := range apart {
			if i := indexOf(p.opened.optional, name); i >= 0 {
				m.parts = append(m.parts, &p.opened.optional[i])
			}
		}
		v, good := m.field(m.parts[start:], replaced)
		m.parts = m.parts[:start]
		if good {
			m.fields = append(m.fields, model.Field{Name: name, Value: v})
		}
		ok = ok && good
	}
	v := model.StructOf(slices.Clone(m.fields[fields:])...)
	m.queues, m.fields = m.queues[:queues], m.fields[:fields]
	if len(v.Fields()) == 0 && path != "" && ok {
		m.add(path, v, parts, replaced)
	}
	return v, ok && m.fitsRest(path, v, parts)
}

// queue has the remaining fields of a struct, with the prefix of the first name.
type queue struct {
	prefix uint64
	fields []node
}

// take pushes the nodes with the least name in the queues, in the order of the queues. It returns
// the remaining queues. It works in place.
func (m *merger) take(queues []queue) []queue {
	prefix := queues[0].prefix
	for i := 1; i < len(queues); i++ {
		prefix = min(prefix, queues[i].prefix)
	}
	name, there := "", false
	for i := range queues {
		if queues[i].prefix == prefix && (!there || queues[i].fields[0].name < name) {
			name, there = queues[i].fields[0].name, true
		}
	}
	empty := false
	for i := range queues {
		q := &queues[i]
		if q.prefix != prefix || q.fields[0].name != name {
			continue
		}
		m.parts = append(m.parts, &q.fields[0])
		if q.fields = q.fields[1:]; len(q.fields) == 0 {
			empty = true
		} else {
			q.prefix = q.fields[0].prefix
		}
	}
	if empty {
		queues = slices.DeleteFunc(queues, func(q queue) bool { return len(q.fields) == 0 })
	}
	return queues
}

// indexOf returns the index of the field with a name; -1 if there is no such field.
func indexOf(fields []node, name string) int {
	return slices.IndexFunc(fields, func(n node) bool { return n.name == name })
}

// required reports fields that open structs require and no struct has.
func (m *merger) required(path string, parts, apart []*node) bool {
	ok := true
	for _, p := range apart {
		for _, name := range p.opened.Required {
			if !slices.ContainsFunc(parts, func(q *node) bool { return indexOf(q.fields, name) >= 0 }) {
				m.noValue(model.JoinPath(path, model.Label(name)), []*node{p}, expr.Problem{Missing: true})
				ok = false
			}
		}
	}
	return ok
}

// field composes one path below structs. It is node, except for short ways if all parts are final
// data, as almost always.
func (m *merger) field(parts, replaced []*node) (model.Value, bool) {
	path := parts[0].path
	structs, finals := 0, 0
	for _, p := range parts {
		switch {
		case isOverride(p):
		case p.tree.Kind == model.StructTree:
			structs++
		case p.whole:
			finals++
		}
	}
	switch {
	case len(parts) == 1 && len(replaced) == 0 && structs+finals == 1 && parts[0].whole &&
		!m.ruled(path):
		m.provenance.addWhole(parts[0])
		return parts[0].value, true
	case structs == len(parts):
		return m.structure(path, parts, replaced)
	case finals == len(parts):
		return m.finals(path, parts, replaced)
	}
	return m.node(path, parts, replaced)
}

// ruled reports whether there may be a list strategy for a path, or for a path below it.
func (m *merger) ruled(path string) bool {
	for _, at := range m.listed {
		if strings.HasPrefix(at, path) {
			return true
		}
	}
	return false
}

// finals composes final leaves that are not overrides.
func (m *merger) finals(path string, parts, replaced []*node) (model.Value, bool) {
	if m.ruled(path) {
		if _, listed := m.lists[path]; listed {
			return m.leaf(path, parts, replaced)
		}
	}
	// Values apply; without values, the defaults of the highest layer apply.
	values := false
	for _, p := range parts {
		values = values || !isDefault(p)
	}
	highest := 0
	if !values {
		highest = top(parts)
	}
	holds := func(p *node) bool {
		if values {
			return !isDefault(p)
		}
		return p.root.layer == highest
	}
	start := len(m.parts)
	for _, p := range parts {
		if holds(p) {
			m.parts = append(m.parts, p)
		}
	}
	from := m.parts[start:]
	v, ok := agreed(from)
	if !ok {
		m.parts = m.parts[:start]
		return m.node(path, parts, replaced)
	}
	m.parts = append(m.parts, replaced...)
	if len(from) < len(parts) {
		for _, p := range parts {
			if !holds(p) {
				m.parts = append(m.parts, p)
			}
		}
	}
	m.add(path, v, from, m.parts[start+len(from):])
	m.parts = m.parts[:start]
	return v, true
}

// agreed returns the value of leaves that are all values, or all defaults of one layer: values
// unify, and defaults must be equal.
func agreed(from []*node) (model.Value, bool) {
	if !isDefault(from[0]) {
		v, _, ok := united(from, func(n *node) model.Value { return n.value })
		return v, ok
	}
	for _, p := range from[1:] {
		if !p.value.Equal(from[0].value) {
			return from[0].value, false
		}
	}
	return from[0].value, true
}

// fitsRest checks a struct against the constraints of open structs on all fields.
func (m *merger) fitsRest(path string, v model.Value, parts []*node) bool {
	if len(only(parts, isOverride)) > 0 {
		return true
	}
	ok := true
	for _, p := range only(parts, isOpened) {
		if p.opened.Rest == "" {
			continue
		}
		r := m.ask(expr.Call{Terms: []model.Expr{p.opened.Rest}, Value: &v})
		if m.unanswered(path, r, []*node{p}) {
			ok = false
			continue
		}
		for _, problem := range r.Problems {
			at := model.JoinPath(path, problem.Path)
			d := diag.New(diag.ConflictingValues,
				fmt.Sprintf("%s does not fit what config %s says of it: %s", at, p.root.name,
					problem.Message)).On(at).
				Hinting(loosen(problem))
			for _, leaf := range m.leaves() {
				if leaf.Path == at {
					d = origins(d, leaf.From)
				}
			}
			m.fail(d.At(p.root.ref.At(p.path), fmt.Sprintf("%s (config %s, layer %d)",
				short(string(p.opened.Rest)), p.root.name, p.root.layer)))
			ok = false
		}
	}
	return ok
}
