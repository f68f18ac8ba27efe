package graph

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/awalterschulze/gographviz"
)

// fleet returns a graph like that of a platform, of n nodes: configs of three layers, and the
// assignments that they match, twelve on a cluster type.
func fleet(n int) *Graph {
	g := &Graph{Title: "Configuration of prod"}
	for layer := range 3 {
		g.Groups = append(g.Groups, Group{ID: fmt.Sprintf("layer/%d", layer), Label: fmt.Sprintf("layer %d", layer*10), Rank: layer})
	}
	configs := max(n/10, 1)
	for i := range configs {
		g.Nodes = append(g.Nodes, Node{ID: fmt.Sprintf("config/%d", i), Label: fmt.Sprintf("region-%d", i), Kind: []string{"config of the base", "config of the environment"}[i%2],
			Group: fmt.Sprintf("layer/%d", i%3), Detail: []string{fmt.Sprintf(`{region: "region-%d"}`, i%5)}})
	}
	for i := range n - configs {
		group := fmt.Sprintf("type/%02d", i/12)
		if i%12 == 0 {
			g.Groups = append(g.Groups, Group{ID: group, Label: fmt.Sprintf("cluster-type-%d", i/12), Rank: 3})
		}
		id := fmt.Sprintf("assignment/%d", i)
		g.Nodes = append(g.Nodes, Node{ID: id, Label: fmt.Sprintf("workload-%d-live", i%12), Kind: "assignment", Group: group})
		for c := range configs {
			if c < 3 || c%5 == (i/12)%5 && (c/5)%3 == i%12/4 {
				g.Edges = append(g.Edges, Edge{From: fmt.Sprintf("config/%d", c), To: id, Kind: "sets values of"})
			}
		}
	}
	g.Sort()
	return g
}

