package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/yamlnodes"
)

// valueCells are an object of a file.
type valueCells struct {
	model.Value
	position model.Position
}

// cell returns the field of the object. If the name is a path with dots, the field is in an
// object of the object.
func (c valueCells) cell(column string) (model.Value, bool) {
	if v, there := c.Lookup(column); there {
		return v, true
	}
	v := c.Value
	for name := range strings.SplitSeq(column, ".") {
		var there bool
		if v, there = v.Lookup(name); !there {
			return model.Value{}, false
		}
	}
	return v, true
}

func (c valueCells) below(column string) []model.Field {
	v, _ := c.Lookup(column)
	return v.Fields()
}

func (c valueCells) positionOf(string) model.Position { return c.position }

// object adds an element of the list.
func (inv *inventory) object(v model.Value, at model.Position) {
	if v.Kind() != model.Struct {
		inv.refuse("element", "", at,
			fmt.Sprintf("an element of the list must be an object, and is of type %s", v.Kind()),
			"each cluster is an object with its fields")
		return
	}
	if f := inv.filter; f != nil && f.names == nil {
		for _, field := range v.Fields() {
			f.names = append(f.names, field.Name)
		}
	}
	inv.add(valueCells{v, at})
}

// lines finds the lines of offsets. The offsets must be ascending.
type lines struct {
	data       []byte
	seen, line int // the offset up to which lines are counted, and their number
	start      int // of the line
}

// positionAt returns the position of an offset in a file.
func (l *lines) positionAt(file string, offset int) model.Position {
	offset = min(offset, len(l.data))
	for l.seen < offset {
		next := bytes.IndexByte(l.data[l.seen:offset], '\n')
		if next < 0 {
			break
		}
		l.line, l.seen = l.line+1, l.seen+next+1
		l.start = l.seen
	}
	l.seen = max(l.seen, offset)
	return model.Position{File: file, Line: l.line + 1, Column: offset - l.start + 1}
}

// readJSON makes a row from each element of the list.
func (inv *inventory) readJSON(data []byte) *fault {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowInvalidUTF8(true))
	l := &lines{data: data}
	broken := func(err error) *fault {
		offset, message := len(data), "is cut off"
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			offset, message = int(d.InputOffset()), "is no JSON: "+plain(err)
		}
		p := l.positionAt("", offset)
		return &fault{message: message, line: p.Line, column: p.Column,
			hint: "correct the file, or export it again"}
	}
	noList := func() *fault {
		p := l.positionAt("", int(d.InputOffset()))
		hint := "the file is a list of objects, or rows names the field that holds the list"
		return &fault{message: "holds no list" + inv.listText(), line: p.Line, column: p.Column,
			hint: hint}
	}
	if inv.Rows != "" {
		if d.PeekKind() != '{' {
			return noList()
		}
		if found, err := enter(d, inv.Rows); err != nil {
			return broken(err)
		} else if !found {
			return noList()
		}
	}
	if kind := d.PeekKind(); kind == 0 {
		_, err := d.ReadToken()
		return broken(err)
	} else if kind != '[' {
		return noList()
	}
	if _, err := d.ReadToken(); err != nil {
		return broken(err)
	}
	for d.PeekKind() != ']' {
		raw, err := d.ReadValue()
		if err != nil {
			return broken(err)
		}
		at := l.positionAt(inv.file, int(d.InputOffset())-len(raw))
		inv.raw(raw, at)
	}
	for _, err := d.ReadToken(); !errors.Is(err, io.EOF); _, err = d.ReadToken() {
		if err != nil {
			return broken(err)
		}
	}
	return nil
}

// listText names the field with the list.
func (inv *inventory) listText() string {
	if inv.Rows == "" {
		return ""
	}
	return " in " + inv.Rows
}

// enter moves to the value of a field of the following object.
func enter(d *jsontext.Decoder, field string) (found bool, err error) {
	if _, err := d.ReadToken(); err != nil {
		return false, err
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return false, err
		}
		if name.String() == field {
			return true, nil
		}
		if err := d.SkipValue(); err != nil {
			return false, err
		}
	}
	_, err = d.ReadToken()
	return false, err
}

// raw adds an element as JSON text.
func (inv *inventory) raw(text []byte, at model.Position) {
	var v model.Value
	if !utf8.Valid(text) {
		inv.refuse("encoding", "", at, "a row is not UTF-8", "save the file as UTF-8")
	} else if err := v.UnmarshalJSON(text); err != nil {
		inv.refuse("element", "", at, "a row cannot be read: "+plain(err), "correct the row")
	} else {
		inv.object(v, at)
	}
}

