package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Encode returns a binary form of v, which Decode reads. Equal values have equal bytes: maps
// are sorted. The form is lossless: nil slices and maps differ from empty ones, as in
// reflect.DeepEqual. v may contain bools, integers, strings, arrays, slices, maps, pointers,
// structs of exported fields, and Values. Encode panics if v contains anything else, which is a
// programming error.
//
// The form follows the current definition of the type. Decode either rejects or misreads bytes
// from another version of the type. Callers that store the bytes must separate the versions.
//
//	bool, uint8, array of uint8 = its bytes
//	other integers = varint, zigzag if signed
//	string         = length text
//	slice, map     = 0 for nil, else count+1, then the elements; of a map each
//	                 key and value, sorted by the keys' bytes
//	pointer        = 0 for nil, else 1 and the value that it points to
//	struct         = its fields
func Encode(v any) []byte { return appendAny(nil, reflect.ValueOf(v)) }

var valueType = reflect.TypeFor[Value]()

func appendAny(b []byte, v reflect.Value) []byte {
	if v.Type() == valueType {
		return v.Interface().(Value).AppendBinary(b)
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Uint8:
		return append(b, byte(v.Uint()))
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.String:
		return appendText(b, v.String())
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return appendAny(append(b, 1), v.Elem())
	case reflect.Slice:
		if v.IsNil() {
			return append(b, 0)
		}
		b = binary.AppendUvarint(b, uint64(v.Len())+1)
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(b, v.Bytes()...)
		}
		return appendElems(b, v)
	case reflect.Array:
		return appendElems(b, v)
	case reflect.Map:
		return appendMap(b, v)
	case reflect.Struct:
		for i := range v.NumField() {
			b = appendAny(b, v.Field(i))
		}
		return b
	}
	panic(fmt.Sprintf("model: a %s has no binary form", v.Type()))
}

func appendElems(b []byte, v reflect.Value) []byte {
	for i := range v.Len() {
		b = appendAny(b, v.Index(i))
	}
	return b
}

