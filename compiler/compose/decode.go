package compose

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const (
	// maxDepth is how deep values may lie in each other in a binary form.
	maxDepth = 1_000
	// maxPaths is how many bytes all paths may have together, for each byte of the
	// binary form: names are written once, and paths repeat them.
	maxPaths = 256
)

// DecodeGraph reads what AppendBinary wrote, and nothing else. The graph shares
// no memory with b. Bytes that are cut short, damaged or hostile are an error;
// what is allocated is linear in their length.
func DecodeGraph(b []byte) (*Graph, error) {
	d := decoder{rest: string(b), budget: len(b)}
	g := d.graph()
	if d.err == nil && d.rest != "" {
		d.fail("something follows")
	}
	if d.err != nil {
		return nil, fmt.Errorf("decode a graph: %w", d.err)
	}
	return g, nil
}

// decoder reads what encoder writes. After an error it reads nothing but zeros.
// The budget is how many more elements may be claimed, each of at least a byte,
// so that lists within lists cannot claim the same bytes over again.
type decoder struct {
	rest   string
	budget int
	paths  int // how many bytes paths may still have
	texts  []string
	roots  []*root
	err    error
}

func (d *decoder) fail(why string) {
	if d.err == nil {
		d.err = errors.New(why)
	}
	d.rest = ""
}

func (d *decoder) graph() *Graph {
	if d.byte() != format {
		d.fail("another format")
	}
	d.paths = maxPaths * len(d.rest)
	d.texts = make([]string, 0, len(d.rest)/16)
	g := &Graph{Failed: d.bool(), Digest: model.Digest(d.text()), Values: d.value(0), Removed: d.value(0)}
	d.provenance(g)
	if d.err == nil {
		g.Plain, g.Secrets = splitSecrets(g.Values)
	}
	g.Needs = list(d, (*decoder).need)
	g.lists = list(d, (*decoder).text)
	g.ds = list(d, (*decoder).diagnostic)
	return g
}

// list reads a count and so many elements.
func list[T any](d *decoder, element func(*decoder) T) []T {
	n := d.count()
	if n == 0 {
		return nil
	}
	out := make([]T, n)
	for i := 0; i < n && d.err == nil; i++ {
		out[i] = element(d)
	}
	return out
}

func (d *decoder) byte() byte {
	if d.rest == "" {
		d.fail("cut short")
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) bool() bool {
	b := d.byte()
	if b > 1 {
		d.fail("invalid bool")
	}
	return b == 1
}

// number reads a number in its shortest form, of at most 31 bits.
func (d *decoder) number() int {
	n := uint64(0)
	for shift := 0; shift < 35; shift += 7 {
		b := d.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if b == 0 && shift > 0 || n > 1<<31-1 {
				break
			}
			return int(n)
		}
	}
	d.fail("invalid number")
	return 0
}

// signed reads a number of 64 bits in its shortest form.
func (d *decoder) signed() int {
	var b [binary.MaxVarintLen64]byte
	head := copy(b[:], d.rest)
	n, size := binary.Varint(b[:head])
	if size <= 0 || size > 1 && b[size-1] == 0 || int64(int(n)) != n {
		d.fail("invalid number")
		return 0
	}
	d.rest = d.rest[size:]
	return int(n)
}

// count reads how many elements follow.
func (d *decoder) count() int {
	n := d.number()
	if n > d.budget {
		d.fail("more elements than bytes")
		return 0
	}
	d.budget -= n
	return n
}

