package compare

import "github.com/kalypso-io/kalypso/internal/credential"

// masked returns a value that has a name, with likely secrets in it hidden. A reference to
// a secret is a mapping, and is not hidden.
func (v *value) masked(name string) *value {
	switch v.kind {
	case text:
		if credential.Secret(name, v.text) {
			return &value{kind: text, text: credential.Masked}
		}
	case list, mapping:
		out := *v
		out.items = make([]value, len(v.items))
		for i := range v.items {
			of := name // of the elements of a list
			if v.kind == mapping {
				of = v.keys[i]
			}
			out.items[i] = *v.items[i].masked(of)
		}
		return &out
	}
	return v
}
