package compose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	lists   []string // the paths whose lists composed by a strategy
}

// part is what one config contributes to a path.
type part struct {
	layer  *layer
	kind   OriginKind // value, default or override
	tree   *model.Tree
	origin model.Ref
	// opened is set where the tree is that of an open leaf, taken apart.
	opened *expr.Struct
}

// child returns what the part contributes to a field.
func (p part) child(f *model.TreeField) part {
	return part{layer: p.layer, kind: p.kind, tree: &f.Tree, origin: p.origin.At(model.Label(f.Name))}
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
		o.Text = oneLine(p.tree.Open.Text)
		if o.Kind = FromCondition; hasDefault(p) {
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
				parts = append(parts, part{layer: l, kind: side.kind, tree: side.tree, origin: model.Ref{Collection: "configs", Name: l.config.Name, Path: side.name}})
			}
		}
	}
	v, _ := m.node("", parts, nil)
	if v.Kind() != model.Struct {
		v = model.StructOf()
	}
	m.graph.Values = v
}

// node composes one path of the graph; replaced is what was replaced above it.
func (m *merger) node(path string, parts, replaced []part) (model.Value, bool) {
	parts = m.split(parts)
	if parts = m.settle(path, parts); parts == nil {
		return model.Value{}, false
	}
	parts, more := m.overrule(parts)
	replaced = append(slices.Clip(replaced), more...)
	parts, more = m.replaceDefaults(parts)
	replaced = append(replaced, more...)
	structs := only(parts, isStruct)
	switch {
	case len(parts) == 0:
		return model.Value{}, false
	case len(structs) == 0:
		return m.leaf(path, parts, replaced)
	case len(structs) == len(parts):
		return m.fields(path, parts, replaced)
	}
	if len(only(parts, isOpen)) > 0 {
		return m.unit(path, parts, replaced)
	}
	m.conflict(path, "", parts)
	return model.Value{}, false
}

// split takes open leaves that are structs apart.
func (m *merger) split(parts []part) []part {
	var out []part
	for i, p := range parts {
		if !isOpen(p) {
			continue
		}
		if s, ok := m.eval.Split(p.tree.Open.Text); ok {
			if out == nil {
				out = slices.Clone(parts)
			}
			out[i].tree, out[i].opened = &s.Regular, s
		}
	}
	if out == nil {
		return parts
	}
	return out
}

// settle evaluates what overrides of single fields lie over where CUE must look
// at all of it at once; nil where that fails.
func (m *merger) settle(path string, parts []part) []part {
	under, overrides := only(parts, not(isOverride)), only(parts, isOverride)
	mayBeStruct := func(p part) bool { return isOpen(p) && strings.Contains(p.tree.Open.Text, "{") }
	if len(overrides) == 0 || len(only(overrides, not(isStruct))) > 0 || len(only(under, mayBeStruct)) == 0 {
		return parts
	}
	leaves := len(m.graph.Leaves)
	v, ok := m.node(path, under, nil)
	m.graph.Leaves = m.graph.Leaves[:leaves]
	if !ok {
		return nil
	}
	settled := only(under, mayBeStruct)[0]
	settled.tree = treeOf(v)
	return append([]part{settled}, overrides...)
}

// treeOf returns data as a tree.
func treeOf(v model.Value) *model.Tree {
	if v.Kind() != model.Struct {
		return &model.Tree{Kind: model.FinalLeaf, Final: v}
	}
	var fields []model.TreeField
	for _, f := range v.Fields() {
		fields = append(fields, model.TreeField{Name: f.Name, Tree: *treeOf(f.Value)})
	}
	t := model.StructTreeOf(fields...)
	return &t
}

// fields composes the fields of structs.
func (m *merger) fields(path string, parts, replaced []part) (model.Value, bool) {
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
			children[at].parts = append(children[at].parts, p.child(f))
		}
	}
	// What open structs say of a field counts where the field is there.
	for _, p := range only(parts, isOpened) {
		for i := range p.opened.Optional {
			f := &p.opened.Optional[i]
			if at, there := index[f.Name]; there {
				children[at].parts = append(children[at].parts, p.child(f))
			}
		}
	}
	slices.SortFunc(children, func(a, b child) int { return cmp.Compare(a.name, b.name) })
	var out []model.Field
	ok := true
	for _, p := range only(parts, isOpened) {
		for _, name := range p.opened.Required {
			if _, there := index[name]; !there {
				m.noValue(model.JoinPath(path, model.Label(name)), []part{p}, expr.Problem{Missing: true})
				ok = false
			}
		}
	}
	for _, c := range children {
		v, good := m.node(model.JoinPath(path, model.Label(c.name)), c.parts, replaced)
		if good {
			out = append(out, model.Field{Name: c.name, Value: v})
		}
		ok = ok && good
	}
	v := model.StructOf(out...)
	if len(out) == 0 && path != "" && ok {
		m.add(path, v, parts, replaced)
	}
	return v, ok && m.fitsRest(path, v, parts)
}

// fitsRest checks a struct against what open structs say of any field.
func (m *merger) fitsRest(path string, v model.Value, parts []part) bool {
	if len(only(parts, isOverride)) > 0 {
		return true
	}
	ok := true
	for _, p := range only(parts, isOpened) {
		if p.opened.Rest == "" {
			continue
		}
		r := m.ask(expr.Call{Terms: []model.Expr{p.opened.Rest}, Value: &v})
		for _, problem := range r.Problems {
			at := model.JoinPath(path, problem.Path)
			d := diag.New(diag.ConflictingValues, fmt.Sprintf("%s does not fit what config %s says of it: %s", at, p.layer.config.Name, problem.Message)).On(at).
				Hinting(loosen(problem))
			for _, leaf := range m.graph.Leaves {
				if leaf.Path == at {
					d = origins(d, leaf.From)
				}
			}
			m.fail(d.At(p.origin, fmt.Sprintf("%s (config %s, layer %d)", short(string(p.opened.Rest)), p.layer.config.Name, p.layer.config.Layer)))
			ok = false
		}
	}
	return ok
}

func (m *merger) add(path string, v model.Value, from []part, replaced []part) {
	leaf := Leaf{Path: path, Value: v, From: make([]Origin, 0, len(from))}
	for _, p := range from {
		leaf.From = append(leaf.From, p.from())
	}
	for _, p := range replaced {
		leaf.Replaced = append(leaf.Replaced, p.from())
	}
	m.graph.Leaves = append(m.graph.Leaves, leaf)
}

// only returns the parts that something holds for. It is called for every path
// of every graph, where it mostly holds for all or none: then nothing is copied.
func only(parts []part, is func(part) bool) []part {
	n := 0
	for _, p := range parts {
		if is(p) {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case len(parts):
		return slices.Clip(parts)
	}
	out := make([]part, 0, n)
	for _, p := range parts {
		if is(p) {
			out = append(out, p)
		}
	}
	return out
}

func isStruct(p part) bool   { return p.tree.Kind == model.StructTree }
func isOpened(p part) bool   { return p.opened != nil }
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
