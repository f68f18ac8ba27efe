package delivery

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Images returns the images that a reconciler replaces in manifests that it fetches: the images of
// the overlay k, which may be nil, and of the cluster type.
//
// Each name is unique, and the order has no effect, because the reconcilers differ. Kustomize
// replaces in order, Argo CD sorts by name, and Flux keeps the last of several elements with a
// name. So an image that the overlay calls by a name of the cluster type gets both changes at once.
// If the overlay renames app to shop, and the cluster type renames shop to mirror/shop, Images
// returns app and shop. Both become mirror/shop.
func Images(a *backends.Assignment, k *model.Kustomize) []model.KustomImage {
	var out []model.KustomImage
	if k != nil {
		out = slices.Clone(k.Images)
	}
	own := len(out)
	for _, image := range a.Images {
		there := false
		for i := range out[:own] {
			o := &out[i]
			there = there || o.Name == image.Name
			if k.Images[i].FinalName() != image.Name {
				continue
			}
			o.NewName = cmp.Or(image.NewName, o.NewName)
			if image.NewTag != "" || image.Digest != "" {
				o.NewTag, o.Digest = image.NewTag, image.Digest
			}
		}
		if !there {
			out = append(out, image.KustomImage)
		}
	}
	return out
}

// checkImages reports an image of the cluster type that gets a name that the overlay replaces too.
// The overlay comes first, and kustomize would replace the image a second time.
func checkImages(a *backends.Assignment, k *model.Kustomize) (ds []diag.Diagnostic) {
	for i, image := range a.Images {
		n := slices.IndexFunc(k.Images, func(o model.KustomImage) bool {
			return o.Name == image.NewName && o.Name != image.Name
		})
		if n >= 0 && !a.Render {
			ds = append(ds, Unsupported(a, fmt.Sprintf("kustomize.images[%d]", n),
				fmt.Sprintf("the overlay would replace %s again, which is the new name of an image on "+
					"cluster type %s", image.NewName, a.ClusterType)).
				At(a.ImageRef(i), "").Hinting("render it: set render: true on the deployment target"))
		}
	}
	return ds
}
