package yaml

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// nodeOf returns v as a tree in which every scalar has the style that it is
// written in, so that the library has nothing to decide.
func nodeOf(v any) (*yaml.Node, error) {
	switch v := v.(type) {
	case nil:
		return plain("null"), nil
	case string:
		return text(v)
	case model.Value:
		return valueNode(v)
	case Mapping:
		return mappingNode(v)
	}
	return reflectNode(reflect.ValueOf(v))
}

func reflectNode(v reflect.Value) (*yaml.Node, error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return plain("null"), nil
		}
		return nodeOf(v.Elem().Interface())
	case reflect.String:
		return text(v.String())
	case reflect.Bool:
		return plain(strconv.FormatBool(v.Bool())), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return plain(strconv.FormatInt(v.Int(), 10)), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return plain(strconv.FormatUint(v.Uint(), 10)), nil
	case reflect.Slice, reflect.Array:
		list := sequence(v.Len())
		for i := range v.Len() {
			item, err := nodeOf(v.Index(i).Interface())
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, item)
		}
		return list, nil
	case reflect.Map:
		return mapNode(v)
	case reflect.Struct:
		out := mapping(v.NumField())
		return out, appendFields(out, v)
	}
	return nil, fmt.Errorf("cannot write a %s", v.Type())
}

func mapNode(v reflect.Value) (*yaml.Node, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("cannot write a %s: its keys are no strings", v.Type())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	out := mapping(len(keys))
	for _, k := range keys {
		if err := add(out, k.String(), v.MapIndex(k).Interface()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// appendFields appends the fields of a struct to a mapping, by their yaml tags.
func appendFields(out *yaml.Node, v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, option, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if !field.IsExported() || name == "-" {
			continue
		}
		value := v.Field(i)
		switch {
		case option == "inline":
			if err := inline(out, value); err != nil {
				return err
			}
			continue
		case name == "" || option != "" && option != "omitempty":
			return fmt.Errorf("cannot write a %s: field %s has no usable yaml tag", v.Type(), field.Name)
		case option == "omitempty" && empty(value):
			continue
		}
		if err := add(out, name, value.Interface()); err != nil {
			return err
		}
	}
	return nil
}

func inline(out *yaml.Node, v reflect.Value) error {
	if entries, ok := v.Interface().(Mapping); ok {
		return appendEntries(out, entries)
	}
	if v.Kind() != reflect.Struct {
		return fmt.Errorf("cannot inline a %s", v.Type())
	}
	return appendFields(out, v)
}

func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

func mappingNode(m Mapping) (*yaml.Node, error) {
	out := mapping(len(m))
	return out, appendEntries(out, m)
}

func appendEntries(out *yaml.Node, m Mapping) error {
	for _, e := range m {
		if err := add(out, e.Key, e.Value); err != nil {
			return err
		}
	}
	return nil
}

func valueNode(v model.Value) (*yaml.Node, error) {
	switch v.Kind() {
	case model.String:
		return text(v.Text())
	case model.List:
		list := sequence(len(v.Elems()))
		for _, e := range v.Elems() {
			item, err := valueNode(e)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, item)
		}
		return list, nil
	case model.Struct, model.Secret:
		out := mapping(len(v.Fields()))
		for _, f := range v.Fields() {
			if err := add(out, f.Name, f.Value); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return plain(v.Text()), nil
}

// add appends a key and its value to a mapping.
func add(out *yaml.Node, key string, value any) error {
	k, err := text(key)
	if err != nil {
		return err
	}
	v, err := nodeOf(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	out.Content = append(out.Content, k, v)
	return nil
}

func mapping(size int) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: make([]*yaml.Node, 0, 2*size)}
}

func sequence(size int) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: make([]*yaml.Node, 0, size)}
}

// plain returns what is not a string: the reader finds out its type.
func plain(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// text returns a string in the style that it needs.
func text(s string) (*yaml.Node, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%q is not valid UTF-8", s)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: s, Style: styleOf(s)}, nil
}
