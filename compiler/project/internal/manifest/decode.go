package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// errTooLarge is for documents that are larger than what they may be, with their
// anchors written out.
var errTooLarge = errors.New("too large")

// maxDepth bounds how deep a document nests. The deepest schemas of CRDs nest
// about a hundred levels.
const maxDepth = 1000

// decode reads a stream of documents, and how many bytes they have with their
// anchors written out, of which there may be limit.
//
// The structure comes from a parser that keeps anchors apart, so that they can be
// counted before they are written out. What a plain scalar means is asked of the
// library that kubectl reads manifests with.
func decode(text []byte, limit int64) (docs []model.Value, size int64, err error) {
	if int64(len(text)) > limit {
		return nil, 0, errTooLarge
	}
	defer func() {
		// The parser panics on some broken text instead of returning an error.
		if p := recover(); p != nil {
			docs, err = nil, fmt.Errorf("cannot be parsed: %v", p)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		switch err := dec.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return docs, size, nil
		case err != nil:
			return nil, 0, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
		}
		d := decoder{limit: limit - size, anchors: map[*yaml.Node]written{}}
		v, err := d.value(&doc, 0)
		if err != nil {
			return nil, 0, err
		}
		size += v.size
		if v.Kind() != model.Null {
			docs = append(docs, v.Value)
		}
	}
}

// written is a value with how many bytes and levels it has where it is written
// out.
type written struct {
	model.Value
	size   int64
	height int
}

type decoder struct {
	limit int64
	// anchors are the values of nodes that have an anchor, which are shared by all
	// that refer to them. One whose value is being made is there with size -1.
	anchors map[*yaml.Node]written
}

func (d *decoder) value(n *yaml.Node, depth int) (written, error) {
	if depth > maxDepth {
		return written{}, tooDeep(n)
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Anchor == "" {
		return d.plain(n, depth)
	}
	if v, ok := d.anchors[n]; ok {
		if v.size < 0 {
			return written{}, fmt.Errorf("line %d: anchor %s contains itself", n.Line, n.Anchor)
		}
		if depth+v.height > maxDepth {
			return written{}, tooDeep(n)
		}
		return v, d.bound(v.size)
	}
	d.anchors[n] = written{size: -1}
	v, err := d.plain(n, depth)
	d.anchors[n] = v
	return v, err
}

func tooDeep(n *yaml.Node) error {
	return fmt.Errorf("line %d: nests deeper than %d levels", n.Line, maxDepth)
}

func (d *decoder) bound(size int64) error {
	if size > d.limit {
		return errTooLarge
	}
	return nil
}

func (d *decoder) plain(n *yaml.Node, depth int) (v written, err error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return d.value(n.Content[0], depth)
	case yaml.SequenceNode:
		v, err = d.sequence(n, depth)
	case yaml.MappingNode:
		v, err = d.mapping(n, depth)
	case yaml.ScalarNode:
		v.Value, err = scalar(n)
		v.size = int64(len(n.Value)) + 1
	}
	if err == nil {
		err = d.bound(v.size)
	}
	return v, err
}

func (d *decoder) sequence(n *yaml.Node, depth int) (written, error) {
	if err := collectionTag(n, "!!seq"); err != nil {
		return written{}, err
	}
	elems, size, height := make([]model.Value, len(n.Content)), int64(2), 0
	for i, c := range n.Content {
		e, err := d.value(c, depth+1)
		if err != nil {
			return written{}, err
		}
		elems[i], height = e.Value, max(height, e.height)
		if size += e.size + 1; size > d.limit {
			return written{}, errTooLarge
		}
	}
	return written{model.ListOf(elems...), size, height + 1}, nil
}

func (d *decoder) mapping(n *yaml.Node, depth int) (written, error) {
	if err := collectionTag(n, "!!map"); err != nil {
		return written{}, err
	}
	m := mapping{limit: d.limit, given: make(map[string]bool, len(n.Content)/2), size: 2}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			continue
		}
		name, err := key(n.Content[i])
		if err != nil {
			return written{}, err
		}
		if m.given[name] {
			return written{}, fmt.Errorf("line %d: key %q is given twice", n.Content[i].Line, name)
		}
		v, err := d.value(n.Content[i+1], depth+1)
		if err != nil {
			return written{}, err
		}
		if err := m.add(name, v.Value, v.size, v.height); err != nil {
			return written{}, err
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			if err := d.merge(&m, n.Content[i+1], depth+1); err != nil {
				return written{}, err
			}
		}
	}
	return written{model.StructOf(m.fields...), m.size, m.height + 1}, nil
}

type mapping struct {
	limit  int64
	given  map[string]bool
	fields []model.Field
	size   int64
	height int
}

func (m *mapping) add(name string, v model.Value, size int64, height int) error {
	m.given[name], m.height = true, max(m.height, height)
	m.fields = append(m.fields, model.Field{Name: name, Value: v})
	if m.size += int64(len(name)) + size + 2; m.size > m.limit {
		return errTooLarge
	}
	return nil
}

// merge adds what a merge key brings: a mapping or several, where the first that
// has a key wins, and one that the mapping has itself wins over all
// (https://yaml.org/type/merge.html).
func (d *decoder) merge(m *mapping, n *yaml.Node, depth int) error {
	v, err := d.value(n, depth)
	if err != nil {
		return err
	}
	merged := []model.Value{v.Value}
	if v.Kind() == model.List {
		merged = v.Elems()
	}
	for _, from := range merged {
		if from.Kind() != model.Struct {
			return fmt.Errorf("line %d: << merges mappings, not a %s", n.Line, from.Kind())
		}
		for _, f := range from.Fields() {
			if m.given[f.Name] {
				continue
			}
			// What a field takes is only known of the whole; that is bounded already.
			if err := m.add(f.Name, f.Value, sizeOf(f.Value), v.height); err != nil {
				return err
			}
		}
	}
	return nil
}

// sizeOf counts the bytes of a value with everything written out.
func sizeOf(v model.Value) (size int64) {
	switch v.Kind() {
	case model.List:
		size = 2
		for _, e := range v.Elems() {
			size += sizeOf(e) + 1
		}
	case model.Struct:
		size = 2
		for _, f := range v.Fields() {
			size += int64(len(f.Name)) + sizeOf(f.Value) + 2
		}
	default:
		size = int64(len(v.Text())) + 1
	}
	return size
}

// collectionTag refuses tags that give a collection another meaning.
func collectionTag(n *yaml.Node, plain string) error {
	if tag := n.ShortTag(); tag != plain && tag != "" && tag != "!" {
		return fmt.Errorf("line %d: the tag %s means nothing to Kubernetes", n.Line, tag)
	}
	return nil
}