// plain returns the message of an error of a JSON library, without the library's name.
func plain(err error) string {
	s := err.Error()
	for _, prefix := range []string{"jsontext: ", "json: "} {
		s = strings.TrimPrefix(s, prefix)
	}
	return s
}

// maxAliased bounds the size of a YAML file after its aliases are written out.
const maxAliased = 100_000

// readYAML makes a row from each element of the list.
func (inv *inventory) readYAML(data []byte) *fault {
	docs, cost, err := yamlnodes.Parse(data)
	if refused := (*yamlnodes.Error)(nil); errors.As(err, &refused) {
		return &fault{message: "is no YAML that can be read: " + refused.Message,
			line: max(refused.Line, 1), column: refused.Column, hint: "correct the file"}
	}
	switch {
	case err != nil:
		return &fault{message: "cannot be read: " + err.Error()}
	case cost.Aliased > maxAliased:
		return &fault{message: fmt.Sprintf("writes out more than %d values with its aliases",
			maxAliased), line: 1, hint: "write them without aliases"}
	case len(docs) == 0:
		return nil
	}
	yamlnodes.MarkTags(data, docs)
	list := docs[0].Content[0]
	if inv.Rows != "" {
		list = fieldOf(list, inv.Rows)
	}
	if len(docs) > 1 || list == nil || list.Kind != yaml.SequenceNode {
		return &fault{message: "holds no list" + inv.listText(), line: 1,
			hint: "the file is one list of " +
				"objects, or rows names the field that holds the list"}
	}
	for _, n := range list.Content {
		at := model.Position{File: inv.file, Line: n.Line, Column: n.Column}
		v, err := valueOf(n)
		if err != nil {
			inv.refuse("element", "", at, "a row cannot be read: "+err.Error(), "correct the row")
			continue
		}
		inv.object(v, at)
	}
	return nil
}

// fieldOf returns the value of a mapping's key, or nil.
func fieldOf(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// octal matches numbers that YAML 1.1 and 1.2 read in another way.
var octal = lazyregexp.New(`^[-+]?0[0-9_]+$`)

// valueOf returns a node as a value. Numbers keep their digits if JSON allows them.
func valueOf(n *yaml.Node) (model.Value, error) {
	if yamlnodes.Retagged(n) {
		return model.Value{}, fmt.Errorf("line %d: the tag %s gives %q another meaning: write the "+
			"value without it", n.Line, n.Tag, n.Value)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return valueOf(n.Alias)
	case yaml.SequenceNode:
		var out []model.Value
		for _, e := range n.Content {
			v, err := valueOf(e)
			if err != nil {
				return v, err
			}
			out = append(out, v)
		}
		return model.ListOf(out...), nil
	case yaml.MappingNode:
		var fields []model.Field
		names := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if yamlnodes.IsMerge(key) || key.Kind != yaml.ScalarNode {
				return model.Value{},
					fmt.Errorf("line %d: a key must be a text, and not %s", key.Line, "a merge key or a list")
			}
			if names[key.Value] {
				return model.Value{}, fmt.Errorf("line %d: %s is there twice", key.Line, key.Value)
			}
			names[key.Value] = true
			v, err := valueOf(n.Content[i+1])
			if err != nil {
				return v, err
			}
			fields = append(fields, model.Field{Name: key.Value, Value: v})
		}
		return model.StructOf(fields...), nil
	}
	switch n.ShortTag() {
	case "!!null":
		return model.Value{}, nil
	case "!!bool":
		var b bool
		err := n.Decode(&b)
		return model.BoolOf(b), err
	case "!!int", "!!float":
		if octal.MatchString(n.Value) {
			return model.Value{}, fmt.Errorf("line %d: %s is another number in YAML 1.1: quote it if it "+
				"is a text, %q", n.Line, n.Value, n.Value)
		}
		if v, err := model.NumberOf(n.Value); err == nil {
			return v, nil
		}
		var number any // 0x1F, 1_000, .inf
		if err := n.Decode(&number); err != nil {
			return model.Value{}, err
		}
		data, err := json.Marshal(number)
		if err != nil {
			return model.Value{}, fmt.Errorf("line %d: %s is no number that JSON has: quote it if it is a "+
				"text, %q", n.Line, n.Value, n.Value)
		}
		return model.NumberOf(string(data))
	}
	return model.StringOf(n.Value), nil
}
