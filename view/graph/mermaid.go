package graph

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Mermaid writes a graph as a flowchart of Mermaid
// (https://mermaid.js.org/syntax/flowchart.html). Groups are subgraphs, and each kind of nodes
// has a shape.
func Mermaid(w io.Writer, g *Graph) error {
	var out bytes.Buffer
	nodeLooks, edgeLooks := g.looks()
	ids := numbers(g.Nodes, func(n Node) string { return n.ID })
	fmt.Fprintf(&out, "flowchart LR\n%%%% %s\n", entities(g.Title))
	var highlighted []string
	g.eachGroup(func(n int, of *Group, nodes []Node) {
		indent := "  "
		if of != nil {
			fmt.Fprintf(&out, "  subgraph g%d[%s]\n", n, entities(of.Label))
			indent = "    "
		}
		for _, node := range nodes {
			shape := shapes[nodeLooks.number[node.Kind]%len(shapes)]
			id := fmt.Sprintf("n%d", ids[node.ID])
			fmt.Fprintf(&out, "%s%s%s%s%s\n", indent, id, shape.opens,
				entities(append([]string{node.Label}, node.Detail...)...), shape.closes)
			if node.Highlighted {
				highlighted = append(highlighted, id)
			}
		}
		if of != nil {
			out.WriteString("  end\n")
		}
	})
	for _, e := range g.Edges {
		arrow := "-->"
		switch {
		case e.Highlighted:
			arrow = "==>"
		case edgeLooks.number[e.Kind] > 0:
			arrow = "-.->"
		}
		label := ""
		if e.text() != "" {
			label = "|" + entities(e.text()) + "|"
		}
		fmt.Fprintf(&out, "  n%d %s%s n%d\n", ids[e.From], arrow, label, ids[e.To])
	}
	if len(highlighted) > 0 {
		fmt.Fprintf(&out, "  classDef highlighted stroke:#cf222e,stroke-width:3px\n  class %s "+
			"highlighted\n", strings.Join(highlighted, ","))
	}
	_, err := w.Write(out.Bytes())
	return err
}

// entities returns lines of text as a Mermaid string. Characters that could be HTML,
// Markdown or the string's end are entities.
func entities(lines ...string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i, line := range lines {
		if i > 0 {
			out.WriteString("<br>")
		}
		for _, r := range terminal.Printable(line) {
			if strings.ContainsRune("\"#&;<>`*_\\[]{}|%$", r) {
				fmt.Fprintf(&out, "#%d;", r)
				continue
			}
			out.WriteRune(r)
		}
	}
	if out.Len() == 1 {
		out.WriteByte(' ') // Mermaid reads no empty string
	}
	out.WriteByte('"')
	return out.String()
}
