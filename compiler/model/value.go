package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Kind is the type of a Value. Kinds are the same as in CUE: an int differs from a float, even
// if both are numerically equal.
type Kind uint8

// The kinds of a Value.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Struct
	Secret // a reference to a secret, with the fields of schema.#Secret
)

func (k Kind) String() string {
	return [...]string{"null", "bool", "int", "float", "string", "list", "struct", "secret"}[k]
}

// Value is concrete data. It is immutable, so it may be shared freely between
// goroutines. The zero Value is null.
type Value struct {
	_ [0]func() // prevents ==, which would compare pointers or panic; use Equal
	// data is one of nil, bool, integer, float, string, []Value, structure and secret. A field
	// of a struct costs only one interface if its scalar is shared: there are many more fields
	// than distinct scalars.
	data any
}

type (
	integer   string // in canonical form
	float     string // as its author wrote it: see FloatOf
	structure []Field
	secret    []Field
)

// Field is a named value of a struct.
type Field struct {
	Name  string
	Value Value
}

// BoolOf returns a bool.
func BoolOf(b bool) Value { return Value{data: b} }

// IntOf returns an int.
func IntOf(i int64) Value { return Value{data: integer(strconv.FormatInt(i, 10))} }

// StringOf returns a string.
func StringOf(s string) Value { return Value{data: s} }

// ListOf returns a list; it keeps elems.
func ListOf(elems ...Value) Value { return Value{data: elems} }

// StructOf returns a struct; it keeps and sorts fields, whose names must differ.
func StructOf(fields ...Field) Value { return Value{data: structure(sortFields(fields))} }

// SecretOf returns a secret reference with the fields store, key and, optionally, property and
// version.
func SecretOf(fields ...Field) Value { return Value{data: secret(sortFields(fields))} }

func sortFields(fields []Field) []Field {
	compare := func(f, g Field) int { return strings.Compare(f.Name, g.Name) }
	if !slices.IsSortedFunc(fields, compare) {
		slices.SortFunc(fields, compare)
	}
	return fields
}

// ScalarOf returns the scalar of a kind with this Text.
func ScalarOf(kind Kind, text string) (Value, error) {
	v, err := Value{}, error(nil)
	switch kind {
	case Bool:
		v = BoolOf(text == "true")
	case Int, Float:
		v, err = NumberOf(text)
	case String:
		return StringOf(text), nil
	}
	if err == nil && (v.Kind() != kind || v.Text() != text) {
		err = fmt.Errorf("%q is not the text of a scalar of kind %s", text, kind)
	}
	return v, err
}

// Kind returns the value's type.
func (v Value) Kind() Kind {
	switch v.data.(type) {
	case bool:
		return Bool
	case integer:
		return Int
	case float:
		return Float
	case string:
		return String
	case []Value:
		return List
	case structure:
		return Struct
	case secret:
		return Secret
	}
	return Null
}

// IsScalar reports whether the value is null, a bool, a number or a string.
func (v Value) IsScalar() bool { return v.Kind() <= String }

// Text returns a scalar as text. A string is not quoted, and null is "null".
func (v Value) Text() string {
	switch data := v.data.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(data)
	case integer:
		return string(data)
	case float:
		return string(data)
	case string:
		return data
	}
	return ""
}

// Elems returns the elements of a list. The caller must not change them.
func (v Value) Elems() []Value {
	elems, _ := v.data.([]Value)
	return elems
}

// Fields returns the fields of a struct or secret, sorted by name. The caller
// must not change them.
func (v Value) Fields() []Field {
	switch data := v.data.(type) {
	case structure:
		return data
	case secret:
		return data
	}
	return nil
}

// Lookup returns the value of a field of a struct or secret.
func (v Value) Lookup(name string) (Value, bool) {
	fields := v.Fields()
	i := sort.Search(len(fields), func(i int) bool { return fields[i].Name >= name })
	if i < len(fields) && fields[i].Name == name {
		return fields[i].Value, true
	}
	return Value{}, false
}

// Equal reports whether two values are the same, including kinds and the texts of numbers. See
// Same for equal numbers with different texts.
func (v Value) Equal(w Value) bool {
	switch a := v.data.(type) {
	case []Value:
		b, same := w.data.([]Value)
		return same && slices.EqualFunc(a, b, Value.Equal)
	case structure:
		b, same := w.data.(structure)
		return same && equalFields(a, b)
	case secret:
		b, same := w.data.(secret)
		return same && equalFields(a, b)
	}
	return v.Kind() == w.Kind() && v.Text() == w.Text()
}

func equalFields(a, b []Field) bool {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return true // for example, both are from one tree
	}
	return slices.EqualFunc(a, b,
		func(f, g Field) bool { return f.Name == g.Name && f.Value.Equal(g.Value) })
}

// String returns the value as JSON, for messages.
func (v Value) String() string { return string(v.AppendJSON(nil)) }

// MarshalJSON writes the value with sorted fields. Numbers keep their spelling, so that equal
// values have equal bytes.
func (v Value) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

