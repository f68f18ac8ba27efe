package build

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/cache"
)

// The key of what Index gives follows from every field of a folder.
func TestHashFolder(t *testing.T) {
	key := func(f backends.Folder) cache.Key {
		h := cache.NewHash("folder")
		hashFolder(h, &f)
		return h.Sum()
	}
	seen := map[cache.Key]string{key(backends.Folder{}): "none"}
	for i := range reflect.TypeFor[backends.Folder]().NumField() {
		var f backends.Folder
		name, field := reflect.TypeOf(f).Field(i).Name, reflect.ValueOf(&f).Elem().Field(i)
		switch field.Interface().(type) {
		case string:
			field.SetString("a")
		case bool:
			field.SetBool(true)
		case int:
			field.SetInt(1)
		case []string:
			field.Set(reflect.ValueOf([]string{"a"}))
		case json.RawMessage:
			field.SetBytes([]byte("1"))
		default:
			t.Fatalf("%s is of another type", name)
		}
		if other, same := seen[key(f)]; same {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[key(f)] = name
	}
}
