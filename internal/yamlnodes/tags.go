package yamlnodes

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MarkTags gives the scalars of documents that Parse made of a text the tag "!" where the text does:
// it says that a scalar is a string (YAML 1.2.2, 6.9.1), and the parser drops it.
func MarkTags(text []byte, docs []*yaml.Node) {
	if bytes.IndexByte(text, '!') < 0 {
		return
	}
	lines := strings.Split(string(text), "\n")
	var mark func(n *yaml.Node)
	mark = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Line > 0 && n.Line <= len(lines) && isMarked(lines[n.Line-1], n.Column) {
			n.Tag, n.Style = "!", n.Style|yaml.TaggedStyle
		}
		for _, of := range n.Content {
			mark(of)
		}
	}
	for _, doc := range docs {
		mark(doc)
	}
}

// isMarked says whether a node that begins at a column has the tag "!", before or behind an anchor.
func isMarked(line string, column int) bool {
	runes := []rune(line)
	if column < 1 || column > len(runes) {
		return false
	}
	rest := string(runes[column-1:])
	if strings.HasPrefix(rest, "&") {
		_, rest, _ = strings.Cut(rest, " ")
		rest = strings.TrimLeft(rest, " \t")
	}
	rest, found := strings.CutPrefix(rest, "!")
	return found && (rest == "" || strings.ContainsRune(" \t\r,]}", rune(rest[0])))
}

// Retagged says whether a node has a tag that gives it another meaning than it has without, or one
// that readers disagree about. Of an untagged one, and of !!str, all of them make the same.
func Retagged(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || n.Style&yaml.TaggedStyle == 0 || n.Kind == yaml.DocumentNode {
		return false
	}
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch tag := n.ShortTag(); {
	case n.Tag == "!":
		return true
	case n.Kind == yaml.SequenceNode:
		return tag != "!!seq"
	case n.Kind == yaml.MappingNode:
		return tag != "!!map"
	case tag == "!!bool" || tag == "!!int" || tag == "!!float" || tag == "!!null":
		untagged := yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}
		return !plain || untagged.ShortTag() != tag
	default:
		return tag != "!!str"
	}
}
