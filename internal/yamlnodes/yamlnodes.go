// Package yamlnodes reads untrusted YAML. The input is a text. The output are the nodes of its
// documents, and their cost for a reader that writes out their anchors.
//
// For any text, it needs time and memory that are linear in the text. A reader of accepted
// documents, within bounds on Cost, always terminates: no node contains itself, and no node is
// deeper than MaxDepth.
package yamlnodes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// MaxDepth bounds the nesting of a document. The deepest schemas of CRDs nest about a hundred
// levels.
const MaxDepth = 1000

// maxTagDirectives bounds the %TAG directives of a text: the parser compares each with all
// earlier ones. Other programs write at most one.
const maxTagDirectives = 100

// Error is the reason for rejecting a text. The position is 0 if it is not known.
type Error struct {
	Line, Column int
	Message      string
	// Unbounded reports whether the text is valid YAML, but makes readers do too much.
	Unbounded bool
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

func refuse(n *yaml.Node, format string, args ...any) error {
	return &Error{n.Line, n.Column, fmt.Sprintf(format, args...), true}
}

// Parse returns the documents of a stream, each a node of kind yaml.DocumentNode, and their
// total cost. Errors are *Errors.
func Parse(text []byte) (docs []*yaml.Node, cost Cost, err error) {
	if err := checkDirectives(text); err != nil {
		return nil, Cost{}, err
	}
	defer func() {
		// For some broken texts, the parser panics instead of returning an error.
		if p := recover(); p != nil {
			docs, err = nil, &Error{Message: fmt.Sprintf("cannot be parsed: %v", p)}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	c := counter{anchors: map[*yaml.Node]*nodeCost{}} // the parser shares anchors between documents
	for {
		doc := new(yaml.Node)
		switch err := dec.Decode(doc); {
		case errors.Is(err, io.EOF):
			// Readers turn several documents into a list.
			n := int64(len(docs))
			cost.add(Cost{Entries: n, Pairs: times(n, n)})
			return docs, cost, nil
		case err != nil:
			return nil, Cost{}, located(text, syntax(err))
		}
		of, err := c.node(doc, 0)
		if err != nil {
			return nil, Cost{}, err
		}
		cost.add(of.Cost)
		docs = append(docs, doc)
	}
}

// Most returns an upper bound of the number of entries of a text, without written-out anchors.
// It counts every character that may begin an element or a field, even in strings. It uses no
// memory, but parsing uses a hundred bytes for each entry.
func Most(text []byte) (n int64) {
	for i, b := range text {
		switch b {
		case ',', '[', '{':
			n++
		case '-', ':', '?':
			if i+1 == len(text) || strings.IndexByte(" \t\r\n,[]{}\xc2\xe2", text[i+1]) >= 0 || b == ':' &&
				i > 0 && strings.IndexByte("\"']}", text[i-1]) >= 0 {
				n++
			}
		}
	}
	return n
}

// tagDirective matches %TAG at the beginning of a line. The parser reads YAML 1.1, which has
// more line breaks than other versions.
var tagDirective = lazyregexp.New(`(?:^|[\n\r\x{85}\x{2028}\x{2029}\x{feff}])%TAG`)

func checkDirectives(text []byte) error {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		// The parser reads UTF-16. Removing the zeros is a sufficient approximation.
		text = bytes.ReplaceAll(text[2:], []byte{0}, nil)
	}
	if bytes.Count(text, []byte("%TAG")) <= maxTagDirectives {
		return nil
	}
	found := tagDirective.FindAllIndex(text, maxTagDirectives+1)
	if len(found) <= maxTagDirectives {
		return nil
	}
	at := found[maxTagDirectives][1] - len("%TAG")
	return &Error{bytes.Count(text[:at], []byte("\n")) + 1, 1,
		fmt.Sprintf("there are more than %d %%TAG directives", maxTagDirectives), true}
}

// syntax moves the line from the text of a parser's error to its field. Some of these texts
// contain a line.
func syntax(err error) *Error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, rest, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(number); err == nil {
				return &Error{Line: line, Column: 1, Message: rest}
			}
		}
	}
	return &Error{Message: message}
}

