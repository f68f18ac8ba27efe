package yaml

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// writer writes documents. style.go has decided the style of each string, so the writer has only to
// indent. A general emitter, which decides again, takes five times as long, and a build spends most
// of its time writing YAML.
//
// Every node ends its last line.
type writer struct {
	out []byte
	// inPlace says that the next entry or item continues the current line, after "- " or ":
	// ". Both are as wide as an indentation.
	inPlace bool
	// indented says that the items of a list are indented below its key.
	indented bool
}

// position is the place of a node: the text before it.
type position int

const (
	atStart  position = iota // a document, without any text before it
	afterKey                 // "key:"
	afterDash
)

// step is the width of one indentation.
const step = 2

// node writes a value that belongs to an entry or item at an indentation.
func (w *writer) node(v reflect.Value, at position, indent int) error {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem() // of nil: not valid
	}
	if !v.IsValid() {
		w.plain("null", at)
		return nil
	}
	switch v.Type() {
	case valueType:
		return w.value(v.Interface().(model.Value), at, indent)
	case mappingType:
		entries := v.Interface().(Mapping)
		return w.mapping(at, indent, func(indent int) error { return w.entries(entries, indent) })
	case taggedType:
		tagged := v.Interface().(TaggedString)
		if at != atStart {
			w.out = append(w.out, ' ')
		}
		w.out = append(w.out, tagged.Tag...)
		return w.text(tagged.Text, afterKey, indent)
	}
	switch v.Kind() {
	case reflect.String:
		return w.text(v.String(), at, indent)
	case reflect.Bool:
		w.plain(strconv.FormatBool(v.Bool()), at)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.plain(strconv.FormatInt(v.Int(), 10), at)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.plain(strconv.FormatUint(v.Uint(), 10), at)
	case reflect.Slice, reflect.Array:
		return w.list(v.Len(), at, indent,
			func(i, indent int) error { return w.node(v.Index(i), afterDash, indent) })
	case reflect.Map:
		return w.mapping(at, indent, func(indent int) error { return w.sorted(v, indent) })
	case reflect.Struct:
		return w.mapping(at, indent, func(indent int) error { return w.fields(v, indent) })
	default:
		return fmt.Errorf("cannot write a %s", v.Type())
	}
	return nil
}

var (
	valueType   = reflect.TypeFor[model.Value]()
	mappingType = reflect.TypeFor[Mapping]()
	taggedType  = reflect.TypeFor[TaggedString]()
)

func (w *writer) value(v model.Value, at position, indent int) error {
	switch v.Kind() {
	case model.String:
		return w.text(v.Text(), at, indent)
	case model.List:
		elems := v.Elems()
		return w.list(len(elems), at, indent,
			func(i, indent int) error { return w.value(elems[i], afterDash, indent) })
	case model.Struct, model.Secret:
		return w.mapping(at, indent, func(indent int) error {
			for _, f := range v.Fields() {
				if err := w.key(f.Name, indent,
					func(at position) error { return w.value(f.Value, at, indent) }); err != nil {
					return err
				}
			}
			return nil
		})
	case model.Float:
		if !isFloat(v.Text()) {
			w.plain("!!float "+v.Text(), at)
			return nil
		}
	}
	w.plain(v.Text(), at)
	return nil
}

// isFloat reports whether all readers read a number as a float. Readers of YAML 1.1 need a
// point, and a sign in an exponent. They read 1e3 as a string.
func isFloat(number string) bool {
	_, exponent, scientific := strings.Cut(number, "e")
	return strings.Contains(number, ".") && (!scientific || exponent[0] == '+' || exponent[0] == '-')
}

// mapping writes a mapping. It passes the indentation to entries, which writes the entries.
// Without entries it writes {}.
func (w *writer) mapping(at position, indent int, entries func(indent int) error) error {
	begin := len(w.out)
	switch at {
	case afterKey:
		w.out = append(w.out, '\n')
		indent += step
	case afterDash:
		w.out = append(w.out, ' ')
		w.inPlace = true
		indent += step
	}
	first := len(w.out)
	if err := entries(indent); err != nil {
		return err
	}
	if len(w.out) == first {
		w.out, w.inPlace = w.out[:begin], false
		w.plain("{}", at)
	}
	return nil
}

// list writes n items. If the list is the value of an entry, its items have the entry's
// indentation, unless the writer indents them.
func (w *writer) list(n int, at position, indent int, item func(i, indent int) error) error {
	if n == 0 {
		w.plain("[]", at)
		return nil
	}
	switch at {
	case afterKey:
		w.out = append(w.out, '\n')
		if w.indented {
			indent += step
		}
	case afterDash:
		w.out = append(w.out, ' ')
		w.inPlace = true
		indent += step
	}
	for i := range n {
		w.begin(indent)
		w.out = append(w.out, '-')
		if err := item(i, indent); err != nil {
			return err
		}
	}
	return nil
}

// begin begins an entry or item.
func (w *writer) begin(indent int) {
	if !w.inPlace {
		w.indent(indent)
	}
	w.inPlace = false
}

