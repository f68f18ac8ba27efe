package gotemplate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// functions are those that templates may use: sprig's, but for those that are
// refused, and kalypso's own in the place of some of them.
var functions = sync.OnceValue(func() map[string]any {
	all := map[string]any(sprig.TxtFuncMap())
	for name := range refused {
		delete(all, name)
	}
	maps.Copy(all, map[string]any{
		// Of the original Kalypso.
		"toYaml": toYAML, "stringify": stringify, "hash": hash, "unquote": unquote,

		// In sprig these give their results in the order of a Go map.
		"keys": keys, "values": values,

		// In sprig these make every number a float.
		"fromJson": lenient(fromJSON), "mustFromJson": fromJSON,

		// Those of text/template itself, to be bounded as the others are, and for
		// index to fail on a key that is not there.
		"print": fmt.Sprint, "printf": printf, "println": fmt.Sprintln, "index": index,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	})
	return all
})

// toYAML writes a value as YAML without the newline at the end.
func toYAML(x any) (string, error) {
	v, err := valueOf(x)
	if err != nil {
		return "", err
	}
	out, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(out), "\n"), err
}

// stringify writes a mapping as YAML in which every value is a string, as the
// data of a ConfigMap must be: a scalar as its text, null as the empty string,
// and lists and mappings as YAML. Anything else becomes its text.
func stringify(x any) (string, error) {
	v, err := valueOf(x)
	if err != nil {
		return "", err
	}
	if v.Kind() != model.Struct {
		return textOf(v)
	}
	fields := make([]model.Field, 0, len(v.Fields()))
	for _, f := range v.Fields() {
		text, err := textOf(f.Value)
		if err != nil {
			return "", err
		}
		fields = append(fields, model.Field{Name: f.Name, Value: model.StringOf(text)})
	}
	out, err := yaml.Marshal(model.StructOf(fields...))
	return strings.TrimSuffix(string(out), "\n"), err
}

func textOf(v model.Value) (string, error) {
	switch {
	case v.Kind() == model.Null:
		return "", nil
	case v.IsScalar():
		return v.Text(), nil
	}
	out, err := yaml.Marshal(v)
	return string(out), err
}

// hash returns a number that identifies a value: the same number as in the original Kalypso, since
// existing trees contain it. The original uses the second format of github.com/mitchellh/hashstructure.
func hash(x any) (string, error) {
	sum, err := sumOf(reflect.ValueOf(x))
	return strconv.FormatUint(sum, 10), err
}

// sumOf returns the sum of a value; nil has the sum of the int 0. The sum of a list includes the
// sums of its elements, in order, and the sum of a mapping includes the sums of its fields, in any order.
func sumOf(v reflect.Value) (sum uint64, err error) {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch kind := v.Kind(); {
	case kind == reflect.Invalid:
		return fnv1(int64(0)), nil
	case kind == reflect.Bool && v.Bool():
		return fnv1(int8(1)), nil
	case kind == reflect.Bool:
		return fnv1(int8(0)), nil
	case kind == reflect.Int:
		return fnv1(v.Int()), nil
	case kind == reflect.Uint:
		return fnv1(v.Uint()), nil
	case kind > reflect.Int && kind <= reflect.Float64 && kind != reflect.Uintptr:
		return fnv1(v.Interface()), nil
	case kind == reflect.String:
		return fnv1([]byte(v.String())), nil
	case kind == reflect.Slice, kind == reflect.Array:
		for i := range v.Len() {
			element, err := sumOf(v.Index(i))
			if err != nil {
				return 0, err
			}
			sum = fnv1([]uint64{sum, element})
		}
		return sum, nil
	case kind == reflect.Map:
		for it := v.MapRange(); it.Next(); {
			key, err := sumOf(it.Key())
			if err != nil {
				return 0, err
			}
			value, err := sumOf(it.Value())
			if err != nil {
				return 0, err
			}
			sum ^= fnv1([]uint64{key, value})
		}
		return fnv1(sum), nil
	}
	return 0, fmt.Errorf("a %s has no hash; hash a text, a number, a list or a mapping", v.Type())
}

// fnv1 returns 64 bits of FNV-1 of numbers, the least significant byte first.
func fnv1(numbers any) uint64 {
	h := fnv.New64()
	if err := binary.Write(h, binary.LittleEndian, numbers); err != nil {
		panic(err) // the hash takes all bytes, and numbers have a fixed size
	}
	return h.Sum64()
}

// unquote takes quotes and white space off both ends of a text.
func unquote(x any) string { return strings.Trim(fmt.Sprint(x), "\"' \t\r\n") }

// keys returns the keys of mappings, those of each sorted.
func keys(maps ...map[string]any) []string {
	out := []string{}
	for _, m := range maps {
		out = append(out, sortedKeys(m)...)
	}
	return out
}

// values returns the values of a mapping, in the order of its keys.
func values(m map[string]any) []any {
	out := []any{}
	for _, k := range sortedKeys(m) {
		out = append(out, m[k])
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func fromJSON(text string) (any, error) {
	var v model.Value
	if err := v.UnmarshalJSON([]byte(text)); err != nil {
		return nil, err
	}
	return plain(v), nil
}

// lenient gives nothing where a function fails, as sprig's without "must" do.
func lenient(f func(string) (any, error)) func(string) any {
	return func(text string) any {
		out, _ := f(text)
		return out
	}
}

var errNil = errors.New("index of a value that is null")

// index is that of text/template, but that a key must be there.
func index(item any, indexes ...any) (any, error) {
	for _, i := range indexes {
		v := reflect.ValueOf(item)
		switch v.Kind() {
		case reflect.Map:
			key := reflect.ValueOf(i)
			if !key.IsValid() || !key.Type().AssignableTo(v.Type().Key()) {
				return nil, fmt.Errorf("a key of a %s cannot be a %T", v.Type(), i)
			}
			of := v.MapIndex(key)
			if !of.IsValid() {
				return nil, fmt.Errorf("map has no entry for key %q", fmt.Sprint(i))
			}
			item = of.Interface()
		case reflect.Slice, reflect.Array, reflect.String:
			n, err := numberOf(i)
			if err != nil || n < 0 || n >= v.Len() {
				return nil, fmt.Errorf("there is no element %v of %d", i, v.Len())
			}
			item = v.Index(n).Interface()
		case reflect.Invalid:
			return nil, errNil
		default:
			return nil, fmt.Errorf("a %s has no elements", v.Type())
		}
	}
	return item, nil
}

func numberOf(x any) (int, error) {
	v := reflect.ValueOf(x)
	if !v.IsValid() || !v.CanInt() {
		return 0, fmt.Errorf("%v is no whole number", x)
	}
	return int(v.Int()), nil
}
