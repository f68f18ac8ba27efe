// Package graph draws graphs: as SVG with its own layout, and as the input of Graphviz and
// Mermaid. A graph is plain data, and may come from anywhere. Its texts are always shown as
// texts, whatever they contain. The same graph gives the same bytes.
package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Graph is a directed graph. Its slices are sorted, as Sort leaves them, and each edge is
// between nodes that exist.
type Graph struct {
	Title  string  `json:"title"`
	Groups []Group `json:"groups"`
	Nodes  []Node  `json:"nodes"`
	Edges  []Edge  `json:"edges"`
	// NodeLooks and EdgeLooks number the looks of kinds, so that a kind looks alike in
	// several graphs. Kinds that they do not have get the numbers after theirs, by name.
	NodeLooks map[string]int `json:"-"`
	EdgeLooks map[string]int `json:"-"`
}

// Group is a set of nodes that belong together.
type Group struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Rank is the first column that the node may be in: nodes of rank 0 are first.
	Rank int `json:"rank"`
}

// Node is a node.
type Node struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Kind is the kind in the legend, and decides the look of the node.
	Kind  string `json:"kind"`
	Group string `json:"group,omitempty"` // the id of its group, or ""
	// Detail are lines of text below the label.
	Detail      []string `json:"detail,omitempty"`
	Highlighted bool     `json:"highlighted,omitempty"`
	// Count is the number of nodes that it replaces if it was folded, or 0.
	Count int `json:"count,omitempty"`
}

// Edge is an edge from one node to another.
type Edge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Label string `json:"label,omitempty"`
	// Kind is the kind in the legend, and decides the look of the edge.
	Kind        string `json:"kind"`
	Highlighted bool   `json:"highlighted,omitempty"`
	// Count is the number of edges that it replaces if nodes were folded, or 0.
	Count int `json:"count,omitempty"`
}

// Sort sorts groups by rank and id, nodes by id, and edges by their ends and kind; and it
// leaves out edges that are there twice.
func (g *Graph) Sort() {
	slices.SortFunc(g.Groups,
		func(a, b Group) int { return cmp.Or(a.Rank-b.Rank, strings.Compare(a.ID, b.ID)) })
	slices.SortFunc(g.Nodes, func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(g.Edges, compareEdges)
	g.Edges = slices.Compact(g.Edges)
}

func compareEdges(a, b Edge) int {
	highlight := 0
	if a.Highlighted != b.Highlighted {
		highlight = 1
		if a.Highlighted {
			highlight = -1
		}
	}
	return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To),
		strings.Compare(a.Kind, b.Kind), strings.Compare(a.Label, b.Label), highlight)
}

// Highlight highlights nodes by their ids, and the edges between two of them.
func (g *Graph) Highlight(nodes map[string]bool) {
	for i := range g.Nodes {
		g.Nodes[i].Highlighted = g.Nodes[i].Highlighted || nodes[g.Nodes[i].ID]
	}
	for i := range g.Edges {
		g.Edges[i].Highlighted = g.Edges[i].Highlighted || nodes[g.Edges[i].From] && nodes[g.Edges[i].To]
	}
}

// looks are the kinds in a graph, sorted, and the number of the look of each.
type looks struct {
	kinds  []string
	number map[string]int
}

// looks returns the looks of nodes and of edges.
func (g *Graph) looks() (nodes, edges looks) {
	found := [2]map[string]bool{{}, {}}
	for _, n := range g.Nodes {
		found[0][n.Kind] = true
	}
	for _, e := range g.Edges {
		found[1][e.Kind] = true
	}
	return newLooks(found[0], g.NodeLooks), newLooks(found[1], g.EdgeLooks)
}

func newLooks(found map[string]bool, known map[string]int) looks {
	l := looks{slices.Sorted(maps.Keys(found)), map[string]int{}}
	next := 0
	for _, n := range known {
		next = max(next, n+1)
	}
	for _, kind := range l.kinds {
		n, is := known[kind]
		if !is {
			n, next = next, next+1
		}
		l.number[kind] = n
	}
	return l
}

// text returns the label of an edge with the number of edges that it replaces.
func (e Edge) text() string {
	if e.Count > 1 {
		return strings.TrimSpace(fmt.Sprintf("%s ×%d", e.Label, e.Count))
	}
	return e.Label
}