// AppendJSON appends the output of MarshalJSON to b.
func (v Value) AppendJSON(b []byte) []byte {
	switch data := v.data.(type) {
	case string:
		return AppendJSONString(b, data)
	case []Value:
		b = append(b, '[')
		for i, e := range data {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.AppendJSON(b)
		}
		return append(b, ']')
	case structure:
		return appendJSONFields(b, data)
	case secret:
		return appendJSONFields(b, data)
	}
	return append(b, v.Text()...)
}

func appendJSONFields(b []byte, fields []Field) []byte {
	b = append(b, '{')
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendJSONString(b, f.Name), ':')
		b = f.Value.AppendJSON(b)
	}
	return append(b, '}')
}

// AppendJSONString appends s as a JSON string, without HTML escapes.
func AppendJSONString(b []byte, s string) []byte {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		b = append(b, '"')
		b = append(b, s...)
		return append(b, '"')
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// UnmarshalJSON reads the output of MarshalJSON, and any other JSON. It reads a secret as a
// struct.
func (v *Value) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var x any
	if err := dec.Decode(&x); err != nil {
		return err
	}
	w, err := valueOf(x)
	*v = w
	return err
}

func valueOf(x any) (Value, error) {
	switch x := x.(type) {
	case nil:
		return Value{}, nil
	case bool:
		return BoolOf(x), nil
	case json.Number:
		return NumberOf(string(x))
	case string:
		return StringOf(x), nil
	case []any:
		elems := make([]Value, len(x))
		for i := range x {
			var err error
			if elems[i], err = valueOf(x[i]); err != nil {
				return Value{}, err
			}
		}
		return ListOf(elems...), nil
	case map[string]any:
		fields := make([]Field, 0, len(x))
		for k, e := range x {
			f, err := valueOf(e)
			if err != nil {
				return Value{}, err
			}
			fields = append(fields, Field{k, f})
		}
		return StructOf(fields...), nil
	}
	return Value{}, fmt.Errorf("no JSON value: %T", x)
}

// Insert returns a struct with a value at a path of fields, which must be free. taken is the
// length of the beginning of the path that is already taken, or 0 if Insert succeeds.
func (v Value) Insert(path []string, of Value) (merged Value, taken int) {
	old, present := v.Lookup(path[0])
	switch {
	case !present:
		for _, name := range slices.Backward(path[1:]) {
			of = StructOf(Field{Name: name, Value: of})
		}
	case len(path) == 1 || old.Kind() != Struct:
		return Value{}, 1
	default:
		if of, taken = old.Insert(path[1:], of); taken > 0 {
			return Value{}, taken + 1
		}
	}
	fields := slices.DeleteFunc(slices.Clone(v.Fields()),
		func(f Field) bool { return f.Name == path[0] })
	return StructOf(append(fields, Field{Name: path[0], Value: of})...), 0
}

// Merge returns base with the values of over added or replaced. It merges structs field by
// field, and replaces everything else as a whole, including lists.
func Merge(base, over Value) Value {
	if base.Kind() != Struct || over.Kind() != Struct {
		return over
	}
	fields := slices.Clone(base.Fields())
	for _, f := range over.Fields() {
		i := slices.IndexFunc(fields, func(b Field) bool { return b.Name == f.Name })
		if i < 0 {
			fields = append(fields, f)
			continue
		}
		fields[i].Value = Merge(fields[i].Value, f.Value)
	}
	return StructOf(fields...)
}

// Difference returns the value that Merge needs to turn from, a struct, into to. It has the
// fields of to that are missing or different in from, and a null for each field that to lacks.
func Difference(from, to Value) Value {
	var fields []Field
	for _, f := range to.Fields() {
		before, there := from.Lookup(f.Name)
		switch {
		case there && before.Equal(f.Value):
		case there && before.Kind() == Struct && f.Value.Kind() == Struct:
			fields = append(fields, Field{Name: f.Name, Value: Difference(before, f.Value)})
		default:
			fields = append(fields, f)
		}
	}
	for _, f := range from.Fields() {
		if _, there := to.Lookup(f.Name); !there {
			fields = append(fields, Field{Name: f.Name})
		}
	}
	return StructOf(fields...)
}

// WithoutNulls splits a struct. It returns the struct without its null fields, and these fields
// as a struct of nulls. The second result is null if no field is null. A struct that contains
// only nulls moves entirely. A null in a list stays.
func (v Value) WithoutNulls() (kept, nulls Value) {
	var fields, gone []Field
	for _, f := range v.Fields() {
		switch f.Value.Kind() {
		case Null:
			gone = append(gone, f)
			continue
		case Struct:
			below, nulls := f.Value.WithoutNulls()
			if nulls.Kind() == Struct {
				gone = append(gone, Field{Name: f.Name, Value: nulls})
				if len(below.Fields()) == 0 {
					continue
				}
				f.Value = below
			}
		}
		fields = append(fields, f)
	}
	if gone == nil {
		return v, Value{}
	}
	return StructOf(fields...), StructOf(gone...)
}
