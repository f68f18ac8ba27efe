package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	sigs "sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// TestScalars compares the value of each text with the value that the library of kubectl reads.
func TestScalars(t *testing.T) {
	for _, text := range []string{
		"1", "0", "-1", "+1", "01", "0o7", "0777", "08", "0x10", "0b11", "1_000", "1e3", "1E3", "1.0", "1.50", "-0", "-0.0", ".5", "5.",
		"9007199254740993", "9223372036854775807", "18446744073709551615", "123456789012345678901234567890", "1e400",
		"1.2.3", "v1", "1.2.3.4", "10Gi", "100m", "1:30", "190:20:30", "12:30:45",
		"yes", "no", "on", "off", "y", "n", "Y", "NO", "true", "True", "tRUE", "null", "Null", "~", "nan", "none", "",
		"2001-01-01", "2001-12-14t21:59:43.10-05:00", "-", "--", "---x", ".", "..", "+", "+x", "a", "a b", "1 2", "=", "<", "<<",
		"'1'", `"yes"`, "'null'", `"\u0041"`, `"a\nb"`, "!!str 1", "!!int 1", `!!float "1"`, "!!bool yes", "!!null ''", "!!binary aGVsbG8=",
		"http://example.com:80/x?y=z", "a#b", "*.example.com", "{}", "[]", "[1, 'a', y]", "{a: 1, b: [c]}",
	} {
		doc := "x: " + text + "\n"
		want, wantErr := sigs.YAMLToJSON([]byte(doc))
		got, _, err := decode([]byte(doc), MaxSize)
		if (err != nil) != (wantErr != nil) {
			t.Errorf("%q: error %v, kubectl's: %v", text, err, wantErr)
			continue
		}
		if err != nil {
			continue
		}
		var v model.Value
		if err := json.Unmarshal(want, &v); err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || !got[0].Equal(v) {
			t.Errorf("%q: %v, kubectl reads %s", text, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"documents", "a: 1\n---\n# only a comment\n---\n---\nb: 2\n...\n---\nnull\n", `[{"a":1},{"b":2}]`},
		{"windows", "a: 1\r\n---\r\nb: x\r\n", `[{"a":1},{"b":"x"}]`},
		{"anchors", "a: &x {k: [1, 2]}\nb: *x\nc: [*x, *x]\n", `[{"a":{"k":[1,2]},"b":{"k":[1,2]},"c":[{"k":[1,2]},{"k":[1,2]}]}]`},
		{"merge", "a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}\nc: {k: 4, <<: *x}\n", `[{"a":{"k":1,"l":2},"b":{"k":3,"l":2},"c":{"k":4,"l":2}}]`},
		{"merge several", "a: &x {k: 1}\nb: &y {k: 2, l: 3}\nc:\n  <<: [*x, *y]\n", `[{"a":{"k":1},"b":{"k":2,"l":3},"c":{"k":1,"l":3}}]`},
		{"quoted merge is a key", "a: {\"<<\": 1}\n", `[{"a":{"\u003c\u003c":1}}]`},
		{"keys as kubectl reads them", "a: {1: a, true: b, 1.5: c, 0x10: d}\n", `[{"a":{"1":"a","1.5":"c","16":"d","true":"b"}}]`},
		{"key by anchor", "&k a: 1\nb: {*k : 2}\n", `[{"a":1,"b":{"a":2}}]`},
		{"blocks", "a: |\n  1\nb: >-\n  yes\n  no\n", `[{"a":"1\n","b":"yes no"}]`},
		{"json", `{"a": 1, "b": "\u00e9ß"}`, `[{"a":1,"b":"éß"}]`},
	} {
		got, _, err := decode([]byte(c.text), MaxSize)
		b, _ := json.Marshal(got)
		if err != nil || string(b) != c.want {
			t.Errorf("%s: %s, %v", c.name, b, err)
		}
	}
}

func TestRefused(t *testing.T) {
	object := func(rest string) string { return "apiVersion: v1\nkind: ConfigMap\n" + rest }
	for _, c := range []struct {
		name, text string
		code       diag.Code
		want       string
	}{
		{"twice", "a: 1\nb: 2\na: 3\n", diag.Render, `f.yaml: not YAML that Kubernetes reads: line 3: key "a" is given twice`},
		{"twice for kubectl", "1: a\n\"1\": b\n", diag.Render, `key "1" is given twice`},
		{"null key", "~: 1\n", diag.Render, "a key is null"},
		{"list key", "[a]: 1\n", diag.Render, "a key is a list or a mapping"},
		{"tag", "a: !Ref b\n", diag.Render, "the tag !Ref means nothing to Kubernetes"},
		{"collection tag", "a: !!set {b: }\n", diag.Render, "the tag !!set means nothing to Kubernetes"},
		{"infinity", "a: .inf\n", diag.Render, `".inf" is no value that JSON can hold`},
		{"cycle", "a: &x [*x]\n", diag.Render, "anchor x contains itself"},
		{"merged into itself", "a: &x\n  <<: *x\n", diag.Render, "line 2: anchor x contains itself"},
		{"directives", strings.Repeat("%TAG !a! b\n", 200) + "--- c\n", diag.Render, "line 101: there are more than 100 %TAG directives"},
		{"unknown anchor", "a: *x\n", diag.Render, "unknown anchor 'x'"},
		{"bad merge", "a: {<<: 1}\n", diag.Render, "<< merges mappings, not a int"},
		{"syntax", "a: [1\nb: 2\n", diag.Render, "f.yaml: not YAML that Kubernetes reads: line "},
		{"deep", strings.Repeat("[", 2000) + strings.Repeat("]", 2000), diag.Render, "nests deeper than 1000 levels"},
		{"deep by anchors", chain(20, 100), diag.Render, "nests deeper than 1000 levels"},
		{"bomb", bomb(64), diag.Unbounded, "f.yaml: the manifests are larger than 64 MiB"},
		{"merge bomb", mergeBomb(64), diag.Unbounded, "larger than 64 MiB"},
		{"large", "a: " + strings.Repeat("x", MaxSize), diag.Unbounded, "larger than 64 MiB"},
		{"text", "hello\n", diag.NotRendered, "f.yaml: is a string, not an object of Kubernetes"},
		{"list", "- a\n", diag.NotRendered, "is a list, not an object"},
		{"no kind", "apiVersion: v1\nmetadata: {name: a}\n", diag.NotRendered, "f.yaml: has no kind"},
		{"no version", "kind: ConfigMap\nmetadata: {name: a}\n", diag.NotRendered, "f.yaml: ConfigMap a: has no apiVersion"},
		{"no name", object("data: {a: b}\n"), diag.NotRendered, "f.yaml: ConfigMap: has no metadata.name"},
		{"name is a number", object("metadata: {name: 1}\n"), diag.NotRendered, "has no metadata.name"},
		{"generated name", object("metadata: {generateName: a-}\n"), diag.NotRendered, "has generateName instead of metadata.name"},
		{"label", object("metadata: {name: a, labels: {v: 1.10}}\n"), diag.NotRendered, "f.yaml: metadata.labels.v of ConfigMap a is 1.1, which is no string: quote it"},
		{"annotations", object("metadata: {name: a, annotations: [x]}\n"), diag.NotRendered, "metadata.annotations of ConfigMap a is a list, which is no mapping"},
		{"data", object("metadata: {name: a}\ndata: {x: yes}\n"), diag.NotRendered, "f.yaml: data.x of ConfigMap a is true, which is no string: quote it"},
		{"second document", object("metadata: {name: a}\n---\nfoo: bar\n"), diag.NotRendered, "f.yaml: document 2: has no apiVersion"},
		{"in a list", "apiVersion: v1\nkind: List\nitems: [{kind: A, apiVersion: b}]\n", diag.NotRendered, "item 0 has no metadata.name"},
	} {
		var r Reader
		_, err := r.Read("f.yaml", []byte(c.text))
		var refused *refusal.Error
		if !errors.As(err, &refused) || refused.Code != c.code || !strings.Contains(refused.Message, c.want) || refused.Hint == "" {
			t.Errorf("%s: %v, want %s %s", c.name, err, c.code, c.want)
		}
	}
}

// All texts that a Reader reads share one bound.
func TestShared(t *testing.T) {
	doc := fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: %s}\n", strings.Repeat("x", MaxSize/4))
	var r Reader
	for i := range 4 {
		if _, err := r.Read("f.yaml", doc); (err != nil) != (i == 3) {
			t.Errorf("%d: %v", i, err)
		}
	}
	list := "apiVersion: v1\nkind: ConfigMapList\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
	if docs, err := new(Reader).Read("list.yaml", []byte(list)); err != nil || len(docs) != 1 {
		t.Errorf("a list is %v, %v", docs, err)
	}
}

