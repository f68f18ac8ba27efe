package fleet

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// rendered adds the bundles of what was rendered. Hooks stay hooks: to Fleet all
// objects are a release of Helm's, which reads their annotations. Tests that differ
// with each render are left out, which Fleet would not run.
func (f *folder) rendered() {
	all, tests := kubernetes.Split(delivery.Rendered(f.assignment), func(o model.Projected) bool {
		return kubernetes.IsStable(o) || !kubernetes.IsTest(o)
	})
	files, objects, ds := kubernetes.Manifests(f.assignment, all)
	argo, _ := kubernetes.Split(all, kubernetes.IsArgoHook)
	ds = append(append(ds, f.twice(objects)...), delivery.Hooks(f.assignment, argo, tests)...)
	f.ds = append(append(f.ds, ds...), delivery.SameOnAll(f.assignment)...)
	f.bare = len(files) == 0
	if diag.Errors(ds) || f.bare {
		return
	}
	f.objects = append(f.objects, objects...)
	crds, others := kubernetes.SplitCRDs(files[0].Data, objects)
	own := []part{partWorkspace}
	deletes := f.assignment.Manifests.CRDs() == model.DeleteCRDs
	only := len(others) == 0
	switch {
	case only:
		others = crds
	case len(crds) > 0:
		f.manifests(partCRDs, fleetYAML{
			ServiceAccount: f.options.ServiceAccount,
			// Another assignment's bundle may have left them, or had them for both.
			Helm:               &helm{TakeOwnership: true},
			DeleteCRDResources: deletes,
		}, crds)
		own = append(own, partCRDs)
	}
	f.manifests(partWorkload, fleetYAML{
		ServiceAccount: f.options.ServiceAccount,
		DependsOn:      workloadDependencies(f.assignment, own...),

		DeleteCRDResources: only && deletes,
	}, others)
}

// manifests adds the bundle of a part, in a folder of the part's name. As that of
// the workspace, its release lies in the namespace default.
func (f *folder) manifests(p part, spec fleetYAML, data []byte) {
	a := f.assignment
	spec.Name, spec.Labels = nameOf(a, p), labels(a, a.DeploymentTarget, p)
	f.files = append(f.files,
		fleetFile(string(p), spec),
		backends.File{Path: delivery.Path(string(p), kubernetes.ManifestsFile), Data: data})
	f.ignored = append(f.ignored, string(p))
	if n := stored(data); n > maxRelease {
		f.ds = append(f.ds, diag.New(diag.TooLarge,
			fmt.Sprintf("what is rendered has %d bytes when it is compressed, and Helm keeps a release of "+
				"at most %d in a Secret", n, maxRelease)).
			At(a.Ref.At("manifests"), "").
			Hinting("split the workload, or leave out what it does not need"))
	}
}

// twice reports what is rendered and in the workspace as well: an object is of one
// release only.
func (f *folder) twice(rendered []backends.Object) []diag.Diagnostic {
	var ds []diag.Diagnostic
	for _, o := range rendered {
		if slices.Contains(f.objects, o) {
			ds = append(ds, diag.New(diag.NameCollision,
				fmt.Sprintf("the namespace service and the rendered manifests of %s both create %s %s",
					f.assignment.DeploymentTarget, o.Kind, o.Name)).
				At(f.assignment.Ref.At("manifests"), "").At(f.assignment.NamespaceService.Ref, "").
				Hinting("leave it out of one of them, or give it another name in one of them"))
		}
	}
	return ds
}

// maxRelease is how many bytes a Secret can hold (MaxSecretSize in
// k8s.io/api/core/v1). A release holds more than the manifests, so this is
// where there is no hope.
const maxRelease = 1 << 20

// stored returns how many bytes a release keeps of data at the very least: gzip,
// in base64 (helm.sh/helm/v4/pkg/storage/driver). Data that needs no compression
// to fit is not looked at.
func stored(data []byte) int {
	if len(data) <= maxRelease {
		return len(data)
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("fleet: " + err.Error()) // a buffer takes all that is written to it
	}
	return base64.StdEncoding.EncodedLen(out.Len())
}
