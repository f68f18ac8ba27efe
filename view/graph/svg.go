package graph

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Stylesheet is the style of pictures by SVG, for a page that shows them. A page with a theme
// of its own may set the properties that it begins with.
//
//go:embed style.css
var Stylesheet string

const (
	margin     = 20
	titleY     = 18
	legendRow  = 20
	fewestWide = 480 // the width of a picture at least
	maxLabels  = 80  // the most lines with drawn labels
)

// marks are drawn before labels, by the number of the look. There are as many colours; each
// round of marks begins with the next one, so that the first 64 looks differ.
var marks = []string{
	"m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z", "m-4.5-4.5h9v9h-9z", "m0-6l6 6-6 6-6-6z",
	"m0-5.5l5.5 10h-11z",
	"m-3-5h6l3 5-3 5h-6l-3-5z", "m-2-5.5h4v3.5h3.5v4h-3.5v3.5h-4v-3.5h-3.5v-4h3.5z",
	"m-5.5-4.5h11l-5.5 10z", "m-5.5-2.5h11v5h-11z",
}

const dashes = 4

// picture is an SVG that is being written.
type picture struct {
	bytes.Buffer
	g           *Graph
	layout      *layout
	nodes       looks
	edges       looks
	highlighted bool // whether anything is
	top         int  // the vertical position of the graph
}

