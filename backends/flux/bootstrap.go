package flux

import (
	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// Bootstrap returns the GitRepository of the environment's tree and the
// Kustomization of the cluster type's folder. The Kustomization does not wait:
// one assignment that is not ready must not make all of them look so.
func (flux) Bootstrap(ct *backends.ClusterType, _ []backends.Folder) ([]byte, []diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	switch {
	case diag.Errors(ds):
		return nil, ds
	case ct.GitOps == nil:
		return nil, []diag.Diagnostic{delivery.NeedsGitOps(ct.Environment, "the root reconciler of cluster type "+ct.Name).
			At(delivery.Environment(ct.Environment, ""), "")}
	}
	url, ok := gitURL(ct.GitOps.Repo)
	if !ok {
		return nil, []diag.Diagnostic{diag.New(diag.BadSpec, "Flux fetches git repositories by https, http or ssh, not "+ct.GitOps.Repo).
			At(delivery.Environment(ct.Environment, "gitops.repo"), "")}
	}
	meta := delivery.ClusterTypeMeta(delivery.RootName(ct), o.Namespace)
	return delivery.YAML(
		kubernetes.Object{APIVersion: sourceAPI, Kind: gitKind, Metadata: meta, Spec: gitRepository{
			Interval: o.Interval, Timeout: o.sourceTimeout(), URL: url,
			Ref:       gitRef{Branch: ct.GitOps.Branch},
			SecretRef: referenceTo(o.SecretRef),
		}},
		kubernetes.Object{APIVersion: kustomizeAPI, Kind: "Kustomization", Metadata: meta, Spec: kustomization{
			Interval: o.Interval, RetryInterval: o.RetryInterval, Timeout: o.Timeout,
			SourceRef: kindReference{Kind: gitKind, Name: meta.Name},
			Path:      dotSlash(ct.GitOps.Path, ct.Name), Prune: o.Prune,
		}},
	), nil
}
