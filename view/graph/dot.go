package graph

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/kalypso-io/kalypso/internal/terminal"
)

// shapes are the shapes of nodes in DOT and in Mermaid, by the number of the kind.
var shapes = []struct{ dot, opens, closes string }{
	{"box", "[", "]"}, {"ellipse", "([", "])"}, {"hexagon", "{{", "}}"}, {"parallelogram", "[/", "/]"},
	{"cylinder", "[(", ")]"}, {"octagon", "[[", "]]"}, {"trapezium", `[/`, `\]`}, {"house", ">", "]"},
}

// DOT writes a graph in the language of Graphviz (https://graphviz.org/doc/info/lang.html).
// Groups are clusters, and each kind of nodes has a shape.
func DOT(w io.Writer, g *Graph) error {
	var out bytes.Buffer
	nodeLooks, edgeLooks := g.looks()
	fmt.Fprintf(&out, "digraph {\n\tgraph [rankdir=LR, label=%s, fontname=monospace]\n\tnode "+
		"[fontname=monospace]\n\tedge [fontname=monospace]\n", shownLines(g.Title))
	g.eachGroup(func(n int, of *Group, nodes []Node) {
		indent := "\t"
		if of != nil {
			fmt.Fprintf(&out, "\tsubgraph cluster_%d {\n\t\tlabel=%s\n", n, shownLines(of.Label))
			indent = "\t\t"
		}
		for _, node := range nodes {
			fmt.Fprintf(&out, "%s%s [label=%s, shape=%s, tooltip=%s%s]\n", indent, quoted(node.ID),
				shownLines(append([]string{node.Label}, node.Detail...)...),
				shapes[nodeLooks.number[node.Kind]%len(shapes)].dot, shownLines(node.Kind),
				bold(node.Highlighted))
		}
		if of != nil {
			out.WriteString("\t}\n")
		}
	})
	for _, e := range g.Edges {
		style := []string{"solid", "dashed", "dotted", "dashed"}[edgeLooks.number[e.Kind]%dashes]
		label := ""
		if e.text() != "" {
			label = ", label=" + shownLines(e.text())
		}
		fmt.Fprintf(&out, "\t%s -> %s [style=%s, tooltip=%s%s%s]\n", quoted(e.From), quoted(e.To), style,
			shownLines(e.Kind), label, bold(e.Highlighted))
	}
	out.WriteString("}\n")
	_, err := w.Write(out.Bytes())
	return err
}

// bold are the attributes of highlighted nodes and edges.
func bold(highlighted bool) string {
	if highlighted {
		return ", color=red, penwidth=2.5"
	}
	return ""
}

// quoted returns text as a string of DOT.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(terminal.Printable(text)) + `"`
}

// shownLines returns lines of text as a DOT string for display, in which HTML entities have
// a meaning.
func shownLines(lines ...string) string {
	var out []string
	for _, line := range lines {
		line = quoted(strings.ReplaceAll(line, "&", "&amp;"))
		out = append(out, line[1:len(line)-1])
	}
	return `"` + strings.Join(out, `\n`) + `"`
}

// eachGroup calls f with the nodes of each group that has some, and last with the nodes without
// a group.
func (g *Graph) eachGroup(f func(n int, of *Group, nodes []Node)) {
	groups := numbers(g.Groups, func(of Group) string { return of.ID })
	nodes := make([][]Node, len(g.Groups)+1)
	for _, n := range g.Nodes {
		of, grouped := groups[n.Group]
		if !grouped {
			of = len(g.Groups)
		}
		nodes[of] = append(nodes[of], n)
	}
	for n := range g.Groups {
		if len(nodes[n]) > 0 {
			f(n, &g.Groups[n], nodes[n])
		}
	}
	f(len(g.Groups), nil, nodes[len(g.Groups)])
}
