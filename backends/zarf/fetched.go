package zarf

import (
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// fetched adds what the workload fetches at the site: the images of its pods and
// of those of the namespace service, those that the reconciler names, and the
// repositories and artifacts that a GitOps agent among the objects pulls.
func (f *folder) fetched() {
	images, bad := kubernetes.Images(f.deployed())
	for _, b := range bad {
		f.report(diag.New(diag.UnsupportedManifests,
			fmt.Sprintf("the package cannot hold an image of %s: %s: %s", b.Object, b.Path, b.Why)).
			On("manifests").At(f.a.Ref.At("manifests"), "").
			Hinting("give it an image that is named in full, in the manifests or the chart's values"))
	}
	s := sourcesOf(f.deployed())
	f.sources(s)
	images = append(images, s.artifacts...)
	f.unpinned(images, f.a.Ref.At("manifests"))
	further := f.furtherImages()
	f.unpinned(further, f.a.Reconciler.Ref.At("zarf.images"))

	var names []string
	for _, image := range append(images, further...) {
		names = append(names, image.Name)
	}
	f.component.Images, f.component.Repos = sorted(names), sorted(s.repos)
}

// furtherImages returns the images that the reconciler names.
func (f *folder) furtherImages() []kubernetes.Image {
	var out []kubernetes.Image
	for i, text := range f.options.Images {
		image, err := kubernetes.ParseImage(text)
		if err != nil {
			at := f.a.Reconciler.Ref.At(fmt.Sprintf("zarf.images[%d]", i))
			f.report(diag.New(diag.BadSpec, err.Error()).On(at.String()).At(at, "").
				Hinting("name the image as docker pull takes it, such as registry.example.com/app:1.2.3"))
			continue
		}
		out = append(out, image)
	}
	return out
}

// unpinned warns of images without a digest, which are given at ref.
func (f *folder) unpinned(images []kubernetes.Image, ref model.Ref) {
	var names []string
	for _, image := range images {
		if !image.Pinned {
			names = append(names, image.Name)
		}
	}
	if len(names) > 0 {
		f.report(diag.New(diag.Unpinned, "images have no digest: "+few(sorted(names))).At(ref, "").
			Hinting("add the digest, as in app:1.2.3@sha256:..., so that the package holds what was tested"))
	}
}

// deployed returns the objects that the component brings to the cluster, but for
// a chart's tests, which nothing runs.
func (f *folder) deployed() []model.Value {
	var out []model.Value
	if f.a.Projection != nil && f.a.Manifests.Package == nil {
		for _, o := range f.a.Projection.Objects {
			if !kubernetes.IsTest(o) {
				out = append(out, o.Value)
			}
		}
	}
	manifests, _ := f.a.NamespaceService.Value.Lookup("manifests")
	out = append(out, manifests.Elems()...)
	for _, m := range manifests.Fields() {
		out = append(out, m.Value)
	}
	return out
}

// sources reports what is wrong with what GitOps agents pull.
func (f *folder) sources(s *sources) {
	for _, problem := range s.impossible {
		f.report(diag.New(diag.UnsupportedManifests,
			problem.what).On("manifests").At(f.a.Ref.At("manifests"), "").Hinting(problem.hint))
	}
	if len(s.unpinned) > 0 {
		f.report(diag.New(diag.Unpinned, "sources are at no commit, tag or digest: "+few(sorted(s.unpinned))).
			On("manifests").At(f.a.Ref.At("manifests"), "").
			Hinting("pin them: the package holds what they are when it is made"))
	}
	if len(s.outside) > 0 {
		f.report(diag.New(diag.NoEffect, "a package cannot hold chart repositories, so the site must "+
			"reach them: "+few(sorted(s.outside))).
			On("manifests").At(f.a.Ref.At("manifests"), "").Hinting("take the charts from an OCI registry"))
	}
}

// sorted returns the names sorted, each once.
func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}
