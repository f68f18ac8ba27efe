// Package cuevalue asks CUE about values: their fields, the syntax that declares them, and
// how to write them so that nothing else is needed to read them. It reports nothing.
package cuevalue

import (
	"iter"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"
)

// Field returns a field of a struct, which may not exist.
func Field(v cue.Value, name string) cue.Value { return v.LookupPath(cue.MakePath(cue.Str(name))) }

// Text returns an error's message, with those that it wraps, and without the path
// that CUE puts before it.
func Text(e errors.Error) string {
	message := e.Error()
	if path := strings.Join(e.Path(), "."); path != "" {
		message = strings.TrimPrefix(message, path+": ")
	}
	return message
}

// FirstLine returns the first line of a message, without a colon at its end.
func FirstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(strings.TrimSpace(s), ":")
}

// Fields iterates over the regular fields of a struct, in an erroneous one too.
// Those that are required and absent are left out, as CUE does not.
func Fields(v cue.Value) iter.Seq2[string, cue.Value] {
	return func(yield func(string, cue.Value) bool) {
		it, err := v.Fields()
		for err == nil && it.Next() {
			if !isAbsent(it.Value()) && !yield(it.Selector().Unquoted(), it.Value()) {
				return
			}
		}
	}
}

// isAbsent says whether a field is only there because it is required.
func isAbsent(v cue.Value) bool {
	err := v.Err()
	if err == nil {
		return false
	}
	first := errors.Errors(err)[0]
	return strings.HasSuffix(Text(first), "required but not present") && len(first.Path()) == len(v.Path().Selectors())
}

// Positions returns where the syntax that declares a value stands.
func Positions(v cue.Value) []token.Pos {
	var out []token.Pos
	for _, n := range SourceNodes(v) {
		out = append(out, n.Pos())
	}
	return out
}

// MemberOf returns the field of a struct literal that has a name; nil for none.
func MemberOf(lit *ast.StructLit, name string) *ast.Field {
	if lit == nil {
		return nil
	}
	for _, d := range lit.Elts {
		if f, ok := d.(*ast.Field); ok {
			if n, _, err := ast.LabelName(f.Label); err == nil && n == name {
				return f
			}
		}
	}
	return nil
}

// SourceNodes returns the syntax that declares a value.
func SourceNodes(v cue.Value) []ast.Node {
	var out []ast.Node
	for _, c := range Conjuncts(v) {
		if n := c.Source(); n != nil {
			out = append(out, n)
		}
	}
	return out
}

// Conjuncts returns the values that a value is the conjunction of.
func Conjuncts(v cue.Value) []cue.Value {
	op, args := v.Expr()
	if op != cue.AndOp {
		return []cue.Value{v}
	}
	var out []cue.Value
	for _, a := range args {
		out = append(out, Conjuncts(a)...)
	}
	return out
}

// IsPlainStruct says whether a struct has nothing but regular fields.
func IsPlainStruct(v cue.Value) bool {
	it, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		return false
	}
	for it.Next() {
		if it.FieldType() != cue.StringLabel {
			return false
		}
	}
	return true
}

// IsUnknown says whether CUE could not finish a value because something that it
// depends on is not concrete. Validate does not report it, and Fields leaves out
// what is unknown.
func IsUnknown(v cue.Value) bool {
	return v.IncompleteKind() == cue.BottomKind && v.Validate() == nil && v.Err() != nil
}

// IsBytes says whether a value is of type bytes.
func IsBytes(v cue.Value) bool { return v.IncompleteKind() == cue.BytesKind }

// IsStruct says whether an unknown value is written as a struct.
func IsStruct(v cue.Value) bool {
	return slices.ContainsFunc(SourceNodes(v), func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			n = f.Value
		}
		_, ok := n.(*ast.StructLit)
		return ok
	})
}
