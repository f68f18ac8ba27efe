package compose

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Graph is the composed configuration graph of one tuple. It is immutable,
// except for DropProvenance.
type Graph struct {
	Values model.Value // a struct, secrets included
	// Removed are the keys that configs remove, as a struct of nulls at their paths, for charts. It
	// is null if there are no such keys.
	Removed model.Value
	// Plain are the values without the secrets, and Secrets are the secrets by path, sorted.
	Plain   model.Value
	Secrets []Secret
	Failed  bool
	Digest  model.Digest // of Values: the configuration's version
	Needs   []Need       // the keys that the contracts name

	provenance provenance
	ds         []diag.Diagnostic
	lists      []string
}

// Leaves returns the composed values that are not structs with fields, with their provenance,
// sorted by path. Removed keys have the value null. Each call makes the leaves again. If the graph
// failed, it returns the leaves that were composed.
func (g *Graph) Leaves() []Leaf {
	out := g.provenance.leaves(func(path string) model.Value {
		v, _ := lookup(g.Values, path)
		return v
	})
	slices.SortStableFunc(out, func(a, b Leaf) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// DropProvenance frees the memory that only Leaves needs. Leaves then returns nothing.
func (g *Graph) DropProvenance() { g.provenance = provenance{} }

// Diagnostics returns the diagnostics of the graph, unresolved and without assignments. The caller
// must not change them.
func (g *Graph) Diagnostics() []diag.Diagnostic { return g.ds }

// Lists returns the paths whose lists composed by a strategy, in the order of
// their composition. The caller must not change them.
func (g *Graph) Lists() []string { return g.lists }

// layer is a config in the graph, with the trees for this tuple.
type layer struct {
	config                      *model.Config
	values, defaults, overrides model.Tree
}

// merger composes one tuple after the other, and reuses its slices.
type merger struct {
	graph *Graph
	lists map[string]listRule
	eval  *expr.Evaluator
	memo  *memo

	provenance provenance
	// Stacks of the parts of the structs around the current path.
	parts  []*node
	queues []queue
	fields []model.Field

	layers []layer
	listed []string // the paths of lists
	bytes  []byte
	// Of the composed list: all of it so far, and the elements of one layer.
	combined, ofLayer collection
	// Of a tuple without a cluster: the first config for single clusters, and the cluster type.
	forClusters, clusterType string
}

// fail adds an error to the graph.
func (m *merger) fail(d diag.Diagnostic) {
	m.graph.Failed = true
	m.graph.ds = append(m.graph.ds, d)
}

// finish returns the graph, without any memory of the merger.
func (m *merger) finish() *Graph {
	g := m.graph
	g.provenance = m.provenance.clone(g.Failed)
	g.Plain, g.Secrets = splitSecrets(g.Values)
	m.bytes = g.Values.AppendBinary(m.bytes[:0]) // it distinguishes a secret from a struct
	if g.Removed.Kind() == model.Struct {
		m.bytes = g.Removed.AppendBinary(m.bytes)
	}
	g.Digest = model.DigestBytes(m.bytes)
	return g
}

// compose merges the layers, which are sorted by layer, then name.
func (m *merger) compose(layers []layer) {
	m.listed = slices.AppendSeq(m.listed[:0], maps.Keys(m.lists))
	start := len(m.parts)
	for i := range layers {
		l := &layers[i]
		for _, side := range [...]struct {
			kind OriginKind
			tree *model.Tree
			name string
		}{{FromValues, &l.values, "values"}, {FromDefault, &l.defaults, "defaults"},
			{FromOverride, &l.overrides, "overrides"}} {
			if side.tree.Kind != model.Absent {
				m.parts = append(m.parts, m.memo.tree(l.config, side.kind, side.name, side.tree))
			}
		}
	}
	m.unite(start)
}

// unite composes the parts from start on, and removes them.
func (m *merger) unite(start int) {
	v, _ := m.node("", m.parts[start:], nil)
	m.parts = m.parts[:start]
	if v.Kind() != model.Struct {
		v = model.StructOf()
	}
	m.graph.Values = v
}

// node composes one path of the graph; replaced are the parts that were replaced above it.
func (m *merger) node(path string, parts, replaced []*node) (model.Value, bool) {
	parts = m.split(parts)
	if parts = m.settle(path, parts); parts == nil {
		return model.Value{}, false
	}
	parts, more := m.overrule(parts)
	replaced = append(slices.Clip(replaced), more...)
	parts, more = m.takeAway(parts)
	replaced = append(replaced, more...)
	parts, more = m.replaceDefaults(parts)
	replaced = append(replaced, more...)
	structs := only(parts, isStruct)
	switch {
	case len(parts) == 0:
		return model.Value{}, false
	case len(structs) == 0:
		return m.leaf(path, parts, replaced)
	case len(structs) == len(parts):
		return m.structure(path, parts, replaced)
	}
	if len(only(parts, isOpen)) > 0 {
		return m.unit(path, parts, replaced)
	}
	m.conflict(path, "", parts)
	return model.Value{}, false
}

// split replaces open leaves that are structs by nodes with fields.
func (m *merger) split(parts []*node) []*node {
	var out []*node
	for i, p := range parts {
		if !isOpen(p) {
			continue
		}
		if apart := p.apart(m.eval); apart != nil {
			if out == nil {
				out = slices.Clone(parts)
			}
			out[i] = apart
		}
	}
	if out == nil {
		return parts
	}
	return out
}

// settle evaluates the parts below overrides of single fields, if CUE must look at all of them at
// once; nil if the evaluation fails.
func (m *merger) settle(path string, parts []*node) []*node {
	under, overrides := only(parts, not(isOverride)), only(parts, isOverride)
	mayBeStruct := func(p *node) bool { return isOpen(p) && strings.Contains(p.tree.Open.Text, "{") }
	if len(overrides) == 0 || len(only(overrides, not(isStruct))) > 0 ||
		len(only(under, mayBeStruct)) == 0 {
		return parts
	}
	before := m.provenance.end()
	v, ok := m.node(path, under, nil)
	m.provenance.truncate(before)
	if !ok {
		return nil
	}
	open := only(under, mayBeStruct)[0]
	// the same place, with data
	settled := &node{site: open.site, name: open.name, prefix: open.prefix}
	settled.tree = treeOf(v)
	settled.grow()
	return append([]*node{settled}, overrides...)
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

// add adds a leaf with its marks to the provenance.
func (m *merger) add(path string, v model.Value, from, replaced []*node) {
	marks := trait(0)
	if len(from) > 0 && from[0].path == path && !isStruct(from[0]) {
		marks = from[0].marks & (namedSecret | variableText)
		if v.Kind() == model.List && holdsSecret(v) {
			marks |= secretList
		}
	} else {
		marks = traitsOf(path, v)
	}
	m.provenance.add(path, v, marks, from, replaced)
}

// leaves returns the leaves that are composed so far, in the order of their composition.
func (m *merger) leaves() []Leaf { return m.provenance.leaves(nil) }

// memo remembers data that many tuples share, for the goroutines of one
// composition: answers of CUE, the nodes of the configs' trees and the contracts.
// Its zero value is ready for use.
type memo struct {
	answers   table[[sha256.Size]byte, expr.Result]
	trees     table[treeKey, *node]
	contracts table[*model.Contract, *contract]
	mergers   sync.Pool
}

// table is a map for several goroutines.
type table[K comparable, V any] struct {
	mu sync.RWMutex
	of map[K]V
}

func (t *table[K, V]) load(key K) (V, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	v, ok := t.of[key]
	return v, ok
}

// store keeps the first value for a key, and returns it.
func (t *table[K, V]) store(key K, v V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first, there := t.of[key]; there {
		return first
	}
	if t.of == nil {
		t.of = map[K]V{}
	}
	t.of[key] = v
	return v
}

// treeKey identifies a tree by its place and its content.
type treeKey struct {
	config *model.Config
	side   OriginKind
	kind   model.TreeKind
	fields *model.TreeField
	open   *model.Open
}

// tree returns the nodes of a config's tree.
func (m *memo) tree(config *model.Config, side OriginKind, name string, t *model.Tree) *node {
	key := treeKey{config: config, side: side, kind: t.Kind, open: t.Open}
	if len(t.Fields) > 0 {
		key.fields = &t.Fields[0]
	}
	// The output of a function may apply only to one tuple, so it is not kept for others.
	shared := t.Kind != model.FinalLeaf && config.Facts == nil
	if shared {
		if n, there := m.trees.load(key); there {
			return n
		}
	}
	ref := model.Ref{Collection: "configs", Name: config.Name, Path: name}
	n := rootNode(&root{kind: side, name: config.Name, layer: config.Layer, ref: ref}, *t)
	if !shared {
		return n
	}
	return m.trees.store(key, n)
}

// merger returns an unused merger. The caller must return it with release.
func (m *memo) merger(eval *expr.Evaluator) *merger {
	out, _ := m.mergers.Get().(*merger)
	if out == nil {
		out = &merger{memo: m, combined: collection{index: map[string]int{}},
			ofLayer: collection{index: map[string]int{}}}
	}
	// Make the merger ready for another tuple.
	out.graph, out.eval, out.lists = &Graph{}, eval, nil
	out.forClusters, out.clusterType = "", ""
	out.provenance.reset()
	return out
}

func (m *memo) release(used *merger) { m.mergers.Put(used) }

// ask lets CUE answer a call, once for all tuples.
func (m *merger) ask(c expr.Call) expr.Result {
	key := m.keyOf(c)
	if r, seen := m.memo.answers.load(key); seen {
		return r
	}
	return m.memo.answers.store(key, m.eval.Eval([]expr.Call{c})[0])
}

// keyOf returns the key of a call.
func (m *merger) keyOf(c expr.Call) [sha256.Size]byte {
	b := appendText(m.bytes[:0], string(c.Contract))
	for _, t := range c.Terms {
		b = appendText(append(b, 1), string(t))
	}
	if c.Value != nil {
		b = c.Value.AppendBinary(append(b, 2))
	}
	m.bytes = b
	return sha256.Sum256(b)
}

// appendText appends a text with its length before it.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
