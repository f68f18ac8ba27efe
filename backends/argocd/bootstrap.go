package argocd

import (
	_ "embed"
	"fmt"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// health is the health check of Applications that Argo CD had until 1.8 and its
// documentation gives to restore it
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/health/#argocd-app).
//
//go:embed health.lua
var health string

// configMap is Argo CD's own configuration, of which kalypso sets one key.
type configMap struct {
	APIVersion string              `yaml:"apiVersion"`
	Kind       string              `yaml:"kind"`
	Metadata   kubernetes.Metadata `yaml:"metadata"`
	Data       map[string]string   `yaml:"data"`
}

// Bootstrap returns what makes Argo CD pull the cluster type's folder: the
// health check that lets sync waves wait for Applications, the root
// Application, and its AppProject. The ConfigMap argocd-cm holds only the key of
// the health check, so the stream is to be applied on the server's side
// (kubectl apply --server-side), which leaves the other keys alone. It is not
// kalypso's, so it carries no label that says so.
//
// Without gitops there is no root, and only the AppProjects of workspaces are
// left to print.
func (argocd) Bootstrap(ct *backends.ClusterType, all []backends.Folder) ([]byte, []diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if ds = append(ds, checkTree(ct)...); diag.Errors(ds) {
		return nil, ds
	}
	if ct.GitOps == nil {
		ds := []diag.Diagnostic{delivery.NeedsGitOps(ct.Environment, "the root Application of cluster type "+ct.Name).
			At(delivery.Environment(ct.Environment, ""), "")}
		var docs []any
		for _, p := range workspaceProjects(ct, o, read(o, all)) {
			docs = append(docs, p)
		}
		if docs == nil {
			return nil, ds
		}
		return delivery.YAML(docs...), ds
	}
	return delivery.YAML(
		configMap{
			APIVersion: "v1", Kind: "ConfigMap",
			Metadata: kubernetes.Metadata{
				Name: "argocd-cm", Namespace: o.Namespace,
				Labels: map[string]string{"app.kubernetes.io/name": "argocd-cm", "app.kubernetes.io/part-of": "argocd"},
			},
			Data: map[string]string{"resource.customizations.health.argoproj.io_Application": health},
		},
		rootProject(ct, o),
		applicationObject(delivery.ClusterTypeMeta(delivery.RootName(ct), o.Namespace), application{
			Project:     delivery.RootName(ct),
			Source:      treeSource(ct, delivery.Path(ct.GitOps.Path, ct.Name)),
			Destination: destination{Server: inCluster, Namespace: o.Namespace},
			SyncPolicy:  o.rootSync(),
		}),
	), nil
}

// rootProject permits what is in assignments.yaml: Applications and AppProjects
// beside Argo CD, and what makes Applications for each cluster.
func rootProject(ct *backends.ClusterType, o options) kubernetes.Object {
	kinds := []groupKind{{Group: "argoproj.io", Kind: "AppProject"}, applicationKind}
	if o.eachCluster() {
		kinds = append(kinds, setKind)
	}
	return projectObject(delivery.ClusterTypeMeta(delivery.RootName(ct), o.Namespace), appProject{
		Description:                fmt.Sprintf("Root of cluster type %s in %s", ct.Name, ct.Environment),
		SourceRepos:                []string{ct.GitOps.URL()},
		Destinations:               []destination{{Server: inCluster, Namespace: o.Namespace}},
		NamespaceResourceWhitelist: kinds,
	})
}