// bomb is a document where each of n levels is ten of the one before.
func bomb(n int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := range n {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	return b.String()
}

func mergeBomb(n int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 {x: y}\n")
	for i := range n {
		fmt.Fprintf(&b, "a%d: &a%d {<<: *a%d, b%d: *a%d, c%d: *a%d}\n", i+1, i+1, i, i, i, i, i)
	}
	return b.String()
}

// chain nests n times deep levels by anchors.
func chain(n, deep int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := range n {
		fmt.Fprintf(&b, "a%d: &a%d %s*a%d%s\n", i+1, i+1, strings.Repeat("[", deep), i, strings.Repeat("]", deep))
	}
	return b.String()
}

// FuzzDecode checks that no text panics or exceeds its bound. A text without anchors means
// the same to kubectl's library.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"a: 1\n---\nb: [yes, 0x10, 1e3]\n", bomb(3), mergeBomb(3), chain(2, 3), "a: &x [*x]", "a: &x {<<: *x}", "? [a]\n: b", "\xff", "a: !!binary x", "{a: 'b', c: |-\n d}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		const limit = 1 << 16
		docs, size, err := decode(text, limit)
		if err != nil {
			return
		}
		if size > limit {
			t.Fatalf("%d bytes", size)
		}
		for _, d := range docs {
			// JSON writes each control character as six bytes.
			if n := len(d.AppendJSON(nil)); n > 8*limit {
				t.Fatalf("%d bytes of JSON", n)
			}
			var again model.Value
			if err := again.UnmarshalJSON(d.AppendJSON(nil)); err != nil || !again.Equal(d) {
				t.Fatalf("%v becomes %v: %v", d, again, err)
			}
		}
	})
}
