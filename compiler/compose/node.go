package compose

import (
	"encoding/binary"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
)

// root is a tree of a config, or a contract: the root of sites.
type root struct {
	kind  OriginKind
	name  string
	layer int
	ref   model.Ref
}

// value returns the reference to a value of the root; the zero reference if the root
// is not a tree of values.
func (r *root) value(path string) model.Ref {
	if r.kind != FromValues {
		return model.Ref{}
	}
	return r.ref.At(path)
}

// site is a place that contributes to a path. It becomes an Origin only on request, and all graphs
// with the place share it.
type site struct {
	root *root
	path string      // in the values, and in the tree
	tree *model.Tree // the tree at the place; nil for the value of the leaf
}

// origin returns the provenance of a leaf with a value at the site.
func (s *site) origin(v model.Value) Origin {
	o := Origin{Kind: s.root.kind, Name: s.root.name, Layer: s.root.layer, Ref: s.root.ref.At(s.path)}
	if s.tree == nil {
		o.Text = v.String()
		if plaintext(s.path, v) {
			o.Text = credential.Masked
		}
		return o
	}
	switch s.tree.Kind {
	case model.FinalLeaf:
		o.Text = s.tree.Final.String()
		if plaintext(s.path, s.tree.Final) {
			o.Text = credential.Masked
		}
	case model.OpenLeaf:
		o.Text = oneLine(s.tree.Open.Text)
		if d := s.tree.Open.Default; d != nil && plaintext(s.path, *d) {
			o.Text = "*" + credential.Masked
		}
		if o.Kind = FromCondition; hasOwnDefault(s.tree) {
			o.Kind = FromDefault
		}
	case model.StructTree:
		o.Text = "{…}"
	}
	return o
}

// node is the contribution of one config to a path: a node of one of its trees, with the data that
// all tuples share.
type node struct {
	site
	name   string
	prefix uint64 // the first bytes of the name, which order most names
	fields []node // of a struct, sorted by name
	// whole means that everything below is final data, in value, and that no leaf
	// is a struct with fields.
	whole bool
	value model.Value
	// marks has the marks of the leaf, or of all leaves below a struct.
	marks trait
	open  *openLeaf // of an open leaf
	// opened is set if the tree is an open leaf that was split into its fields.
	opened *openParts
}

// trait is a reason to check a leaf later.
type trait uint8

const (
	namedSecret  trait = 1 << iota // a name that looks like the name of a secret
	secretList                     // a list with a secret in it
	variableText                   // a text with a variable that nothing fills in
)

// openLeaf has the properties of an open leaf's text.
type openLeaf struct {
	hasDefault bool
	term       model.Expr
	once       sync.Once
	apart      *node // nil if it is not simply a struct
}

// openParts has the parts of an open leaf other than its regular fields.
type openParts struct {
	*expr.Struct
	optional []node
}

// rootNode makes the nodes of a config's tree.
func rootNode(r *root, t model.Tree) *node {
	n := &node{site: site{root: r, tree: &t}}
	n.grow()
	return n
}

// children makes the nodes of fields.
func (n *node) children(fields []model.TreeField) []node {
	out := make([]node, len(fields))
	for i := range fields {
		f := &fields[i]
		out[i].site = site{root: n.root, path: model.JoinPath(n.path, model.Label(f.Name)), tree: &f.Tree}
		out[i].name, out[i].prefix = f.Name, prefixOf(f.Name)
		out[i].grow()
	}
	return out
}

// grow makes the nodes below a node, which already has its source and name.
func (n *node) grow() {
	switch n.tree.Kind {
	case model.StructTree:
		n.fields = n.children(n.tree.Fields)
		fields := make([]model.Field, len(n.fields))
		n.whole = true
		for i := range n.fields {
			f := &n.fields[i]
			n.whole = n.whole && f.whole
			n.marks |= f.marks
			fields[i] = model.Field{Name: f.name, Value: f.value}
		}
		if n.whole {
			n.value = model.StructOf(fields...)
		}
	case model.FinalLeaf:
		n.value = n.tree.Final
		n.whole = n.value.Kind() != model.Struct
		if n.value.Kind() == model.String && credential.Secret(n.name, n.value.Text()) {
			n.marks |= namedSecret
		}
		if n.value.Kind() == model.List && holdsSecret(n.value) {
			n.marks |= secretList
		}
		if variableIn(n.name, n.value) != "" {
			n.marks |= variableText
		}
	case model.OpenLeaf:
		if d := n.tree.Open.Default; credential.Named(n.name) || d != nil && d.Kind() == model.String &&
			credential.Looks(d.Text()) {
			n.marks |= namedSecret
		}
		if strings.Contains(string(n.tree.Open.Text), "{") {
			n.marks |= variableText // it may contain one
		}
		n.open = &openLeaf{hasDefault: hasOwnDefault(n.tree),
			term: model.Expr("(" + n.tree.Open.Text + ")")}
	}
}

