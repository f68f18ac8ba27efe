package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// Digest identifies content: the SHA-256 of its canonical form, in hex.
type Digest string

// DigestOf returns the digest of v's JSON. Equal values have equal digests if their JSON is
// canonical. The JSON of maps and Values is canonical.
func DigestOf(v any) Digest {
	b, err := json.Marshal(v)
	if err != nil {
		panic("model: digest of what has no JSON: " + err.Error())
	}
	return DigestBytes(b)
}

// DigestBytes returns the digest of b.
func DigestBytes(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest(hex.EncodeToString(sum[:]))
}

// Expr is a self-contained CUE expression as canonical text. It needs only CUE's builtin
// packages.
type Expr string

// Tree is a value whose leaves may be open. It is a struct, a final leaf or an open leaf. Lists
// are leaves. The zero Tree is absent.
type Tree struct {
	Kind   TreeKind
	Fields []TreeField // of a struct, sorted by name
	Final  Value       // of a final leaf
	Open   *Open       // of an open leaf
}

// TreeKind is the kind of a node of a Tree.
type TreeKind uint8

// The kinds of node.
const (
	Absent TreeKind = iota
	StructTree
	FinalLeaf
	OpenLeaf
)

// StructTreeOf returns a struct; it keeps and sorts fields, whose names must differ.
func StructTreeOf(fields ...TreeField) Tree {
	slices.SortFunc(fields, func(a, b TreeField) int { return strings.Compare(a.Name, b.Name) })
	return Tree{Kind: StructTree, Fields: fields}
}

// Field returns a struct's field.
func (t Tree) Field(name string) (Tree, bool) {
	i, ok := slices.BinarySearchFunc(t.Fields, name,
		func(f TreeField, name string) int { return strings.Compare(f.Name, name) })
	if !ok {
		return Tree{}, false
	}
	return t.Fields[i].Tree, true
}

// TreeField is a named field of a struct.
type TreeField struct {
	Name string
	Tree Tree
}

// Open is a leaf that is not final: a constraint, a value with a default, or
// both.
type Open struct {
	// Constraint is the condition for any value, without the marks of defaults: for *"info" |
	// string it is "info" | string.
	Constraint Expr
	// Default is the value if no layer sets another one; nil if there is no default.
	Default *Value
	// Text is the leaf as its author wrote it, for messages.
	Text string
}

// SelectorOp is the kind of a Selector.
type SelectorOp uint8

// The kinds of Selector.
const (
	OpAll      SelectorOp = iota // holds for everything
	OpNone                       // never holds
	OpAnd                        // all of Args hold
	OpOr                         // one of Args holds
	OpField                      // the fact Key is present and satisfies Args[0]
	OpOptional                   // the fact Key is absent, or satisfies Args[0]
	OpEqual                      // the fact's value is Text
	OpSatisfy                    // the fact's value satisfies Expr
)

// Selector is a compiled selector: a predicate over facts. A fact is a name with its values.
type Selector struct {
	Op SelectorOp `json:"op"`
	// of OpAnd and OpOr; the one constraint of OpField and OpOptional
	Args []Selector `json:"args,omitempty"`
	Key  string     `json:"key,omitempty"`
	Text string     `json:"text,omitempty"`
	Expr Expr       `json:"expr,omitempty"`
}

// AddKeys adds the names of the fields in the selector, including nested fields.
func (s *Selector) AddKeys(to map[string]bool) {
	if s.Key != "" {
		to[s.Key] = true
	}
	for i := range s.Args {
		s.Args[i].AddKeys(to)
	}
}

// String returns the selector as CUE-like text, for people.
func (s Selector) String() string {
	switch s.Op {
	case OpAll:
		return "{}"
	case OpField, OpOptional, OpAnd:
		return "{" + s.fields() + "}"
	}
	return s.constraint()
}

func (s Selector) fields() string {
	switch s.Op {
	case OpAnd:
		var parts []string
		for _, a := range s.Args {
			parts = append(parts, a.fields())
		}
		return strings.Join(parts, ", ")
	case OpField:
		return Label(s.Key) + ": " + s.Args[0].constraint()
	case OpOptional:
		return Label(s.Key) + "?: " + s.Args[0].constraint()
	}
	return s.constraint()
}

func (s Selector) constraint() string {
	switch s.Op {
	case OpAll:
		return "_"
	case OpNone:
		return "_|_"
	case OpEqual:
		return string(AppendJSONString(nil, s.Text))
	case OpSatisfy:
		return string(s.Expr)
	case OpOr, OpAnd:
		if s.Op == OpAnd && slices.ContainsFunc(s.Args,
			func(a Selector) bool { return a.Op == OpField || a.Op == OpOptional }) {
			return s.String()
		}
		var parts []string
		for _, a := range s.Args {
			parts = append(parts, a.constraint())
		}
		if s.Op == OpOr {
			return strings.Join(parts, " | ")
		}
		return strings.Join(parts, " & ")
	}
	return s.String()
}
