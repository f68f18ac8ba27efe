// Package shown makes the text that CUE's language server gets for a file of a platform.
//
// The server completes the fields of a struct that is unified with a definition. It does not
// complete fields that a pattern constraint adds to the members of a map. The entities of a
// platform are such members:
//
//	workloads: cart: {...}
//
// So the server gets a text with the definition:
//
//	workloads: cart: schema.#Workload & {...}
//
// The text imports the schema under a name that no file uses otherwise. Lines do not change, and
// each offset of one text has one in the other.
package shown

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/edit/syntax"
)

// Schema is the name of the schema's package in inserted text. No file uses it otherwise, so
// that answers with this name can be left out.
const Schema = "_kalypso"

// importOfSchema is inserted after the package clause, on the same line.
const importOfSchema = `, import ` + Schema + ` "kalypso.io/schema"`

// Text is the server's text of a file. It is immutable, and any number of goroutines may use
// it.
type Text struct {
	shown      string
	insertions []insertion // sorted by offset
}

// insertion is text that is not in the file.
type insertion struct {
	at     int // in the file
	text   string
	before bool // the text at the offset in the file comes after the inserted text
	shown  int  // the offset of the inserted text in the server's text
}

// Plain returns the text of a file without insertions.
func Plain(text string) *Text { return &Text{shown: text} }

// Of returns the server's text of a file of a platform. If the file does not parse, it uses the
// readable parts, and closes open braces at the end of the file.
func Of(text string) *Text {
	insertions := find(text)
	if len(insertions) == 0 {
		return Plain(text)
	}
	slices.SortStableFunc(insertions, func(a, b insertion) int { return a.at - b.at })
	var b strings.Builder
	last := 0
	for i := range insertions {
		in := &insertions[i]
		b.WriteString(text[last:in.at])
		in.shown = b.Len()
		b.WriteString(in.text)
		last = in.at
	}
	b.WriteString(text[last:])
	return &Text{b.String(), insertions}
}

// find returns the insertions into the text of a platform's file. For each label of a member of
// a map of the schema, it inserts the definition of the map's members. At the end, it inserts
// the brackets that the file leaves open.
func find(text string) []insertion {
	file := syntax.Read([]byte(text))
	if file.Package < 0 {
		return nil // the file is not a part of the platform
	}
	var out []insertion
	insert := func(at int, text string, before bool) {
		out = append(out, insertion{at: at, text: text, before: before})
	}
	for _, f := range file.Fields {
		// The offset end is the place of an empty value: behind the colon and the white space
		// after it.
		end := f.Keys[len(f.Keys)-1].End
		end = len(text) - len(strings.TrimLeft(text[end:], " \t"))
		last := f.End
		if f.Empty {
			last = end
		}
		// If two end at the same place, the inner one ends first.
		for i, key := range slices.Backward(f.Keys) {
			definition := definitionOf(key.Path)
			if definition == "" {
				continue
			}
			definition = Schema + "." + definition + " & "
			switch {
			case i+1 < len(f.Keys): // such as labels in a workload
				insert(f.Keys[i+1].Start, definition+"{", true)
				insert(last, "}", false)
			case f.Empty:
				insert(end, definition+"{", true)
				insert(end, "}", false)
			case f.Name: // the identifier may be the beginning of a label
				insert(f.Value, definition+"{", true)
				insert(f.End, "}", false)
			default:
				insert(f.Value, definition, true)
			}
		}
	}
	unclosed := file.Unclosed()
	if len(out) == 0 && unclosed == "" {
		return nil
	}
	insert(file.Tokens[file.Package].End, importOfSchema, false)
	if unclosed != "" {
		insert(len(text), "\n"+unclosed, false)
	}
	return out
}

// definitionOf returns the definition of the last name of a path, as a member of a map, such as
// #Workload. It returns "" for other paths.
func definitionOf(path []string) string {
	s := shape.Platform()
	for i, name := range path {
		if name == "[]" {
			if s = s.Elem; s == nil {
				return ""
			}
			continue
		}
		f := s.Field(name)
		switch {
		case f == nil:
			return ""
		case i == len(path)-1 && f.Name == "":
			return f.Of
		}
		s = f.Shape
	}
	return ""
}

// String returns the server's text.
func (t *Text) String() string { return t.shown }

// Shown returns the offset in the server's text of an offset of the file.
func (t *Text) Shown(offset int) int {
	moved := 0
	for _, in := range t.insertions {
		if in.at > offset || in.at == offset && !in.before {
			break
		}
		moved += len(in.text)
	}
	return offset + moved
}

// Real returns the offset in the file of an offset of the server's text. For an offset inside
// inserted text, it returns the offset of the insertion, and false.
func (t *Text) Real(offset int) (int, bool) {
	moved := 0
	for _, in := range t.insertions {
		if in.shown >= offset {
			break
		}
		if offset < in.shown+len(in.text) {
			return in.at, false
		}
		moved += len(in.text)
	}
	return offset - moved, true
}

// RealRange returns the range in the file of a range of the server's text. It returns false if
// the range touches inserted text: there is no such range in the file.
func (t *Text) RealRange(start, end int) (int, int, bool) {
	from, ok := t.Real(start)
	to, also := t.Real(end)
	if !ok || !also {
		return from, to, false
	}
	return from, to, to-from == end-start
}
