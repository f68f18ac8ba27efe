package fleet

import (
	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Bootstrap returns what the management cluster needs to pull the cluster type's
// folder: a GitRepo that takes each assignment's folder to the clusters, and one in
// fleet-local that takes the folders' reconciler.yaml to the management cluster
// itself. Both know the cluster type's folder only, so they never change.
//
// The first finds folders by a pattern. It must not search the cluster type's
// folder as a whole: Fleet would make the files at its root a bundle too.
func (fleet) Bootstrap(ct *backends.ClusterType, _ []backends.Folder) ([]byte, []diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if !diag.Errors(ds) {
		ds = append(ds, checkGitOps(ct)...)
	}
	if diag.Errors(ds) {
		return nil, ds
	}
	g := ct.GitOps
	root := delivery.Path(g.Path, ct.Dir())
	pull := gitRepo{
		Repo: g.Repo, Branch: g.Branch,
		ClientSecretName: o.OfTree(&model.GitOps{Repo: g.Repo}), PollingInterval: o.PollingInterval, CorrectDrift: o.drift(),
	}
	clusters, management := pull, pull
	clusters.Paths = []string{root + "/*"}
	clusters.Targets = []target{{Name: ct.Name, ClusterSelector: o.selector(ct.Environment, ct.Name)}}
	management.Bundles = []bundlePath{{Base: root}} // of the local cluster, where no targets are given
	return yaml.Must(
		gitRepoObject(delivery.ClusterTypeMeta(delivery.RootName(ct), o.Namespace), clusters),
		gitRepoObject(delivery.ClusterTypeMeta(managementName(ct), localNamespace), management),
	), ds
}

// managementName returns the name of the GitRepo of the management cluster. It is
// not RootName, for a cluster type may be the management cluster itself.
func managementName(ct *backends.ClusterType) string {
	return model.ShortName(delivery.RootName(ct)+"-management", model.MaxLabel)
}

// checkGitOps reports what Fleet cannot pull the tree from.
func checkGitOps(ct *backends.ClusterType) []diag.Diagnostic {
	refuse := func(field, message, hint string) []diag.Diagnostic {
		return []diag.Diagnostic{diag.New(diag.BadSpec, message).On("gitops."+field).
			At(delivery.Environment(ct.Environment, "gitops."+field), "").At(ct.Reconciler.Ref, "").Hinting(hint)}
	}
	switch g := ct.GitOps; {
	case g == nil:
		return []diag.Diagnostic{delivery.NeedsGitOps(ct.Environment, "the root GitRepo of cluster type "+ct.Name).
			At(delivery.Environment(ct.Environment, ""), "")}
	case g.Repo == "":
		return delivery.NeedsRepository(ct, "Fleet")
	case local(g.Repo):
		return refuse("repo", "to Fleet "+g.Repo+" is a folder of its own pods",
			"give the URL by which Fleet reaches the repository")
	case pattern(delivery.Path(g.Path)):
		return refuse("path", "Fleet would read the path "+g.Path+" as a pattern",
			`keep the tree in a folder without *, ?, [ and \ in its path`)
	}
	return nil
}
