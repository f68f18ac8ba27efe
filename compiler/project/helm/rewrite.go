package helm

import (
	"slices"
	"strings"
	"text/template/parse"
)

// rewrite returns a template that calls the unstable functions of a world instead of its own,
// each at its place. Texts that it passes to tpl are rewritten as well. It never fails: a text
// that does not parse stays unchanged.
func rewrite(text, by string) string {
	var edits []edit
	for _, tree := range parseTemplates("", text) {
		heads := map[*parse.IdentifierNode]bool{}
		visit(tree.Root, func(n parse.Node) {
			switch n := n.(type) {
			case *parse.CommandNode:
				f, ok := n.Args[0].(*parse.IdentifierNode)
				if !ok {
					return
				}
				heads[f] = true
				if f.Ident == "tpl" && len(n.Args) > 1 {
					begin, end := operand(text, int(f.Pos)+len(f.Ident))
					edits = append(edits, edit{begin, 0, "(" + lookedUp(f.Ident, by) + " "}, edit{end, 0, ")"})
				}
			case *parse.IdentifierNode:
				if !slices.Contains(unstable, n.Ident) && !slices.Contains(unordered, n.Ident) {
					return
				}
				other := lookedUp(n.Ident, by)
				if !heads[n] {
					other = "(" + other + ")"
				}
				edits = append(edits, edit{int(n.Pos), len(n.Ident), other})
			}
		})
	}
	out := apply(text, edits)
	if len(edits) > 0 && parseTemplates("", out) == nil {
		return text
	}
	return out
}

// edit replaces n bytes.
type edit struct {
	at, n int
	by    string
}

// apply makes edits. Edits at one place are applied in the given order.
func apply(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	var out strings.Builder
	last := 0
	for _, e := range edits {
		out.WriteString(text[last:e.at])
		out.WriteString(e.by)
		last = e.at + e.n
	}
	out.WriteString(text[last:])
	return out.String()
}

// operand returns the begin and the end of the first operand after a place of a template,
// such as `"x"`, .a.b or (f "x").c.
func operand(text string, after int) (begin, end int) {
	const space = " \t\r\n"
	begin = len(text) - len(strings.TrimLeft(text[after:], space))
	depth := 0
	for i := begin; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '`' || c == '\'':
			i = quoteEnd(text, i)
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth > 0:
		case c == '|' || c == ')' || strings.IndexByte(space, c) >= 0 ||
			strings.HasPrefix(text[i:], "}}"):
			return begin, i
		}
	}
	return begin, len(text)
}

// quoteEnd returns the end of the quote that begins at a place.
func quoteEnd(text string, begin int) int {
	for i := begin + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && text[begin] != '`':
			i++
		case text[i] == text[begin]:
			return i
		}
	}
	return len(text)
}
