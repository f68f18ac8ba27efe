package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// foldable are nodes of one kind, in one group or anywhere, that one node may replace.
type foldable struct {
	group, kind string
	nodes       []*Node
	whole       *Group // the group, if these are all of its nodes
}

// Fold replaces nodes by one node with their number, until the graph has at most the given
// number of nodes, or no nodes are left to fold. First it folds nodes of one kind in one
// group, the largest set first, and then as many nodes of a kind as are too many. A node for
// a whole group has the group's label, and all such nodes are in one group. Highlighted nodes
// stay. The graph stays sorted.
func (g *Graph) Fold(most int) {
	for _, anywhere := range []bool{false, true} {
		stands := map[string]Node{} // the node that replaces a node, by its id
		left := len(g.Nodes)
		for _, f := range g.foldables(anywhere) {
			if left <= most {
				break
			}
			if enough := left - most + 1; anywhere && enough < len(f.nodes) {
				f.nodes = f.nodes[len(f.nodes)-enough:]
			}
			left -= len(f.nodes) - 1
			folded := f.fold()
			if f.whole != nil {
				beside := Group{ID: fmt.Sprintf("folded/%d", f.whole.Rank), Label: "folded", Rank: f.whole.Rank}
				if !slices.Contains(g.Groups, beside) {
					g.Groups = append(g.Groups, beside)
				}
				folded.Group = beside.ID
			}
			for _, n := range f.nodes {
				stands[n.ID] = folded
			}
		}
		if len(stands) > 0 {
			g.replace(stands)
		}
	}
}

// foldables returns the sets of nodes that can be folded, the largest first.
func (g *Graph) foldables(anywhere bool) []foldable {
	found := map[[2]string]*foldable{}
	sizes := map[string]int{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		sizes[n.Group]++
		if n.Highlighted || n.Group == "" && !anywhere {
			continue
		}
		key := [2]string{n.Group, n.Kind}
		if anywhere {
			key[0] = ""
		}
		if found[key] == nil {
			found[key] = &foldable{group: key[0], kind: key[1]}
		}
		found[key].nodes = append(found[key].nodes, n)
	}
	groups := numbers(g.Groups, func(of Group) string { return of.ID })
	var out []foldable
	for _, f := range found {
		if of, grouped := groups[f.group]; grouped && sizes[f.group] == len(f.nodes) {
			whole := g.Groups[of]
			f.whole = &whole
		}
		if len(f.nodes) > 1 {
			out = append(out, *f)
		}
	}
	slices.SortFunc(out, func(a, b foldable) int {
		return cmp.Or(len(b.nodes)-len(a.nodes), strings.Compare(a.group, b.group),
			strings.Compare(a.kind, b.kind))
	})
	return out
}

// fold returns the node that replaces the nodes.
func (f *foldable) fold() Node {
	out := Node{ID: "folded/" + f.group + "/" + f.kind, Kind: f.kind}
	if !slices.ContainsFunc(f.nodes, func(n *Node) bool { return n.Group != f.nodes[0].Group }) {
		out.Group = f.nodes[0].Group
	}
	const named = 3
	var names []string
	for _, n := range f.nodes {
		out.Count += max(n.Count, 1)
		if len(names) < named {
			names = append(names, n.Label)
		}
	}
	out.Label = fmt.Sprintf("%d × %s", out.Count, f.kind)
	if f.whole != nil {
		out.Label, out.Detail = f.whole.Label, []string{out.Label}
	}
	if len(f.nodes) > named {
		names = append(names, "…")
	}
	out.Detail = append(out.Detail, strings.Join(names, ", "))
	return out
}

// replace puts nodes in the place of others, leaves out groups that lose all theirs, and makes
// one of edges that then have the same ends and kind.
func (g *Graph) replace(stands map[string]Node) {
	nodes, groups := map[string]Node{}, map[string]bool{}
	for _, n := range g.Nodes {
		if folded, is := stands[n.ID]; is {
			n = folded
		}
		nodes[n.ID], groups[n.Group] = n, true
	}
	g.Nodes = g.Nodes[:0:0]
	for _, n := range nodes {
		g.Nodes = append(g.Nodes, n)
	}
	g.Groups = slices.DeleteFunc(slices.Clone(g.Groups), func(of Group) bool { return !groups[of.ID] })
	merged := map[Edge]*Edge{} // by the common attributes of edges
	for _, e := range g.Edges {
		from, ofFrom := stands[e.From]
		to, ofTo := stands[e.To]
		key := Edge{From: cmp.Or(from.ID, e.From), To: cmp.Or(to.ID, e.To), Kind: e.Kind,
			Highlighted: e.Highlighted}
		if !ofFrom && !ofTo {
			key.Label = e.Label
		}
		if key.From == key.To {
			continue
		}
		if merged[key] == nil {
			first := key
			merged[key] = &first
		}
		merged[key].Count += max(e.Count, 1)
	}
	g.Edges = g.Edges[:0:0]
	for _, e := range merged {
		if e.Count == 1 {
			e.Count = 0
		}
		g.Edges = append(g.Edges, *e)
	}
	g.Sort()
}
