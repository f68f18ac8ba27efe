package flux

import (
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Bootstrap returns the source of the environment's tree, a GitRepository or an
// OCIRepository, and the Kustomization of the cluster type's folder. The
// Kustomization does not wait: one assignment that is not ready must not make all
// of them look so. Where clusters have values of their own, another Kustomization
// brings those of the one cluster there first.
func (flux) Bootstrap(ct *backends.ClusterType, _ []backends.Folder) ([]byte, []diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	switch {
	case diag.Errors(ds):
		return nil, ds
	case ct.GitOps == nil:
		return nil, []diag.Diagnostic{delivery.NeedsGitOps(ct.Environment, "the root reconciler of cluster type "+ct.Name).
			At(delivery.Environment(ct.Environment, ""), "")}
	}
	source, ds := treeSource(ct, o)
	values, problems := valuesOn(ct, o)
	if ds = append(ds, problems...); diag.Errors(ds) {
		return nil, ds
	}
	root := kustomization{
		Interval: o.Interval, RetryInterval: o.RetryInterval, Timeout: o.Timeout,
		SourceRef: treeRef(ct),
		Path:      dotSlash(ct.GitOps.Path, ct.Pulled()), Prune: o.Prune,
	}
	docs := []any{source}
	if values != nil {
		docs = append(docs, *values)
		root.DependsOn = []reference{{values.Metadata.Name}}
	}
	docs = append(docs, kubernetes.Object{APIVersion: kustomizeAPI, Kind: "Kustomization",
		Metadata: source.Metadata, Spec: root})
	return yaml.Must(docs...), nil
}

// valuesOn returns the Kustomization that brings a cluster its own values; nil
// where the clusters have none.
func valuesOn(ct *backends.ClusterType, o options) (*kubernetes.Object, []diag.Diagnostic) {
	variables, ds := variablesOf(ct.Clusters, "")
	switch {
	case diag.Errors(ds) || len(variables) == 0 || ct.Entries: // its entry has them
		return nil, ds
	case ct.Cluster == "":
		return nil, []diag.Diagnostic{diag.New(diag.ClusterValues,
			"each cluster of cluster type "+ct.Name+" has values of its own, and pulls a folder of its own").
			At(ct.Ref, "").Hinting("print what one of them needs: kalypso bootstrap cluster " +
			ct.Environment + "/" + ct.Clusters[0].Name)}
	}
	return &kubernetes.Object{
		APIVersion: kustomizeAPI, Kind: "Kustomization",
		Metadata: delivery.ClusterTypeMeta(clusterConfig(ct.Environment, ct.Name), o.Namespace),
		Spec: kustomization{
			Interval: o.Interval, RetryInterval: o.RetryInterval, Timeout: o.Timeout,
			SourceRef: treeRef(ct),
			Path:      dotSlash(ct.GitOps.Path, ct.Dir(), clustersFolder, ct.Cluster), Prune: true,
		},
	}, nil
}

// treeRef refers to the source of the environment's tree.
func treeRef(ct *backends.ClusterType) kindReference {
	kind := gitKind
	if ct.GitOps.OCI != "" {
		kind = ociKind
	}
	return kindReference{Kind: kind, Name: delivery.RootName(ct)}
}

// treeSource returns the source of the environment's tree. An artifact of
// kalypso's has one layer, which Flux takes without its media type.
func treeSource(ct *backends.ClusterType, o options) (kubernetes.Object, []diag.Diagnostic) {
	g, ref := ct.GitOps, treeRef(ct)
	source := kubernetes.Object{APIVersion: sourceAPI, Kind: ref.Kind,
		Metadata: delivery.ClusterTypeMeta(ref.Name, o.Namespace)}
	if g.OCI != "" {
		spec := ociSpec(o, &model.OCI{URL: g.OCI, Tag: g.Tag}, o.OfTree(g))
		spec.Ignore = ignored(ct)
		source.Spec = spec
		return source, nil
	}
	url, ok := gitURL(g.Repo)
	if !ok {
		return source, []diag.Diagnostic{diag.New(diag.BadSpec, "Flux fetches git repositories by "+
			"https, http or ssh, not "+g.Repo).
			At(delivery.Environment(ct.Environment, "gitops.repo"), "").Hinting("give the repository's https or ssh URL")}
	}
	spec := gitSpec(o, url, &model.Git{Branch: g.Branch}, o.OfTree(g))
	spec.Ignore = ignored(ct)
	source.Spec = spec
	return source, nil
}

// ignored returns rules, in the form of .gitignore, that leave of the tree a cluster's entry,
// and the folders of its cluster type and of all classes of that: which class it is of
// changes by a commit. "" where it has no entry, and a source of the type's own folder alone
// would be another than it was.
func ignored(ct *backends.ClusterType) string {
	if !ct.Entries {
		return ""
	}
	var rules []string
	dir := ""
	for _, part := range strings.Split(delivery.Path(ct.GitOps.Path, ct.Pulled()), "/") {
		rules = append(rules, dir+"/*")
		dir += "/" + gitignoreEscapes.Replace(part)
		rules = append(rules, "!"+dir)
	}
	top := strings.TrimSuffix(dir, "/"+ct.Pulled())
	rules = append(rules, "!"+top+"/"+ct.Name, "!"+top+"/"+ct.Name+".*")
	return strings.Join(rules, "\n") + "\n"
}

// gitignoreEscapes makes a name of what would be a pattern.
var gitignoreEscapes = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, ` `, `\ `)
