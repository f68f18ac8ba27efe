package kubernetes_test

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/model"
)

func fetched(bounds *model.Workspace) *backends.Assignment {
	return &backends.Assignment{
		Environment: "dev", ClusterType: "large", DeploymentTarget: "shop-live", Workspace: "shop", Namespace: "shop",
		Manifests: model.Manifests{Git: &model.Git{Repo: "https://git.example.com/shop"}}, Bounds: bounds,
		Reconciler: backends.Spec{Ref: model.Ref{Collection: "reconcilers", Name: "flux"}},
	}
}

func TestAccess(t *testing.T) {
	w := &model.Workspace{Name: "shop"}
	w.Objects.Namespaced = model.Patterns{"ConfigMap", "apps/*", "networking.k8s.io/Ingress", "gateway.networking.k8s.io/Gateway"}
	access, ds := kubernetes.AccessOf(fetched(w), "shop-live", "flux-system")
	if access == nil || len(ds) > 0 {
		t.Fatal(access, ds)
	}
	file, objects := access.File(fetched(w))
	const want = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: shop-live.workload
  namespace: flux-system
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/shop-live
automountServiceAccountToken: false
`
	got := string(file.Data)
	if !strings.HasPrefix(got, want) || len(objects) != 3 {
		t.Errorf("got %d objects:\n%s", len(objects), got)
	}
	for _, resource := range []string{"configmaps", `"*"`, "ingresses", "gateways"} {
		if !strings.Contains(got, "- "+resource+"\n") {
			t.Errorf("no rule is for %s:\n%s", resource, got)
		}
	}
	if strings.Contains(got, "prune") {
		t.Errorf("it stays when the assignment goes:\n%s", got)
	}
	w.Namespaces = model.Patterns{"monitoring"}
	w.Objects.ClusterScoped = model.Patterns{"example.com/Zone"}
	if access, ds = kubernetes.AccessOf(fetched(w), "shop-live", "flux-system"); len(ds) > 0 {
		t.Fatal(ds)
	}
	file, objects = access.File(fetched(w))
	if got := string(file.Data); len(objects) != 7 || strings.Count(got, "kustomize.toolkit.fluxcd.io/prune: disabled") != 7 {
		t.Errorf("got %d objects:\n%s", len(objects), got)
	}

	// An existing namespace may be changed only if the workspace may be in it.
	w.Objects.ClusterScoped = model.Patterns{"Namespace"}
	if access, ds = kubernetes.AccessOf(fetched(w), "shop-live", "flux-system"); len(ds) > 0 {
		t.Fatal(ds)
	}
	file, _ = access.File(fetched(w))
	if got := string(file.Data); !strings.Contains(got, "  - namespaces\n  verbs:\n  - delete\n  - patch\n  - update\n  resourceNames:\n  - shop\n  - monitoring\n") ||
		!strings.Contains(got, "  - namespaces\n  verbs:\n  - create\n  - get\n  - list\n  - watch\n") {
		t.Errorf("got:\n%s", got)
	}
}

// The reconciler applies some objects itself, and a Role cannot express some bounds.
func TestNoAccess(t *testing.T) {
	for _, c := range []struct {
		namespaces, namespaced, clusterScoped model.Patterns
		bad                                   bool
	}{
		{namespaces: model.Patterns{"*"}, namespaced: model.Patterns{"*"}},
		{namespaces: model.Patterns{"*", "!kube-*"}, namespaced: model.Patterns{"*"}},
		{namespaces: model.Patterns{"team-*"}, namespaced: model.Patterns{"ConfigMap"}, bad: true},
		{namespaced: model.Patterns{"*", "!Secret"}, bad: true},
		{namespaced: model.Patterns{"apps/D*"}, bad: true},
		{clusterScoped: model.Patterns{"*"}, bad: true},
		{clusterScoped: model.Patterns{"rbac.authorization.k8s.io/*"}, bad: true},
		{clusterScoped: model.Patterns{"Secret"}, bad: true}, // a ClusterRole would allow the Secrets of all namespaces
		{clusterScoped: model.Patterns{"rbac.authorization.k8s.io/Role"}, bad: true},
	} {
		w := &model.Workspace{Name: "shop", Namespaces: c.namespaces}
		w.Objects.Namespaced, w.Objects.ClusterScoped = c.namespaced, c.clusterScoped
		if access, ds := kubernetes.AccessOf(fetched(w), "shop-live", "flux-system"); access != nil || len(ds) > 0 != c.bad {
			t.Errorf("%+v: %v %v", c, access, ds)
		}
	}

	// The build has checked rendered objects, and excluded names are left out.
	w := &model.Workspace{Name: "shop", Namespaces: model.Patterns{"team-*"}}
	w.Objects.Namespaced = model.Patterns{"ConfigMap"}
	rendered := fetched(w)
	rendered.Render = true
	if access, ds := kubernetes.AccessOf(rendered, "shop-live", "flux-system"); access != nil || len(ds) > 0 {
		t.Error(access, ds)
	}
	w.Namespaces = model.Patterns{"monitoring", "logging", "!log*"}
	access, ds := kubernetes.AccessOf(fetched(w), "shop-live", "flux-system")
	if access == nil || len(ds) > 0 {
		t.Fatal(access, ds)
	}
	file, _ := access.File(fetched(w))
	if got := string(file.Data); !strings.Contains(got, "namespace: monitoring\n") || strings.Contains(got, "namespace: logging\n") {
		t.Errorf("got:\n%s", got)
	}
}