// hostileTexts are texts that an author may write into names, including texts that imitate others.
var hostileTexts = []string{
	`<script>alert(1)</script>`, `</title><svg onload="alert(1)">`, `"><img src=x onerror=alert(1)>`, `&lt;b&gt; & ]]> <!-- -->`,
	"\x1b[31mred\x1b[0m\a\x00\x7f\u009b31m", "right\u202eleft\u2066", "\xff\xfe not UTF-8 \ufffe\uffff", "lines\r\nof\ttext\u2028", `=cmd|' /C calc'!A0`, "@SUM(1+1)",
	`a\`, `\" ] }; node [shape=none`, `"]; click n0 "javascript:alert(1)"`, "`**markdown**`", "%%{init: {}}%%", "end", "日本語の名前がここにとても長く続いている場合の表示", strings.Repeat("a̐̑", 40),
	strings.Repeat("x", 10_000), "", "🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️🏴‍☠️",
}

// hostile returns a graph with such texts in all places.
func hostile() *Graph {
	g := &Graph{Title: strings.Join(hostileTexts[:5], " ")}
	for i, text := range hostileTexts {
		g.Groups = append(g.Groups, Group{ID: "group " + text, Label: text})
		g.Nodes = append(g.Nodes, Node{ID: text, Label: text, Kind: text, Group: "group " + hostileTexts[i/4], Detail: []string{text, hostileTexts[0]}, Highlighted: i%5 == 0})
		if i > 0 {
			g.Edges = append(g.Edges, Edge{From: hostileTexts[i-1], To: text, Kind: text, Label: text, Highlighted: i%2 == 0})
		}
	}
	g.Sort()
	return g
}

// circles returns a graph with edges that close circles, in a group, between groups and at a node.
func circles() *Graph {
	g := &Graph{Title: "Circles", Groups: []Group{{ID: "g", Label: "one"}, {ID: "h", Label: "two"}, {ID: "empty", Label: "nothing"}}}
	for i, group := range []string{"g", "g", "g", "h", "h", "", "no such group"} {
		g.Nodes = append(g.Nodes, Node{ID: fmt.Sprint(i), Label: fmt.Sprint("node ", i), Kind: "node", Group: group})
	}
	for _, e := range []string{"00", "01", "12", "20", "03", "31", "34", "45", "52", "56", "60"} {
		g.Edges = append(g.Edges, Edge{From: e[:1], To: e[1:], Kind: "leads to"})
	}
	g.Sort()
	return g
}

func graphs() map[string]*Graph {
	all := map[string]*Graph{"hostile": hostile(), "circles": circles(), "empty": {}, "3 nodes": fleet(3), "50 nodes": fleet(50), "200 nodes": fleet(200), "1000 nodes": fleet(1000)}
	all["1000 nodes"].Fold(200)
	all["50 nodes"].Highlight(map[string]bool{"config/0": true, "config/1": true, "config/4": true, "assignment/5": true})
	all["long chain"] = &Graph{}
	for i := range 2000 {
		all["long chain"].Nodes = append(all["long chain"].Nodes, Node{ID: fmt.Sprintf("%04d", i)})
		all["long chain"].Edges = append(all["long chain"].Edges, Edge{From: fmt.Sprintf("%04d", i), To: fmt.Sprintf("%04d", min(i+1, 1999))})
	}
	return all
}

// shown is a box or a text of a picture.
type shown struct {
	class, text string
	x, y, w, h  int
}

// read reads a picture, strictly as XML, with the boxes and texts of each node.
func read(t *testing.T, picture []byte) (nodes [][]shown, frames []shown) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(picture))
	d.Strict = true
	var current *[]shown
	var own []shown
	var stack []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nodes, frames
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			stack = append(stack, token.Name.Local)
			if !slices.Contains([]string{"svg", "title", "desc", "style", "g", "rect", "text", "path"}, token.Name.Local) {
				t.Errorf("the picture has an element %s", token.Name.Local)
			}
			s := shown{}
			for _, a := range token.Attr {
				n, _ := strconv.Atoi(a.Value)
				switch a.Name.Local {
				case "class":
					s.class = a.Value
				case "x":
					s.x = n
				case "y":
					s.y = n
				case "width":
					s.w = n
				case "height":
					s.h = n
				case "xmlns", "role", "viewBox", "transform", "rx", "d":
				default:
					t.Errorf("the picture has an attribute %s", a.Name.Local)
				}
			}
			switch {
			case token.Name.Local == "g" && strings.HasPrefix(s.class, "node"):
				current, own = &own, nil
			case s.class == "frame" && token.Name.Local == "rect":
				frames = append(frames, s)
			case current != nil && (token.Name.Local == "rect" || token.Name.Local == "text"):
				own = append(own, s)
			}
		case xml.CharData:
			if current != nil && stack[len(stack)-1] == "text" {
				own[len(own)-1].text += string(token)
			}
		case xml.EndElement:
			if token.Name.Local == "g" && current != nil {
				nodes, current = append(nodes, own), nil
			}
			stack = stack[:len(stack)-1]
		}
	}
}

func (s shown) overlaps(o shown) bool {
	return s.x < o.x+o.w && o.x < s.x+s.w && s.y < o.y+o.h && o.y < s.y+s.h
}

func (s shown) contains(o shown) bool {
	return s.x <= o.x && s.y <= o.y && o.x+o.w <= s.x+s.w && o.y+o.h <= s.y+s.h
}

// Nothing overlaps, and each text lies within its box.
func TestPicture(t *testing.T) {
	for name, g := range graphs() {
		t.Run(name, func(t *testing.T) {
			var picture bytes.Buffer
			if err := SVG(&picture, g, true); err != nil {
				t.Fatal(err)
			}
			nodes, frames := read(t, picture.Bytes())
			if len(nodes) != len(g.Nodes) {
				t.Fatalf("%d nodes are drawn of %d", len(nodes), len(g.Nodes))
			}
			for i, n := range nodes {
				for _, text := range n[1:] {
					size := cell
					if text.class == "small" {
						size = smallCell
					}
					text.w, text.h = size*cells(text.text), 10
					text.y -= text.h
					if !n[0].contains(text) {
						t.Errorf("%q is not in its box: %+v, %+v", text.text, text, n[0])
					}
				}
				for _, o := range nodes[:i] {
					if n[0].overlaps(o[0]) {
						t.Errorf("%+v and %+v overlap", n, o)
					}
				}
				for _, f := range frames {
					if f.overlaps(n[0]) && !f.contains(n[0]) {
						t.Errorf("%+v is in the frame %+v, and not wholly", n, f)
					}
				}
			}
			for i, f := range frames {
				for _, o := range frames[:i] {
					if f.overlaps(o) {
						t.Errorf("frames %+v and %+v overlap", f, o)
					}
				}
			}
			var again bytes.Buffer
			if err := SVG(&again, g, true); err != nil || again.String() != picture.String() {
				t.Errorf("the same graph has two pictures: %v", err)
			}
		})
	}
}

// A picture for a page has no style in it, because a strict policy would refuse it.
func TestPictureForAPage(t *testing.T) {
	var picture bytes.Buffer
	if err := SVG(&picture, fleet(50), false); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(picture.Bytes(), []byte("style")) {
		t.Error("the picture has style")
	}
}

// No text is more than text, in any format.
func TestHostile(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *Graph) error{
		"svg": func(w io.Writer, g *Graph) error { return SVG(w, g, true) }, "dot": DOT, "mermaid": Mermaid,
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := write(&out, hostile()); err != nil {
				t.Fatal(err)
			}
			for _, bad := range []string{"\x1b", "\x00", "\x7f", "\u009b", "\u202e", "\u2066", "\ufffe", "\r"} {
				if strings.Contains(out.String(), bad) {
					t.Errorf("there is %q", bad)
				}
			}
			if name != "dot" && (strings.Contains(out.String(), "<script") || strings.Contains(out.String(), "<img")) {
				t.Error("there is HTML")
			}
		})
	}
}

// A parser of DOT reads the output, with every node, edge and label.
func TestDOT(t *testing.T) {
	for name, g := range graphs() {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := DOT(&out, g); err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(out.String(), "\ufffd", "?") // which is not a character for this parser
			read, err := gographviz.Read([]byte(text))
			if err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			if len(read.Nodes.Nodes) != len(g.Nodes) || len(read.Edges.Edges) != len(g.Edges) {
				t.Errorf("%d nodes and %d edges are read of %d and %d", len(read.Nodes.Nodes), len(read.Edges.Edges), len(g.Nodes), len(g.Edges))
			}
			for _, n := range g.Nodes {
				if read.Nodes.Lookup[strings.ReplaceAll(quoted(n.ID), "\ufffd", "?")] == nil {
					t.Errorf("%q is not read", n.ID)
				}
			}
		})
	}
}

func TestMermaid(t *testing.T) {
	g := &Graph{
		Title:  `Title {"a": 1}`,
		Groups: []Group{{ID: "g", Label: "layer 0"}},
		Nodes:  []Node{{ID: "a", Label: "everywhere", Kind: "config", Group: "g", Detail: []string{"{}", "A, B"}}, {ID: "b", Label: `<b> "x"; end`, Kind: "assignment"}, {ID: "c", Label: "c", Kind: "assignment"}},
		Edges:  []Edge{{From: "a", To: "b", Kind: "sets"}, {From: "a", To: "c", Kind: "sets"}, {From: "b", To: "c", Kind: "validates", Label: "x", Count: 3}},
	}
	g.Sort()
	g.Highlight(map[string]bool{"a": true, "b": true})
	const want = `flowchart LR
