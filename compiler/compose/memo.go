package compose

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// memo remembers, for the goroutines of one composition, what many tuples share:
// answers of CUE, the nodes of the configs' trees and the contracts. Its zero
// value is ready for use.
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

// treeKey identifies a tree: by where it is, and by what it is made of.
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
	// What a function gave may be of one tuple alone, and is not kept for others.
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

// merger returns a merger that nobody uses, to be handed back to release.
func (m *memo) merger(eval *expr.Evaluator) *merger {
	out, _ := m.mergers.Get().(*merger)
	if out == nil {
		out = &merger{memo: m, combined: collection{index: map[string]int{}}, ofLayer: collection{index: map[string]int{}}}
	}
	out.reset(eval)
	return out
}

func (m *memo) release(used *merger) { m.mergers.Put(used) }

// ask has CUE answer a call, once for all tuples.
func (m *merger) ask(c expr.Call) expr.Result {
	key := m.keyOf(c)
	if r, seen := m.memo.answers.load(key); seen {
		return r
	}
	return m.memo.answers.store(key, m.eval.Eval([]expr.Call{c})[0])
}

// keyOf identifies a call.
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

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