func (w *writer) indent(indent int) {
	for range indent {
		w.out = append(w.out, ' ')
	}
}

// longestKey is the maximum length in bytes of a key that is written as "key:". YAML allows
// 1024 characters. The limit spares readers a long search for the colon. libyaml and its
// descendants have the same limit.
const longestKey = 128

// isLineBreak reports whether a character ends a line in YAML 1.1.
func isLineBreak(r rune) bool {
	switch r {
	case '\n', '\r', 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// key writes an entry: its key, and then its value at a position. A key of several lines, or
// a long one, has a line of its own, after "? ".
func (w *writer) key(key string, indent int, value func(position) error) error {
	w.begin(indent)
	at := afterKey
	if len(key) > longestKey || strings.ContainsFunc(key, isLineBreak) {
		w.out = append(w.out, '?')
		if err := w.text(key, afterDash, indent); err != nil {
			return err
		}
		w.indent(indent)
		at = afterDash
	} else if err := w.scalar(key, indent); err != nil {
		return err
	}
	w.out = append(w.out, ':')
	if err := value(at); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func (w *writer) entries(m Mapping, indent int) error {
	for _, e := range m {
		if err := w.entry(e.Key, reflect.ValueOf(e.Value), indent); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) entry(key string, v reflect.Value, indent int) error {
	return w.key(key, indent, func(at position) error { return w.node(v, at, indent) })
}

// sorted writes the entries of a map.
func (w *writer) sorted(v reflect.Value, indent int) error {
	if v.Type().Key().Kind() != reflect.String {
		return fmt.Errorf("cannot write a %s: its keys are no strings", v.Type())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys,
		func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		if err := w.entry(k.String(), v.MapIndex(k), indent); err != nil {
			return err
		}
	}
	return nil
}

// fields writes the fields of a struct as entries.
func (w *writer) fields(v reflect.Value, indent int) error {
	fields, err := fieldsOf(v.Type())
	if err != nil {
		return err
	}
	for _, f := range fields {
		value := v.Field(f.index)
		switch {
		case f.inline && value.Type() == mappingType:
			err = w.entries(value.Interface().(Mapping), indent)
		case f.inline:
			err = w.fields(value, indent)
		case f.omitEmpty && empty(value):
		default:
			err = w.entry(f.name, value, indent)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

// plain writes a value that is not a string. Readers find out its type from the text.
func (w *writer) plain(s string, at position) {
	if at != atStart {
		w.out = append(w.out, ' ')
	}
	w.out = append(append(w.out, s...), '\n')
}

// text writes a string.
func (w *writer) text(s string, at position, indent int) error {
	if at != atStart {
		w.out = append(w.out, ' ')
	}
	if err := w.scalar(s, indent); err != nil {
		return err
	}
	// Only a literal ends in a line feed.
	if w.out[len(w.out)-1] != '\n' {
		w.out = append(w.out, '\n')
	}
	return nil
}

// scalar writes a string in the style that it needs.
func (w *writer) scalar(s string, indent int) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%q is not valid UTF-8", s)
	}
	switch styleOf(s) {
	case plainStyle:
		w.out = append(w.out, s...)
	case singleQuoted:
		w.out = append(w.out, '\'')
		for i := range len(s) {
			if s[i] == '\'' {
				w.out = append(w.out, '\'')
			}
			w.out = append(w.out, s[i])
		}
		w.out = append(w.out, '\'')
	case doubleQuoted:
		w.out = append(w.out, '"')
		for _, r := range s {
			letter, short := escapes[r]
			switch {
			case short:
				w.out = append(w.out, '\\', letter)
			case printable(r):
				w.out = utf8.AppendRune(w.out, r)
			case r <= 0xFF:
				w.out = fmt.Appendf(w.out, `\x%02X`, r)
			case r <= 0xFFFF:
				w.out = fmt.Appendf(w.out, `\u%04X`, r)
			default:
				w.out = fmt.Appendf(w.out, `\U%08X`, r)
			}
		}
		w.out = append(w.out, '"')
	case literalStyle:
		// Write a block of lines. A "-" says that the last line does not end in a line feed.
		w.out = append(w.out, '|')
		if !strings.HasSuffix(s, "\n") {
			w.out = append(w.out, '-')
		}
		w.out = append(w.out, '\n')
		for line := range strings.Lines(s) {
			if line != "\n" {
				w.indent(indent + step)
			}
			w.out = append(w.out, line...)
		}
		if !strings.HasSuffix(s, "\n") {
			w.out = append(w.out, '\n')
		}
	}
	return nil
}

// escapes are the escapes that YAML has a letter for
// (https://yaml.org/spec/1.2.2/#57-escaped-characters).
var escapes = map[rune]byte{
	0: '0', '\a': 'a', '\b': 'b', '\t': 't', '\n': 'n', '\v': 'v', '\f': 'f', '\r': 'r', 0x1B: 'e',
	'"': '"', '\\': '\\', 0x85: 'N', 0x2028: 'L', 0x2029: 'P',
}
