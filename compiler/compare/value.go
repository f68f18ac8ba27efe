package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// value is a value of a YAML document. Two are equal if their JSON is.
type value struct {
	kind kind
	text string   // of a scalar: a string, or else JSON
	keys []string // of a mapping, sorted
	// items are the elements of a list, or the values of keys.
	items []value
}

type kind uint8

const (
	text  kind = iota // a string
	other             // another scalar
	mapping
	list
)

// Bounds of files that are compared by value. A larger or deeper file is compared as
// text.
const (
	maxYAML  = 4 << 20 // bytes
	maxDepth = 100
)

// errNoValue reports that a YAML document is not a tree of plain values.
var errNoValue = errors.New("not a plain value")

// parseYAML returns the documents of a YAML stream, without empty ones. It fails for a
// text that is not YAML, and for YAML that JSON cannot express. These are aliases,
// which a few lines can nest beyond any bound, keys that occur twice or are not
// scalars, and tags of the user's own.
func parseYAML(data []byte) ([]value, error) {
	if len(data) > maxYAML {
		return nil, errNoValue
	}
	var docs []value
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var n yaml.Node
		if err := d.Decode(&n); errors.Is(err, io.EOF) {
			return docs, nil
		} else if err != nil {
			return nil, err
		}
		if n.Kind != yaml.DocumentNode || len(n.Content) != 1 {
			return nil, errNoValue
		}
		v, err := valueOf(n.Content[0], 0)
		if err != nil {
			return nil, err
		}
		if v.kind != other || v.text != "null" {
			docs = append(docs, v)
		}
	}
}

func valueOf(n *yaml.Node, depth int) (value, error) {
	if depth > maxDepth {
		return value{}, errNoValue
	}
	switch {
	case n.Kind == yaml.ScalarNode:
		return scalarOf(n)
	case n.Kind == yaml.SequenceNode && n.ShortTag() == "!!seq":
		v := value{kind: list, items: make([]value, len(n.Content))}
		for i, e := range n.Content {
			var err error
			if v.items[i], err = valueOf(e, depth+1); err != nil {
				return value{}, err
			}
		}
		return v, nil
	case n.Kind == yaml.MappingNode && n.ShortTag() == "!!map":
		v := value{kind: mapping, keys: make([]string, len(n.Content)/2),
			items: make([]value, len(n.Content)/2)}
		for i := range v.keys {
			key := n.Content[2*i]
			if _, err := scalarOf(key); err != nil {
				return value{}, err
			}
			v.keys[i] = key.Value
			var err error
			if v.items[i], err = valueOf(n.Content[2*i+1], depth+1); err != nil {
				return value{}, err
			}
		}
		sort.Sort(byKey(v))
		if len(slices.Compact(slices.Clone(v.keys))) < len(v.keys) {
			return value{}, errNoValue
		}
		return v, nil
	}
	return value{}, errNoValue
}

// byKey sorts a mapping.
type byKey value

func (m byKey) Len() int           { return len(m.keys) }
func (m byKey) Less(i, j int) bool { return m.keys[i] < m.keys[j] }
func (m byKey) Swap(i, j int) {
	m.keys[i], m.keys[j] = m.keys[j], m.keys[i]
	m.items[i], m.items[j] = m.items[j], m.items[i]
}

// scalarOf returns the value of a scalar. Numbers keep their digits.
func scalarOf(n *yaml.Node) (value, error) {
	if n.Kind != yaml.ScalarNode || !utf8.ValidString(n.Value) {
		return value{}, errNoValue
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp", "!!binary":
		return value{kind: text, text: n.Value}, nil
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) && strings.ContainsAny(n.Value[:1], "-0123456789") {
			return value{kind: other, text: n.Value}, nil
		}
	case "!!null", "!!bool":
	default:
		return value{}, errNoValue
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return value{}, err
	}
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return value{kind: text, text: n.Value}, nil
	}
	b, err := json.Marshal(v)
	return value{kind: other, text: string(b)}, err
}

// lookup returns the value of a mapping's key, or nil.
func (v *value) lookup(key string) *value {
	if v.kind != mapping {
		return nil
	}
	i, found := slices.BinarySearch(v.keys, key)
	if !found {
		return nil
	}
	return &v.items[i]
}

// string returns the string at a path of keys, or "".
func (v *value) string(path ...string) string {
	for _, key := range path {
		if v = v.lookup(key); v == nil {
			return ""
		}
	}
	if v.kind != text {
		return ""
	}
	return v.text
}

func equal(a, b *value) bool {
	if a.kind != b.kind || a.text != b.text || len(a.items) != len(b.items) ||
		!slices.Equal(a.keys, b.keys) {
		return false
	}
	for i := range a.items {
		if !equal(&a.items[i], &b.items[i]) {
			return false
		}
	}
	return true
}

// json returns the value as JSON, with sorted keys.
func (v *value) json() json.RawMessage { return v.appendJSON(nil) }

func (v *value) appendJSON(b []byte) []byte {
	switch v.kind {
	case text:
		return appendString(b, v.text)
	case other:
		return append(b, v.text...)
	case list:
		b = append(b, '[')
		for i := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.items[i].appendJSON(b)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i := range v.items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, v.keys[i]), ':')
		b = v.items[i].appendJSON(b)
	}
	return append(b, '}')
}

// appendString appends a JSON string, with < > and & as they are.
func appendString(b []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(fmt.Sprintf("compare: encoding a string: %v", err)) // a string has a JSON form
	}
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