func (d *decoder) plain() string {
	n := d.number()
	if n > len(d.rest) {
		d.fail("cut short")
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) text() string {
	n := d.number()
	switch {
	case n == 0:
		s := d.plain()
		d.texts = append(d.texts, s)
		return s
	case n > len(d.texts):
		d.fail("no such text")
		return ""
	}
	return d.texts[n-1]
}

func (d *decoder) value(depth int) model.Value {
	if depth > maxDepth {
		d.fail("too many levels")
		return model.Value{}
	}
	switch t := tag(d.byte()); t {
	case tagNull:
		return model.Value{}
	case tagFalse, tagTrue:
		return model.BoolOf(t == tagTrue)
	case tagInt:
		return d.scalar(model.Int)
	case tagFloat:
		return d.scalar(model.Float)
	case tagString:
		return model.StringOf(d.text())
	case tagList:
		elems := make([]model.Value, d.count())
		for i := range elems {
			if d.err == nil {
				elems[i] = d.value(depth + 1)
			}
		}
		return model.ListOf(elems...)
	case tagStruct:
		return model.StructOf(d.fields(depth)...)
	case tagSecret:
		return model.SecretOf(d.fields(depth)...)
	}
	d.fail("invalid value")
	return model.Value{}
}

func (d *decoder) scalar(kind model.Kind) model.Value {
	v, err := model.ScalarOf(kind, d.plain())
	if err != nil {
		d.fail(err.Error())
	}
	return v
}

func (d *decoder) fields(depth int) []model.Field {
	out := make([]model.Field, d.count())
	for i := 0; i < len(out) && d.err == nil; i++ {
		out[i] = model.Field{Name: d.text(), Value: d.value(depth + 1)}
		if i > 0 && out[i-1].Name >= out[i].Name {
			d.fail("fields are not sorted")
		}
	}
	return out
}

// found is a leaf of the values.
type found struct {
	path  string
	value model.Value
}

// walk appends the leaves of a value at a path.
func (d *decoder) walk(to []found, path string, v model.Value) []found {
	if v.Kind() != model.Struct || len(v.Fields()) == 0 {
		return append(to, found{path, v})
	}
	for _, f := range v.Fields() {
		label := model.Label(f.Name)
		if d.paths -= len(path) + 1 + len(label); d.paths < 0 {
			d.fail("paths are too long")
		}
		if d.err != nil {
			return to
		}
		to = d.walk(to, model.JoinPath(path, label), f.Value)
	}
	return to
}

// provenance reads the leaves, most of which are in the values.
func (d *decoder) provenance(g *Graph) {
	p := &g.provenance
	leaves, sites := d.count(), d.count()
	if d.err != nil {
		return
	}
	in := d.walk(make([]found, 0, leaves), "", g.Values)
	p.heads, p.sites, p.values = make([]byte, 0, 2*leaves), make([]*site, 0, sites), make([]model.Value, 0, leaves)
	slab := make([]site, sites)
	next := 0
	for range leaves {
		var leaf found
		if steps := d.number(); steps == 0 {
			leaf = found{d.text(), d.value(0)}
			v, there := lookup(g.Values, leaf.path)
			if removed := isNull(g.Removed, elements(leaf.path)); !g.Failed && there == removed || !v.Equal(leaf.value) && !g.Failed {
				d.fail("a leaf is not in the values")
			}
		} else if next += steps; next <= len(in) {
			leaf = in[next-1]
		} else {
			d.fail("more leaves than there are")
		}
		from, replaced := d.head()
		if d.err == nil && from+replaced > len(slab) {
			d.fail("more sites than there are")
		}
		if d.err != nil {
			return
		}
		own := slab[:from+replaced]
		slab = slab[from+replaced:]
		for i := range own {
			d.site(&own[i], leaf)
		}
		p.enterDecoded(leaf, from, own)
	}
	if !g.Failed {
		p.values = nil
	}
	if len(slab) > 0 {
		d.fail("fewer sites than there are")
	}
}

// enterDecoded notes a leaf with all its sites.
func (p *provenance) enterDecoded(leaf found, from int, sites []site) {
	h := head{from: from, replaced: len(sites) - from, placed: from == 0 || sites[0].path != leaf.path}
	if h.placed {
		p.sites = append(p.sites, &site{path: leaf.path})
	}
	for i := range sites {
		p.sites = append(p.sites, &sites[i])
	}
	p.enter(h, leaf.value, 0)
}

// head reads how many sites a leaf comes from and replaced.
func (d *decoder) head() (from, replaced int) {
	n := d.number()
	from, replaced = n%4, n/4
	if from == 3 {
		from += d.number()
	}
	return from, replaced
}

func (d *decoder) site(s *site, leaf found) {
	n := d.number()
	flags := n & (1<<flagBits - 1)
	switch n >>= flagBits; {
	case n == 0:
		s.root = &root{kind: OriginKind(d.text()), name: d.text(), layer: d.signed(), ref: d.ref()}
		d.roots = append(d.roots, s.root)
	case n > len(d.roots):
		d.fail("no such root")
		return
	default:
		s.root = d.roots[n-1]
	}
	s.path = leaf.path
	if flags&ownPath != 0 {
		if s.path = d.text(); s.path == leaf.path {
			d.fail("a path is given twice")
		}
	}
	if flags&ownText != 0 {
		if s.text = d.text(); s.text == "" {
			d.fail("an empty text")
		}
	}
	if flags&ownValue != 0 {
		s.tree = &model.Tree{Kind: model.FinalLeaf, Final: d.value(0)}
		if flags&ownText != 0 || s.tree.Final.Equal(leaf.value) {
			d.fail("a value is given twice")
		}
	}
}

func (d *decoder) ref() model.Ref {
	return model.Ref{Collection: d.text(), Name: d.text(), Path: d.text()}
}

func (d *decoder) need() Need {
	n := Need{Path: d.text(), Contract: d.ref(), Text: d.text()}
	flags := d.number()
	if flags >= needFlags {
		d.fail("an unknown flag")
	}
	n.Optional, n.Advise, n.Met = flags&needOptional != 0, flags&needAdvise != 0, flags&needMet != 0
	return n
}

func (d *decoder) diagnostic() diag.Diagnostic {
	return diag.Diagnostic{
		Code: diag.Code(d.text()), Severity: diag.Severity(d.text()), Message: d.text(), Path: d.text(),
		Hint: d.text(), Environment: d.text(), Assignments: list(d, (*decoder).text), Sites: list(d, (*decoder).diagSite),
	}
}

func (d *decoder) diagSite() diag.Site {
	return diag.Site{
		Ref:      d.ref(),
		Position: model.Position{File: d.text(), Line: d.signed(), Column: d.signed()},
		Note:     d.text(),
	}
}
