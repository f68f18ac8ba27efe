package manifest

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/yamlnodes"
)

// errTooLarge is the error for documents that exceed their bound after their anchors are
// written out.
var errTooLarge = errors.New("too large")

// decode reads a stream of documents. It returns them with their size in bytes, with anchors
// written out, and fails if that exceeds limit.
//
// The structure comes from a parser that keeps anchors apart, so decode can count them before
// they are written out. The meaning of a plain scalar comes from the library with which kubectl
// reads manifests.
func decode(text []byte, limit int64) (docs []model.Value, size int64, err error) {
	nodes, size, err := parse(text, limit)
	if err != nil {
		return nil, 0, err
	}
	yamlnodes.MarkTags(text, nodes)
	d := decoder{anchors: map[*yaml.Node]model.Value{}}
	for _, n := range nodes {
		v, err := d.value(n)
		if err != nil {
			return nil, 0, err
		}
		if v.Kind() != model.Null {
			docs = append(docs, v)
		}
	}
	return docs, size, nil
}

// parse returns the nodes of a stream, and its size in bytes.
func parse(text []byte, limit int64) ([]*yaml.Node, int64, error) {
	if int64(len(text)) > limit {
		return nil, 0, errTooLarge
	}
	docs, cost, err := yamlnodes.Parse(text)
	if err != nil {
		return nil, 0, err
	}
	if cost.Bytes > limit {
		return nil, 0, errTooLarge
	}
	return docs, cost.Bytes, nil
}

// decoder makes values from nodes. No node may contain itself.
type decoder struct {
	// anchors are the values of nodes that have an anchor. All aliases of a node share its
	// value.
	anchors map[*yaml.Node]model.Value
}

func (d *decoder) value(n *yaml.Node) (model.Value, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if v, ok := d.anchors[n]; ok {
		return v, nil
	}
	v, err := d.plain(n)
	if err == nil && n.Anchor != "" {
		d.anchors[n] = v
	}
	return v, err
}

func (d *decoder) plain(n *yaml.Node) (model.Value, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return d.value(n.Content[0])
	case yaml.SequenceNode:
		if err := collectionTag(n, "!!seq"); err != nil {
			return model.Value{}, err
		}
		elems := make([]model.Value, len(n.Content))
		for i, c := range n.Content {
			e, err := d.value(c)
			if err != nil {
				return model.Value{}, err
			}
			elems[i] = e
		}
		return model.ListOf(elems...), nil
	case yaml.MappingNode:
		if err := collectionTag(n, "!!map"); err != nil {
			return model.Value{}, err
		}
		m := mapping{given: make(map[string]bool, len(n.Content)/2)}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if yamlnodes.IsMerge(n.Content[i]) {
				continue
			}
			name, err := key(n.Content[i])
			if err != nil {
				return model.Value{}, err
			}
			if m.given[name] {
				return model.Value{}, fmt.Errorf("line %d: key %q is given twice", n.Content[i].Line, name)
			}
			v, err := d.value(n.Content[i+1])
			if err != nil {
				return model.Value{}, err
			}
			m.add(name, v)
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if yamlnodes.IsMerge(n.Content[i]) {
				if err := d.merge(&m, n.Content[i+1]); err != nil {
					return model.Value{}, err
				}
			}
		}
		return model.StructOf(m.fields...), nil
	}
	return scalar(n)
}

type mapping struct {
	given  map[string]bool
	fields []model.Field
}

func (m *mapping) add(name string, v model.Value) {
	m.given[name] = true
	m.fields = append(m.fields, model.Field{Name: name, Value: v})
}

// merge adds the fields of a merge key, whose value is a mapping or several. The first mapping
// that has a key wins. The mapping's own key wins over all of them
// (https://yaml.org/type/merge.html).
func (d *decoder) merge(m *mapping, n *yaml.Node) error {
	v, err := d.value(n)
	if err != nil {
		return err
	}
	merged := []model.Value{v}
	if v.Kind() == model.List {
		merged = v.Elems()
	}
	for _, from := range merged {
		if from.Kind() != model.Struct {
			return fmt.Errorf("line %d: << merges mappings, not a %s", n.Line, from.Kind())
		}
		for _, f := range from.Fields() {
			if !m.given[f.Name] {
				m.add(f.Name, f.Value)
			}
		}
	}
	return nil
}

// collectionTag refuses tags that change the meaning of a collection.
func collectionTag(n *yaml.Node, plain string) error {
	if tag := n.ShortTag(); tag != plain && tag != "" && tag != "!" {
		return fmt.Errorf("line %d: the tag %s means nothing to Kubernetes", n.Line, tag)
	}
	return nil
}
