package compose

import (
	"encoding/binary"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
)

// root is a tree of a config, or a contract: where sites are.
type root struct {
	kind  OriginKind
	name  string
	layer int
	ref   model.Ref
}

// value returns a value of the root that is none of its defaults or overrides; the zero
// reference where it is one.
func (r *root) value(path string) model.Ref {
	if r.kind != FromValues {
		return model.Ref{}
	}
	return r.ref.At(path)
}

// site is a place that says something of a path. It is an Origin before
// somebody asks for one, and is shared by all graphs that the place is in.
type site struct {
	root *root
	path string      // in the values, which it has in common with the tree
	tree *model.Tree // what stands there; nil for the value of the leaf
}

// origin is the provenance of a leaf with a value at the site.
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

// node is what one config contributes to a path: a node of one of its trees,
// with what is the same of it in all tuples.
type node struct {
	site
	name   string
	prefix uint64 // the first bytes of the name, which order most names
	fields []node // of a struct, sorted by name
	// whole says that all below is final data, which is value, and where no leaf is
	// a struct with fields.
	whole bool
	value model.Value
	// marks of the leaf, or of all leaves below a struct.
	marks trait
	open  *openLeaf // of an open leaf
	// opened is set where the tree is that of an open leaf, taken apart.
	opened *opened
}

// trait says what a leaf is to be looked at for.
type trait uint8

const (
	namedSecret  trait = 1 << iota // a name that looks like a secret's
	secretList                     // a list with a secret in it
	variableText                   // a text with a variable that nothing fills in
)

// openLeaf is what an open leaf's text says.
type openLeaf struct {
	hasDefault bool
	term       model.Expr
	once       sync.Once
	apart      *node // nil where it is not simply a struct
}

// opened is what an open leaf says beyond its regular fields.
type opened struct {
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

// grow makes what is below a node, which has its source and name.
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
			n.marks |= variableText // perhaps
		}
		n.open = &openLeaf{hasDefault: hasOwnDefault(n.tree), term: model.Expr("(" + n.tree.Open.Text + ")")}
	}
}

// apart returns the node of an open leaf that is a struct, taken apart; nil for
// what is none.
func (n *node) apart(eval *expr.Evaluator) *node {
	n.open.once.Do(func() {
		s, ok := eval.Split(n.tree.Open.Text)
		if !ok {
			return
		}
		apart := &node{site: n.site, name: n.name, prefix: n.prefix, opened: &opened{Struct: s}}
		apart.tree = &s.Regular
		apart.fields = apart.children(s.Regular.Fields)
		apart.opened.optional = apart.children(s.Optional)
		n.open.apart = apart
	})
	return n.open.apart
}

// hasOwnDefault says whether an open leaf gives its path a default. An open list
// gives none, though CUE closes it where nobody says more.
func hasOwnDefault(t *model.Tree) bool {
	d := t.Open.Default
	return d != nil && (d.Kind() != model.List || expr.Marked(t.Open.Text))
}

// prefixOf orders names as far as eight bytes can.
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

// hasDefault says whether a node gives its path a default.
func hasDefault(n *node) bool {
	if isOpen(n) {
		return n.open.hasDefault
	}
	return isDefault(n) && isFinal(n)
}

func defaultOf(n *node) model.Value {
	if isOpen(n) {
		return *n.tree.Open.Default
	}
	return n.tree.Final
}

// only returns the nodes that something holds for. Where it holds for all or
// none nothing is copied.
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

func inLayer(layer int) func(*node) bool {
	return func(n *node) bool { return n.root.layer == layer }
}

func not(is func(*node) bool) func(*node) bool { return func(n *node) bool { return !is(n) } }

// lookup returns the value at a path of field names.
func lookup(v model.Value, path string) (model.Value, bool) {
	return at(v, model.Elements(path))
}

// at returns the value below some field names.
func at(v model.Value, names []string) (model.Value, bool) {
	for _, name := range names {
		f, there := v.Lookup(name)
		if !there {
			return model.Value{}, false
		}
		v = f
	}
	return v, true
}

// with returns the struct with another value at a path of field names.
func with(v model.Value, path string, leaf model.Value) model.Value {
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
	return model.StructOf(append(fields, model.Field{Name: path[0], Value: withElements(inner, path[1:], leaf)})...)
}
