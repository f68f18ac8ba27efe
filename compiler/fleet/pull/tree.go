package pull

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/internal/yamlnodes"
)

// tree is a JSON, NDJSON or YAML file, as the nodes of YAML: they keep the order of fields,
// comments, and how numbers are written.
type tree struct {
	format model.InventoryFormat
	root   *yaml.Node // nil for NDJSON
	list   *yaml.Node // in the root
	// compact reports that the items of a YAML file's lists are not indented.
	compact bool
}

// mapping is a row of a tree.
type mapping struct {
	*yaml.Node
}

func openTree(inv *model.Inventory, format model.InventoryFormat, data []byte) (*tree, error) {
	t := &tree{format: format, list: sequence()}
	var err error
	data = bytes.TrimPrefix(data, []byte(bom))
	switch {
	case format == model.YAMLInventory:
		t.root, err = yamlRoot(data)
	case format == model.NDJSONInventory:
		t.list.Content, err = jsonNodes(data)
	case len(bytes.TrimSpace(data)) > 0:
		var all []*yaml.Node
		if all, err = jsonNodes(data); err == nil && len(all) != 1 {
			err = fmt.Errorf("has %d values where it should have one", len(all))
		} else if err == nil {
			t.root = all[0]
		}
	}
	if err != nil {
		return nil, err
	}
	if format != model.NDJSONInventory {
		if err := t.find(inv.Rows); err != nil {
			return nil, err
		}
	}
	for _, n := range t.list.Content {
		if n.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("has something in line %d that is no object: take it away first", n.Line)
		}
	}
	return t, nil
}

func sequence() *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"} }

func scalar(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	n.Style = 0 // the encoder knows which texts need quotes, also for older readers
	return n
}

// yamlRoot returns the content of a YAML file's document, with the document's comments, or
// nil.
func yamlRoot(data []byte) (*yaml.Node, error) {
	docs, cost, err := yamlnodes.Parse(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case cost.Aliased > 0:
		return nil, errors.New(
			"has aliases, which a change of other rows could break: write them out first")
	case len(docs) > 1:
		return nil, errors.New("has several documents")
	case len(docs) == 0:
		return nil, nil
	}
	return docs[0], nil
}

// find sets the list of the root, in one of its fields unless that is "". It makes the list
// if it does not exist.
func (t *tree) find(field string) error {
	content := t.root
	if content != nil && content.Kind == yaml.DocumentNode {
		content = content.Content[0]
	}
	none := content == nil || content.ShortTag() == "!!null"
	if none && content != nil && field == "" {
		*content, t.list = *t.list, content
		return nil
	}
	if none {
		t.root = t.list
		if field != "" {
			t.root = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map",
				Content: []*yaml.Node{scalar(field), t.list}}
		}
		return nil
	}
	if field != "" {
		of, there := lookup(content, field)
		switch {
		case content.Kind == yaml.MappingNode && !there:
			return replace(content, field, t.list)
		case there && of.ShortTag() == "!!null":
			*of, t.list = *t.list, of
			return nil
		}
		content = of
	}
	if content == nil || content.Kind != yaml.SequenceNode {
		return errors.New("holds no list of clusters" +
			map[bool]string{true: " in " + field}[field != ""])
	}
	if t.list = content; len(t.list.Content) == 0 {
		t.list.Style = 0
	}
	t.compact = field != "" && t.list.Style == 0 && t.list.Column == 1
	return nil
}

// lookup returns the value of a mapping's key.
func lookup(n *yaml.Node, key string) (*yaml.Node, bool) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1], true
		}
	}
	return nil, false
}

func (t *tree) rows() (out []row) {
	for _, n := range t.list.Content {
		out = append(out, mapping{n})
	}
	return out
}

func (t *tree) add() row { return mapping{&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}} }

func (t *tree) render(rows []row) ([]byte, error) {
	t.list.Content = nil
	for _, r := range rows {
		t.list.Content = append(t.list.Content, r.(mapping).Node)
	}
	var b bytes.Buffer
	switch t.format {
	case model.YAMLInventory:
		e := yaml.NewEncoder(&b)
		e.SetIndent(2)
		if t.compact {
			e.CompactSeqIndent()
		}
		err := errors.Join(e.Encode(t.root), e.Close())
		return b.Bytes(), err
	case model.NDJSONInventory:
		e := jsontext.NewEncoder(&b)
		for _, n := range t.list.Content {
			if err := writeJSON(e, n); err != nil {
				return nil, err
			}
		}
		return b.Bytes(), nil
	}
	err := writeJSON(jsontext.NewEncoder(&b, jsontext.WithIndent("  ")), t.root)
	return b.Bytes(), err
}

func (m mapping) lineNumber() int { return m.Line }

