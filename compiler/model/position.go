package model

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Position is a place in a source file. Lines and columns count from 1, columns
// in bytes; File is relative to the platform's root, with slashes.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// IsZero reports whether there is no position.
func (p Position) IsZero() bool { return p.File == "" }

// Compare orders positions by file, line and column.
func (p Position) Compare(q Position) int {
	if c := strings.Compare(p.File, q.File); c != 0 {
		return c
	}
	if p.Line != q.Line {
		return p.Line - q.Line
	}
	return p.Column - q.Column
}

// Ref names a value of the platform, such as configs, west-us, values.DATABASE_URL. Provenance
// and diagnostics store it instead of a position, so that moving a line does not change any
// result.
type Ref struct {
	Collection string // as in CUE: "configs"
	Name       string // the entity's key
	Path       string // a CUE path below the entity, or "" for the entity itself
}

// String returns the reference as a path from the platform's root.
func (r Ref) String() string {
	s := r.Collection
	if r.Name != "" {
		s += "." + Label(r.Name)
	}
	if r.Path != "" {
		s += "." + r.Path
	}
	return s
}

// At returns the reference to a value below r.
func (r Ref) At(path string) Ref {
	r.Path = JoinPath(r.Path, path)
	return r
}

// Entity returns the reference to the entity that r is in.
func (r Ref) Entity() Ref { return Ref{Collection: r.Collection, Name: r.Name} }

// CompareEntities orders references by the entities that they are in.
func CompareEntities(a, b Ref) int {
	return cmp.Or(strings.Compare(a.Collection, b.Collection), strings.Compare(a.Name, b.Name))
}

// JoinPath joins two CUE paths, either of which may be empty.
func JoinPath(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "", b[0] == '[':
		return a + b
	}
	return a + "." + b
}

// Label returns a field name in the syntax of a CUE path: quoted unless it is an identifier.
func Label(name string) string {
	for i, c := range name {
		letter := c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return string(AppendJSONString(nil, name))
		}
	}
	if name == "" || strings.HasPrefix(name, "_") {
		return string(AppendJSONString(nil, name))
	}
	return name
}

// Positions maps the platform's values to their places in the sources. A value written in
// several places has several positions. The table may read some of its parts only when a caller
// first requests one of their positions. Several goroutines may use it; a nil table is empty.
type Positions struct {
	mu       sync.Mutex
	table    map[Ref][]Position
	deferred map[Ref]*deferredPositions // by entity
	// elsewhere has, by collection, the functions that find entities outside of the table.
	elsewhere map[string]func(name string) []Position
}

// deferredPositions is a part of a table that has not been read.
type deferredPositions struct {
	read func() map[Ref][]Position
	done bool
}

// Add records that the value is written at p. It does not add a position twice.
func (t *Positions) Add(r Ref, p Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.table == nil {
		t.table = map[Ref][]Position{}
	}
	if !slices.Contains(t.table[r], p) {
		t.table[r] = append(t.table[r], p)
	}
}

// Defer delays reading the positions of some entities and of everything inside them. The table
// calls read at most once, for the first request of such a position. The table owns the map
// that read returns, and read must not use the table.
func (t *Positions) Defer(entities []Ref, read func() map[Ref][]Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deferred == nil {
		t.deferred = make(map[Ref]*deferredPositions, len(entities))
	}
	d := &deferredPositions{read: read}
	for _, e := range entities {
		t.deferred[e] = d
	}
}

// Elsewhere sets the function that finds entities of a collection that are not in the table,
// because no CUE file declares them. Several goroutines may call find.
func (t *Positions) Elsewhere(collection string, find func(name string) []Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.elsewhere == nil {
		t.elsewhere = map[string]func(string) []Position{}
	}
	t.elsewhere[collection] = find
}

// Of returns the positions of a value. If the value has no positions, it returns the positions
// of the nearest value around it that has some.
func (t *Positions) Of(r Ref) []Position {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if d := t.deferred[r.Entity()]; d != nil {
		t.read(d)
	}
	for {
		p := t.table[r]
		switch find := t.elsewhere[r.Collection]; {
		case len(p) > 0:
			return p
		case r.Path == "" && find != nil:
			return find(r.Name)
		case r.Path == "":
			return nil
		}
		r.Path = parent(r.Path)
	}
}

// Exactly returns the positions of a value itself. It returns nil if only an enclosing value
// has positions.
func (t *Positions) Exactly(r Ref) []Position {
	t.Of(r) // reads the deferred positions of r
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.table[r]
}

// All returns the whole table. The caller must not change it.
func (t *Positions) All() map[Ref][]Position {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range t.deferred {
		t.read(d)
	}
	return t.table
}

func (t *Positions) read(d *deferredPositions) {
	if d.done {
		return
	}
	d.done = true
	of := d.read()
	if t.table == nil {
		t.table = make(map[Ref][]Position, len(of))
	}
	maps.Copy(t.table, of)
	d.read = nil
}

// parent returns a CUE path without its last element.
func parent(path string) string {
	quoted := false
	cut := 0
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '.' || c == '['):
			cut = i
		}
	}
	return path[:cut]
}

// ParsePath reads a path of field names as users write it, and returns it as Ref writes it. It
// is more lenient than CUE, which requires quotes around reject-tags: only a name that contains
// a dot or begins with a quote needs quotes.
func ParsePath(s string) (string, bool) {
	path := ""
	for {
		name, rest, more := strings.Cut(s, ".")
		if strings.HasPrefix(s, `"`) {
			end := endOfString(s)
			unquoted, err := strconv.Unquote(s[:end])
			if err != nil {
				return "", false
			}
			name = unquoted
			if rest, more = strings.CutPrefix(s[end:], "."); !more && rest != "" {
				return "", false
			}
		}
		if name == "" || strings.TrimSpace(name) != name {
			return "", false
		}
		path = JoinPath(path, Label(name))
		if !more {
			return path, true
		}
		s = rest
	}
}

// endOfString returns the end of the string literal at the start of s.
func endOfString(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// Elements splits a path of field names, as Ref writes it, into the names. An index is part of
// the name before it.
func Elements(path string) []string {
	var out []string
	for path != "" {
		if path[0] != '"' {
			name, rest, _ := strings.Cut(path, ".")
			out, path = append(out, name), rest
			continue
		}
		end := 1
		for end < len(path) && path[end] != '"' {
			if path[end] == '\\' {
				end++
			}
			end++
		}
		name, err := strconv.Unquote(path[:min(end+1, len(path))])
		if err != nil {
			name = path
			end = len(path)
		}
		out, path = append(out, name), strings.TrimPrefix(path[min(end+1, len(path)):], ".")
	}
	return out
}
