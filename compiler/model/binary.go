package model

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// maxDepth is how deep lists and structs may lie in each other in a binary form,
// as for encoding/json.
const maxDepth = 10_000

// AppendBinary appends a form of the value that, unlike JSON, tells a secret from
// a struct. Equal values have equal bytes, and different values different ones:
//
//	value  = kind (a byte) content
//	null   = nothing
//	bool   = 0 or 1 (a byte)
//	int, float, string = length text
//	list   = count value...
//	struct, secret = count (length name value)..., sorted by name
//
// Lengths and counts are unsigned varints, as encoding/binary writes them.
func (v Value) AppendBinary(b []byte) []byte {
	kind := v.Kind()
	b = append(b, byte(kind))
	switch kind {
	case Null:
	case Bool:
		if v.Text() == "true" {
			return append(b, 1)
		}
		return append(b, 0)
	case List:
		b = binary.AppendUvarint(b, uint64(len(v.Elems())))
		for _, e := range v.Elems() {
			b = e.AppendBinary(b)
		}
	case Struct, Secret:
		b = binary.AppendUvarint(b, uint64(len(v.Fields())))
		for _, f := range v.Fields() {
			b = appendText(b, f.Name)
			b = f.Value.AppendBinary(b)
		}
	default:
		b = appendText(b, v.Text())
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// DecodeValue reads the value that b begins with, as AppendBinary writes it, and
// returns what follows it. The value shares no memory with b. Bytes that
// AppendBinary does not write are an error, and so are values deeper than 10,000
// levels; what is allocated is linear in the length of b.
func DecodeValue(b []byte) (v Value, rest []byte, err error) {
	d := valueDecoder{rest: b, budget: uint64(len(b))}
	v, err = d.value(0)
	if err != nil {
		return Value{}, nil, fmt.Errorf("decode a value: %w", err)
	}
	return v, d.rest, nil
}

var errCutShort = errors.New("cut short")

// valueDecoder reads values. The budget is how many bytes the elements that are
// still to come can have at most, each at least one: counts are believed only
// within it, so that lists within lists cannot claim the same bytes over again.
type valueDecoder struct {
	rest   []byte
	budget uint64
}

func (d *valueDecoder) value(depth int) (Value, error) {
	if depth > maxDepth {
		return Value{}, fmt.Errorf("more than %d levels", maxDepth)
	}
	if len(d.rest) == 0 {
		return Value{}, errCutShort
	}
	kind := Kind(d.rest[0])
	d.rest = d.rest[1:]
	switch kind {
	case Null:
		return Value{}, nil
	case Bool:
		if len(d.rest) == 0 {
			return Value{}, errCutShort
		}
		is := d.rest[0]
		d.rest = d.rest[1:]
		if is > 1 {
			return Value{}, fmt.Errorf("invalid bool %d", is)
		}
		return BoolOf(is == 1), nil
	case Int, Float, String:
		text, err := d.text()
		if err != nil {
			return Value{}, err
		}
		return ScalarOf(kind, text)
	case List:
		return d.list(depth)
	case Struct, Secret:
		return d.fields(kind, depth)
	}
	return Value{}, fmt.Errorf("invalid kind %d", kind)
}

func (d *valueDecoder) list(depth int) (Value, error) {
	n, err := d.count(1)
	if err != nil {
		return Value{}, err
	}
	if n == 0 {
		return ListOf(), nil
	}
	elems := make([]Value, n)
	for i := range elems {
		if elems[i], err = d.value(depth + 1); err != nil {
			return Value{}, err
		}
	}
	return ListOf(elems...), nil
}

func (d *valueDecoder) fields(kind Kind, depth int) (Value, error) {
	n, err := d.count(2)
	if err != nil {
		return Value{}, err
	}
	var fields []Field
	if n > 0 {
		fields = make([]Field, n)
	}
	for i := range fields {
		f := &fields[i]
		if f.Name, err = d.text(); err != nil {
			return Value{}, err
		}
		if i > 0 && fields[i-1].Name >= f.Name {
			return Value{}, fmt.Errorf("field %q does not follow %q", f.Name, fields[i-1].Name)
		}
		if f.Value, err = d.value(depth + 1); err != nil {
			return Value{}, err
		}
	}
	if kind == Secret {
		return SecretOf(fields...), nil
	}
	return StructOf(fields...), nil
}

// count reads how many elements of at least so many bytes follow.
func (d *valueDecoder) count(bytes uint64) (uint64, error) {
	n, err := d.uvarint()
	if err != nil {
		return 0, err
	}
	if n > d.budget/bytes {
		return 0, errCutShort
	}
	d.budget -= n * bytes
	return n, nil
}

func (d *valueDecoder) text() (string, error) {
	n, err := d.uvarint()
	if err != nil {
		return "", err
	}
	if n > uint64(len(d.rest)) {
		return "", errCutShort
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s, nil
}

// uvarint reads a varint in its shortest form.
func (d *valueDecoder) uvarint() (uint64, error) {
	n, size := binary.Uvarint(d.rest)
	switch {
	case size == 0:
		return 0, errCutShort
	case size < 0 || size > 1 && d.rest[size-1] == 0:
		return 0, errors.New("invalid length")
	}
	d.rest = d.rest[size:]
	return n, nil
}
