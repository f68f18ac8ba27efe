// Package yaml writes YAML as a person would: in block style, with two spaces, and with quotes only
// if they are needed. As in the output of kubectl and flux, the list items of a mapping have the
// mapping's own indentation.
//
// The output means the same to readers of YAML 1.1 and YAML 1.2: a string that either of them would
// read as another type is quoted. Equal values give equal bytes. There are no anchors and no folded
// lines. The only tags are TaggedString's and !!float, before numbers that YAML 1.1 reads as
// strings, such as 1e3.
//
// For example, a struct with GREETING ("Hello, world") and DEBUG ("no") becomes the two lines
//
//	DEBUG: "no"
//	GREETING: Hello, world
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

// Mapping is a mapping with its keys in a fixed order.
type Mapping []Entry

// Marshal writes one document for each argument, with a line of --- between two.
//
// A document consists of strings, bools, integers, model.Values, Mappings, TaggedStrings, slices,
// maps with string keys, and structs. It may also contain pointers to these, and interfaces. Struct
// fields are in their order, under the name in their yaml tag. In a tag, omitempty leaves out a
// zero or empty field, and inline replaces a struct or a Mapping by its fields or entries. Maps and
// model.Values are sorted by key. Numbers of a model.Value are written as their canonical text.
// Marshal returns an error for any other value, and for a string that is not valid UTF-8.
func Marshal(docs ...any) ([]byte, error) { return documents(false, docs) }

// Must is Marshal for structs of data, which always succeeds. It panics on an error, which
// is a mistake in the backend.
func Must(docs ...any) []byte {
	data, err := Marshal(docs...)
	if err != nil {
		panic(fmt.Sprintf("yaml: writing %T: %v", docs, err))
	}
	return data
}

// MarshalIndented is Marshal, with the items of a mapping's lists indented: so
// does ansible-lint want them.
func MarshalIndented(docs ...any) ([]byte, error) { return documents(true, docs) }

// TaggedString is a string that is written after a tag of its own, such as "!unsafe".
type TaggedString struct {
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

// writers keeps writers for reuse, because their buffers have grown to the size of documents. A
// build keeps hundreds of thousands of documents, so documents returns a copy without spare memory.
var writers = sync.Pool{New: func() any { return &writer{out: make([]byte, 0, 4096)} }}

// field is a field of a struct, as its yaml tag has it.
type field struct {
	index             int
	name              string
	omitEmpty, inline bool
}

// structType is the description of a type of struct.
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
		fields = append(fields,
			field{index: i, name: name, omitEmpty: option == "omitempty", inline: option == "inline"})
	}
	return fields, nil
}
