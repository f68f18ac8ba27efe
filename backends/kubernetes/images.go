package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Image is a container image, or any other artifact of an OCI registry.
type Image struct {
	// Name is its reference in full, with the registry and a tag, a digest or both:
	// docker.io/library/nginx:1.29.
	Name string
	// Pinned says that it has a digest.
	Pinned bool
}

// BadImage is an image of an object that names nothing that could be fetched.
type BadImage struct {
	Object string // kind and name
	Path   string // in the object
	Why    string
}

// Images returns the images that pods of the objects run, sorted and each once:
// those of containers, init containers, ephemeral containers and image volumes,
// at any depth, so that custom resources that carry pod templates are covered,
// and those in fields of customImages. What an operator makes up, or takes from
// an argument, a variable or a struct of repository and tag, is not found.
// CustomResourceDefinitions run nothing.
//
// A container of Kubernetes' own kinds has an image; one of a custom resource may
// have none, since it may be a patch of another.
func Images(objects []model.Value) ([]Image, []BadImage) {
	f := &imageFinder{found: map[string]Image{}}
	for _, o := range objects {
		f.object(o)
	}
	images := make([]Image, 0, len(f.found))
	for _, image := range f.found {
		images = append(images, image)
	}
	slices.SortFunc(images, func(a, b Image) int { return strings.Compare(a.Name, b.Name) })
	return images, f.bad
}

// ParseImage returns an image by its reference, as Docker completes it: a name
// without a registry is one of docker.io, a name alone there is an official
// image, and without a tag and a digest the tag is latest.
func ParseImage(text string) (Image, error) {
	for _, mark := range []string{"{{", "${", "$(", "###"} {
		if strings.Contains(text, mark) {
			return Image{}, fmt.Errorf("%q is a template", text)
		}
	}
	if text == "" {
		return Image{}, fmt.Errorf("the image is empty")
	}
	named, err := reference.ParseNormalizedNamed(strings.TrimPrefix(text, "oci://"))
	if err != nil {
		return Image{}, fmt.Errorf("%q is no image: %w", text, err)
	}
	_, pinned := named.(reference.Digested)
	return Image{Name: reference.TagNameOnly(named).String(), Pinned: pinned}, nil
}

// injected is the image of a container that Istio replaces when it injects its
// proxy (https://istio.io/latest/docs/setup/additional-setup/gateway).
const injected = "auto"

// shape says where the objects of an API group have images beside pod templates.
type shape struct {
	lists   []string // fields that are lists of structs with an image
	structs []string // fields that are structs with an image
	paths   []string // of the images of an object, with dots
}

// customImages are well-known custom resources that name images outside of pod
// templates, by API group, as their own references describe them.
var customImages = map[string]shape{
	"argoproj.io":           {lists: []string{"sidecars"}, structs: []string{"container", "script"}},
	"kubevirt.io":           {structs: []string{"containerDisk"}},
	"monitoring.coreos.com": {paths: []string{"spec.image"}},
	"opentelemetry.io":      {paths: []string{"spec.image"}},
	"pkg.crossplane.io":     {paths: []string{"spec.package"}},
	"postgresql.cnpg.io":    {lists: []string{"images"}, paths: []string{"spec.imageName"}},
	"tekton.dev":            {lists: []string{"steps", "sidecars"}},
}

// containerLists are the fields of a pod's spec that hold containers.
var containerLists = []string{"containers", "initContainers", "ephemeralContainers"}

type imageFinder struct {
	found  map[string]Image
	bad    []BadImage
	name   string // of the object
	native bool   // the object's kind is one of Kubernetes
	shape  shape
}

// object looks for images in an object, or in those of a list.
func (f *imageFinder) object(o model.Value) {
	kind := text(o, "kind")
	if items, ok := o.Lookup("items"); ok && strings.HasSuffix(kind, "List") && items.Kind() == model.List {
		for _, item := range items.Elems() {
			f.object(item)
		}
		return
	}
	if kind == "CustomResourceDefinition" {
		return
	}
	of := group(text(o, "apiVersion"))
	f.name = strings.TrimSpace(orObject(kind) + " " + text(o, "metadata", "name"))
	f.native = of == "" || of == "apps" || of == "batch"
	f.shape = customImages[of]
	for _, path := range f.shape.paths {
		if image, ok := lookup(o, strings.Split(path, ".")...); ok && image.Kind() == model.String {
			f.image(image, path)
		}
	}
	f.walk(o, "")
}

// walk looks for images in all that a value holds.
func (f *imageFinder) walk(v model.Value, path string) {
	for i, elem := range v.Elems() {
		f.walk(elem, fmt.Sprintf("%s[%d]", path, i))
	}
	if v.Kind() != model.Struct {
		return
	}
	for _, field := range v.Fields() {
		at := model.JoinPath(path, model.Label(field.Name))
		switch {
		case slices.Contains(containerLists, field.Name):
			f.containers(field.Value, at, f.native)
		case slices.Contains(f.shape.lists, field.Name):
			f.containers(field.Value, at, false)
		case slices.Contains(f.shape.structs, field.Name):
			f.imageOf(field.Value, at, "image")
		case field.Name == "volumes":
			for i, volume := range field.Value.Elems() {
				image, _ := volume.Lookup("image")
				f.imageOf(image, fmt.Sprintf("%s[%d].image", at, i), "reference")
			}
		}
		f.walk(field.Value, at)
	}
}

// containers takes the images of a list of containers. A list of anything else
// has no elements with a name and an image.
func (f *imageFinder) containers(list model.Value, path string, imageNeeded bool) {
	for i, c := range list.Elems() {
		at := fmt.Sprintf("%s[%d]", path, i)
		_, hasName := c.Lookup("name")
		_, hasImage := c.Lookup("image")
		switch {
		case hasImage:
			f.imageOf(c, at, "image")
		case hasName && imageNeeded:
			f.bad = append(f.bad, BadImage{Object: f.name, Path: at, Why: "the container has no image"})
		}
	}
}

// imageOf takes the image that a struct has in a field, if any.
func (f *imageFinder) imageOf(of model.Value, path, field string) {
	if of.Kind() != model.Struct {
		return
	}
	if image, ok := of.Lookup(field); ok {
		f.image(image, path+"."+field)
	}
}

func (f *imageFinder) image(v model.Value, path string) {
	if v.Kind() != model.String {
		if f.native {
			f.bad = append(f.bad, BadImage{Object: f.name, Path: path, Why: "the image is no string"})
		}
		return
	}
	if v.Text() == injected {
		return
	}
	image, err := ParseImage(v.Text())
	if err != nil {
		f.bad = append(f.bad, BadImage{Object: f.name, Path: path, Why: err.Error()})
		return
	}
	f.found[image.Name] = image
}
