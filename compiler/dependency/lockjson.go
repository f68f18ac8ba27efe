package dependency

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// value is a JSON value with its position: encoding/json has positions only in errors.
type value struct {
	offset int
	kind   byte // { [ " 0 (number) or n (null, true and false)
	text   string
	names  []name  // of an object, in order
	values []value // of an object or a list
}

// name is the name of a field.
type name struct {
	text   string
	offset int
}

// syntaxError is an error in the syntax of JSON, with its place.
type syntaxError struct {
	offset  int
	problem string
}

// maxNesting is how deep a lock can be nested: an object, its list, and objects in it. A
// little more is read, for better messages.
const maxNesting = 8

// parseJSON reads exactly one value.
func parseJSON(data []byte) (value, *syntaxError) {
	p := &parser{data: data, tokens: json.NewDecoder(bytes.NewReader(data))}
	p.tokens.UseNumber()
	v, err := p.value(0)
	if err == nil {
		at := p.next()
		if _, end := p.tokens.Token(); end != io.EOF {
			err = &syntaxError{at, "there is more after it"}
		}
	}
	return v, err
}

type parser struct {
	data   []byte
	tokens *json.Decoder
}

// next returns the offset of the next token.
func (p *parser) next() int {
	at := int(p.tokens.InputOffset())
	for at < len(p.data) && bytes.IndexByte([]byte(" \t\r\n,:"), p.data[at]) >= 0 {
		at++
	}
	return at
}

func (p *parser) token() (json.Token, int, *syntaxError) {
	at := p.next()
	t, err := p.tokens.Token()
	if err == nil {
		return t, at, nil
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return nil, at, &syntaxError{max(int(syntax.Offset)-1, at), syntax.Error()}
	}
	return nil, at, &syntaxError{len(p.data), "it ends too early"}
}

func (p *parser) value(depth int) (value, *syntaxError) {
	t, at, err := p.token()
	v := value{offset: at}
	if err != nil {
		return v, err
	}
	if depth > maxNesting {
		return v, &syntaxError{at, "it is nested too deeply"}
	}
	switch t := t.(type) {
	case string:
		v.kind, v.text = '"', t
	case json.Number:
		v.kind, v.text = '0', t.String()
	case json.Delim:
		v.kind = byte(t)
		return v, p.inside(&v, depth)
	default:
		v.kind = 'n'
	}
	return v, nil
}

// inside reads the content of an object or a list, and its end.
func (p *parser) inside(v *value, depth int) *syntaxError {
	for p.tokens.More() {
		if v.kind == '{' {
			t, at, err := p.token()
			if err != nil {
				return err
			}
			text, _ := t.(string) // the decoder accepts no other name
			v.names = append(v.names, name{text, at})
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		v.values = append(v.values, item)
	}
	_, _, err := p.token()
	return err
}
