package argocd

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// health is the health check of Applications that Argo CD had until 1.8 and its
// documentation gives to restore it
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/health/#argocd-app).
//
//go:embed health.lua
var health string

// healthCheck tells how to give Argo CD the health check, in comments: it is one key
// of a ConfigMap that belongs to whoever installed Argo CD, and that an object of
// ours would replace wherever the stream is applied on the client's side.
func healthCheck(namespace string) []byte {
	text := fmt.Sprintf(`Argo CD waits for an Application, as dependsOn asks for, only where it has this
health check for them. Add the key to the ConfigMap argocd-cm by what installed Argo
CD, or by this command, which leaves the other keys alone:

  kubectl patch configmap argocd-cm -n %s --type merge --patch '
  data:
    resource.customizations.health.argoproj.io_Application: |
%s  '
`, namespace, indented(health, "      "))
	return []byte(indented(text, "# "))
}

// indented returns a text with a prefix before each line, without blanks at their
// ends.
func indented(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(prefix+line, " \n") + "\n")
	}
	return b.String()
}

// Bootstrap returns what makes Argo CD pull the cluster type's folder: the root
// Application and its AppProject, and in comments the health check that lets sync
// waves wait for Applications.
//
// Without gitops there is no root, and only the AppProjects of workloads are left to
// print.
func (argocd) Bootstrap(ct *backends.ClusterType, all []backends.Folder) ([]byte, []diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if ds = append(ds, checkTree(ct)...); diag.Errors(ds) {
		return nil, ds
	}
	if ct.GitOps == nil {
		ds := []diag.Diagnostic{delivery.NeedsGitOps(ct.Environment, "the root Application of cluster type "+ct.Name).
			At(delivery.Environment(ct.Environment, ""), "")}
		var docs []any
		for _, p := range workloadProjects(ct, o, read(o, all)) {
			docs = append(docs, p)
		}
		if docs == nil {
			return nil, ds
		}
		return yaml.Must(docs...), ds
	}
	return append(healthCheck(o.Namespace), yaml.Must(
		rootProject(ct, o),
		applicationObject(delivery.ClusterTypeMeta(delivery.RootName(ct), o.Namespace), application{
			Project:     delivery.RootName(ct),
			Source:      treeSource(ct, delivery.Path(ct.GitOps.Path, ct.Pulled())),
			Destination: destination{Server: inCluster, Namespace: o.Namespace},
			SyncPolicy:  o.rootSync(),
		}),
	)...), nil
}

// rootProject permits what may be in assignments.yaml: Applications and AppProjects
// beside Argo CD, and what makes Applications for each cluster.
func rootProject(ct *backends.ClusterType, o options) kubernetes.Object {
	return projectObject(delivery.ClusterTypeMeta(delivery.RootName(ct), o.Namespace), appProject{
		Description:                fmt.Sprintf("Root of cluster type %s in %s", ct.Name, ct.Environment),
		SourceRepos:                []string{ct.GitOps.URL()},
		Destinations:               []destination{{Server: inCluster, Namespace: o.Namespace}},
		NamespaceResourceWhitelist: []groupKind{{Group: "argoproj.io", Kind: "AppProject"}, applicationKind, setKind},
	})
}
