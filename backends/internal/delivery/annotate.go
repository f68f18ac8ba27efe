package delivery

import "github.com/kalypso-io/kalypso/compiler/model"

// Annotate returns an object with an annotation, which replaces one of its name. A
// value whose metadata is no struct is left as it is.
func Annotate(object model.Value, key, value string) model.Value {
	metadata, ok := object.Lookup("metadata")
	if !ok || metadata.Kind() != model.Struct {
		return object
	}
	annotations, ok := metadata.Lookup("annotations")
	if ok && annotations.Kind() != model.Struct && annotations.Kind() != model.Null {
		return object
	}
	annotations = with(annotations, key, model.StringOf(value))
	return with(object, "metadata", with(metadata, "annotations", annotations))
}

// Annotation returns an annotation of an object; "" where it has none.
func Annotation(object model.Value, key string) string {
	return textAt(object, "metadata", "annotations", key)
}

// with returns a struct with a field that replaces one of its name.
func with(of model.Value, name string, v model.Value) model.Value {
	var fields []model.Field
	for _, f := range of.Fields() {
		if f.Name != name {
			fields = append(fields, f)
		}
	}
	return model.StructOf(append(fields, model.Field{Name: name, Value: v})...)
}

// textAt returns the string at a path of fields; "" where there is none.
func textAt(v model.Value, path ...string) string {
	for _, field := range path {
		of, ok := v.Lookup(field)
		if !ok {
			return ""
		}
		v = of
	}
	if v.Kind() != model.String {
		return ""
	}
	return v.Text()
}
