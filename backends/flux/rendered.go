package flux

import (
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// rendered returns the folder of a workload that was rendered. Flux applies it
// with the folder, CRDs and namespaces first
// (https://fluxcd.io/flux/components/kustomize/kustomizations), and knows nothing
// of the hooks of Helm.
func rendered(a *backends.Assignment, o options, _ []string) (delivery.Content, []diag.Diagnostic) {
	applied, left := kubernetes.WithoutHooks(delivery.Rendered(a))
	ds := delivery.Hooks(a, applied, left)
	if o.ServiceAccountName != "" {
		const field = "flux.serviceAccountName"
		d := diag.New(diag.UnsupportedManifests, "rendered manifests cannot be applied in the name of a service account: Flux itself applies the folder, which creates the namespace").
			On(field).At(a.Reconciler.Ref.At(field), "").At(a.Ref.At("render"), "").
			Hinting("let Flux fetch the manifests: remove render: true from the deployment target, or remove serviceAccountName")
		ds = append(ds, d)
	}
	return delivery.Content{Manifests: kept(forced(applied))}, append(ds, delivery.SameOnAll(a)...)
}

// forced marks the Jobs among hooks as to be replaced. Helm makes such a Job anew
// for each release, and Kubernetes lets nobody change one.
func forced(objects []model.Projected) []model.Projected {
	out := slices.Clone(objects)
	for i, o := range out {
		if kind, _ := o.Value.Lookup("kind"); len(o.Hooks) > 0 && kind.Kind() == model.String && kind.Text() == "Job" {
			out[i].Value = delivery.Annotate(o.Value, "kustomize.toolkit.fluxcd.io/force", "enabled")
		}
	}
	return out
}

// kept keeps objects that are to stay from being pruned, and from going with the
// Kustomization.
func kept(objects []model.Projected) []model.Projected {
	out := slices.Clone(objects)
	for i, o := range out {
		if kubernetes.Keeps(o.Value) {
			out[i].Value = delivery.Annotate(o.Value, "kustomize.toolkit.fluxcd.io/prune", "disabled")
		}
	}
	return out
}
