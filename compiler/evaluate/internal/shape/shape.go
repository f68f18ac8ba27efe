// Package shape has the schema of the language as Go values, for better messages than
// CUE's: it is read off the schema's own files, which stay the only source.
package shape

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Shape has the fields of a value, or what else it may be, by the schema. CUE enforces
// the same, but reports neither all misspelt fields at once nor what could have been
// meant.
type Shape struct {
	Fields  map[string]Field
	Pattern *Shape     // of fields whose names are a pattern
	Keys    Keys       // what those names are
	Open    bool       // any field may be there
	OneOf   [][]string // groups of which exactly one field is given
	Elem    *Shape     // of a list's elements
	Enum    []string   // the strings that a scalar may be
	Is      string     // what a scalar is, as the schema's documentation says it
	Usual   string     // the schema's default of a scalar, as CUE writes it; "" for none
	Literal []string   // what a struct may be instead, such as false
	Def     string     // the definition that a struct is, where it may be a scalar as well
	selects bool       // it is a selector
	Address string     // the definition of the schema that an address is: #GitURL, #HTTPURL or #OCIURL
}

// Misspelt says whether a field that is absent seems to be there under a wrong
// name, which is reported.
func (s *Shape) Misspelt(name string, given map[string]cue.Value) bool {
	for other := range given {
		if _, known := s.Fields[other]; !known && spelling.Meant(other, s.Names()) == name {
			return true
		}
	}
	return false
}

// Find returns the shape of the value at an absolute path, where s is the shape
// of v; nil where the schema says nothing of it.
func (s *Shape) Find(v cue.Value, path []string) *Shape {
	depth := len(v.Path().Selectors())
	if len(path) < depth {
		return nil
	}
	return s.At(path[depth:])
}

// At returns the shape of what is at a path in a value; nil where the schema says nothing
// of it.
func (s *Shape) At(path []string) *Shape {
	for _, name := range path {
		switch f, known := s.Fields[strings.Trim(name, `"`)]; {
		case known:
			s = f.Shape
		case s.Pattern != nil:
			s = s.Pattern
		case s.Elem != nil:
			s = s.Elem
		default:
			return nil
		}
	}
	return s
}

// FactNames are the fields of #assignment, as schema.#Assignment declares them.
func FactNames() []string { return Definitions()["#Assignment"].Names() }

// DefaultNamespaceService is the name of the namespace service that the schema itself has.
const DefaultNamespaceService = "default"

// Field is a field of a struct.
type Field struct {
	*Shape
	Required bool
	// perAssignment says that the field may be a function of any fact of the
	// assignment, where the others of a reconciler are shared by a cluster type.
	PerAssignment bool
	doc           string // the field's documentation
}

// Keys are the field names that a pattern of the schema allows. The zero Keys allow any.
type Keys struct {
	names   bool           // they are #Name
	matches *regexp.Regexp // they match
	doc     string
}

// Allows says whether a field may have the name.
func (k Keys) Allows(key string) bool {
	return (!k.names || model.IsName(key)) && (k.matches == nil || k.matches.MatchString(key))
}

// Names returns the field names, sorted.
func (s *Shape) Names() []string {
	return slices.Sorted(maps.Keys(s.Fields))
}

// OnlyRequired returns the name of the field that a struct cannot do without, if there is one such; "" otherwise.
func (s *Shape) OnlyRequired() string {
	only := ""
	if s == nil {
		return ""
	}
	for name := range s.Fields {
		if s.Fields[name].Required && only != "" {
			return ""
		}
		if s.Fields[name].Required {
			only = name
		}
	}
	return only
}

// About returns the documentation of a field as a hint.
func (s *Shape) About(name string) string {
	doc := lower(firstSentence(s.Fields[name].doc))
	if doc == "" || strings.TrimPrefix(doc, "a ") == name {
		return ""
	}
	return name + ": " + doc
}

// Allowed lists what a value may be, where that can be listed.
func (s *Shape) Allowed() string {
	list := strings.Join(s.Enum, ", ")
	if len(s.Fields) > 0 {
		list += ", or a struct with " + strings.Join(s.Names(), ", ")
	}
	return list
}

// Definition returns the schema's definition that a collection is.
func Definition(collection string) string {
	return "#" + strings.ToUpper(collection[:1]) + collection[1:]
}

// Of returns the shape of a collection's entities.
func Of(collection string) *Shape {
	return Definitions()[Definition(collection)].Pattern
}

// NamesOf returns what the entities of a collection may be called.
func NamesOf(collection string) Keys { return Definitions()[Definition(collection)].Keys }

func (s *Shape) merge(t *Shape) {
	for name, f := range t.Fields {
		s.set(name, f)
	}
	if t.Pattern != nil {
		s.Pattern, s.Keys = t.Pattern, t.Keys
	}
	if t.Elem != nil {
		s.Elem = t.Elem
	}
	if t.Usual != "" {
		s.Usual = t.Usual
	}
	if t.Is != "" && s.Is == "" {
		s.Is = t.Is
	}
	if t.Def != "" {
		s.Def = t.Def
	}
	if t.Address != "" {
		s.Address = t.Address
	}
	s.Open, s.selects = s.Open || t.Open, s.selects || t.selects
	s.OneOf = append(s.OneOf, t.OneOf...)
	for _, e := range t.Enum {
		if !slices.Contains(s.Enum, e) {
			s.Enum = append(s.Enum, e)
		}
	}
}

func (s *Shape) set(name string, f Field) {
	if s.Fields == nil {
		s.Fields = map[string]Field{}
	}
	s.Fields[name] = f
}
