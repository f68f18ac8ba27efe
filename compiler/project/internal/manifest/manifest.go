// Package manifest reads Kubernetes manifests: YAML goes in, objects come out as values, with
// the meaning that the text has to kubectl.
//
// It accepts text that nobody has checked. It bounds the size of its output, also if a small
// text uses anchors to produce a large one. It refuses text that is not a manifest, with the
// name of the source. It returns the same value for the same text, on every machine.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/kubetype"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
	"github.com/kalypso-io/kalypso/internal/yamlnodes"
)

// MaxSize bounds the output of one render, in bytes of its text with all anchors written out.
const MaxSize = 64 << 20

// Reader reads the manifests of one render, which share its bound. The zero
// Reader is ready. It is for one goroutine.
type Reader struct{ size int64 }

// Read returns the objects of a text, a stream of YAML documents, in their order.
// Documents without content are dropped; a List stays one object. Errors are
// *refusal.Errors that name the source.
func (r *Reader) Read(source string, text []byte) ([]model.Value, error) {
	docs, size, err := decode(text, MaxSize-r.size)
	if err != nil {
		return nil, refused(source, err)
	}
	r.size += size
	for i, doc := range docs {
		if err := r.check(source, i, len(docs), doc); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// Documents returns the content of a text as Kustomize reads it, in YAML 1.2. Maps, lists and
// scalars are the same that Kustomize's own parser makes. So the keys yes and on are two keys,
// and both are strings. Documents without content are dropped. It counts sizes as Read does.
func (r *Reader) Documents(source string, text []byte) (docs []any, err error) {
	nodes, size, err := parse(text, MaxSize-r.size)
	if err != nil {
		return nil, refused(source, err)
	}
	r.size += size
	for _, n := range nodes {
		var doc any
		if err := n.Decode(&doc); err != nil {
			message := strings.TrimPrefix(err.Error(), "yaml: ")
			if several := (*yaml.TypeError)(nil); errors.As(err, &several) {
				message = several.Errors[0]
			}
			return nil, refusal.New(diag.Render, "check the file", "%s: not YAML that Kustomize reads: %s",
				source, message)
		}
		if doc != nil {
			docs = append(docs, doc)
		}
	}
	return docs, nil
}

// Check refuses a text whose anchors make it too large or contain themselves, and other text
// that keeps a parser busy. Callers use it before they pass a text to a library that writes
// anchors out. It accepts a text that is not YAML.
func Check(source string, text []byte) error {
	if bytes.IndexByte(text, '&') < 0 && !bytes.Contains(text, []byte("%TAG")) {
		return nil
	}
	_, _, err := parse(text, MaxSize)
	if e := (*yamlnodes.Error)(nil); err == errTooLarge || errors.As(err, &e) && e.Unbounded {
		return refused(source, err)
	}
	return nil
}

func refused(source string, err error) error {
	if err == errTooLarge {
		return tooLarge(source)
	}
	return refusal.New(diag.Render, "check the file, or the values that it is made with",
		"%s: not YAML that Kubernetes reads: %v", source, err)
}

// Add counts and checks an object that is already a value, with a text of size bytes.
func (r *Reader) Add(source string, v model.Value, size int) error {
	if r.size += int64(size); r.size > MaxSize {
		return tooLarge(source)
	}
	return r.check(source, 0, 1, v)
}

func tooLarge(source string) error {
	return refusal.New(diag.Unbounded,
		"render less in one deployment target, or let the reconciler render the source",
		"%s: the manifests are larger than %d MiB", source, MaxSize>>20)
}

// check returns an error if a value is not an object of Kubernetes.
func (r *Reader) check(source string, i, n int, v model.Value) error {
	missing := problem(v)
	if missing == "" {
		if err := kubetype.Check(v); err != nil {
			return refusal.New(diag.NotRendered, err.Hint(), "%s: %s", source, err)
		}
		return nil
	}
	which := ""
	if n > 1 {
		which = fmt.Sprintf("document %d", i+1)
	}
	if kind, name := text(v, "kind"), text(fieldOf(v, "metadata"), "name"); kind != "" {
		which = strings.TrimSpace(which + " " + strings.TrimSpace(kind+" "+name))
	}
	if which != "" {
		source += ": " + which
	}
	return refusal.New(diag.NotRendered, "every manifest has apiVersion, kind and metadata.name",
		"%s: %s", source, missing)
}

func problem(v model.Value) string {
	if v.Kind() != model.Struct {
		return fmt.Sprintf("is a %s, not an object of Kubernetes", v.Kind())
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if text(v, field) == "" {
			return "has no " + field
		}
	}
	if items, ok := v.Lookup("items"); ok && strings.HasSuffix(text(v, "kind"), "List") {
		for i, item := range items.Elems() {
			if p := problem(item); p != "" {
				return fmt.Sprintf("item %d %s", i, p)
			}
		}
		return ""
	} else if ok && items.Kind() == model.List {
		return "has items, which reconcilers apply as objects of their own, and its kind does not end " +
			"in List"
	}
	metadata := fieldOf(v, "metadata")
	if text(metadata, "name") == "" {
		if text(metadata, "generateName") != "" {
			return "has generateName instead of metadata.name, so that each build would be another object"
		}
		return "has no metadata.name"
	}
	return ""
}

func fieldOf(v model.Value, field string) model.Value {
	w, _ := v.Lookup(field)
	return w
}

// text returns a field that is a string; "" for any other.
func text(v model.Value, field string) string {
	if w := fieldOf(v, field); w.Kind() == model.String {
		return w.Text()
	}
	return ""
}
