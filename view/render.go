package view

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/view/graph"
)

//go:embed templates/*.html
var templateFiles embed.FS

// Texts are cut, as a name of 10,000 characters would hide all others.
const (
	longestName  = 120
	longestValue = 4000
	longestText  = 100_000
)

// style is the style of all pages, with that of graphs.
func style() string { return asset("style.css") + "\n" + graph.Stylesheet }

func asset(name string) string {
	data, _ := assetFiles.ReadFile("assets/" + name) // embedded
	return string(bytes.TrimSpace(data))
}

// renderer renders pages with the links that it was made with.
type renderer struct {
	templates *template.Template
}

// links are the targets of a page's links: other pages of a server, or parts of one file.
type links struct {
	// page returns the address of a page by its path; "" if it does not exist, so that its
	// name has no link.
	page func(path string) string
	// assignment returns the address of an assignment.
	assignment func(AssignmentRow) string
	oneFile    bool
}

func newRenderer(l links) *renderer {
	funcs := template.FuncMap{
		"to": func(segments ...string) string { return l.page(path(segments...)) },
		"at": func(segments []string) string { return l.page(path(segments...)) },
		"toID": func(id string) string {
			return l.page(path(append([]string{"assignments"}, strings.Split(id, "/")...)...))
		},
		"assigned":   l.assignment,
		"file":       func() bool { return l.oneFile },
		"name":       func(s string) string { return visible(s, longestName) },
		"value":      func(s string) string { return visible(s, longestValue) },
		"text":       func(s string) string { return visible(s, longestText) },
		"count":      count,
		"svg":        drawing,
		"more":       more,
		"long":       func(s string) bool { return utf8.RuneCountInString(s) > longestName },
		"anyRing":    anyRing,
		"lineClass":  lineClass,
		"inc":        func(i int) int { return i + 1 },
		"dec":        func(i int) int { return i - 1 },
		"link":       link,
		"bar":        bar,
		"running":    running,
		"when":       when,
		"short":      short,
		"stateClass": stateClass,
		"several":    func(s string) bool { return strings.Contains(s, ",") },
		"changes":    changes,
		"cut":        cutAt,
		"notOK":      func() string { return notOK },
		"states":     func() []string { return stateNames },
		"pages":      pages,
		"counted":    counted,
		"selection":  selection,
	}
	return &renderer{template.Must(
		template.New("").Funcs(funcs).ParseFS(templateFiles, "templates/*.html"))}
}

// visible returns a text, cut to a number of characters. Characters that are invisible, or that
// change the look of other characters, are escaped as in Go.
func visible(s string, longest int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) > longest {
		s = string([]rune(s)[:longest]) + "…"
	}
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if hidden(c) {
			fmt.Fprintf(&b, "\\u%04x", c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// hidden reports whether a character is not seen, or turns others around.
func hidden(c rune) bool {
	return c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c))
}

// count returns a number of things in words. one is the name of one thing.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if y, ok := strings.CutSuffix(one, "y"); ok {
		return fmt.Sprintf("%d %sies", n, y)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// anyRing reports whether one of some rows is in a ring.
func anyRing(rows any) bool {
	switch rows := rows.(type) {
	case []ClusterTypeRow:
		return slices.ContainsFunc(rows, func(r ClusterTypeRow) bool { return r.Ring != "" })
	case []ClusterRow:
		return slices.ContainsFunc(rows, func(r ClusterRow) bool { return r.Ring != "" })
	}
	return false
}

// lineClass is the class of a line of a unified diff.
func lineClass(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return "to"
	case strings.HasPrefix(line, "-"):
		return "from"
	}
	return "context"
}

// link returns a name with a link to an address. It returns only the name if the address is
// "".
func link(address, text string) template.HTML {
	text = template.HTMLEscapeString(visible(text, longestName))
	if address == "" {
		return template.HTML(text)
	}
	return template.HTML(`<a href="` + template.HTMLEscapeString(address) + `">` + text + `</a>`)
}

// drawing is a graph as an inline picture, or "".
func drawing(g *graph.Graph) (template.HTML, error) {
	if g == nil || len(g.Nodes) == 0 {
		return "", nil
	}
	var b bytes.Buffer
	if err := graph.SVG(&b, g, false); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil
}

// more are the addresses of the pages before and after a part of a list, or "".
func more(p Part, contains string) map[string]string {
	out := map[string]string{"Before": "", "After": "", "Text": ""}
	if p.Size == 0 || p.Total <= p.Size {
		return out
	}
	last := (p.Total + p.Size - 1) / p.Size
	at := func(n int) string {
		q := url.Values{"page": {fmt.Sprint(n)}}
		if contains != "" {
			q.Set("q", contains)
		}
		return "?" + q.Encode()
	}
	if p.Number > 1 {
		out["Before"] = at(min(p.Number-1, last))
	}
	if p.Number < last {
		out["After"] = at(p.Number + 1)
	}
	out["Text"] = fmt.Sprintf("page %d of %d, %d in all", p.Number, last, p.Total)
	return out
}

// PageOf returns the part of a list for a page, and its range.
func PageOf[T any](all []T, p Page) ([]T, Part) {
	part := Part{Page: p, Total: len(all)}
	if p.Size == 0 {
		return all, part
	}
	from := min(max(p.Number-1, 0)*p.Size, len(all))
	return slices.Clip(all[from:min(from+p.Size, len(all))]), part
}

// html renders the body of a page.
func (r *renderer) html(p *page) (template.HTML, error) {
	var b bytes.Buffer
	err := r.templates.ExecuteTemplate(&b, p.Template, p.Data)
	return template.HTML(b.String()), err
}
