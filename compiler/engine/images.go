package engine

import (
	"fmt"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// withImages returns a projection with the images of the assignment's cluster type replaced, and
// warnings about images that cannot be read. Assignments share the objects of p, which stay as they
// are.
func withImages(p *model.Projection, a *backends.Assignment) (*model.Projection,
	[]diag.Diagnostic) {
	if p == nil || len(a.Images) == 0 {
		return p, nil
	}
	out := *p
	out.Objects = make([]model.Projected, len(p.Objects))
	var bad []kubernetes.BadImage
	for i, o := range p.Objects {
		var unread []kubernetes.BadImage
		o.Value, unread = kubernetes.ReplaceImages(o.Value, a.Images)
		out.Objects[i], bad = o, append(bad, unread...)
	}
	return &out, unreplaced(a, bad, a.Ref.At("manifests"))
}

// replaceServiceImages replaces the images in the objects that the namespace service adds.
func replaceServiceImages(a *backends.Assignment) []diag.Diagnostic {
	const field = "manifests"
	manifests, ok := a.NamespaceService.Value.Lookup(field)
	if !ok || len(a.Images) == 0 {
		return nil
	}
	manifests, bad := kubernetes.ReplaceImages(manifests, a.Images)
	a.NamespaceService.Value = model.Merge(a.NamespaceService.Value,
		model.StructOf(model.Field{Name: field, Value: manifests}))
	return unreplaced(a, bad, a.NamespaceService.Ref.At(field))
}

func unreplaced(a *backends.Assignment, bad []kubernetes.BadImage,
	at model.Ref) (ds []diag.Diagnostic) {
	for _, b := range bad {
		ds = append(ds, diag.New(diag.NoEffect,
			fmt.Sprintf("images of cluster type %s have no effect on %s of %s: %s", a.ClusterType,
				b.Path, b.Object, b.Why)).
			On(at.String()).At(at, "").At(a.ImageRef(0), "").
			Hinting("name the image in full, in the manifests or the chart's values"))
	}
	return ds
}

// imagesOfMachine warns that the images of a cluster type do not reach what runs on machines.
func imagesOfMachine(a *backends.Assignment) []diag.Diagnostic {
	kind := a.Manifests.Kind()
	if len(a.Images) == 0 || kind != model.PackageSource && kind != model.AnsibleSource {
		return nil
	}
	field := "manifests." + string(kind)
	return []diag.Diagnostic{diag.New(diag.NoEffect,
		fmt.Sprintf("images of cluster type %s have no effect on %s: machines run it without images "+
			"of Kubernetes", a.ClusterType, a.DeploymentTarget)).
		On(field).At(a.ImageRef(0), "").At(a.Ref.At(field), "").
		Hinting("remove images from the cluster type")}
}