// apart returns the node of an open leaf that is a struct, split into its fields; nil if
// the leaf is not a struct.
func (n *node) apart(eval *expr.Evaluator) *node {
	n.open.once.Do(func() {
		s, ok := eval.Split(n.tree.Open.Text)
		if !ok {
			return
		}
		apart := &node{site: n.site, name: n.name, prefix: n.prefix, opened: &openParts{Struct: s}}
		apart.tree = &s.Regular
		apart.fields = apart.children(s.Regular.Fields)
		apart.opened.optional = apart.children(s.Optional)
		n.open.apart = apart
	})
	return n.open.apart
}

// hasOwnDefault reports whether an open leaf sets a default for its path. An open list does not,
// although CUE closes it if nothing else constrains it.
func hasOwnDefault(t *model.Tree) bool {
	d := t.Open.Default
	return d != nil && (d.Kind() != model.List || expr.Marked(t.Open.Text))
}

// prefixOf returns the first eight bytes of a name as a number, which orders most names.
func prefixOf(name string) uint64 {
	var b [8]byte
	copy(b[:], name)
	return binary.BigEndian.Uint64(b[:])
}

func isStruct(n *node) bool   { return n.tree.Kind == model.StructTree }
func isOpened(n *node) bool   { return n.opened != nil }
func isOpen(n *node) bool     { return n.tree.Kind == model.OpenLeaf }
func isFinal(n *node) bool    { return n.tree.Kind == model.FinalLeaf }
func isDefault(n *node) bool  { return n.root.kind == FromDefault }
func isOverride(n *node) bool { return n.root.kind == FromOverride }

// hasDefault reports whether a node sets a default for its path.
func hasDefault(n *node) bool {
	if isOpen(n) {
		return n.open.hasDefault
	}
	return isDefault(n) && isFinal(n)
}

// defaultOf returns the default of a node for which hasDefault is true.
func defaultOf(n *node) model.Value {
	if isOpen(n) {
		return *n.tree.Open.Default
	}
	return n.tree.Final
}

// only returns the nodes for which is returns true. It copies nothing if these are
// all nodes or none of them.
func only(nodes []*node, is func(*node) bool) []*node {
	count := 0
	for _, n := range nodes {
		if is(n) {
			count++
		}
	}
	switch count {
	case 0:
		return nil
	case len(nodes):
		return nodes[:count:count]
	}
	out := make([]*node, 0, count)
	for _, n := range nodes {
		if is(n) {
			out = append(out, n)
		}
	}
	return out
}

// top returns the highest layer of the nodes.
func top(nodes []*node) int {
	highest := nodes[0].root.layer
	for _, n := range nodes {
		highest = max(highest, n.root.layer)
	}
	return highest
}

// inLayer returns a condition for nodes in a layer.
func inLayer(layer int) func(*node) bool {
	return func(n *node) bool { return n.root.layer == layer }
}

func not(is func(*node) bool) func(*node) bool { return func(n *node) bool { return !is(n) } }

// lookup returns the value at a path of field names.
func lookup(v model.Value, path string) (model.Value, bool) {
	return valueAt(v, model.Elements(path))
}

// valueAt returns the value below the given field names.
func valueAt(v model.Value, names []string) (model.Value, bool) {
	for _, name := range names {
		f, there := v.Lookup(name)
		if !there {
			return model.Value{}, false
		}
		v = f
	}
	return v, true
}

// withValue returns the struct with another value at a path of field names.
func withValue(v model.Value, path string, leaf model.Value) model.Value {
	return withElements(v, model.Elements(path), leaf)
}

func withElements(v model.Value, path []string, leaf model.Value) model.Value {
	if len(path) == 0 {
		return leaf
	}
	fields := make([]model.Field, 0, len(v.Fields())+1)
	inner := model.StructOf()
	for _, f := range v.Fields() {
		if f.Name == path[0] {
			inner = f.Value
			continue
		}
		fields = append(fields, f)
	}
	return model.StructOf(
		append(fields, model.Field{Name: path[0], Value: withElements(inner, path[1:], leaf)})...)
}