// located adds the position to a parser's error without one.
func located(text []byte, e *Error) *Error {
	if e.Line > 0 {
		return e
	}
	line, content := LineOf(text, func(begin []byte) bool {
		for dec := yaml.NewDecoder(bytes.NewReader(begin)); ; {
			if err := dec.Decode(new(yaml.Node)); err != nil {
				return !errors.Is(err, io.EOF) && syntax(err).Message == e.Message
			}
		}
	})
	e.Line, e.Column = line, min(line, 1)
	if name, unknown := strings.CutPrefix(e.Message, "unknown anchor '"); unknown {
		alias := "*" + strings.TrimSuffix(name, "' referenced")
		if at := bytes.Index(content, []byte(alias)); at >= 0 {
			e.Column = at + 1
		}
	}
	return e
}

// LineOf returns the first line at which the beginning of a text fails, and the line's content.
// It returns 0 if no line fails. If a beginning fails, every longer beginning must fail, too.
func LineOf(text []byte, fails func(begin []byte) bool) (line int, content []byte) {
	ends := []int{0}
	for content := range bytes.Lines(text) {
		ends = append(ends, ends[len(ends)-1]+len(content))
	}
	line = 1 + sort.Search(len(ends)-1, func(i int) bool { return fails(text[:ends[i+1]]) })
	if line == len(ends) {
		return 0, nil
	}
	return line, text[ends[line-1]:ends[line]]
}

// plus adds numbers whose sum may exceed an int64. The result is then math.MaxInt64.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func times(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// Cost is the size of a text after its anchors are written out wherever an alias or a merge key
// refers to them. A number that exceeds an int64 is math.MaxInt64.
type Cost struct {
	Bytes   int64 // approximate size
	Entries int64 // elements of lists and fields of mappings
	// Aliased is the number of keys and values that aliases and merge keys write.
	Aliased int64
	// AliasedFlow are the aliased lists and mappings that are written in brackets.
	AliasedFlow int64
	// Levels is the sum of the depths of all keys and values.
	Levels int64
	// Pairs is the number of pairs of two entries of the same list or mapping, for readers
	// that compare each entry with all others.
	Pairs int64
	// Merged is the number of pairs in mappings with merge keys. A key that occurs twice counts
	// twice.
	Merged int64
}

func (c *Cost) add(d Cost) {
	c.Bytes = plus(c.Bytes, d.Bytes)
	c.Entries = plus(c.Entries, d.Entries)
	c.Aliased = plus(c.Aliased, d.Aliased)
	c.AliasedFlow = plus(c.AliasedFlow, d.AliasedFlow)
	c.Levels = plus(c.Levels, d.Levels)
	c.Pairs = plus(c.Pairs, d.Pairs)
	c.Merged = plus(c.Merged, d.Merged)
}

// nodeCost is the cost of a node at its place. The costs of the node at other places follow from
// it.
type nodeCost struct {
	Cost
	values int64 // itself and everything in it, including keys
	flow   int64 // the lists and mappings in brackets among values
	height int   // levels below it
	fields int64 // of a mapping, including merged fields; of a list, the fields of its elements
}

// counter counts one document. anchors has the costs of nodes with an anchor; a cost is nil
// while the node is being counted.
type counter struct{ anchors map[*yaml.Node]*nodeCost }

func (c *counter) node(n *yaml.Node, depth int) (*nodeCost, error) {
	if depth > MaxDepth {
		return nil, tooDeep(n)
	}
	if n.Kind == yaml.AliasNode {
		return c.alias(n, depth)
	}
	if n.Anchor != "" {
		c.anchors[n] = nil
	}
	of, err := c.plain(n, depth)
	if err == nil && n.Anchor != "" {
		c.anchors[n] = of
	}
	return of, err
}

func tooDeep(n *yaml.Node) error { return refuse(n, "nests deeper than %d levels", MaxDepth) }

