package yaml

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

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
