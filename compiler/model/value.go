package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Kind is the type of a Value. Kinds are as in CUE: an int and a float differ,
// even where they are numerically equal.
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
	kind   Kind
	text   string  // of a scalar: "true", a number in canonical form, the string itself
	elems  []Value // of a list
	fields []Field // of a struct or secret, sorted by name
}

// Field is a named value of a struct.
type Field struct {
	Name  string
	Value Value
}

// BoolOf returns a bool.
func BoolOf(b bool) Value { return Value{kind: Bool, text: strconv.FormatBool(b)} }

// IntOf returns an int.
func IntOf(i int64) Value { return Value{kind: Int, text: strconv.FormatInt(i, 10)} }

// StringOf returns a string.
func StringOf(s string) Value { return Value{kind: String, text: s} }

// ListOf returns a list; it keeps elems.
func ListOf(elems ...Value) Value { return Value{kind: List, elems: elems} }

// StructOf returns a struct; it keeps and sorts fields, whose names must differ.
func StructOf(fields ...Field) Value {
	return Value{kind: Struct, fields: sortFields(fields)}
}

// SecretOf returns a secret reference with the fields store, key and, where
// given, property and version.
func SecretOf(fields ...Field) Value {
	return Value{kind: Secret, fields: sortFields(fields)}
}

func sortFields(fields []Field) []Field {
	less := func(i, j int) bool { return fields[i].Name < fields[j].Name }
	if !sort.SliceIsSorted(fields, less) {
		sort.Slice(fields, less)
	}
	return fields
}

// NumberOf returns the int or float that s writes in JSON, in canonical form.
// As in CUE, the spelling decides: a point or an exponent makes it a float.
func NumberOf(s string) (Value, error) {
	if !strings.ContainsAny(s, ".eE") {
		digits, neg := strings.CutPrefix(s, "-")
		if digits == "" || strings.Trim(digits, "0123456789") != "" {
			return Value{}, fmt.Errorf("invalid number %q", s)
		}
		s = strings.TrimLeft(digits, "0")
		switch {
		case s == "":
			s = "0"
		case neg:
			s = "-" + s
		}
		return Value{kind: Int, text: s}, nil
	}
	text, err := canonicalFloat(s)
	return Value{kind: Float, text: text}, err
}

// FloatOf returns the float that s writes in JSON, in canonical form, also
// where it is spelt like an int.
func FloatOf(s string) (Value, error) {
	text, err := canonicalFloat(s)
	return Value{kind: Float, text: text}, err
}

// canonicalFloat writes a decimal exactly, without trailing zeros: with a point
// while that is short, else as d.d…e±n. Both forms are floats for JSON, YAML
// 1.1 and YAML 1.2, and equal numbers have equal texts.
func canonicalFloat(s string) (string, error) {
	bad := fmt.Errorf("invalid number %q", s)
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil {
			return "", bad
		}
		mantissa, exponent = s[:i], e
	}
	mantissa, neg := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", bad
	}
	exponent -= len(fraction)
	digits = strings.TrimLeft(digits, "0")
	for strings.HasSuffix(digits, "0") {
		digits = digits[:len(digits)-1]
		exponent++
	}
	if digits == "" {
		return "0.0", nil
	}
	var out string
	switch first := len(digits) + exponent - 1; { // the exponent of the first digit
	case first < -6 || first > 20:
		rest := digits[1:]
		if rest == "" {
			rest = "0"
		}
		out = fmt.Sprintf("%c.%se%+d", digits[0], rest, first)
	case exponent >= 0:
		out = digits + strings.Repeat("0", exponent) + ".0"
	case first >= 0:
		out = digits[:first+1] + "." + digits[first+1:]
	default:
		out = "0." + strings.Repeat("0", -first-1) + digits
	}
	if neg {
		out = "-" + out
	}
	return out, nil
}

// Kind returns the value's type.
func (v Value) Kind() Kind { return v.kind }

// IsScalar says whether the value is null, a bool, a number or a string.
func (v Value) IsScalar() bool { return v.kind <= String }

// Text returns a scalar as text: a string as it is, null as "null".
func (v Value) Text() string {
	if v.kind == Null {
		return "null"
	}
	return v.text
}

// Elems returns the elements of a list. The caller must not change them.
func (v Value) Elems() []Value { return v.elems }

// Fields returns the fields of a struct or secret, sorted by name. The caller
// must not change them.
func (v Value) Fields() []Field { return v.fields }

// Lookup returns the value of a field of a struct or secret.
func (v Value) Lookup(name string) (Value, bool) {
	i := sort.Search(len(v.fields), func(i int) bool { return v.fields[i].Name >= name })
	if i < len(v.fields) && v.fields[i].Name == name {
		return v.fields[i].Value, true
	}
	return Value{}, false
}

// Equal says whether two values are the same, kinds included.
func (v Value) Equal(w Value) bool {
	if v.kind != w.kind || v.text != w.text || len(v.elems) != len(w.elems) || len(v.fields) != len(w.fields) {
		return false
	}
	for i := range v.elems {
		if !v.elems[i].Equal(w.elems[i]) {
			return false
		}
	}
	for i := range v.fields {
		if v.fields[i].Name != w.fields[i].Name || !v.fields[i].Value.Equal(w.fields[i].Value) {
			return false
		}
	}
	return true
}

// String returns the value as JSON, for messages.
func (v Value) String() string { return string(v.AppendJSON(nil)) }

// MarshalJSON writes the value with its fields sorted and its numbers in
// canonical form, so that equal values have equal bytes.
func (v Value) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

// AppendJSON appends what MarshalJSON writes.
func (v Value) AppendJSON(b []byte) []byte {
	switch v.kind {
	case String:
		return AppendJSONString(b, v.text)
	case List:
		b = append(b, '[')
		for i, e := range v.elems {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.AppendJSON(b)
		}
		return append(b, ']')
	case Struct, Secret:
		b = append(b, '{')
		for i, f := range v.fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(AppendJSONString(b, f.Name), ':')
			b = f.Value.AppendJSON(b)
		}
		return append(b, '}')
	default:
		return append(b, v.Text()...)
	}
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

// UnmarshalJSON reads what MarshalJSON writes, and any other JSON. A secret is
// read as a struct.
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
