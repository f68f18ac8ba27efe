package compose

import (
	"slices"
	"strings"

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

// provenance is where the leaves of a graph come from, in the order in which
// they were composed. A whole struct of one source is one entry.
type provenance struct {
	spans []span
	// sites are, for each span: one that only has the path, where the span is
	// placed; those that it comes from; those that it replaced.
	sites []*site
	// values are those of the spans; nil where all are in the graph's values.
	values []model.Value
}

type span struct {
	from, replaced uint32
	placed         bool // the path is not that of the first source that it comes from
	whole          bool // all leaves of a struct
	marks          mark
}

func (s span) len() int {
	n := int(s.from + s.replaced)
	if s.placed {
		n++
	}
	return n
}

// entry is a span with its place in the provenance.
type entry struct {
	span
	number int
	sites  []*site
}

func (e entry) path() string { return e.sites[0].path }

func (e entry) origins() (from, replaced []*site) {
	all := e.sites
	if e.placed {
		all = all[1:]
	}
	return all[:e.from], all[e.from:]
}

func (p *provenance) entries(yield func(entry) bool) {
	at := 0
	for i, s := range p.spans {
		end := at + s.len()
		if !yield(entry{s, i, p.sites[at:end:end]}) {
			return
		}
		at = end
	}
}

// add notes a leaf, or all leaves of a whole node. The value of one that comes
// from nowhere, or from places around it, has the path of its own.
func (p *provenance) add(path string, v model.Value, marks mark, from, replaced []*node) {
	s := span{from: uint32(len(from)), replaced: uint32(len(replaced)), marks: marks}
	if s.placed = len(from) == 0 || from[0].path != path; s.placed {
		p.sites = append(p.sites, &site{path: path})
	}
	for _, n := range from {
		p.sites = append(p.sites, &n.site)
	}
	for _, n := range replaced {
		p.sites = append(p.sites, &n.site)
	}
	p.spans, p.values = append(p.spans, s), append(p.values, v)
}

// addSites notes a leaf that comes from sites with its path.
func (p *provenance) addSites(v model.Value, marks mark, from ...*site) {
	p.sites = append(p.sites, from...)
	p.spans, p.values = append(p.spans, span{from: uint32(len(from)), marks: marks}), append(p.values, v)
}

// addWhole notes all leaves of a node.
func (p *provenance) addWhole(n *node) {
	p.sites = append(p.sites, &n.site)
	p.spans, p.values = append(p.spans, span{from: 1, whole: len(n.fields) > 0, marks: n.marks}), append(p.values, n.value)
}

// place is a position in a provenance that grows.
type place struct{ spans, sites int }

func (p *provenance) end() place { return place{len(p.spans), len(p.sites)} }

func (p *provenance) truncate(to place) {
	p.spans, p.values, p.sites = p.spans[:to.spans], p.values[:to.spans], p.sites[:to.sites]
}

// clone returns a copy that wastes nothing, with the values only where asked for.
func (p *provenance) clone(values bool) provenance {
	out := provenance{spans: slices.Clone(p.spans), sites: slices.Clone(p.sites)}
	if values {
		out.values = slices.Clone(p.values)
	}
	return out
}

// leaves expands the provenance, in its order; valueAt finds values that are not
// in it.
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

// leaves are the sites of the leaves of a tree of data.
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

// unfold replaces the whole struct around a path by its leaves, and drops the
// leaves that the path is below of: empty structs that get a field.
func (p *provenance) unfold(path string) {
	var out provenance
	for e := range p.entries {
		switch above := e.path() != path && strings.HasPrefix(path, e.path()+"."); {
		case above && e.whole:
			for below := range e.sites[0].leaves {
				if strings.HasPrefix(path, below.path+".") {
					continue
				}
				v := below.data()
				out.addSites(v, marksOf(below.path, v), below)
			}
		case above:
		default:
			out.spans, out.values = append(out.spans, e.span), append(out.values, p.values[e.number])
			out.sites = append(out.sites, e.sites...)
		}
	}
	*p = out
}

// marksOf are the marks of a leaf.
func marksOf(path string, v model.Value) (m mark) {
	if looksSecret(path) {
		m |= namedSecret
	}
	if v.Kind() == model.List && holdsSecret(v) {
		m |= secretList
	}
	return m
}

// isAbove says whether some leaf or whole struct is at a path around another.
func (p *provenance) isAbove(path string) bool {
	for e := range p.entries {
		if at := e.path(); len(at) < len(path) && path[len(at)] == '.' && strings.HasPrefix(path, at) {
			return true
		}
	}
	return false
}
