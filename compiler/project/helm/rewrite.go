package helm

import (
	"slices"
	"strings"
	"text/template/parse"
)

// rewrite returns a template with its calls of unstable functions changed, each
// where it stands, and with an order for the keys of maps: the given commands are
// added to what calls keys. It never fails: what does not parse stays as it is.
func rewrite(text []byte, order string) []byte {
	var edits []edit
	for _, tree := range parseTemplates("", string(text)) {
		visit(tree.Root, func(n parse.Node) {
			switch n := n.(type) {
			case *parse.IdentifierNode:
				if other := unstable[n.Ident]; other != "" {
					edits = append(edits, edit{int(n.Pos), len(n.Ident), other})
				}
			case *parse.CommandNode:
				if f, ok := n.Args[0].(*parse.IdentifierNode); ok && f.Ident == "keys" {
					edits = append(edits, edit{commandEnd(string(text), int(f.Pos)), 0, " " + order + " "})
				}
			}
		})
	}
	out := apply(text, edits)
	if len(edits) > 0 && parseTemplates("", string(out)) == nil {
		return text
	}
	return out
}

// edit replaces n bytes.
type edit struct {
	at, n int
	by    string
}

func apply(text []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int { return a.at - b.at })
	edits = slices.Compact(edits)
	var out []byte
	last := 0
	for _, e := range edits {
		if e.at < last || e.at+e.n > len(text) {
			continue
		}
		out = append(append(out, text[last:e.at]...), e.by...)
		last = e.at + e.n
	}
	return append(out, text[last:]...)
}

// commandEnd returns where a command ends that begins at a place of a template:
// before the | or ) after it, or before the end of the action.
func commandEnd(text string, begin int) int {
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
		case c == '|' || c == ')' || strings.HasPrefix(text[i:], "}}") || strings.HasPrefix(text[i:], "-}}"):
			return i
		}
	}
	return len(text)
}

// quoteEnd returns where the quote ends that begins at a place.
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
