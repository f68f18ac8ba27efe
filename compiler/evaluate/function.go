package evaluate

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// factNames are the fields of #assignment, as schema.#Assignment declares them.
func factNames() []string { return schemaShapes()["#Assignment"].names() }

var assignmentPath = cue.MakePath(cue.Def("#assignment"))

// factsOf returns which facts of #assignment a part of an entity uses, sorted;
// nil for none. The entity must declare #assignment, so the identifier stands
// in its own source: where it does not, the source refers to something else
// that uses it, and all facts count as used.
func factsOf(entity cue.Value, parts ...cue.Value) []string {
	if !entity.LookupPath(assignmentPath).Exists() {
		return nil
	}
	used := map[string]bool{}
	all := false
	entityNodes := sourceNodes(entity)
	for _, part := range parts {
		if !part.Exists() {
			continue
		}
		found := false
		for _, n := range withReferences(sourceNodes(part), entityNodes) {
			f, a := factsIn(n, used)
			found, all = found || f, all || a
		}
		if !found && part.Validate(cue.Concrete(true)) != nil {
			all = true
		}
	}
	if all {
		return factNames()
	}
	var names []string
	for n := range used {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// withReferences adds to the nodes what they refer to by name, directly or not, as far
// as it is written inside one of the nodes around them: lets and fields beside them.
func withReferences(nodes, around []ast.Node) []ast.Node {
	inside := func(n ast.Node) bool {
		return slices.ContainsFunc(around, func(a ast.Node) bool {
			return n.Pos().Filename() == a.Pos().Filename() && a.Pos().Offset() <= n.Pos().Offset() && n.End().Offset() <= a.End().Offset()
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

// explicit says whether a value's own source uses #assignment.
func explicit(v cue.Value) bool {
	for _, n := range sourceNodes(v) {
		if found, _ := factsIn(n, map[string]bool{}); found {
			return true
		}
	}
	return false
}

// usesFact reports a fact that a function cannot know, and returns whether it
// uses it.
func (x *exporter) usesFact(ref model.Ref, fact, why string, parts ...cue.Value) bool {
	used := map[string]bool{}
	for _, part := range parts {
		for _, n := range sourceNodes(part) {
			factsIn(n, used)
		}
	}
	if !used[fact] {
		return false
	}
	d := diag.New(diag.Function, "#assignment."+fact+" is not known here: "+why).Hinting("use another fact of the assignment")
	for _, part := range parts {
		d = x.at(d, part)
	}
	x.fail(ref, d)
	return true
}

// factsIn collects the X of every #assignment.X below a node; all says that
// #assignment is used in another way.
func factsIn(n ast.Node, used map[string]bool) (found, all bool) {
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
