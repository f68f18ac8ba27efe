package argocd

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// treeSource is a folder of the repository or the artifact that holds the
// environment's tree. Argo CD reads artifacts since 3.1
// (https://argo-cd.readthedocs.io/en/stable/user-guide/oci).
func treeSource(ct *backends.ClusterType, path string) source {
	revision := gitName("refs/heads/", ct.GitOps.Branch)
	if ct.GitOps.OCI != "" {
		revision = ct.GitOps.Tag
	}
	return source{RepoURL: ct.GitOps.URL(), TargetRevision: revision, Path: path}
}

// checkTree says why Argo CD would take another artifact than the one that is
// tagged: what can be a range of versions, such as 1.x, is one to it.
func checkTree(ct *backends.ClusterType) []diag.Diagnostic {
	if ct.GitOps == nil || ct.GitOps.OCI == "" {
		return nil
	}
	tag := ct.GitOps.Tag
	if _, err := semver.NewVersion(tag); err == nil {
		return nil
	}
	if _, err := semver.NewConstraint(tag); err != nil {
		return nil
	}
	return []diag.Diagnostic{diag.New(diag.BadSpec, fmt.Sprintf("Argo CD takes the tag %s for a range of versions", tag)).
		On("gitops.tag").At(delivery.Environment(ct.Environment, "gitops.tag"), "").At(ct.Reconciler.Ref, "").
		Hinting("choose a tag that is a name, such as the environment's")}
}
