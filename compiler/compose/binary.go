package compose

import (
	"encoding/binary"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// format is the first byte of a graph's binary form, and changes with it.
const format = 2

// A graph's binary form is the format and, one after the other,
//
//	failed (0 or 1), digest, value, what is removed (a value),
//	leaves and sites (counts), leaf...,
//	need..., list..., diagnostic...
//
// where ... is a count and so many of what stands before it. Numbers are unsigned
// varints, signed ones zigzag. A text is the number of an earlier text, from 1,
// or 0, its length and its bytes.
//
//	value = tag; of a number its text without a number, of a string its text,
//	        of a list value..., of a struct or secret (name value)...
//	leaf  = steps; of 0 steps path and value; head, site... as the head says
//	head  = min(from, 3) + 4 * replaced; of 3 what from has more
//	site  = root and flags; of root 0 a new root; path, text and value as flagged
//
// Steps go through the leaves of the value, in its order, so that most leaves
// need neither a path nor a value of their own.
type tag byte

const (
	tagNull tag = iota
	tagFalse
	tagTrue
	tagInt
	tagFloat
	tagString
	tagList
	tagStruct
	tagSecret
)

// flags of a site, below the number of its root.
const (
	ownPath  = 1 << iota // the path is not that of the leaf
	ownText              // what stands there is a text, and not the leaf's value
	ownValue             // it is another value
	flagBits = 3
)

// flags of a need.
const (
	needOptional = 1 << iota
	needAdvise
	needMet
	needFlags // how many there may be
)

// AppendBinary appends a form of the graph from which DecodeGraph makes a graph
// that behaves alike, without anything of the platform. Equal graphs have equal
// bytes.
func (g *Graph) AppendBinary(b []byte) []byte {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	clear(e.texts)
	clear(e.roots)
	clear(e.rootsAlike)
	e.b = append(b, format)
	e.bool(g.Failed)
	e.text(string(g.Digest))
	e.value(g.Values)
	e.value(g.Removed)
	e.leaves(g)
	e.needs(g.Needs)
	e.textList(g.lists)
	e.diagnostics(g.ds)
	b, e.b = e.b, nil
	return b
}

var encoders = sync.Pool{New: func() any {
	return &encoder{texts: map[string]uint64{}, roots: map[rootKey]uint64{}, rootsAlike: map[root]uint64{}}
}}

// rootKey is a root of one kind: that of what stands there.
type rootKey struct {
	root *root
	kind OriginKind
}

type encoder struct {
	b          []byte
	texts      map[string]uint64
	roots      map[rootKey]uint64
	rootsAlike map[root]uint64
	path       []byte
	walked     []walked
}

func (e *encoder) number(n int)   { e.b = binary.AppendUvarint(e.b, uint64(n)) }
func (e *encoder) signed(n int)   { e.b = binary.AppendVarint(e.b, int64(n)) }
func (e *encoder) plain(s string) { e.b = appendText(e.b, s) }

func (e *encoder) bool(is bool) {
	if is {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) text(s string) {
	if n, there := e.texts[s]; there {
		e.b = binary.AppendUvarint(e.b, n)
		return
	}
	e.texts[s] = uint64(len(e.texts) + 1)
	e.b = append(e.b, 0)
	e.plain(s)
}

func (e *encoder) textList(texts []string) {
	e.number(len(texts))
	for _, s := range texts {
		e.text(s)
	}
}

func (e *encoder) value(v model.Value) {
	tagged := func(t tag) { e.b = append(e.b, byte(t)) }
	switch v.Kind() {
	case model.Null:
		tagged(tagNull)
	case model.Bool:
		if v.Text() == "true" {
			tagged(tagTrue)
		} else {
			tagged(tagFalse)
		}
	case model.Int:
		tagged(tagInt)
		e.plain(v.Text())
	case model.Float:
		tagged(tagFloat)
		e.plain(v.Text())
	case model.String:
		tagged(tagString)
		e.text(v.Text())
	case model.List:
		tagged(tagList)
		e.number(len(v.Elems()))
		for _, elem := range v.Elems() {
			e.value(elem)
		}
	default:
		if v.Kind() == model.Secret {
			tagged(tagSecret)
		} else {
			tagged(tagStruct)
		}
		e.number(len(v.Fields()))
		for _, f := range v.Fields() {
			e.text(f.Name)
			e.value(f.Value)
		}
	}
}

// walked is a leaf of the values: its path ends at an offset of all their paths.
type walked struct {
	value model.Value
	start int
	end   int
}

// walk collects the leaves of the values, with their paths in e.path. The path of
// v is what is there from start.
func (e *encoder) walk(v model.Value, start int) {
	end := len(e.path)
	if v.Kind() != model.Struct || len(v.Fields()) == 0 {
		e.walked = append(e.walked, walked{v, start, end})
		return
	}
	for _, f := range v.Fields() {
		below := len(e.path)
		if e.path = append(e.path, e.path[start:end]...); end > start {
			e.path = append(e.path, '.')
		}
		e.path = append(e.path, model.Label(f.Name)...)
		e.walk(f.Value, below)
	}
}

func (e *encoder) leaves(g *Graph) {
	p := &g.provenance
	e.path, e.walked = e.path[:0], e.walked[:0]
	if p.values == nil {
		e.walk(g.Values, 0)
	}
	leaves, sites := p.size()
	e.number(leaves)
	e.number(sites)
	next := 0
	for entry := range p.entries {
		if entry.whole {
			for s := range entry.sites[0].leaves {
				e.leaf(g, p, &next, s.path, -1, []*site{s}, nil)
			}
			continue
		}
		from, replaced := entry.origins()
		e.leaf(g, p, &next, entry.path(), entry.number, from, replaced)
	}
	clear(e.walked)
}

// leaf writes a leaf; next is the first leaf of the values after the last one.
func (e *encoder) leaf(g *Graph, p *provenance, next *int, path string, number int, from, replaced []*site) {
	var v model.Value
	at := *next
	for at < len(e.walked) && string(e.path[e.walked[at].start:e.walked[at].end]) != path {
		at++
	}
	if at < len(e.walked) {
		e.number(at - *next + 1)
		v, *next = e.walked[at].value, at+1
	} else {
		switch {
		case p.values == nil:
			v, _ = lookup(g.Values, path)
		case number >= 0:
			v = p.values[number]
		default:
			v = from[0].data()
		}
		e.number(0)
		e.text(path)
		e.value(v)
	}
	e.number(min(len(from), 3) + 4*len(replaced))
	if len(from) >= 3 {
		e.number(len(from) - 3)
	}
	for _, s := range from {
		e.site(s, path, v)
	}
	for _, s := range replaced {
		e.site(s, path, v)
	}
}

func (e *encoder) site(s *site, path string, v model.Value) {
	kind, text := s.root.kind, s.text
	flags := 0
	if s.path != path {
		flags |= ownPath
	}
	switch {
	case s.tree == nil:
	case s.tree.Kind != model.FinalLeaf:
		o := s.origin(v)
		kind, text = o.Kind, o.Text
	case !s.tree.Final.Equal(v):
		flags |= ownValue
	}
	if text != "" {
		flags |= ownText
	}
	n, there := e.roots[rootKey{s.root, kind}]
	if !there {
		alike := *s.root
		alike.kind = kind
		if n, there = e.rootsAlike[alike]; !there {
			e.rootsAlike[alike] = uint64(len(e.rootsAlike) + 1)
			e.roots[rootKey{s.root, kind}] = uint64(len(e.rootsAlike))
			e.number(flags)
			e.text(string(kind))
			e.text(alike.name)
			e.signed(alike.layer)
			e.ref(alike.ref)
		} else {
			e.roots[rootKey{s.root, kind}] = n
		}
	}
	if there {
		e.b = binary.AppendUvarint(e.b, n<<flagBits|uint64(flags))
	}
	if flags&ownPath != 0 {
		e.text(s.path)
	}
	if flags&ownText != 0 {
		e.text(text)
	}
	if flags&ownValue != 0 {
		e.value(s.tree.Final)
	}
}

func (e *encoder) ref(r model.Ref) {
	e.text(r.Collection)
	e.text(r.Name)
	e.text(r.Path)
}

func (e *encoder) needs(needs []Need) {
	e.number(len(needs))
	for _, n := range needs {
		e.text(n.Path)
		e.ref(n.Contract)
		e.text(n.Text)
		flags := 0
		for _, f := range []struct {
			is   bool
			flag int
		}{{n.Optional, needOptional}, {n.Advise, needAdvise}, {n.Met, needMet}} {
			if f.is {
				flags |= f.flag
			}
		}
		e.number(flags)
	}
}

func (e *encoder) diagnostics(ds []diag.Diagnostic) {
	e.number(len(ds))
	for _, d := range ds {
		for _, s := range []string{string(d.Code), string(d.Severity), d.Message, d.Path, d.Hint, d.Environment} {
			e.text(s)
		}
		e.textList(d.Assignments)
		e.number(len(d.Sites))
		for _, s := range d.Sites {
			e.ref(s.Ref)
			e.text(s.Position.File)
			e.signed(s.Position.Line)
			e.signed(s.Position.Column)
			e.text(s.Note)
		}
	}
}

// size counts the leaves, and the sites that they come from and replaced.
func (p *provenance) size() (leaves, sites int) {
	for entry := range p.entries {
		if entry.whole {
			for range entry.sites[0].leaves {
				leaves++
				sites++
			}
			continue
		}
		leaves++
		sites += entry.from + entry.replaced
	}
	return leaves, sites
}

// data is the value of a leaf of data.
func (s *site) data() model.Value {
	if s.tree.Kind == model.FinalLeaf {
		return s.tree.Final
	}
	return model.StructOf()
}