func appendMap(b []byte, v reflect.Value) []byte {
	if v.IsNil() {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(v.Len())+1)
	type entry struct{ key, value []byte }
	entries := make([]entry, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		entries = append(entries, entry{appendAny(nil, it.Key()), appendAny(nil, it.Value())})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	for _, e := range entries {
		b = append(append(b, e.key...), e.value...)
	}
	return b
}

// Decode reads data, as Encode wrote it, into the value that a pointer points to. It returns an
// error if Encode does not write such bytes for that type; the caller must not use the value
// then. Its allocations are linear in the length of data. The value shares no memory with data.
func Decode(data []byte, into any) error {
	d := decoder{data}
	if err := d.any(reflect.ValueOf(into).Elem(), 0); err != nil {
		return fmt.Errorf("decode %T: %w", into, err)
	}
	if len(d.rest) > 0 {
		return fmt.Errorf("decode %T: %d bytes too many", into, len(d.rest))
	}
	return nil
}

type decoder struct{ rest []byte }

func (d *decoder) any(v reflect.Value, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("more than %d levels", maxDepth)
	}
	if v.Type() == valueType {
		of, rest, err := DecodeValue(d.rest)
		if err != nil {
			return err
		}
		*v.Addr().Interface().(*Value), d.rest = of, rest
		return nil
	}
	switch v.Kind() {
	case reflect.Bool:
		n, err := d.byte()
		if err == nil && n > 1 {
			err = fmt.Errorf("invalid bool %d", n)
		}
		v.SetBool(n == 1)
		return err
	case reflect.Uint8:
		n, err := d.byte()
		v.SetUint(uint64(n))
		return err
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := d.uint()
		if err == nil && v.OverflowUint(n) {
			err = errOverflow
		}
		v.SetUint(n)
		return err
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, size := binary.Varint(d.rest)
		if size <= 0 {
			return errCutShort
		}
		if v.OverflowInt(n) {
			return errOverflow
		}
		d.rest = d.rest[size:]
		v.SetInt(n)
		return nil
	case reflect.String:
		n, err := d.uint()
		if err != nil || n > uint64(len(d.rest)) {
			return errCutShort
		}
		v.SetString(string(d.rest[:n]))
		d.rest = d.rest[n:]
		return nil
	case reflect.Pointer:
		n, err := d.byte()
		if err != nil || n == 0 {
			return err
		}
		v.Set(reflect.New(v.Type().Elem()))
		return d.any(v.Elem(), depth+1)
	case reflect.Slice:
		return d.slice(v, depth)
	case reflect.Array:
		for i := range v.Len() {
			if err := d.any(v.Index(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		return d.pairs(v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Field(i).CanSet() {
				return errHidden
			}
			if err := d.any(v.Field(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	panic(fmt.Sprintf("model: a %s has no binary form", v.Type()))
}

var (
	errOverflow = errors.New("a number is too large")
	errHidden   = errors.New("a value of a type that is not written")
)

func (d *decoder) byte() (byte, error) {
	if len(d.rest) == 0 {
		return 0, errCutShort
	}
	n := d.rest[0]
	d.rest = d.rest[1:]
	return n, nil
}

func (d *decoder) uint() (uint64, error) {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		return 0, errCutShort
	}
	d.rest = d.rest[size:]
	return n, nil
}

// count reads the number of the following elements. Each element has at least a byte.
func (d *decoder) count() (n int, isNil bool, err error) {
	m, err := d.uint()
	if err != nil || m == 0 {
		return 0, true, err
	}
	if m-1 > uint64(len(d.rest)) {
		return 0, false, errCutShort
	}
	return int(m - 1), false, nil
}

// atOnce is the maximal number of elements to allocate before one of them has been read.
const atOnce = 1 << 10

func (d *decoder) slice(v reflect.Value, depth int) error {
	n, isNil, err := d.count()
	if err != nil || isNil {
		return err
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes(append(make([]byte, 0, n), d.rest[:n]...))
		d.rest = d.rest[n:]
		return nil
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, min(n, atOnce)))
	for i := range n {
		if i == v.Cap() {
			v.Grow(min(n-i, i))
		}
		v.SetLen(i + 1)
		if err := d.any(v.Index(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) pairs(v reflect.Value, depth int) error {
	n, isNil, err := d.count()
	if err != nil || isNil {
		return err
	}
	out := reflect.MakeMapWithSize(v.Type(), min(n, atOnce))
	for range n {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if err := d.any(key, depth+1); err != nil {
			return err
		}
		if err := d.any(value, depth+1); err != nil {
			return err
		}
		out.SetMapIndex(key, value)
	}
	if out.Len() != n {
		return errors.New("a key stands twice in a map")
	}
	v.Set(out)
	return nil
}

// maxDepth is the maximal nesting of lists and structs in a binary form, as in encoding/json.
const maxDepth = 10_000

// AppendBinary appends a binary form of the value. Unlike JSON, it distinguishes a secret from
// a struct. Equal values have equal bytes, and different values have different bytes:
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

// DecodeValue reads the value at the start of b, as AppendBinary writes it, and returns the
// value and the remaining bytes. It returns an error if AppendBinary does not write such bytes,
// or if the value is deeper than 10,000 levels. Its allocations are linear in the length of b.
// The value shares no memory with b.
func DecodeValue(b []byte) (v Value, rest []byte, err error) {
	d := valueDecoder{rest: b, budget: uint64(len(b))}
	v, err = d.value(0)
	if err != nil {
		return Value{}, nil, fmt.Errorf("decode a value: %w", err)
	}
	return v, d.rest, nil
}

var errCutShort = errors.New("cut short")

// valueDecoder reads values. Each remaining element occupies at least one byte, so the budget
// bounds their number. The decoder rejects a count that exceeds the budget, so that nested
// lists cannot claim the same bytes twice.
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
	case Struct, Secret:
		return d.fields(kind, depth)
	}
	return Value{}, fmt.Errorf("invalid kind %d", kind)
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

// count reads the number of the following elements, each of which has at least the given number
// of bytes.
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
