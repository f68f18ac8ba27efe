package randplatform

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// value is a value as CUE writes it: a struct, a list, or any other expression.
type value struct {
	kind   kind
	text   string // of an expression
	fields []field
	elems  []*value
}

type kind int

const (
	expression kind = iota
	structure
	list
)

// field is a field of a struct, with its label as CUE writes it: `name`,
// `"a b"`, `edge?`, `#assignment`, `[string]`, or `let x`.
type field struct {
	label string
	value *value
}

// raw is an expression.
func raw(format string, args ...any) *value {
	return &value{text: fmt.Sprintf(format, args...)}
}

func str(s string) *value { return &value{text: strconv.Quote(s)} }

// obj is a struct of labels and values in turn. A string as a value is text; an
// expression is given by raw.
func obj(pairs ...any) *value {
	v := &value{kind: structure}
	for i := 0; i < len(pairs); i += 2 {
		v.set(pairs[i].(string), valueOf(pairs[i+1]))
	}
	return v
}

func arr(elems ...any) *value {
	v := &value{kind: list}
	for _, e := range elems {
		v.elems = append(v.elems, valueOf(e))
	}
	return v
}

func valueOf(x any) *value {
	switch x := x.(type) {
	case *value:
		return x
	case string:
		return str(x)
	default:
		return raw("%v", x)
	}
}

// get returns the value at a path of labels, or nil.
func (v *value) get(path ...string) *value {
	for _, label := range path {
		if v == nil {
			return nil
		}
		i := slices.IndexFunc(v.fields, func(f field) bool { return f.label == label })
		if i < 0 {
			return nil
		}
		v = v.fields[i].value
	}
	return v
}

// set sets the value of a field, and adds the field if it does not exist.
func (v *value) set(label string, to *value) {
	for i := range v.fields {
		if v.fields[i].label == label {
			v.fields[i].value = to
			return
		}
	}
	v.fields = append(v.fields, field{label, to})
}

// setAt sets the field at a path, and makes the structs above it; nil removes it.
func (v *value) setAt(path []string, to *value) {
	for _, label := range path[:len(path)-1] {
		below := v.get(label)
		if below == nil || below.kind != structure {
			below = obj()
			v.set(label, below)
		}
		v = below
	}
	if to == nil {
		v.drop(path[len(path)-1])
		return
	}
	v.set(path[len(path)-1], to)
}

func (v *value) drop(label string) {
	v.fields = slices.DeleteFunc(v.fields, func(f field) bool { return f.label == label })
}

func (v *value) clone() *value {
	if v == nil {
		return nil
	}
	c := *v
	c.fields, c.elems = slices.Clone(v.fields), slices.Clone(v.elems)
	for i := range c.fields {
		c.fields[i].value = c.fields[i].value.clone()
	}
	for i := range c.elems {
		c.elems[i] = c.elems[i].clone()
	}
	return &c
}

// each calls do for each expression in the value.
func (v *value) each(do func(*value)) {
	if v == nil {
		return
	}
	if v.kind == expression {
		do(v)
	}
	for _, f := range v.fields {
		f.value.each(do)
	}
	for _, e := range v.elems {
		e.each(do)
	}
}

// leaves are the expressions in the value that are plain scalars.
func (v *value) leaves() []*value {
	var out []*value
	v.each(func(l *value) {
		if isScalar(l.text) {
			out = append(out, l)
		}
	})
	return out
}

var scalar = regexp.MustCompile(`^("[^"\\]*"|-?[0-9]+(\.[0-9]+)?|true|false)$`)

func isScalar(text string) bool { return scalar.MatchString(text) }

// style is how a file is written.
type style int

const (
	open    style = iota // a field a line
	folded               // fields in one line with colons
	compact              // a struct in braces
	styles
	jsonText
)

// write writes the value as it follows its label.
func (v *value) write(b *strings.Builder, s style, depth int) {
	switch v.kind {
	case expression:
		b.WriteString(v.text)
	case list:
		b.WriteString("[")
		for i, e := range v.elems {
			if i > 0 {
				b.WriteString(", ")
			}
			e.write(b, max(s, compact), depth)
		}
		b.WriteString("]")
	case structure:
		v.writeStruct(b, s, depth)
	}
}

func (v *value) writeStruct(b *strings.Builder, s style, depth int) {
	oneLine := s >= compact || len(v.fields) == 0
	b.WriteString("{")
	for i, f := range v.fields {
		switch {
		case !oneLine:
			b.WriteString("\n" + strings.Repeat("\t", depth+1))
		case i > 0:
			b.WriteString(", ")
		}
		f.write(b, s, depth+1)
	}
	if !oneLine {
		b.WriteString("\n" + strings.Repeat("\t", depth))
	}
	b.WriteString("}")
}

func (f field) write(b *strings.Builder, s style, depth int) {
	label := f.label
	if s == jsonText && label[0] != '"' {
		label = strconv.Quote(label)
	}
	if strings.HasPrefix(label, "let ") {
		b.WriteString(label + " = ")
	} else {
		b.WriteString(label + ": ")
	}
	v := f.value
	if s == folded && v.kind == structure && len(v.fields) == 1 && !strings.HasPrefix(v.fields[0].label, "let ") {
		v.fields[0].write(b, s, depth)
		return
	}
	v.write(b, s, depth)
}
