package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// ReplaceImages replaces image references in an object, or in several objects at any depth of a
// value. It finds them in the same places as the image transformer of kustomize: in the fields
// containers and initContainers, and in image volumes. It also finds them in ephemeralContainers.
// It does not change CustomResourceDefinitions. A reference with the name of an
// element becomes what kustomize makes of it. Other references get the new registry of the longest
// registry that they are in.
//
// For example, the registry docker.io with the new registry mirror.example.com:5000/hub makes
// mirror.example.com:5000/hub/library/nginx:1.29 of nginx:1.29.
//
// bad are the images that may be in a registry of the elements, and whose reference cannot be read.
func ReplaceImages(v model.Value, images []model.Image) (replaced model.Value, bad []BadImage) {
	r := &imageReplacer{names: map[string]model.Image{}}
	for _, image := range images {
		if image.Registry != "" {
			r.registries = append(r.registries, image)
		} else {
			r.names[image.Name] = image
		}
	}
	slices.SortFunc(r.registries, func(a, b model.Image) int {
		return cmp.Compare(len(b.Registry), len(a.Registry))
	})
	return r.walk(v, ""), r.bad
}

type imageReplacer struct {
	names      map[string]model.Image
	registries []model.Image // the longest first
	object     string        // kind and name
	bad        []BadImage
}

// walk returns a value with the images replaced. It returns the same value if it has none.
func (r *imageReplacer) walk(v model.Value, path string) model.Value {
	switch v.Kind() {
	case model.List:
		out := make([]model.Value, len(v.Elems()))
		for i, elem := range v.Elems() {
			out[i] = r.walk(elem, fmt.Sprintf("%s[%d]", path, i))
		}
		return model.ListOf(out...)
	case model.Struct:
	default:
		return v
	}
	if kind := Text(v, "kind"); kind != "" && Text(v, "apiVersion") != "" {
		if kind == "CustomResourceDefinition" {
			return v
		}
		defer func(of string) { r.object = of }(r.object)
		r.object, path = strings.TrimSpace(kind+" "+Text(v, "metadata", "name")), ""
	}
	fields := slices.Clone(v.Fields())
	for i := range fields {
		f := &fields[i]
		at := model.JoinPath(path, model.Label(f.Name))
		f.Value = r.walk(f.Value, at)
		switch {
		case slices.Contains(containerLists, f.Name):
			f.Value = r.list(f.Value, at, "image")
		case f.Name == "volumes":
			f.Value = r.list(f.Value, at, "image", "reference")
		}
	}
	return model.StructOf(fields...)
}

// list replaces the image in a field of each element of a list.
func (r *imageReplacer) list(list model.Value, path string, field ...string) model.Value {
	if list.Kind() != model.List {
		return list
	}
	out := slices.Clone(list.Elems())
	for i, elem := range out {
		image, ok := Lookup(elem, field...)
		if !ok || image.Kind() != model.String {
			continue
		}
		name, err := r.reference(image.Text())
		if err != nil {
			r.bad = append(r.bad, BadImage{Object: r.object,
				Path: fmt.Sprintf("%s[%d].%s", path, i, strings.Join(field, ".")), Why: err.Error()})
		}
		out[i] = replaced(elem, model.StringOf(name), field...)
	}
	return model.ListOf(out...)
}

// reference returns the new reference of an image. With an error, it returns the same reference.
func (r *imageReplacer) reference(text string) (string, error) {
	name, revision := cutRevision(text)
	if image, ok := r.names[name]; ok {
		switch {
		case image.Digest != "":
			revision = "@" + image.Digest
		case image.NewTag != "":
			revision = ":" + image.NewTag
		}
		return image.FinalName() + revision, nil
	}
	if len(r.registries) == 0 || text == injected {
		return text, nil
	}
	image, err := ParseImage(text)
	if err != nil {
		return text, err
	}
	full, _ := cutRevision(image.Name)
	for _, of := range r.registries {
		if rest, in := strings.CutPrefix(full, of.Registry+"/"); in {
			return of.NewRegistry + "/" + rest + revision, nil
		}
	}
	return text, nil
}

// cutRevision splits a reference into the name and its tag and digest, with the characters before
// them. A colon before the last slash begins a port.
func cutRevision(text string) (name, revision string) {
	name, _, _ = strings.Cut(text, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name, text[len(name):]
}