// SVG writes a graph as a picture without scripts, with a legend of its kinds. A text that does
// not fit is cut; its tooltip has all of it. With standalone it has Stylesheet in it, and is a
// file of its own; without, it is an element for a page that has Stylesheet.
func SVG(w io.Writer, g *Graph, standalone bool) error {
	edges := g.ends()
	p := &picture{g: g, layout: layOut(g, edges)}
	p.nodes, p.edges = g.looks()
	p.highlighted = slices.ContainsFunc(g.Nodes, func(n Node) bool { return n.Highlighted })
	drawn, bundled := lines(g, edges)
	width := max(p.layout.width, fewestWide)
	legend := p.legend(width, bundled)
	height := p.top + p.layout.height
	var out bytes.Buffer
	fmt.Fprintf(&out,
		`<svg xmlns="http://www.w3.org/2000/svg" class="kalypso-graph" role="img" width="%d" height="%d" viewBox="%d %d %[1]d %[2]d">`+"\n", width+2*margin, height+2*margin, -margin, -margin)
	fmt.Fprintf(&out, "<title>%s</title>\n<desc>%s</desc>\n",
		html.EscapeString(terminal.Printable(g.Title)), html.EscapeString(g.description()))
	if standalone {
		fmt.Fprintf(&out, "<style>\n%s</style>\n", Stylesheet)
	}
	fmt.Fprintf(&out, `<rect class="page" x="%d" y="%[1]d" width="%d" height="%d"/>`+"\n", -margin,
		width+2*margin, height+2*margin)
	out.WriteString(legend)
	fmt.Fprintf(&out, `<g transform="translate(%d %d)">`+"\n", (width-p.layout.width)/2, p.top)
	for i, group := range p.g.Groups {
		b := p.layout.groups[i]
		if b.w == 0 {
			continue
		}
		fmt.Fprintf(p,
			`<g><title>%s</title><rect class="frame" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n",
			html.EscapeString(terminal.Printable(group.Label)), b.x, b.y, b.w, b.h)
		p.WriteString(text("head", b.x+groupPad, b.y+16, group.Label, (b.w-2*groupPad)/cell) + "</g>\n")
	}
	p.lines(drawn)
	for i := range g.Nodes {
		n, b := p.g.Nodes[i], p.layout.nodes[i]
		class := "node"
		switch {
		case n.Highlighted:
			class += " highlighted"
		case p.highlighted:
			class += " faint"
		}
		whole := []string{terminal.Printable(n.Kind + " " + n.Label)}
		for _, d := range n.Detail {
			whole = append(whole, terminal.Printable(d))
		}
		fmt.Fprintf(p,
			`<g class="%s"><title>%s</title><rect class="box" x="%d" y="%d" width="%d" height="%d" rx="4"/>`,
			class, html.EscapeString(strings.Join(whole, "\n")), b.x, b.y, b.w, b.h)
		p.WriteString(p.mark(n.Kind, fmt.Sprintf("M%d %d", b.x+nodePad+6, b.y+nodeHeight/2)) + "\n")
		p.WriteString(text("label", b.x+nodePad+markWidth, b.y+nodeHeight/2+4, n.Label, maxCells))
		for line, d := range details(n) {
			p.WriteString(text("small", b.x+nodePad, b.y+nodeHeight+line*lineHeight+6, d, maxDetails))
		}
		p.WriteString("</g>\n")
	}
	p.WriteString("</g>\n</svg>\n")
	_, err := w.Write(append(out.Bytes(), p.Bytes()...))
	return err
}

// ends returns the ends of the edges, as numbers of nodes.
func (g *Graph) ends() []ends {
	nodes := numbers(g.Nodes, func(n Node) string { return n.ID })
	out := make([]ends, len(g.Edges))
	for i, e := range g.Edges {
		out[i] = ends{nodes[e.From], nodes[e.To]}
	}
	return out
}

// description describes the contents of a graph in words.
func (g *Graph) description() string {
	counts := map[string]int{}
	nodes, _ := g.looks()
	var highlighted []string
	for _, n := range g.Nodes {
		counts[n.Kind] += max(n.Count, 1)
		if n.Highlighted {
			highlighted = append(highlighted, n.Label)
		}
	}
	var parts []string
	for _, kind := range nodes.kinds {
		parts = append(parts, fmt.Sprintf("%s: %d", terminal.Printable(kind), counts[kind]))
	}
	text := fmt.Sprintf("A graph of %s and %s. %s.", counted(len(g.Nodes), "node"),
		counted(len(g.Edges), "edge"), strings.Join(parts, ", "))
	if len(highlighted) > 0 {
		text += " Highlighted: " + terminal.Printable(strings.Join(highlighted, ", ")) + "."
	}
	return text
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// text writes text that is cut.
func text(class string, x, y int, content string, most int) string {
	return fmt.Sprintf(`<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y,
		html.EscapeString(cut(content, most)))
}

// legend returns the title and the legend, and sets the position of the graph below them.
func (p *picture) legend(width int, bundled bool) string {
	out := text("head", 0, titleY-margin/2, p.g.Title, width/cell)
	x, y := 0, titleY+legendRow
	item := func(mark string, markWidth int, label string) {
		label = cut(label, maxDetails)
		wide := markWidth + smallCell*cells(label) + legendRow
		if x > 0 && x+wide > width {
			x, y = 0, y+legendRow
		}
		out += fmt.Sprintf(mark, x, y-4) + text("small", x+markWidth, y, label, maxDetails)
		x += wide
	}
	for _, kind := range p.nodes.kinds {
		item(p.mark(kind, "M%d %dm6 0")+"\n", markWidth, kind)
	}
	for _, kind := range p.edges.kinds {
		item(fmt.Sprintf(`<path class="line dash%d" d="M%%d %%dh28"/>`+"\n", p.edges.number[kind]%dashes),
			34, kind)
	}
	if p.highlighted {
		item(`<path class="line highlighted" d="M%d %dh28"/>`+"\n", 34, "highlighted")
	}
	if bundled {
		item(`<path class="frame" d="M%d %dm4-6h20v12h-20z"/>`+"\n", 34,
			"a line at a frame is one for each node in it")
	}
	p.top = y + legendRow
	return out
}

// mark returns the mark of a kind at the formatted position.
func (p *picture) mark(kind, at string) string {
	n := p.nodes.number[kind]
	return fmt.Sprintf(`<path class="k%d" d="%s%s"/>`, (n+n/len(marks))%len(marks), at,
		marks[n%len(marks)])
}

// end returns the box of an end of a line, and its unit.
func (p *picture) end(e end) (box, int) {
	if !e.group {
		return p.layout.nodes[e.number], p.layout.unitOf[e.number]
	}
	return p.layout.groups[e.number], e.number
}

func (p *picture) lines(drawn []line) {
	labels := 0
	for _, l := range drawn {
		if l.label != "" {
			labels++
		}
	}
	for _, l := range drawn {
		class := fmt.Sprintf("line dash%d", p.edges.number[l.kind]%dashes)
		switch {
		case l.highlighted:
			class += " highlighted"
		case p.highlighted:
			class += " faint"
		}
		d, x, y := p.path(l)
		fmt.Fprintf(p, `<path class="%s" d="%s"/>`+"\n", class, d)
		if l.label != "" && labels <= maxLabels {
			l.label = cut(l.label, columnGap/2/smallCell)
			p.WriteString(text("small on-line", x-cells(l.label)*smallCell/2, y+3, l.label, maxCells))
		}
	}
}

// path returns the path of a line with its arrowhead, and the middle of its longest part. A
// line goes from left to right, or from right to left if it closes a circle. It goes through
// lanes, and between the nodes of a group.
func (p *picture) path(l line) (d string, middleX, middleY int) {
	from, fromUnit := p.end(l.from)
	to, toUnit := p.end(l.to)
	x1, x2, direction := from.x+from.w, to.x, 1
	if to.x < from.x {
		x1, x2, direction = from.x, to.x+to.w, -1
	}
	var straight []box // the parts where the line is straight, along their middle
	if u := p.layout.units[fromUnit]; u.beside > 1 && !l.from.group && direction > 0 &&
		x1+wrapGap < u.x+u.w {
		straight = append(straight,
			box{x1 + wrapGap/2, from.y - rowGap, u.x + u.w - x1 - wrapGap/2, rowGap})
	}
	for _, lane := range p.layout.lanes[ends{fromUnit, toUnit}] {
		straight = append(straight, lane.box)
	}
	if u := p.layout.units[toUnit]; u.beside > 1 && !l.to.group && direction > 0 && x2-wrapGap > u.x {
		straight = append(straight, box{u.x, to.y - rowGap, x2 - wrapGap/2 - u.x, rowGap})
	}
	x, y, longest := x1, from.middle(), 0
	d = fmt.Sprintf("M%d %d", x, y)
	curve := func(toX, toY int) {
		middle := (x + toX) / 2
		d += fmt.Sprintf("C%d %d %d %d %d %d", middle, y, middle, toY, toX, toY)
		if length := (toX - x) * direction; length > longest {
			longest, middleX, middleY = length, middle, (y+toY)/2
		}
		x, y = toX, toY
	}
	for _, s := range straight {
		enter, leave := s.x, s.x+s.w
		if direction < 0 {
			enter, leave = leave, enter
		}
		curve(enter, s.middle())
		d += fmt.Sprintf("H%d", leave)
		x = leave
	}
	curve(x2, to.middle())
	return d + fmt.Sprintf("M%d %dL%d %dL%[1]d %d", x-7*direction, y-4, x, y, y+4), middleX, middleY
}
