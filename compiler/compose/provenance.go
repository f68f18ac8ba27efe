package compose

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// OriginKind is the way in which a config or contract set a value.
type OriginKind string

// The kinds of origin.
const (
	FromValues    OriginKind = "value"
	FromDefault   OriginKind = "default"
	FromOverride  OriginKind = "override"
	FromContract  OriginKind = "contract default"
	FromCondition OriginKind = "constraint"
)

// Origin is one of the places that set a value, or would have set it.
type Origin struct {
	Kind  OriginKind
	Name  string // the config or, for a contract default, the entity with the contract
	Layer int    // of a config
	Ref   model.Ref
	Text  string // the text at the place
}

// Leaf is a composed value that is not a struct, with its provenance.
type Leaf struct {
	Path     string // a CUE path
	Value    model.Value
	From     []Origin // the origins that set it; several if they agree
	Replaced []Origin // defaults and overruled values that it replaced
}

// provenance lists the origins of a graph's leaves, in the order of their composition. A whole
// struct from one site is one entry.
type provenance struct {
	count int
	// heads are the entries' heads, as bytes: there are many, and few numbers in
	// them are greater than 3.
	heads []byte
	// sites are the sites of each entry: first a site with only the path, if the entry is placed,
	// then its origins, and then the replaced sites.
	sites []*site
	// values are the values of the entries; nil if all of them are in the graph's values.
	values []model.Value
	marks  trait // the marks of all entries
}

// head is the beginning of an entry.
type head struct {
	from, replaced int
	placed         bool // the path differs from the path of the first origin
	whole          bool // all leaves of a struct
}

const (
	placedEntry = 1 << iota
	wholeEntry
	entryBits = 2
)

// append appends the head in its binary form.
func (h head) append(b []byte) []byte {
	bits := 0
	if h.placed {
		bits |= placedEntry
	}
	if h.whole {
		bits |= wholeEntry
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(h.from<<entryBits|bits)),
		uint64(h.replaced))
}

// readHead reads the output of append, and returns its length.
func readHead(b []byte) (head, int) {
	first, n := binary.Uvarint(b)
	replaced, m := binary.Uvarint(b[n:])
	return head{from: int(first >> entryBits), replaced: int(replaced), placed: first&placedEntry != 0,
		whole: first&wholeEntry != 0}, n + m
}

// entry is a leaf, or a whole struct.
type entry struct {
	head
	number int
	sites  []*site
}

func (e entry) path() string { return e.sites[0].path }

// origins returns the sites that an entry comes from, and the replaced sites.
func (e entry) origins() (from, replaced []*site) {
	all := e.sites
	if e.placed {
		all = all[1:]
	}
	return all[:e.from], all[e.from:]
}

// entries yields the entries, in the order of their composition.
func (p *provenance) entries(yield func(entry) bool) {
	heads, sites := p.heads, p.sites
	for i := range p.count {
		h, size := readHead(heads)
		n := h.from + h.replaced
		if h.placed {
			n++
		}
		if !yield(entry{h, i, sites[:n:n]}) {
			return
		}
		heads, sites = heads[size:], sites[n:]
	}
}

// enter adds an entry, whose sites are already in place.
func (p *provenance) enter(h head, v model.Value, marks trait) {
	p.count++
	p.heads = h.append(p.heads)
	p.values = append(p.values, v)
	p.marks |= marks
}

// add adds a leaf. A leaf with no origin, or an origin at a parent path, is placed.
func (p *provenance) add(path string, v model.Value, marks trait, from, replaced []*node) {
	h := head{from: len(from), replaced: len(replaced), placed: len(from) == 0 || from[0].path != path}
	if h.placed {
		p.sites = append(p.sites, &site{path: path})
	}
	for _, n := range from {
		p.sites = append(p.sites, &n.site)
	}
	for _, n := range replaced {
		p.sites = append(p.sites, &n.site)
	}
	p.enter(h, v, marks)
}

// addSites adds a leaf whose origins are sites with its path.
func (p *provenance) addSites(v model.Value, marks trait, from ...*site) {
	p.sites = append(p.sites, from...)
	p.enter(head{from: len(from)}, v, marks)
}

// addWhole adds all leaves of a node.
func (p *provenance) addWhole(n *node) {
	p.sites = append(p.sites, &n.site)
	p.enter(head{from: 1, whole: len(n.fields) > 0}, n.value, n.marks)
}

