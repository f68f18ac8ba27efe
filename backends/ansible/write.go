package ansible

import (
	"fmt"

	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// ansibleYAML returns a document as ansible-lint wants it, with the names and texts
// of users, which may be long. It is made of types of this package, and of values
// that unsafe has looked at, which always can be written: anything else is a
// mistake in this package.
func ansibleYAML(v any) []byte {
	data, err := yaml.MarshalIndented(v)
	if err != nil {
		panic(fmt.Sprintf("ansible: writing a %T: %v", v, err))
	}
	return append([]byte("---\n# yamllint disable rule:line-length\n"), data...)
}

// unsafe returns a value in which no string is a template to Ansible.
func unsafe(v model.Value) any {
	switch v.Kind() {
	case model.String:
		if templated(v.Text()) {
			return yaml.Tagged{Tag: "!unsafe", Text: v.Text()}
		}
	case model.List:
		out := []any{}
		for _, e := range v.Elems() {
			out = append(out, unsafe(e))
		}
		return out
	case model.Struct:
		out := yaml.Mapping{}
		for _, f := range v.Fields() {
			out = append(out, yaml.Entry{Key: f.Name, Value: unsafe(f.Value)})
		}
		return out
	}
	return v
}
