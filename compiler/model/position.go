package model

import (
	"strings"
)

// Position is a place in a source file. Lines and columns count from 1, columns
// in bytes; File is relative to the platform's root, with slashes.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// IsZero says whether there is no position.
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

// Ref names a value of the platform, such as configs, west-us,
// values.DATABASE_URL. It is what provenance and diagnostics hold instead of a
// position, so that moving a line changes no result.
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

// Label returns a field name as it stands in a CUE path: quoted unless it is an
// identifier.
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

// Positions is the table of where the platform's values are written. A value
// written in several places has several positions.
type Positions map[Ref][]Position

// Add records that the value is written at p, once.
func (t Positions) Add(r Ref, p Position) {
	for _, q := range t[r] {
		if q == p {
			return
		}
	}
	t[r] = append(t[r], p)
}

// Of returns where a value is written: its own positions, else those of the
// nearest value around it that has some.
func (t Positions) Of(r Ref) []Position {
	for {
		if p := t[r]; len(p) > 0 || r.Path == "" {
			return p
		}
		r.Path = parent(r.Path)
	}
}

// parent cuts the last element off a CUE path.
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
