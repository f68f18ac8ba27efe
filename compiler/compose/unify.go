package compose

import (
	"strconv"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// unify is CUE's `a & b` of data: scalars of one kind that are equal, lists
// element by element, structs field by field. Where they do not unify it
// returns the path, below the values, of the first difference.
func unify(a, b model.Value) (v model.Value, conflict string, ok bool) {
	if a.Kind() != b.Kind() {
		return a, "", false
	}
	switch a.Kind() {
	case model.Struct:
		return unifyStructs(a, b)
	case model.List:
		return unifyLists(a, b)
	}
	return a, "", a.Equal(b)
}

func unifyLists(a, b model.Value) (model.Value, string, bool) {
	if len(a.Elems()) != len(b.Elems()) {
		return a, "", false
	}
	elems := make([]model.Value, len(a.Elems()))
	for i := range elems {
		e, at, ok := unify(a.Elems()[i], b.Elems()[i])
		if !ok {
			return a, model.JoinPath("["+strconv.Itoa(i)+"]", at), false
		}
		elems[i] = e
	}
	return model.ListOf(elems...), "", true
}

func unifyStructs(a, b model.Value) (model.Value, string, bool) {
	if len(b.Fields()) == 0 {
		return a, "", true
	}
	if len(a.Fields()) == 0 {
		return b, "", true
	}
	fa, fb := a.Fields(), b.Fields()
	fields := make([]model.Field, 0, len(fa)+len(fb))
	for len(fa) > 0 || len(fb) > 0 {
		switch {
		case len(fb) == 0 || len(fa) > 0 && fa[0].Name < fb[0].Name:
			fields, fa = append(fields, fa[0]), fa[1:]
		case len(fa) == 0 || fb[0].Name < fa[0].Name:
			fields, fb = append(fields, fb[0]), fb[1:]
		default:
			v, at, ok := unify(fa[0].Value, fb[0].Value)
			if !ok {
				return a, model.JoinPath(model.Label(fa[0].Name), at), false
			}
			fields, fa, fb = append(fields, model.Field{Name: fa[0].Name, Value: v}), fa[1:], fb[1:]
		}
	}
	return model.StructOf(fields...), "", true
}
