package compose

import (
	"github.com/kalypso-io/kalypso/compiler/model"
)

// lookup returns the value at a path of field names.
func lookup(v model.Value, path string) (model.Value, bool) {
	return at(v, model.Elements(path))
}

// at returns the value below some field names.
func at(v model.Value, names []string) (model.Value, bool) {
	for _, name := range names {
		f, there := v.Lookup(name)
		if !there {
			return model.Value{}, false
		}
		v = f
	}
	return v, true
}

// with returns the struct with another value at a path of field names.
func with(v model.Value, path string, leaf model.Value) model.Value {
	return withElements(v, model.Elements(path), leaf)
}

func withElements(v model.Value, path []string, leaf model.Value) model.Value {
	if len(path) == 0 {
		return leaf
	}
	fields := make([]model.Field, 0, len(v.Fields())+1)
	inner := model.StructOf()
	for _, f := range v.Fields() {
		if f.Name == path[0] {
			inner = f.Value
			continue
		}
		fields = append(fields, f)
	}
	return model.StructOf(append(fields, model.Field{Name: path[0], Value: withElements(inner, path[1:], leaf)})...)
}
