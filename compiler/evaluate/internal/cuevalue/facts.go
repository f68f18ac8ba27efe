package cuevalue

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// AssignmentPath is that of the facts in an entity.
var AssignmentPath = cue.MakePath(cue.Def("#assignment"))

// WithReferences adds to the nodes what they refer to by name, directly or not, as far
// as it is written inside one of the nodes around them: lets and fields beside them.
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

// Explicit says whether a value's own source uses #assignment.
func Explicit(v cue.Value) bool {
	return slices.ContainsFunc(SourceNodes(v), func(n ast.Node) bool {
		found, _ := FactsIn(n, map[string]bool{})
		return found
	})
}

// FactsIn collects the X of every #assignment.X below a node; all says that
// #assignment is used in another way.
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

// IsUsed says whether something in a syntax tree refers to a name.
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

// Comprehensions returns where comprehensions that mention one of the names
// stand in syntax, but not inside fields of it.
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
