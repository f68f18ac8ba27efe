package delivery

import (
	"encoding/json"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/internal/yamlnodes"
)

// Divide splits the parts for single clusters off a YAML stream. It calls take with each document.
// take removes the nodes for single clusters from the document and calls part with each. Divide
// returns the texts of these nodes by cluster, and the text of the rest under "". The texts are
// equal if the nodes are equal, however the stream writes them. Divide returns nil if the stream is
// not YAML.
func Divide(data []byte,
	take func(doc *yaml.Node, part func(cluster string, n *yaml.Node))) map[string][]byte {
	docs, _, err := yamlnodes.Parse(data)
	if err != nil {
		return nil
	}
	out := map[string][]byte{}
	add := func(cluster string, n *yaml.Node) bool {
		text, ok := appendNode(out[cluster], n)
		out[cluster] = text
		return ok
	}
	all := true
	for _, doc := range docs {
		take(doc, func(cluster string, n *yaml.Node) { all = add(cluster, n) && cluster != "" && all })
		all = add("", doc) && all
	}
	if !all {
		return nil
	}
	return out
}

// appendNode appends the content of a node, as readers of YAML see it. It returns false if the
// content is in another part of the stream, because the node is an alias or has an anchor.
func appendNode(b []byte, n *yaml.Node) ([]byte, bool) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return b, false
	}
	text, _ := json.Marshal([]string{n.ShortTag(), n.Value}) // of strings
	b = append(append(b, text...), '(')
	for _, c := range n.Content {
		var ok bool
		if b, ok = appendNode(b, c); !ok {
			return b, false
		}
	}
	return append(b, ')'), true
}

// TakeElements removes the elements of a list that have a cluster's name in a field, and calls
// part with each.
func TakeElements(list *yaml.Node, field string, part func(cluster string, n *yaml.Node)) {
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	list.Content = slices.DeleteFunc(list.Content, func(e *yaml.Node) bool {
		name := Node(e, field)
		if name == nil || name.Kind != yaml.ScalarNode || name.Value == "" {
			return false
		}
		part(name.Value, e)
		return true
	})
}

// Node returns the value at a path of field names. It returns nil if there is no such value.
func Node(n *yaml.Node, path ...string) *yaml.Node {
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	for _, name := range path {
		if n.Kind != yaml.MappingNode {
			return nil
		}
		i := 0
		for i < len(n.Content) && n.Content[i].Value != name {
			i += 2
		}
		if i >= len(n.Content) {
			return nil
		}
		n = n.Content[i+1]
	}
	return n
}
