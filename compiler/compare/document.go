package compare

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
)

// object returns the object of a document; nil if it is not a Kubernetes object.
func (v *value) object() *Object {
	o := Object{
		APIVersion: v.string("apiVersion"), Kind: v.string("kind"),
		Namespace: v.string("metadata", "namespace"), Name: v.string("metadata", "name"),
	}
	if o.Kind == "" || o.Name == "" ||
		strings.ContainsRune(o.APIVersion+o.Kind+o.Namespace+o.Name, mark) {
		return nil
	}
	return &o
}

// identity matches documents: by their object, and by their number among
// documents of the same object. Documents that are not object are matched by
// their order.
type identity struct {
	Object
	number int
}

// identities returns the identity of each document.
func identities(docs []value) []identity {
	seen := map[Object]int{}
	out := make([]identity, len(docs))
	for i := range docs {
		if o := docs[i].object(); o != nil {
			out[i].Object = *o
		}
		out[i].number = seen[out[i].Object]
		seen[out[i].Object]++
	}
	return out
}

// compareDocuments compares two YAML streams. The changes have the order of the documents
// of the first stream, followed by documents that only the second has.
func compareDocuments(before, after []value) []Change {
	ib, ia := identities(before), identities(after)
	several := slices.Contains(ib, identity{number: 1}) || slices.Contains(ia, identity{number: 1})
	where := make(map[identity]int, len(ia))
	for j, id := range ia {
		where[id] = j
	}
	var out []Change
	tell := func(id identity, doc *value, found []Change) {
		var object *Object
		if id.Object != (Object{}) {
			object = &id.Object
		}
		for _, c := range found {
			c.assignment = doc.string("metadata", "annotations", "kalypso.io/assignment")
			if c.Object = object; object == nil && several {
				c.Document = id.number + 1
			}
			out = append(out, c)
		}
	}
	for i, id := range ib {
		j, there := where[id]
		if !there {
			tell(id, &before[i], []Change{{Kind: Removed, From: before[i].masked("").json()}})
			continue
		}
		delete(where, id)
		d := differ{most: maxChanges}
		d.values("", &before[i], &after[j])
		tell(id, &after[j], withoutDigest(d.found))
	}
	for _, j := range slices.Sorted(maps.Values(where)) {
		tell(ia[j], &after[j], []Change{{Kind: Added, To: after[j].masked("").json()}})
	}
	return out
}

// digestPath is the annotation with the digest of an object's values.
const digestPath = `metadata.annotations["kalypso.io/values"]`

// withoutDigest leaves out the change of a digest if its object changed too. A digest
// that changes without its object shows the change of a value outside of the object,
// such as a reference to a secret.
func withoutDigest(found []Change) []Change {
	if len(found) < 2 {
		return found
	}
	return slices.DeleteFunc(found,
		func(c Change) bool { return c.Kind == Changed && c.Path == digestPath })
}

// namespaceOf returns the name of the namespace that a folder declares; "" if it
// declares no namespace, or several.
func namespaceOf(files map[string]backends.File) string {
	found := ""
	for name, f := range files {
		if !mayDeclare(name, f) {
			continue
		}
		for o := range objectsIn(f.Data) {
			if o.apiVersion != "v1" || o.kind != "Namespace" {
				continue
			}
			if found != "" && found != o.name {
				return ""
			}
			found = o.name
		}
	}
	return found
}

// mayDeclare reports whether a file may declare a namespace.
func mayDeclare(name string, f backends.File) bool {
	return isYAML(name) && bytes.Contains(f.Data, []byte("kind: Namespace"))
}

// sameNamespaces reports whether all files of two folders that may declare namespaces
// are the same: most changes are of others.
func sameNamespaces(before, after map[string]backends.File) bool {
	within := func(files, others map[string]backends.File) bool {
		for name, f := range files {
			if other, there := others[name]; mayDeclare(name, f) &&
				(!there || !bytes.Equal(f.Data, other.Data)) {
				return false
			}
		}
		return true
	}
	return within(before, after) && within(after, before)
}
