package kubernetes

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/kubetype"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// TracedDocument is a document that a platform wrote itself, as it goes into a file.
type TracedDocument struct {
	// Docs are the YAML documents to write: one, or the items of a list of objects.
	Docs []any
	// Value is the whole document, for other formats.
	Value model.Value
	// Objects are the identities of Docs. It is nil if the document is not a Kubernetes object.
	Objects []backends.Object
}

// Trace adds kalypso's label and annotation to a Kubernetes object, so that it can be traced to its
// assignment. It does not change other documents. A document is an object if it has apiVersion,
// kind and metadata.name. Trace keeps the other fields of an object. It does not add a namespace,
// because the author of the document chose whether to name one.
//
// Trace returns an error for an object that an API server would refuse or read differently: a name,
// label or annotation that is not a string. It also returns an error for an object that already
// uses kalypso's label or annotation.
func Trace(a *backends.Assignment, doc model.Value) (TracedDocument, error) {
	if items, isList := listItems(doc); isList {
		return traceList(a, doc, items)
	}
	// Files of tools that borrow the form of an object, such as kustomization.yaml, have no name.
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}} {
		if _, there := Lookup(doc, path...); !there {
			return TracedDocument{Docs: []any{doc}, Value: doc}, nil
		}
	}
	m, err := traced(a, doc)
	if err != nil {
		return TracedDocument{}, err
	}
	return TracedDocument{Docs: []any{m}, Value: m.value(), Objects: []backends.Object{m.Identity()}},
		nil
}

func traceList(a *backends.Assignment, doc model.Value,
	items []model.Value) (TracedDocument, error) {
	var out TracedDocument
	var values []model.Value
	for _, item := range items {
		t, err := Trace(a, item)
		if err != nil {
			return TracedDocument{}, err
		}
		if t.Objects == nil {
			return TracedDocument{},
				fmt.Errorf("an item of a %s is no Kubernetes object: it needs apiVersion, "+
					"kind and metadata.name", Text(doc, "kind"))
		}
		out.Docs, out.Objects, values = append(out.Docs, t.Docs...), append(out.Objects, t.Objects...),
			append(values, t.Value)
	}
	out.Value = replaced(doc, model.ListOf(values...), "items")
	return out, nil
}

// listItems returns the items of a list as kubectl prints it.
func listItems(doc model.Value) ([]model.Value, bool) {
	items, there := doc.Lookup("items")
	if !there || items.Kind() != model.List || Text(doc, "apiVersion") == "" ||
		Text(doc, "kind") == "" {
		return nil, false
	}
	return items.Elems(), true
}

func traced(a *backends.Assignment, doc model.Value) (manifest, error) {
	var texts [4]string
	for i, path := range [...]string{"apiVersion", "kind", "metadata.name", "metadata.namespace"} {
		v, there := Lookup(doc, strings.Split(path, ".")...)
		if i == 3 && (!there || v.Kind() == model.Null) {
			continue
		}
		if v.Kind() != model.String {
			return manifest{}, fmt.Errorf("%s is %s, which is no string: quote it", path, v)
		}
		if texts[i] = v.Text(); texts[i] == "" && i < 3 {
			return manifest{}, fmt.Errorf("%s is empty", path)
		}
	}
	if err := kubetype.Check(doc); err != nil {
		return manifest{}, err
	}
	given, _ := doc.Lookup("metadata")
	m := manifestOf(doc, texts[0], texts[1], Meta(a, texts[2], texts[3]))
	for _, f := range []struct {
		name string
		own  map[string]string
	}{{"labels", m.Metadata.Labels}, {"annotations", m.Metadata.Annotations}} {
		theirs, _ := given.Lookup(f.name)
		for _, t := range theirs.Fields() {
			if t.Value.Kind() != model.String {
				return manifest{},
					fmt.Errorf("%s in the %s of %s %s is %s, which is no string: quote it", t.Name,
						f.name, m.Kind, m.Metadata.Name, t.Value)
			}
			if mine, taken := f.own[t.Name]; taken && mine != t.Value.Text() {
				return manifest{},
					fmt.Errorf("%s in the %s of %s %s is kalypso's own: it is %q, and cannot be %q", t.Name,
						f.name, m.Kind, m.Metadata.Name, mine, t.Value.Text())
			}
			f.own[t.Name] = t.Value.Text()
		}
	}
	return m, nil
}

// value returns the object as it is written.
func (m manifest) value() model.Value {
	texts := func(of map[string]string) model.Value {
		var fields []model.Field
		for _, name := range sortedKeys(of) {
			fields = append(fields, model.Field{Name: name, Value: model.StringOf(of[name])})
		}
		return model.StructOf(fields...)
	}
	metadata := []model.Field{
		{Name: "name", Value: model.StringOf(m.Metadata.Name)},
		{Name: "labels", Value: texts(m.Metadata.Labels)},
		{Name: "annotations", Value: texts(m.Metadata.Annotations)},
	}
	if m.Metadata.Namespace != "" {
		metadata = append(metadata,
			model.Field{Name: "namespace", Value: model.StringOf(m.Metadata.Namespace)})
	}
	object := []model.Field{
		{Name: "apiVersion", Value: model.StringOf(m.APIVersion)},
		{Name: "kind", Value: model.StringOf(m.Kind)},
		{Name: "metadata", Value: model.StructOf(append(metadata, fieldsOf(m.Metadata.Rest)...)...)},
	}
	return model.StructOf(append(object, fieldsOf(m.Rest)...)...)
}

// fieldsOf returns the entries that rest returns as fields.
func fieldsOf(entries yaml.Mapping) []model.Field {
	var out []model.Field
	for _, e := range entries {
		out = append(out, model.Field{Name: e.Key, Value: e.Value.(model.Value)})
	}
	return out
}
