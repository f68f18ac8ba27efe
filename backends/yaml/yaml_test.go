package yaml

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestMarshal(t *testing.T) {
	type item struct {
		Name string `yaml:"name"`
		Port *int   `yaml:"port,omitempty"`
	}
	type document struct {
		Kind    string            `yaml:"kind"`
		Absent  string            `yaml:"absent,omitempty"`
		Items   []item            `yaml:"items,omitempty"`
		Labels  map[string]string `yaml:"labels,omitempty"`
		Nothing *item             `yaml:"nothing,omitempty"`
		Empty   *struct{}         `yaml:"empty,omitempty"`
		List    []string          `yaml:"list"`
		Wait    bool              `yaml:"wait"`
		Hidden  string            `yaml:"-"`
		Values  model.Value       `yaml:"values,omitempty"`
		Rest    Mapping           `yaml:",inline"`
	}
	port := 80
	full := document{
		Kind:   "Thing",
		Items:  []item{{Name: "a", Port: &port}, {Name: "b"}},
		Labels: map[string]string{"z": "1", "a": "x"},
		Empty:  &struct{}{},
		List:   []string{},
		Hidden: "hidden",
		Values: model.StructOf(
			model.Field{Name: "s", Value: model.StringOf("3")},
			model.Field{Name: "i", Value: model.IntOf(3)},
			model.Field{Name: "f", Value: numberOf(t, "2.50")},
			model.Field{Name: "big", Value: numberOf(t, "1e30")},
			model.Field{Name: "n", Value: model.Value{}},
			model.Field{Name: "l", Value: model.ListOf(model.ListOf(model.BoolOf(true)), model.StructOf())},
		),
		Rest: Mapping{{"b", "text\nof lines\n"}, {"a", []any{"x", Mapping{{"k", 1}}}}},
	}
	for _, test := range []struct {
		name string
		docs []any
		want string
	}{
		{"nothing", nil, ""},
		{"fields", []any{full}, `
kind: Thing
items:
- name: a
  port: 80
- name: b
labels:
  a: x
  z: "1"
empty: {}
list: []
wait: false
values:
  big: !!float 1e30
  f: 2.50
  i: 3
  l:
  - - true
  - {}
  "n": null
  s: "3"
b: |
  text
  of lines
a:
- x
- k: 1
`},
		{"documents", []any{Mapping{{"a", 1}}, &Mapping{{"b", 2}}}, "\na: 1\n---\nb: 2\n"},
		{"long lines stay whole", []any{Mapping{{"a", strings.Repeat("word ", 60) + "end"}}},
			"\na: " + strings.Repeat("word ", 60) + "end\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Marshal(test.docs...)
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimPrefix(test.want, "\n"); string(got) != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestMarshalRefuses(t *testing.T) {
	for name, v := range map[string]any{
		"a float":           Mapping{{"a", 1.5}},
		"a channel":         make(chan int),
		"keys of ints":      map[int]string{1: "a"},
		"no UTF-8":          "\xff",
		"no UTF-8 in a key": Mapping{{"\xff", 1}},
		"a field untagged":  struct{ A string }{"a"},
		"an unknown option": struct {
			A string `yaml:"a,flow"`
		}{"a"},
		"an inline string": struct {
			A string `yaml:",inline"`
		}{"a"},
		"deep in a list":     []any{[]any{2.5}},
		"a complex in a map": map[string]any{"a": 1i},
	} {
		if got, err := Marshal(v); err == nil {
			t.Errorf("%s: got %q and no error", name, got)
		}
	}
}

// TestNumbers checks that numbers keep their text, and are numbers for all readers. YAML 1.1
// reads 1e3 as a string.
func TestNumbers(t *testing.T) {
	old := regexp.MustCompile(`^[-+]?([0-9][0-9_]*)\.[0-9_]*([eE][-+][0-9]+)?$`) // yaml.org/type/float.html, as PyYAML has it
	for _, text := range []string{"1.50", "3.10", "1e3", "1.5e3", "1.5e+3", "1e+3", "-0.0", "-2.50e-7", "0.5", "7e-2"} {
		out, err := Marshal(Mapping{{"number", numberOf(t, text)}})
		if err != nil {
			t.Fatal(err)
		}
		written, tagged := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(string(out), "number:")), "!!float ")
		if written != text || !tagged && !old.MatchString(written) {
			t.Errorf("%s is written as %s", text, out)
		}
		var node struct{ Number yaml.Node }
		if err := yaml.Unmarshal(out, &node); err != nil || node.Number.Value != text || node.Number.ShortTag() != "!!float" {
			t.Errorf("%s is read as %s %s, %v", out, node.Number.ShortTag(), node.Number.Value, err)
		}
	}
}

func numberOf(t *testing.T, s string) model.Value {
	t.Helper()
	v, err := model.NumberOf(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
