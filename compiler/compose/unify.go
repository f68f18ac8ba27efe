package compose

import (
	"strconv"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// meeting says which text a number has that two values write differently.
type meeting int

const (
	inLayerAlike meeting = iota // in one layer: nothing decides, so that they conflict
	fromSecond                  // the second value is of a higher layer
)

// unify is CUE's `a & b` of data: scalars of one kind that are equal, lists
// element by element, structs field by field. Where they do not unify it
// returns the path, below the values, of the first difference. Numbers are equal as
// they are in CUE, 1.5 and 1.50; which text is kept, CUE leaves to the order of files.
func unify(a, b model.Value, as meeting) (v model.Value, conflict string, ok bool) {
	if a.Kind() != b.Kind() {
		return a, "", false
	}
	switch a.Kind() {
	case model.Struct:
		return unifyStructs(a, b, as)
	case model.List:
		return unifyLists(a, b, as)
	}
	if as == fromSecond {
		return b, "", a.Same(b)
	}
	return a, "", a.Equal(b)
}

func unifyLists(a, b model.Value, as meeting) (model.Value, string, bool) {
	if len(a.Elems()) != len(b.Elems()) {
		return a, "", false
	}
	elems := make([]model.Value, len(a.Elems()))
	for i := range elems {
		e, at, ok := unify(a.Elems()[i], b.Elems()[i], as)
		if !ok {
			return a, model.JoinPath("["+strconv.Itoa(i)+"]", at), false
		}
		elems[i] = e
	}
	return model.ListOf(elems...), "", true
}

func unifyStructs(a, b model.Value, as meeting) (model.Value, string, bool) {
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
			v, at, ok := unify(fa[0].Value, fb[0].Value, as)
			if !ok {
				return a, model.JoinPath(model.Label(fa[0].Name), at), false
			}
			fields, fa, fb = append(fields, model.Field{Name: fa[0].Name, Value: v}), fa[1:], fb[1:]
		}
	}
	return model.StructOf(fields...), "", true
}

// united unifies the values of nodes, which are in the order of their layers: those
// of each layer alike, and the text of a number is that of the highest layer.
func united(from []*node, valueOf func(*node) model.Value) (v model.Value, conflict string, ok bool) {
	for start := 0; start < len(from); {
		u, end := valueOf(from[start]), start+1
		for ; end < len(from) && from[end].root.layer == from[start].root.layer; end++ {
			if u, conflict, ok = unify(u, valueOf(from[end]), inLayerAlike); !ok {
				return u, conflict, false
			}
		}
		if start == 0 {
			v = u
		} else if v, conflict, ok = unify(v, u, fromSecond); !ok {
			return v, conflict, false
		}
		start = end
	}
	return v, "", true
}