%% "Title #123;#34;a#34;: 1#125;"
  subgraph g0["layer 0"]
    n0(["everywhere<br>#123;#125;<br>A, B"])
  end
  n1["#60;b#62; #34;x#34;#59; end"]
  n2["c"]
  n0 ==> n1
  n0 --> n2
  n1 -.->|"x ×3"| n2
  classDef highlighted stroke:#cf222e,stroke-width:3px
  class n0,n1 highlighted
`
	var out strings.Builder
	if err := Mermaid(&out, g); err != nil || out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A folded node has the number of nodes that it replaces. Highlighted nodes are not
// folded.
func TestFold(t *testing.T) {
	for _, most := range []int{1, 10, 200, 999, 1000} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			g := fleet(1000)
			path := map[string]bool{"config/0": true, "assignment/5": true}
			g.Highlight(path)
			edges := len(g.Edges)
			g.Fold(most)
			if allowed := max(most, len(path)+3); len(g.Nodes) > allowed {
				t.Errorf("there are %d nodes", len(g.Nodes))
			}
			if most == 10 && len(g.Nodes) != most {
				t.Errorf("there are %d nodes, and more are allowed", len(g.Nodes))
			}
			nodes, highlighted := 0, 0
			there := map[string]bool{}
			for _, n := range g.Nodes {
				nodes += max(n.Count, 1)
				there[n.ID] = true
				if n.Highlighted {
					highlighted++
				}
			}
			for _, e := range g.Edges {
				edges -= max(e.Count, 1)
				if !there[e.From] || !there[e.To] {
					t.Errorf("%+v has no ends", e)
				}
			}
			for _, of := range g.Groups {
				if !slices.ContainsFunc(g.Nodes, func(n Node) bool { return n.Group == of.ID }) {
					t.Errorf("group %s has no nodes", of.ID)
				}
			}
			if nodes != 1000 || highlighted != 2 || edges != 0 {
				t.Errorf("%d nodes, %d of them highlighted, and %d edges too few", nodes, highlighted, edges)
			}
			again := fleet(1000)
			again.Highlight(path)
			again.Fold(most)
			a, _ := json.Marshal(g)
			if b, _ := json.Marshal(again); !bytes.Equal(a, b) {
				t.Error("it is folded in two ways")
			}
		})
	}
}