// place is a position in a growing provenance.
type place struct{ count, heads, sites int }

func (p *provenance) end() place { return place{p.count, len(p.heads), len(p.sites)} }

// truncate removes the entries after a position.
func (p *provenance) truncate(to place) {
	p.count, p.heads, p.values, p.sites = to.count, p.heads[:to.heads], p.values[:to.count],
		p.sites[:to.sites]
}

// reset empties a provenance, and keeps its memory.
func (p *provenance) reset() {
	p.truncate(place{})
	p.marks = 0
}

// clone returns a copy without spare capacity, with the values only on request.
func (p *provenance) clone(values bool) provenance {
	out := provenance{count: p.count, heads: slices.Clone(p.heads), sites: slices.Clone(p.sites)}
	if values {
		out.values = slices.Clone(p.values)
	}
	return out
}

// leaves expands the provenance, in its order; valueAt finds values that are not in it.
func (p *provenance) leaves(valueAt func(path string) model.Value) []Leaf {
	var out []Leaf
	for e := range p.entries {
		if e.whole {
			out = append(out, leavesOfTree(e.sites[0])...)
			continue
		}
		from, replaced := e.origins()
		leaf := Leaf{Path: e.path()}
		if p.values != nil {
			leaf.Value = p.values[e.number]
		} else {
			leaf.Value = valueAt(leaf.Path)
		}
		leaf.From, leaf.Replaced = originsOf(from, leaf.Value), originsOf(replaced, leaf.Value)
		out = append(out, leaf)
	}
	return out
}

// originsOf returns the origins of a leaf with a value.
func originsOf(sites []*site, v model.Value) []Origin {
	if len(sites) == 0 {
		return nil
	}
	out := make([]Origin, len(sites))
	for i, s := range sites {
		out[i] = s.origin(v)
	}
	return out
}

// leavesOfTree returns the leaves of a whole struct.
func leavesOfTree(s *site) []Leaf {
	var out []Leaf
	for below := range s.leaves {
		v := below.data()
		out = append(out, Leaf{Path: below.path, Value: v, From: []Origin{below.origin(v)}})
	}
	return out
}

// leaves yields the sites of the leaves of a tree of data.
func (s *site) leaves(yield func(*site) bool) { s.eachLeaf(yield) }

func (s *site) eachLeaf(yield func(*site) bool) bool {
	if s.tree.Kind != model.StructTree || len(s.tree.Fields) == 0 {
		return yield(s)
	}
	for i := range s.tree.Fields {
		f := &s.tree.Fields[i]
		below := &site{root: s.root, path: model.JoinPath(s.path, model.Label(f.Name)), tree: &f.Tree}
		if !below.eachLeaf(yield) {
			return false
		}
	}
	return true
}

// unfold replaces the whole struct around a path by its leaves. It removes the leaves at the path
// or above it: nulls, and empty structs that get a field.
func (p *provenance) unfold(path string) {
	var out provenance
	for e := range p.entries {
		switch above := e.path() == path || strings.HasPrefix(path, e.path()+"."); {
		case above && e.whole:
			for below := range e.sites[0].leaves {
				if path == below.path || strings.HasPrefix(path, below.path+".") {
					continue
				}
				v := below.data()
				out.addSites(v, traitsOf(below.path, v), below)
			}
		case above:
		default:
			out.sites = append(out.sites, e.sites...)
			out.enter(e.head, p.values[e.number], p.marks)
		}
	}
	*p = out
}

// traitsOf returns the traits of a leaf.
func traitsOf(path string, v model.Value) (m trait) {
	if plaintext(path, v) {
		m |= namedSecret
	}
	if v.Kind() == model.List && holdsSecret(v) {
		m |= secretList
	}
	if names := model.Elements(path); len(names) > 0 && variableIn(names[len(names)-1], v) != "" {
		m |= variableText
	}
	return m
}

// isAbove reports whether any leaf or whole struct is at a parent of a path.
func (p *provenance) isAbove(path string) bool {
	for e := range p.entries {
		if at := e.path(); len(at) < len(path) && path[len(at)] == '.' && strings.HasPrefix(path, at) {
			return true
		}
	}
	return false
}

// data returns the value of a leaf of data.
func (s *site) data() model.Value {
	if s.tree.Kind == model.FinalLeaf {
		return s.tree.Final
	}
	return model.StructOf()
}
