package yaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestRandomDocuments writes values of all shapes and reads them back with another implementation.
// It compares the content of the stream, its order, and its depth.
func TestRandomDocuments(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 5_000 {
		docs := make([]any, 1+random.IntN(3))
		for i := range docs {
			docs[i] = anything(random, random.IntN(5))
		}
		out, err := Marshal(docs...)
		if err != nil {
			t.Fatal(err)
		}
		dec := yaml.NewDecoder(bytes.NewReader(out))
		for i, doc := range docs {
			var node yaml.Node
			if err := dec.Decode(&node); err != nil {
				t.Fatalf("document %d of %#v: %v\n%s", i, docs, err, out)
			}
			if got, want := read(t, node.Content[0]), plainly(doc); !reflect.DeepEqual(got, want) {
				t.Fatalf("document %d is read as\n%#v\nwant\n%#v\n%s", i, got, want, out)
			}
		}
		if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
			t.Fatalf("after %d documents: %v\n%s", len(docs), err, out)
		}
	}
}

// pair is an entry of a mapping that was read.
type pair struct{ key, value any }

// read returns a node as plainly does, with the entries of mappings in their order.
func read(t *testing.T, n *yaml.Node) any {
	t.Helper()
	switch n.Kind {
	case yaml.MappingNode:
		out := []pair{}
		for i := 0; i < len(n.Content); i += 2 {
			out = append(out, pair{read(t, n.Content[i]), read(t, n.Content[i+1])})
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			out = append(out, read(t, item))
		}
		return out
	}
	var v any
	if err := n.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// record is a struct with every kind of tag.
type record struct {
	Name   string            `yaml:"name"`
	Next   *record           `yaml:"next,omitempty"`
	List   []string          `yaml:"list,omitempty"`
	Labels map[string]string `yaml:"labels"`
	Any    any               `yaml:"any,omitempty"`
	Rest   Mapping           `yaml:",inline"`
}

// plainly returns the value that a reader must get from a result of anything: []pair, []any, and
// scalars.
func plainly(v any) any {
	switch v := v.(type) {
	case Mapping:
		out := []pair{}
		for _, e := range v {
			out = append(out, pair{e.Key, plainly(e.Value)})
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, plainly(e))
		}
		return out
	case *record:
		out := []pair{{"name", v.Name}}
		if v.Next != nil {
			out = append(out, pair{"next", plainly(v.Next)})
		}
		if len(v.List) > 0 {
			list := []any{}
			for _, s := range v.List {
				list = append(list, s)
			}
			out = append(out, pair{"list", list})
		}
		labels := []pair{}
		for k, s := range v.Labels { // one at most
			labels = append(labels, pair{k, s})
		}
		out = append(out, pair{"labels", labels})
		if v.Any != nil {
			out = append(out, pair{"any", plainly(v.Any)})
		}
		return append(out, plainly(v.Rest).([]pair)...)
	case model.Value:
		switch v.Kind() {
		case model.Struct:
			out := []pair{}
			for _, f := range v.Fields() {
				out = append(out, pair{f.Name, plainly(f.Value)})
			}
			return out
		case model.List:
			out := []any{}
			for _, e := range v.Elems() {
				out = append(out, plainly(e))
			}
			return out
		}
		var out any
		dec := json.NewDecoder(bytes.NewReader(v.AppendJSON(nil)))
		dec.UseNumber()
		if err := dec.Decode(&out); err != nil {
			panic(err)
		}
		if n, ok := out.(json.Number); ok {
			i, err := n.Int64()
			if err != nil {
				panic(err)
			}
			return int(i)
		}
		return out
	}
	return v
}

// anything returns a value with up to so many levels.
func anything(random *rand.Rand, levels int) any {
	if levels == 0 {
		return someText(random)
	}
	keys := map[string]bool{}
	key := func() string {
		for {
			if k := someText(random); !keys[k] && !fieldNames[k] {
				keys[k] = true
				return k
			}
		}
	}
	switch random.IntN(7) {
	case 0:
		m := Mapping{}
		for range random.IntN(4) {
			m = append(m, Entry{key(), anything(random, levels-1)})
		}
		return m
	case 1:
		l := []any{}
		for range random.IntN(4) {
			l = append(l, anything(random, levels-1))
		}
		return l
	case 2:
		r := &record{Name: someText(random), Any: anything(random, levels-1)}
		if random.IntN(2) == 0 {
			r.Next = &record{List: []string{someText(random), someText(random)}}
		}
		if random.IntN(2) == 0 {
			r.Labels = map[string]string{someText(random): someText(random)}
		}
		if random.IntN(2) == 0 {
			r.Rest = Mapping{{key(), anything(random, levels-1)}}
		}
		return r
	case 3:
		return model.StructOf(
			model.Field{Name: key(), Value: model.StringOf(someText(random))},
			model.Field{Name: key(), Value: model.ListOf(model.IntOf(-7), model.ListOf(), model.StructOf(), model.ListOf(model.BoolOf(true)))},
			model.Field{Name: key(), Value: model.StructOf(model.Field{Name: someText(random), Value: model.Value{}})},
		)
	case 4:
		return []any{nil, true, -3}[random.IntN(3)]
	}
	return someText(random)
}

var fieldNames = map[string]bool{"name": true, "next": true, "list": true, "labels": true, "any": true}

// someText returns a string that may need any style, and now and then a long one.
func someText(random *rand.Rand) string {
	n := random.IntN(8)
	if random.IntN(20) == 0 {
		n = random.IntN(2 * longestKey)
	}
	var s strings.Builder
	for range n {
		s.WriteString(alphabet[random.IntN(len(alphabet))])
	}
	return s.String()
}
