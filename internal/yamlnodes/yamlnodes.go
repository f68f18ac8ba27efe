// Package yamlnodes reads YAML that nobody has checked: text goes in, the nodes of
// its documents come out, and what they cost a reader that writes their anchors
// out.
//
// It promises to answer in time and memory that are linear in the text, for any
// text. A reader that gets only what it has let pass, within bounds on Cost, does
// not run forever: no node contains itself, and none is deeper than MaxDepth.
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

// MaxDepth bounds how deep a document nests. The deepest schemas of CRDs nest about
// a hundred levels.
const MaxDepth = 1000

// maxTagDirectives bounds the %TAG directives of a text: the parser compares each
// with all that were before it. Other programs write none or one.
const maxTagDirectives = 100

// Error says why a text is refused. The position is 0 where it is not known.
type Error struct {
	Line, Column int
	Message      string
	// Unbounded is whether the text is YAML, and makes readers do too much.
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

// Parse returns the documents of a stream, each a node of kind yaml.DocumentNode,
// and what they cost together. Errors are *Errors.
func Parse(text []byte) (docs []*yaml.Node, cost Cost, err error) {
	if err := checkDirectives(text); err != nil {
		return nil, Cost{}, err
	}
	defer func() {
		// The parser panics on some broken text instead of returning an error.
		if p := recover(); p != nil {
			docs, err = nil, &Error{Message: fmt.Sprintf("cannot be parsed: %v", p)}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	c := counter{anchors: map[*yaml.Node]*counted{}} // for the parser, documents share anchors
	for {
		doc := new(yaml.Node)
		switch err := dec.Decode(doc); {
		case errors.Is(err, io.EOF):
			// Readers make a list of them.
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

// Most returns a number that a text has not more entries than, without anchors
// written out: what may begin an element or a field is counted, also where it is
// in a text. It takes no memory, where parsing takes a hundred bytes for each.
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

// tagDirective matches %TAG at the beginning of a line. YAML 1.1, which the parser
// reads, has more line breaks than others.
var tagDirective = lazyregexp.New(`(?:^|[\n\r\x{85}\x{2028}\x{2029}\x{feff}])%TAG`)

func checkDirectives(text []byte) error {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		// The parser reads UTF-16. Without its zeros it is near enough.
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

// syntax takes the line out of an error of the parser, which has some in its text.
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

// located adds the position to an error of the parser that has none.
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

// LineOf returns the first line with which the beginning of a text fails, and what it holds; 0 where
// none does. Whatever fails must fail with all that follows it, too.
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

// plus adds what may be more than an int64 holds.
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
