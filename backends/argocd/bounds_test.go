package argocd_test

import (
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/argocd"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// A project permits what a workspace allows, and nothing else: in Argo CD a namespace with a !
// permits all other namespaces.
func TestBoundsOfProjects(t *testing.T) {
	kinds := []struct{ text, group, kind string }{
		{"Secret", "", "Secret"}, {"apps/Deployment", "apps", "Deployment"}, {"apps.example.com/Deployment", "apps.example.com", "Deployment"},
		{"rbac.authorization.k8s.io/RoleBinding", "rbac.authorization.k8s.io", "RoleBinding"},
	}
	for _, namespaces := range []model.Patterns{
		{}, {"own-*"}, {"own-*", "!own-bad"}, {"argo*"}, {"*"}, {"*", "!kube-*"}, {"*", "!argocd"}, {"own-a", "own-a", "dev-large-web-main"}, {"!kube-*"},
	} {
		for _, objects := range []model.Patterns{
			{}, {"*"}, {"Secret"}, {"apps/*"}, {"apps*"}, {"*", "!*Binding"}, {"*/*"}, {"*", "!rbac*"}, {"*.example.com/*", "*eployment"}, {"*", "!apps/*"}, {"*e*t*"},
		} {
			w := &model.Workspace{Name: "team", Namespaces: namespaces}
			w.Objects.Namespaced, w.Objects.ClusterScoped = objects, objects
			tree := bt.Build(t, argocd.New(), bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "web/main", Manifests: bt.Git, Bounds: w}}})
			p := parse(t, backends.File{Path: "assignments.yaml", Data: tree.Files["assignments.yaml"]}).projects["dev.large.web-main.workload"]
			seen := map[place]bool{}
			for _, d := range p.Spec.Destinations {
				if seen[d] {
					t.Errorf("%q: %+v is there twice, which Argo CD refuses", namespaces, d)
				}
				seen[d] = true
			}
			for _, k := range kinds {
				if got, want := p.permitsObject(backends.Object{Group: k.group, Kind: k.kind, Name: "x"}, place{Server: inCluster}), objects.Allow(k.text); got != want {
					t.Errorf("%q: %s for the cluster: %v", objects, k.text, got)
				}
				for _, namespace := range []string{"dev-large-web-main", "own-a", "own-bad", "orders", "kube-system", "argocd", "argo"} {
					want := objects.Allow(k.text) && namespace != "argocd" && (namespace == "dev-large-web-main" || namespaces.Allow(namespace))
					if got := p.permitsObject(backends.Object{Group: k.group, Kind: k.kind, Name: "x", Namespace: namespace}, place{Server: inCluster}); got != want {
						t.Errorf("%q in %q: %s in %s: %v", objects, namespaces, k.text, namespace, got)
					}
				}
			}
		}
	}
}

// A workspace that may bring Namespaces brings those that its objects may be in.
func TestNamespacesOfProjects(t *testing.T) {
	w := &model.Workspace{Name: "team", Namespaces: model.Patterns{"own-*", "!own-bad"}}
	w.Objects.ClusterScoped = model.Patterns{"Namespace"}
	tree := bt.Build(t, argocd.New(), bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "web/main", Manifests: bt.Git, Bounds: w}}})
	p := parse(t, backends.File{Path: "assignments.yaml", Data: tree.Files["assignments.yaml"]}).projects["dev.large.web-main.workload"]
	for name, want := range map[string]bool{"own-a": true, "orders": false, "kube-system": false} {
		if got := p.permitsObject(backends.Object{Kind: "Namespace", Name: name}, place{Server: inCluster}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Argo CD deletes no Application before the last attempt of its sync, so that each has one, after an
// hour, whoever declared its workspace. The root has none: it waits for what others depend on.
func TestRetries(t *testing.T) {
	for _, options := range []string{defaults, remote, each, byHand} {
		for _, bounds := range []*model.Workspace{nil, {Name: "declared"}, {Name: "#Tenant"}, {Name: "#Team"}} {
			tree := bt.Build(t, argocd.New(), bt.Platform{Options: options, GitOps: bt.GitOps, Clusters: []model.Cluster{cluster(t, "edge-1", "")}, Targets: []bt.Target{
				{Name: "fetched/main", Manifests: bt.Git, Bounds: bounds},
				{Name: "rendered/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, bt.Rendered...), Bounds: bounds},
			}})
			all := sync(t, tree).applications
			if len(all) < 4 {
				t.Fatalf("%s: %v", options, all)
			}
			for name, app := range all {
				want := 24
				switch {
				case name == "kalypso-dev-large":
					want = -1
				case options == byHand && name == "dev-large-fetched-main":
					want = 0 // Argo CD's own, for who syncs
				}
				if got := app.Spec.SyncPolicy.Retry.Limit; got != want {
					t.Errorf("%s: %s of %+v is tried again %d times, not %d", options, name, bounds, got, want)
				}
			}
		}
	}
}
