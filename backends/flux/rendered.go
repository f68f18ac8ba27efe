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
// (https://fluxcd.io/flux/components/kustomize/kustomizations), or apart, by a
// Kustomization of its own, and knows nothing of the hooks of Helm and Argo CD.
//
// Flux deletes what a Kustomization no longer has right after it has applied the rest, unless
// the object says otherwise by then. Objects that move to another Kustomization would be
// deleted before that applies them: handover marks them first.
func rendered(a *backends.Assignment, o options, _ []variable) (delivery.Content, []diag.Diagnostic) {
	applied, left := kubernetes.WithoutHooks(delivery.Rendered(a))
	content := delivery.Content{Manifests: kept(forced(applied))}
	ordinary, _ := kubernetes.Split(applied, isHook)
	ds := append(delivery.Hooks(a, ordinary, left), delivery.SameOnAll(a)...)
	switch {
	case o.Rendered == "apart":
		problems := apart(a, o, &content)
		return content, append(ds, problems...)
	case o.ServiceAccountName != "":
		const field = "flux.serviceAccountName"
		d := diag.New(diag.UnsupportedManifests, "rendered manifests cannot be applied in the name of "+
			"a service account: Flux itself applies the folder, which creates the namespace").
			On(field).At(a.Reconciler.Ref.At(field), "").At(a.Ref.At("render"), "").
			Hinting(`let Flux apply them apart: rendered: "apart" on the reconciler, or remove serviceAccountName`)
		ds = append(ds, d)
	case o.Rendered == "handover":
		for i := range content.Manifests {
			content.Manifests[i].Value = delivery.Annotate(content.Manifests[i].Value, pruneAnnotation, "disabled")
		}
	}
	return content, ds
}

// apart lets a Kustomization of their own apply the manifests, which the folder's then only
// brings: as the service account that the workspace or the reconciler names, or as one that
// may do what the workspace may. Where there is none, they are applied with the folder.
func apart(a *backends.Assignment, o options, content *delivery.Content) []diag.Diagnostic {
	name, ds := nameOf(a, o)
	if a.GitOps == nil {
		ds = append(ds, delivery.NeedsGitOps(a.Environment,
			"what Flux applies apart from the folder").At(a.Reconciler.Ref.At("flux.rendered"), ""))
	}
	if diag.Errors(ds) {
		return ds
	}
	access, ds := delivery.AccessOf(a, &o.ServiceAccountName, name, o.Namespace)
	if diag.Errors(ds) || o.ServiceAccountName == "" {
		return ds
	}
	ct := &backends.ClusterType{Environment: a.Environment, Name: a.ClusterType, Folder: a.Folder, GitOps: a.GitOps}
	content.Access, content.Apart = access, "manifests"
	content.Reconciler = []kubernetes.Object{{APIVersion: kustomizeAPI, Kind: "Kustomization",
		Metadata: kubernetes.Meta(a, name, o.Namespace), Spec: kustomization{
			Interval: o.Interval, RetryInterval: o.RetryInterval, Timeout: o.Timeout,
			ServiceAccountName: o.ServiceAccountName,
			SourceRef:          treeRef(ct),
			Path:               dotSlash(delivery.FolderPath(ct, a.DeploymentTarget), content.Apart),
			Prune:              o.Prune, Wait: o.Wait,
			Decryption: o.Decryption.object(),
		}}}
	return ds
}

// isHook says whether an object is a hook of a chart, or one of Argo CD's.
func isHook(o model.Projected) bool { return len(o.Hooks) > 0 || kubernetes.IsArgoHook(o) }

// forced marks the Jobs among hooks as to be replaced. Helm makes such a Job anew
// for each release, Argo CD for each sync, and Kubernetes lets nobody change one.
func forced(objects []model.Projected) []model.Projected {
	out := slices.Clone(objects)
	for i, o := range out {
		if kind, _ := o.Value.Lookup("kind"); isHook(o) && kind.Kind() == model.String && kind.Text() == "Job" {
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
			out[i].Value = delivery.Annotate(o.Value, pruneAnnotation, "disabled")
		}
	}
	return out
}

// pruneAnnotation keeps an object on the cluster, with disabled, when it is no longer in what
// a Kustomization applies.
const pruneAnnotation = "kustomize.toolkit.fluxcd.io/prune"