// find returns the mapping that has a column, and the key in it: the column itself, or the
// end of its path. With make, it adds missing objects on the way. Otherwise it returns nil
// if one is missing.
func (m mapping) find(column string, make bool) (of *yaml.Node, key string, err error) {
	if _, there := lookup(m.Node, column); there || !strings.Contains(column, ".") {
		return m.Node, column, nil
	}
	of = m.Node
	names := strings.Split(column, ".")
	for _, name := range names[:len(names)-1] {
		next, there := lookup(of, name)
		switch {
		case there && next.Kind == yaml.MappingNode:
		case there && next.ShortTag() != "!!null":
			return nil, "", fmt.Errorf("%s is no object", name)
		case !make:
			return nil, "", nil
		default:
			next = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			_ = replace(of, name, next)
		}
		of = next
	}
	return of, names[len(names)-1], nil
}

// textOf returns the text of a key of a mapping; "" for null and for other values.
func textOf(of *yaml.Node, key string) string {
	if of == nil {
		return ""
	}
	n, there := lookup(of, key)
	if !there || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return strings.TrimSpace(n.Value)
}

func (m mapping) cell(column string) string {
	of, key, _ := m.find(column, false)
	return textOf(of, key)
}

func (m mapping) set(column, text string) error {
	of, key, err := m.find(column, true)
	if err != nil {
		return err
	}
	return setText(of, key, text)
}

func (m mapping) label(name string) string {
	of, _ := lookup(m.Node, "labels")
	return textOf(of, name)
}

func (m mapping) setLabel(name, text string) error {
	of, there := lookup(m.Node, "labels")
	if !there || of.ShortTag() == "!!null" {
		of = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		_ = replace(m.Node, "labels", of)
	}
	if of.Kind != yaml.MappingNode {
		return errors.New("labels is no object")
	}
	return setText(of, name, text)
}

// setText sets a text of a mapping. "" removes the key.
func setText(of *yaml.Node, key, text string) error {
	if text != "" {
		return replace(of, key, scalar(text))
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == key {
			of.Content = append(of.Content[:i:i], of.Content[i+2:]...)
			break
		}
	}
	return nil
}

// replace sets a key of a mapping, and keeps its comments.
func replace(of *yaml.Node, key string, value *yaml.Node) error {
	if old, there := lookup(of, key); there {
		if old.Kind != yaml.ScalarNode {
			return fmt.Errorf("%s is no text", key)
		}
		value.HeadComment, value.LineComment, value.FootComment = old.HeadComment, old.LineComment,
			old.FootComment
		*old = *value
		return nil
	}
	of.Content = append(of.Content, scalar(key), value)
	return nil
}

// jsonNodes returns the values of a JSON text.
func jsonNodes(data []byte) ([]*yaml.Node, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	r := &jsonReader{Decoder: d, data: data, line: 1}
	var out []*yaml.Node
	for {
		n, err := r.node()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("is no JSON in line %d: %s", r.count(),
				terminal.Line(strings.TrimPrefix(err.Error(), "jsontext: ")))
		}
		out = append(out, n)
	}
}

// jsonReader reads JSON as nodes of YAML with their lines.
type jsonReader struct {
	*jsontext.Decoder
	data       []byte
	line, seen int
}

// count returns the line that is read.
func (r *jsonReader) count() int {
	at := min(int(r.InputOffset()), len(r.data))
	r.line += bytes.Count(r.data[r.seen:at], []byte("\n"))
	r.seen = at
	return r.line
}

func (r *jsonReader) node() (*yaml.Node, error) {
	token, err := r.ReadToken()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.count()}
	switch token.Kind() {
	case '{', '[':
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		if token.Kind() == '[' {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
		for k := r.PeekKind(); k != '}' && k != ']'; k = r.PeekKind() {
			e, err := r.node()
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, e)
		}
		_, err := r.ReadToken()
		return n, err
	case '"':
		n.Tag, n.Value = "!!str", token.String()
	case '0':
		n.Tag, n.Value = "!!float", token.String()
	case 'n':
		n.Tag, n.Value = "!!null", "null"
	default:
		n.Tag, n.Value = "!!bool", token.String()
	}
	return n, nil
}

// writeJSON writes a node as JSON.
func writeJSON(e *jsontext.Encoder, n *yaml.Node) error {
	switch {
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode:
		begin, end := jsontext.BeginObject, jsontext.EndObject
		if n.Kind == yaml.SequenceNode {
			begin, end = jsontext.BeginArray, jsontext.EndArray
		}
		if err := e.WriteToken(begin); err != nil {
			return err
		}
		for _, c := range n.Content {
			if err := writeJSON(e, c); err != nil {
				return err
			}
		}
		return e.WriteToken(end)
	case n.ShortTag() == "!!str":
		return e.WriteToken(jsontext.String(n.Value))
	}
	return e.WriteValue(jsontext.Value(n.Value))
}
