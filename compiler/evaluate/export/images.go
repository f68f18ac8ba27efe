package export

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// checkImages reports elements of images that replace nothing, elements with names or registries
// that are not valid, and elements whose order would matter. It writes registries in full. It
// reports whether all elements are valid.
func (x *Exporter) checkImages(images []model.Image, ref model.Ref) bool {
	ok := true
	fail := func(i int, field, problem, hint string, others ...model.Ref) {
		at := ref.At(fmt.Sprintf("[%d]", i)).At(field)
		d := diag.New(diag.WrongValue, problem).At(at, "").On(at.String()).Hinting(hint)
		for _, other := range others {
			d = d.At(other, "")
		}
		x.Fail(at, d)
		ok = false
	}
	first := map[string]int{} // by name or registry
	for i := range images {
		image := &images[i]
		if (image.Name == "") == (image.Registry == "") {
			continue // check has reported it
		}
		of, field, what := image.Name, "name", "the image "+image.Name
		if image.Registry != "" {
			registry := registryOf(image.Registry)
			field, what = "registry", "the registry "+image.Registry
			switch {
			case registry == "":
				fail(i, field, fmt.Sprintf("%q is no registry", image.Registry), "a registry has a "+
					"host, with a dot or a port or localhost, and may have a path: ghcr.io/shop")
				continue
			case image.NewRegistry == "":
				fail(i, field, "nothing replaces the registry "+image.Registry, "add newRegistry")
			case registryOf(image.NewRegistry) == "":
				fail(i, "newRegistry", fmt.Sprintf("%q is no registry", image.NewRegistry), "write a "+
					"host and, if the mirror needs one, a path: mirror.example.com:5000/hub")
			case image.KustomImage != (model.KustomImage{}):
				fail(i, field, "newName, newTag and digest are of one image, not of a registry",
					"remove them, or name the image with name")
			}
			image.Registry, of = registry, "registry "+registry
		} else if problem, hint := image.Problem(); problem != "" {
			fail(i, field, problem, hint)
		} else if image.NewRegistry != "" {
			fail(i, "newRegistry", "newRegistry is of a registry, not of one image",
				"write newName with the new registry")
		}
		if n, twice := first[of]; twice {
			fail(i, field, what+" is replaced twice", "keep one of the elements",
				ref.At(fmt.Sprintf("[%d].%s", n, field)))
			continue
		}
		first[of] = i
	}
	for i, image := range images {
		if n, there := first[image.NewName]; there && image.NewName != "" && n != i {
			fail(i, "newName", fmt.Sprintf("%s becomes %s, which another element replaces", image.Name,
				image.NewName), "write the final name as newName",
				ref.At(fmt.Sprintf("[%d].name", n)))
		}
	}
	return ok
}

// registryOf returns a registry, with a path in it or without, in the form that begins the full
// names of its images. It returns "" if it is no registry.
func registryOf(text string) string {
	const image = "/x/x"
	named, err := reference.ParseNormalizedNamed(text + image)
	if err != nil || !reference.IsNameOnly(named) {
		return ""
	}
	host, _, _ := strings.Cut(text, "/")
	if domain := reference.Domain(named); domain != host && host != "index."+domain {
		return ""
	}
	return strings.TrimSuffix(named.Name(), image)
}
