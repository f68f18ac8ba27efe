// Package cuevalue inspects CUE values: their fields, the syntax that declares them, and their
// self-contained text. It does not report diagnostics.
package cuevalue

import (
	"iter"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"
)

// Field returns a field of a struct. The field may not exist.
func Field(v cue.Value, name string) cue.Value { return v.LookupPath(cue.MakePath(cue.Str(name))) }

// Text returns an error's message, including wrapped messages, without the path that CUE puts
// before it.
func Text(e errors.Error) string {
	message := e.Error()
	if path := strings.Join(e.Path(), "."); path != "" {
		message = strings.TrimPrefix(message, path+": ")
	}
	return message
}

// FirstLine returns the first line of a message, without a colon at its end.
func FirstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(strings.TrimSpace(s), ":")
}

// Fields iterates over the regular fields of a struct, even of an erroneous one. Unlike CUE, it
// skips required fields that are absent.
func Fields(v cue.Value) iter.Seq2[string, cue.Value] {
	return func(yield func(string, cue.Value) bool) {
		it, err := v.Fields()
		for err == nil && it.Next() {
			if !isAbsent(it.Value()) && !yield(it.Selector().Unquoted(), it.Value()) {
				return
			}
		}
	}
}

// isAbsent reports whether a field exists only because it is required.
func isAbsent(v cue.Value) bool {
	err := v.Err()
	if err == nil {
		return false
	}
	first := errors.Errors(err)[0]
	return strings.HasSuffix(Text(first), "required but not present") &&
		len(first.Path()) == len(v.Path().Selectors())
}

// Positions returns the positions of the syntax that declares a value.
func Positions(v cue.Value) []token.Pos {
	var out []token.Pos
	for _, n := range SourceNodes(v) {
		out = append(out, n.Pos())
	}
	return out
}

// MemberOf returns the field of a struct literal with a name. It returns nil if there is no
// such field.
func MemberOf(lit *ast.StructLit, name string) *ast.Field {
	if lit == nil {
		return nil
	}
	for _, d := range lit.Elts {
		if f, ok := d.(*ast.Field); ok {
			if n, _, err := ast.LabelName(f.Label); err == nil && n == name {
				return f
			}
		}
	}
	return nil
}

// SourceNodes returns the syntax that declares a value.
func SourceNodes(v cue.Value) []ast.Node {
	var out []ast.Node
	for _, c := range Conjuncts(v) {
		if n := c.Source(); n != nil {
			out = append(out, n)
		}
	}
	return out
}

// Conjuncts returns the conjuncts of a value.
func Conjuncts(v cue.Value) []cue.Value {
	op, args := v.Expr()
	if op != cue.AndOp {
		return []cue.Value{v}
	}
	var out []cue.Value
	for _, a := range args {
		out = append(out, Conjuncts(a)...)
	}
	return out
}

// IsPlainStruct reports whether a struct has only regular fields.
func IsPlainStruct(v cue.Value) bool {
	it, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		return false
	}
	for it.Next() {
		if it.FieldType() != cue.StringLabel {
			return false
		}
	}
	return true
}

// IsUnknown reports whether CUE could not finish a value because it depends on a value that is
// not concrete. Validate does not report such a value, and Fields leaves out unknown fields.
func IsUnknown(v cue.Value) bool {
	return v.IncompleteKind() == cue.BottomKind && v.Validate() == nil && v.Err() != nil
}

// IsBytes reports whether a value is of type bytes.
func IsBytes(v cue.Value) bool { return v.IncompleteKind() == cue.BytesKind }

// IsStruct reports whether the source of an unknown value is a struct.
func IsStruct(v cue.Value) bool {
	return slices.ContainsFunc(SourceNodes(v), func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			n = f.Value
		}
		_, ok := n.(*ast.StructLit)
		return ok
	})
}

// AssignmentPath is the path of the facts in an entity.
var AssignmentPath = cue.MakePath(cue.Def("#assignment"))

// WithReferences adds to the nodes the declarations that they refer to by name, directly or
// indirectly. It only adds declarations inside one of the nodes of around: lets, and fields
// beside the nodes.
func WithReferences(nodes, around []ast.Node) []ast.Node {
	inside := func(n ast.Node) bool {
		return slices.ContainsFunc(around, func(a ast.Node) bool {
			return n.Pos().Filename() == a.Pos().Filename() && a.Pos().Offset() <= n.Pos().Offset() &&
				n.End().Offset() <= a.End().Offset()
		})
	}
	seen := map[ast.Node]bool{}
	for i := 0; i < len(nodes); i++ {
		ast.Walk(nodes[i], func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if ok && id.Name != "#assignment" && id.Node != nil && !seen[id.Node] && inside(id.Node) {
				seen[id.Node] = true
				nodes = append(nodes, id.Node)
			}
			return true
		}, nil)
	}
	return nodes
}

// Explicit reports whether a value's own source uses #assignment.
func Explicit(v cue.Value) bool {
	return slices.ContainsFunc(SourceNodes(v), func(n ast.Node) bool {
		found, _ := FactsIn(n, map[string]bool{})
		return found
	})
}

// FactsIn collects the X of every #assignment.X below a node. all reports whether #assignment
// is used in any other way.
func FactsIn(n ast.Node, used map[string]bool) (found, all bool) {
	selected := map[*ast.Ident]bool{}
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok || id.Name != "#assignment" {
				return true
			}
			selected[id] = true
			found = true
			if name, _, err := ast.LabelName(n.Sel); err == nil {
				used[name] = true
			} else {
				all = true
			}
		case *ast.Field:
			if id, ok := n.Label.(*ast.Ident); ok && id.Name == "#assignment" {
				return false // its declaration
			}
		case *ast.Ident:
			if n.Name == "#assignment" && !selected[n] {
				found, all = true, true
			}
		}
		return true
	}, nil)
	return found, all
}

// IsUsed reports whether a syntax tree contains a reference to a name.
func IsUsed(name string, nodes []ast.Node) bool {
	used := false
	for _, n := range nodes {
		labels := map[ast.Node]bool{}
		ast.Walk(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				labels[n.Label] = true
			case *ast.Ident:
				used = used || n.Name == name && !labels[n]
			}
			return true
		}, nil)
	}
	return used
}

// Comprehensions returns the positions of the comprehensions in nodes that mention one of the
// names. It does not search inside fields.
func Comprehensions(nodes []ast.Node, names []string) []token.Pos {
	var out []token.Pos
	for _, n := range nodes {
		if f, ok := n.(*ast.Field); ok {
			n = f.Value
		}
		ast.Walk(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				return false
			case *ast.Comprehension:
				if slices.ContainsFunc(n.Clauses, func(c ast.Clause) bool { return mentionsName(c, names) }) {
					out = append(out, n.Pos())
				}
			}
			return true
		}, nil)
	}
	return out
}

func mentionsName(n ast.Node, names []string) bool {
	return contains(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		return ok && slices.Contains(names, id.Name)
	})
}
