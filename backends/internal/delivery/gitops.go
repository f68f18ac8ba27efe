package delivery

import (
	"fmt"
	"path"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// RootName returns the name of the objects that deliver a cluster type's folder to the
// cluster.
func RootName(ct *backends.ClusterType) string { return rootName(ct.Environment, ct.Name) }

func rootName(environment, clusterType string) string {
	return model.ShortName("kalypso-"+environment+"-"+clusterType, model.MaxLabel)
}

// Reserved reports whether an object of the assignment with this name, before it is
// cut, may be taken for one of backends.AssignmentName or RootName.
func Reserved(a *backends.Assignment, name string) bool {
	prefix := a.Environment + "-" + a.ClusterType + "-"
	return strings.HasPrefix(name, prefix) && strings.HasSuffix(name, "-assignment") ||
		model.ShortName(name, model.MaxLabel) == rootName(a.Environment, a.ClusterType)
}

// Path returns a clean relative path, "." for the root. It never leads out of
// the root, whatever its elements.
func Path(elem ...string) string {
	clean := strings.TrimPrefix(path.Join("/", path.Join(elem...)), "/")
	if clean == "" {
		return "."
	}
	return clean
}

// FolderPath returns the path of an assignment's folder in the repository or the artifact of
// the environment's tree.
func FolderPath(ct *backends.ClusterType, deploymentTarget string) string {
	return Path(ct.GitOps.Path, ct.Dir(), deploymentTarget)
}

// NeedsGitOps returns the diagnostic that what needs the environment's gitops, which is
// missing.
func NeedsGitOps(environment, what string) diag.Diagnostic {
	return diag.New(diag.NeedsGitOps,
		fmt.Sprintf("%s needs the repository of environment %s", what, environment)).
		Hinting(fmt.Sprintf("say where the environment's tree is kept: environments: %s: gitops: "+
			"{repo: \"...\", branch: \"...\"}, or {oci: \"oci://...\"}", model.Label(environment)))
}

// NeedsRepository returns a diagnostic if the environment's tree is in an OCI registry, and puller
// pulls only from git repositories. It returns nil if the tree is in a git repository. The cluster
// type must have gitops.
func NeedsRepository(ct *backends.ClusterType, puller string) []diag.Diagnostic {
	if ct.GitOps.Repo != "" {
		return nil
	}
	return []diag.Diagnostic{diag.New(diag.BadSpec,
		fmt.Sprintf("%s pulls from git repositories, and the tree of environment %s is in an OCI "+
			"registry",
			puller, ct.Environment)).
		On("gitops.oci").At(Environment(ct.Environment, "gitops.oci"), "").At(ct.Reconciler.Ref, "").
		Hinting(`keep the environment's tree in a git repository: gitops: {repo: "...", branch: "..."}`)}
}

// NoBootstrap returns the diagnostic that only the platform team knows how the cluster
// type's folder is pulled.
func NoBootstrap(ct *backends.ClusterType) diag.Diagnostic {
	hint := "let the cluster's own reconciler pull the folder " + ct.Pulled() +
		" of the environment's tree"
	if g := ct.GitOps; g != nil {
		hint = fmt.Sprintf("let the cluster's own reconciler pull %s of branch %s of %s",
			Path(g.Path, ct.Pulled()), g.Branch, g.Repo)
	}
	return diag.New(diag.NoBootstrap,
		fmt.Sprintf("kalypso does not know what pulls the folder of cluster type %s", ct.Name)).
		At(ct.Reconciler.Ref, "").Hinting(hint)
}

// Environment refers to a value of an environment.
func Environment(name, path string) model.Ref {
	return model.Ref{Collection: "environments", Name: name, Path: path}
}
