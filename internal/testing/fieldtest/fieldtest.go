// Package fieldtest checks, by reflection, that keys, digests and encodings list all fields. Such
// code lists the fields by hand. If someone adds a field to a type, the test fails until the key
// has it, or until the test gives the reason why it does not count.
package fieldtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Check changes each field of a value, one at a time, including fields in nested structs,
// pointers, slices and maps. It fails unless key returns another result for each of them. base
// returns a new value for each change. except has the fields that do not count, as paths such as
// Target.Requires, with the reasons. Fields within such a field do not count either.
func Check[T any, K comparable](t testing.TB, base func() *T, key func(*T) K, except map[string]string) {
	t.Helper()
	w := walk{except: except, used: map[string]bool{}}
	changes := w.changes(reflect.TypeFor[T](), "", nil)
	for path := range except {
		if !w.used[path] {
			t.Errorf("there is no field %s, which does not count", path)
		}
	}
	seen := map[K]string{key(base()): "none of the fields"}
	for _, c := range changes {
		v := base()
		c.apply(reflect.ValueOf(v).Elem())
		if reflect.DeepEqual(v, base()) { // it points to the same value as base's result
			continue
		}
		k := key(v)
		if other, same := seen[k]; same {
			t.Errorf("a change of %s gives the result of %s", c.path, other)
		}
		seen[k] = c.path
	}
}

// change changes the value at a path.
type change struct {
	path  string
	apply func(reflect.Value)
}

type walk struct {
	except map[string]string
	used   map[string]bool // paths of except
}

// scalars are the types that have no fields to change, with a different value from the zero
// one.
var scalars = map[reflect.Type]any{
	reflect.TypeFor[model.Value]():     model.StringOf("a"),
	reflect.TypeFor[json.RawMessage](): json.RawMessage("1"),
	reflect.TypeFor[time.Time]():       time.Unix(1, 0),
}

// changes returns the changes of values of a type; around are the types that it is in, as a
// type may hold itself.
func (w *walk) changes(t reflect.Type, path string, around []reflect.Type) (out []change) {
	if _, excepted := w.except[path]; excepted {
		w.used[path] = true
		return nil
	}
	if value, is := scalars[t]; is {
		return []change{{path, func(v reflect.Value) { v.Set(reflect.ValueOf(value)) }}}
	}
	if slices.Contains(around, t) {
		return nil
	}
	within := func(of reflect.Type, name string, in func(reflect.Value) (reflect.Value, func())) {
		changes := w.changes(of, name, append(slices.Clip(around), t))
		if name == path && of.Kind() != reflect.Bool { // a new element differs from no element, and from one with a field
			changes = append(changes, change{path, func(reflect.Value) {}})
		}
		for _, c := range changes {
			out = append(out, change{c.path, func(v reflect.Value) {
				part, done := in(v)
				c.apply(part)
				done()
			}})
		}
	}
	switch t.Kind() {
	case reflect.Bool:
		return []change{{path, func(v reflect.Value) { v.SetBool(!v.Bool()) }}}
	case reflect.String:
		return []change{{path, func(v reflect.Value) { v.SetString(v.String() + "a") }}}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return []change{{path, func(v reflect.Value) { v.SetInt(v.Int() + 1) }}}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return []change{{path, func(v reflect.Value) { v.SetUint(v.Uint() + 1) }}}
	case reflect.Struct:
		for i := range t.NumField() {
			within(t.Field(i).Type, strings.TrimPrefix(path+"."+t.Field(i).Name, "."),
				func(v reflect.Value) (reflect.Value, func()) {
					f := v.Field(i)
					return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem(), func() {} // unexported too
				})
		}
	case reflect.Pointer:
		within(t.Elem(), path, func(v reflect.Value) (reflect.Value, func()) {
			part := reflect.New(t.Elem())
			if !v.IsNil() {
				part.Elem().Set(v.Elem()) // others may share it
			}
			return part.Elem(), func() { v.Set(part) }
		})
	case reflect.Slice:
		within(t.Elem(), path, func(v reflect.Value) (reflect.Value, func()) {
			v.Set(reflect.Append(v, reflect.Zero(t.Elem())))
			return v.Index(v.Len() - 1), func() {}
		})
	case reflect.Array:
		within(t.Elem(), path, func(v reflect.Value) (reflect.Value, func()) { return v.Index(0), func() {} })
	case reflect.Map:
		within(t.Elem(), path, func(v reflect.Value) (reflect.Value, func()) {
			all, part := reflect.MakeMap(t), reflect.New(t.Elem()).Elem()
			return part, func() {
				all.SetMapIndex(reflect.Zero(t.Key()), part)
				v.Set(all)
			}
		})
	default:
		panic(fmt.Sprintf("fieldtest: %s of type %s cannot be changed: list it in except", path, t))
	}
	return out
}
