// Package yaml writes YAML as a person would: block style, two spaces, the list
// items of a mapping at the mapping's own indentation, as kubectl and flux print
// them, and quotes only where they are needed.
//
// What it writes means the same to readers of YAML 1.1 and YAML 1.2: a string
// that either of them would take for something else is quoted. Equal values give
// equal bytes. There are no anchors, no folded lines, and no tags but Tagged's and, before
// numbers that YAML 1.1 takes for strings such as 1e3, !!float.
//
// An example: the struct {GREETING: "Hello, world", DEBUG: "no"} becomes the two lines
//
//	DEBUG: "no"
//	GREETING: Hello, world
package yaml

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Entry is a key of a Mapping with its value.
type Entry struct {
	Key   string
	Value any
}

// Mapping is a mapping whose keys keep their order.
type Mapping []Entry

// Marshal writes one document for each argument, with a line of --- between two.
//
// A document is made of strings, bools, integers, model.Values, Mappings, Tagged
// strings, slices, maps with string keys, structs, and pointers to and interfaces of these.
// Struct fields come in their order, under the name in their yaml tag, whose
// omitempty leaves out what is zero or empty and whose inline puts the fields of
// a struct or the entries of a Mapping in the struct's place. Maps and
// model.Values are sorted by key, and numbers of a model.Value are written as
// their canonical text. Anything else, and a string that is not valid UTF-8, is
// an error.
func Marshal(docs ...any) ([]byte, error) {
	return documents(false, docs)
}

// Must is Marshal of typed structs of data, which always can be written: anything else is a
// mistake in the backend.
func Must(docs ...any) []byte {
	data, err := Marshal(docs...)
	if err != nil {
		panic(fmt.Sprintf("yaml: writing %T: %v", docs, err))
	}
	return data
}

// MarshalIndented is Marshal, with the items of a mapping's lists indented: so
// does ansible-lint want them.
func MarshalIndented(docs ...any) ([]byte, error) {
	return documents(true, docs)
}

// Tagged is a string that is written after a tag of its own, such as "!unsafe".
type Tagged struct {
	Tag, Text string
}

func documents(indented bool, docs []any) ([]byte, error) {
	w := writers.Get().(*writer)
	w.indented = indented
	defer func() {
		*w = writer{out: w.out[:0]}
		writers.Put(w)
	}()
	for i, doc := range docs {
		if i > 0 {
			w.out = append(w.out, "---\n"...)
		}
		if err := w.node(reflect.ValueOf(doc), atStart, 0); err != nil {
			return nil, fmt.Errorf("yaml: %w", err)
		}
	}
	return bytes.Clone(w.out), nil
}

// writers have grown to what documents need: a build keeps hundreds of thousands
// of documents, none of which shall be longer than it is.
var writers = sync.Pool{New: func() any { return &writer{out: make([]byte, 0, 4096)} }}

// field is a field of a struct, as its yaml tag has it.
type field struct {
	index             int
	name              string
	omitEmpty, inline bool
}

// structType is what is known of a type of struct.
type structType struct {
	fields []field
	err    error // why it cannot be written
}

// structTypes remembers the tags of each type, by reflect.Type: there are few
// types and many values.
var structTypes sync.Map

func fieldsOf(t reflect.Type) ([]field, error) {
	known, ok := structTypes.Load(t)
	if !ok {
		fields, err := readTags(t)
		known, _ = structTypes.LoadOrStore(t, structType{fields, err})
	}
	s := known.(structType)
	return s.fields, s.err
}

func readTags(t reflect.Type) ([]field, error) {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
			continue
		case option == "inline":
			if f.Type != mappingType && f.Type.Kind() != reflect.Struct {
				return nil, fmt.Errorf("cannot inline a %s", f.Type)
			}
		case name == "" || option != "" && option != "omitempty":
			return nil, fmt.Errorf("cannot write a %s: field %s has no usable yaml tag", t, f.Name)
		}
		fields = append(fields, field{index: i, name: name, omitEmpty: option == "omitempty", inline: option == "inline"})
	}
	return fields, nil
}