// alias counts the nodes that an alias writes. The parser knows only anchors before it, which
// were counted before.
func (c *counter) alias(n *yaml.Node, depth int) (*nodeCost, error) {
	of := c.anchors[n.Alias]
	switch {
	case of == nil:
		return nil, refuse(n, "anchor %s contains itself", n.Value)
	case depth+of.height > MaxDepth:
		return nil, tooDeep(n)
	}
	written := *of
	written.Aliased, written.AliasedFlow = of.values, of.flow
	return &written, nil
}

func (c *counter) plain(n *yaml.Node, depth int) (*nodeCost, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return c.node(n.Content[0], depth)
	case yaml.SequenceNode:
		of := collection(n)
		for _, e := range n.Content {
			entry, err := c.node(e, depth+1)
			if err != nil {
				return nil, err
			}
			of.put(entry)
			of.Bytes, of.fields = plus(of.Bytes, 1), plus(of.fields, entry.fields)
		}
		of.Pairs = plus(of.Pairs, times(int64(len(n.Content)), int64(len(n.Content))))
		return of, nil
	case yaml.MappingNode:
		return c.mapping(n, depth)
	}
	return &nodeCost{Cost: Cost{Bytes: int64(len(n.Value)) + 1}, values: 1}, nil
}

// collection returns the cost of a list or mapping without entries.
func collection(n *yaml.Node) *nodeCost {
	of := &nodeCost{Cost: Cost{Bytes: 2}, values: 1}
	if n.Style&yaml.FlowStyle != 0 {
		of.flow = 1
	}
	return of
}

// put adds an entry.
func (of *nodeCost) put(entry *nodeCost) {
	of.add(entry.Cost)
	of.Entries = plus(of.Entries, 1)
	of.Levels = plus(of.Levels, entry.values)
	of.values, of.flow = plus(of.values, entry.values), plus(of.flow, entry.flow)
	of.height = max(of.height, entry.height+1)
}

func (c *counter) mapping(n *yaml.Node, depth int) (*nodeCost, error) {
	of := collection(n)
	merges := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		// A key that is not a scalar is counted for its depth, and for readers that only detect
		// the error late.
		key, err := c.node(n.Content[i], depth+1)
		if err != nil {
			return nil, err
		}
		entry, err := c.node(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if IsMerge(n.Content[i]) {
			merges = true
			written := *entry
			written.Aliased, written.AliasedFlow = entry.values, entry.flow
			of.put(&written)
			of.fields = plus(of.fields, entry.fields)
			continue
		}
		of.put(entry)
		of.add(key.Cost)
		of.Levels = plus(of.Levels, key.values)
		of.values, of.flow = plus(of.values, key.values), plus(of.flow, key.flow)
		of.height = max(of.height, key.height+1)
		of.Bytes, of.fields = plus(of.Bytes, 1), plus(of.fields, 1)
	}
	pairs := times(of.fields, of.fields)
	of.Pairs = plus(of.Pairs, pairs)
	if merges {
		of.Merged = plus(of.Merged, pairs)
	}
	return of, nil
}

// IsMerge reports whether a key of a mapping is a merge key, <<
// (https://yaml.org/type/merge.html).
func IsMerge(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "<<" && (n.Tag == "!" || n.ShortTag() == "!!merge")
}

// MarkTags gives scalars the tag "!" if the text has it, in documents that Parse made of the
// text. The tag says that a scalar is a string (YAML 1.2.2, 6.9.1), and the parser drops it.
func MarkTags(text []byte, docs []*yaml.Node) {
	if bytes.IndexByte(text, '!') < 0 {
		return
	}
	lines := strings.Split(string(text), "\n")
	var mark func(n *yaml.Node)
	mark = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Line > 0 && n.Line <= len(lines) &&
			isMarked(lines[n.Line-1], n.Column) {
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

// isMarked reports whether a node that begins at a column has the tag "!", before or after an
// anchor.
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

// Retagged reports whether a node has a tag that changes its meaning, or a tag that readers
// disagree about. All readers agree about an untagged node, and about !!str.
func Retagged(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || n.Style&yaml.TaggedStyle == 0 || n.Kind == yaml.DocumentNode {
		return false
	}
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|
		yaml.LiteralStyle|yaml.FoldedStyle) == 0
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
