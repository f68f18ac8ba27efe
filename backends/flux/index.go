package flux

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Index returns README.md, kustomization.yaml and, with gitops, assignments.yaml. It has one
// Kustomization per folder, which depends on the Kustomizations of folders that must be
// ready first. If clusters have values of their own, Index also returns a folder for each of
// them.
func (flux) Index(ct *backends.ClusterType, folders []backends.Folder) ([]backends.File,
	[]diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if diag.Errors(ds) {
		return nil, ds
	}
	variables, ds := variablesOf(ct.Clusters, "")
	if ds = append(ds, missing(ct, folders, variables)...); diag.Errors(ds) {
		return nil, ds
	}
	files := []backends.File{kubernetes.README(ct, folders)}
	if len(variables) > 0 && ct.GitOps != nil && !ct.Entries {
		for i := range ct.Clusters {
			folder := clustersFolder + "/" + ct.Clusters[i].Name + "/"
			list, values := kubernetes.Kustomization([]string{valuesFile}),
				clusterValues(ct, o, &ct.Clusters[i], variables)
			list.Path, values.Path = folder+list.Path, folder+values.Path
			files = append(files, list, values)
		}
	}
	if ct.GitOps == nil || len(folders) == 0 {
		return delivery.Sorted(append(files, delivery.FolderList(folders))), nil
	}
	var assignments []any
	var owners []delivery.Owner
	for _, f := range folders {
		object := assignment(ct, o, f)
		assignments = append(assignments, object)
		owners = append(owners, delivery.Owner{
			Name: object.Metadata.Name, Of: "the assignment of " + f.DeploymentTarget,
			Assignment: delivery.FolderID(ct, f.DeploymentTarget),
		})
	}
	ds = append(delivery.Collisions(ct, owners), unready(ct, folders)...)
	if diag.Errors(ds) {
		return nil, ds
	}
	files = append(files,
		backends.File{Path: delivery.AssignmentsFile, Data: yaml.Must(assignments...)},
		kubernetes.Kustomization([]string{delivery.AssignmentsFile}))
	return delivery.Sorted(files), ds
}

// assignment returns the Kustomization that applies a folder. It waits for the objects in the
// folder, which are ready when the workload is. It acts as Flux itself, and not as the reconciler's
// service account. That account is for workloads, and may lack the permission to create namespaces.
func assignment(ct *backends.ClusterType, o options, f backends.Folder) kubernetes.Object {
	workload := sharedOf(f)
	spec := kustomization{
		Interval: o.Interval, RetryInterval: o.RetryInterval, Timeout: o.Timeout,
		SourceRef: treeRef(ct),
		Path:      dotSlash(delivery.FolderPath(ct, f.DeploymentTarget)), Prune: o.Prune,
		Wait:       !(workload.Rendered && workload.NoWait),
		Decryption: workload.Decryption.object(),
	}
	if len(workload.Variables) > 0 {
		spec.PostBuild = &postBuild{SubstituteFrom: []kindReference{{Kind: "ConfigMap",
			Name: clusterConfig(ct.Environment, ct.Name)}}}
	}
	for _, target := range f.DependsOn {
		spec.DependsOn = append(spec.DependsOn,
			reference{backends.AssignmentName(ct.Environment, ct.Name, target)})
	}
	return kubernetes.Object{APIVersion: kustomizeAPI, Kind: "Kustomization",
		Metadata: delivery.AssignmentMeta(ct, f, o.Namespace), Spec: spec}
}

// unready warns about dependencies that Flux treats as ready once they are applied.
func unready(ct *backends.ClusterType, folders []backends.Folder) []diag.Diagnostic {
	hasty := map[string]bool{}
	for _, f := range folders {
		hasty[f.DeploymentTarget] = sharedOf(f).NoWait
	}
	var ds []diag.Diagnostic
	for _, f := range folders {
		for _, target := range f.DependsOn {
			if !hasty[target] {
				continue
			}
			d := diag.New(diag.NotWaitedFor,
				fmt.Sprintf("%s waits until %s is applied, not until it is ready: the reconciler "+
					"has wait: false", f.DeploymentTarget, target)).
				On("flux.wait").At(ct.Reconciler.Ref.At("flux.wait"), "").
				Hinting("let the reconciler wait").For(delivery.FolderID(ct, f.DeploymentTarget))
			ds = append(ds, d)
		}
	}
	return ds
}

// Bootstrap returns the source of the environment's tree, a GitRepository or an OCIRepository, and
// the Kustomization of the cluster type's folder. The Kustomization does not wait: one assignment
// that is not ready must not make all of them look so. If clusters have values of their own,
// another Kustomization first applies the values of the one cluster.
func (flux) Bootstrap(ct *backends.ClusterType, _ []backends.Folder) ([]byte, []diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	switch {
	case diag.Errors(ds):
		return nil, ds
	case ct.GitOps == nil:
		return nil, []diag.Diagnostic{delivery.NeedsGitOps(ct.Environment,
			"the root reconciler of cluster type "+ct.Name).
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

// valuesOn returns the Kustomization that applies a cluster's own values. It returns nil if the
// clusters have no such values, or if their entries contain them.
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

// treeSource returns the source of the environment's tree. A kalypso artifact has one layer,
// which Flux finds without its media type.
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
			At(delivery.Environment(ct.Environment, "gitops.repo"),
				"").Hinting("give the repository's https or ssh URL")}
	}
	spec := gitSpec(o, url, &model.Git{Branch: g.Branch}, o.OfTree(g))
	spec.Ignore = ignored(ct)
	source.Spec = spec
	return source, nil
}

// ignored returns rules, in the form of .gitignore, for everything that a cluster does not need.
// They keep its entry, and the folders of its cluster type and of all the type's classes. A commit
// may change the class of the cluster. If the cluster has no entry, ignored returns "". Otherwise
// it would change the sources of clusters that pull only their type's own folder.
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

// gitignoreEscapes escapes the characters of a name that would make it a pattern.
var gitignoreEscapes = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, ` `, `\ `)
