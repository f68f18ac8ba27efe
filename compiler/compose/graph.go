package compose

import (
	"cmp"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// OriginKind says in which way a config or contract set a value.
type OriginKind string

// The kinds of origin.
const (
	FromValues    OriginKind = "value"
	FromDefault   OriginKind = "default"
	FromOverride  OriginKind = "override"
	FromContract  OriginKind = "contract default"
	FromCondition OriginKind = "constraint"
)

// Origin is one of the places that a value comes from, or would have come from.
type Origin struct {
	Kind  OriginKind
	Name  string // the config or, of a contract default, the entity with the contract
	Layer int    // of a config
	Ref   model.Ref
	Text  string // what stands there
}

// Leaf is a composed value that is no struct, with its provenance.
type Leaf struct {
	Path     string // a CUE path
	Value    model.Value
	From     []Origin // who set it; several where several agree
	Replaced []Origin // defaults and overruled values that it replaced
}

// Graph is the configuration graph of one tuple, composed.
type Graph struct {
	Values model.Value // a struct, secrets included
	// Plain are the values without the secrets, and Secrets those by path, sorted.
	Plain   model.Value
	Secrets []Secret
	Leaves  []Leaf // sorted by path
	Failed  bool
	Digest  model.Digest // of Values: the configuration's version
	Needs   []Need       // what the contracts name
	ds      []diag.Diagnostic
}

// part is what one config contributes to a path.
type part struct {
	layer  *layer
	kind   OriginKind // value, default or override
	tree   *model.Tree
	origin model.Ref
}

// layer is a config as the graph sees it: with the trees of this tuple.
type layer struct {
	config                      *model.Config
	values, defaults, overrides model.Tree
}

func (p part) from() Origin {
	o := Origin{Kind: p.kind, Name: p.layer.config.Name, Layer: p.layer.config.Layer, Ref: p.origin}
	switch p.tree.Kind {
	case model.FinalLeaf:
		o.Text = p.tree.Final.String()
	case model.OpenLeaf:
		o.Text = p.tree.Open.Text
		if o.Kind = FromCondition; p.tree.Open.Default != nil {
			o.Kind = FromDefault
		}
	case model.StructTree:
		o.Text = "{…}"
	}
	return o
}

// merger composes one tuple.
type merger struct {
	graph *Graph
	lists map[string]listRule
	eval  *expr.Evaluator
	memo  *memo
}

func (m *merger) fail(d diag.Diagnostic) {
	m.graph.Failed = true
	m.graph.ds = append(m.graph.ds, d)
}

// compose merges the layers, which are sorted by layer, then name.
func (m *merger) compose(layers []layer) {
	var parts []part
	for i := range layers {
		l := &layers[i]
		for _, side := range []struct {
			kind OriginKind
			tree *model.Tree
			name string
		}{{FromValues, &l.values, "values"}, {FromDefault, &l.defaults, "defaults"}, {FromOverride, &l.overrides, "overrides"}} {
			if side.tree.Kind != model.Absent {
				parts = append(parts, part{l, side.kind, side.tree, model.Ref{Collection: "configs", Name: l.config.Name, Path: side.name}})
			}
		}
	}
	v, _ := m.node("", parts)
	if v.Kind() != model.Struct {
		v = model.StructOf()
	}
	m.graph.Values = v
}

// node composes one path of the graph.
func (m *merger) node(path string, parts []part) (model.Value, bool) {
	parts, replaced := m.overrule(parts)
	parts, more := m.replaceDefaults(path, parts)
	replaced = append(replaced, more...)
	structs := only(parts, isStruct)
	switch {
	case len(parts) == 0:
		return model.Value{}, false
	case len(structs) == 0:
		return m.leaf(path, parts, replaced)
	case len(structs) == len(parts):
		return m.fields(path, parts)
	}
	if len(only(parts, isOpen)) > 0 {
		return m.unit(path, parts, replaced)
	}
	m.conflict(path, parts)
	return model.Value{}, false
}

// fields composes the fields of structs.
func (m *merger) fields(path string, parts []part) (model.Value, bool) {
	type child struct {
		name  string
		parts []part
	}
	var children []child
	index := map[string]int{}
	for _, p := range parts {
		for i := range p.tree.Fields {
			f := &p.tree.Fields[i]
			at, seen := index[f.Name]
			if !seen {
				at = len(children)
				index[f.Name] = at
				children = append(children, child{name: f.Name})
			}
			children[at].parts = append(children[at].parts, part{p.layer, p.kind, &f.Tree, p.origin.At(model.Label(f.Name))})
		}
	}
	slices.SortFunc(children, func(a, b child) int { return cmp.Compare(a.name, b.name) })
	var out []model.Field
	ok := true
	for _, c := range children {
		v, good := m.node(model.JoinPath(path, model.Label(c.name)), c.parts)
		if good {
			out = append(out, model.Field{Name: c.name, Value: v})
		}
		ok = ok && good
	}
	if len(out) == 0 && path != "" && ok {
		m.add(path, model.StructOf(), parts, nil)
	}
	return model.StructOf(out...), ok
}

func (m *merger) add(path string, v model.Value, from []part, replaced []part) {
	leaf := Leaf{Path: path, Value: v}
	for _, p := range from {
		leaf.From = append(leaf.From, p.from())
	}
	for _, p := range replaced {
		leaf.Replaced = append(leaf.Replaced, p.from())
	}
	m.graph.Leaves = append(m.graph.Leaves, leaf)
}

func only(parts []part, is func(part) bool) []part {
	var out []part
	for _, p := range parts {
		if is(p) {
			out = append(out, p)
		}
	}
	return out
}

func isStruct(p part) bool   { return p.tree.Kind == model.StructTree }
func isOpen(p part) bool     { return p.tree.Kind == model.OpenLeaf }
func isFinal(p part) bool    { return p.tree.Kind == model.FinalLeaf }
func isDefault(p part) bool  { return p.kind == FromDefault }
func isOverride(p part) bool { return p.kind == FromOverride }

// top returns the highest layer of the parts.
func top(parts []part) int {
	highest := parts[0].layer.config.Layer
	for _, p := range parts {
		highest = max(highest, p.layer.config.Layer)
	}
	return highest
}

func inLayer(n int) func(part) bool {
	return func(p part) bool { return p.layer.config.Layer == n }
}

func not(is func(part) bool) func(part) bool { return func(p part) bool { return !is(p) } }
