package argocd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/argocd"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// A project permits only the objects that a workspace allows. In Argo CD, a namespace with a
// ! permits all other namespaces.
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

// A workspace that may create Namespaces may create only the namespaces that its objects may be in.
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

// Argo CD does not delete an Application before the last attempt of its sync. Every Application
// therefore has a last attempt, after an hour, whoever declared its workspace. The root Application
// has none, because it waits for Applications that others depend on.
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
					want = 0 // Argo CD's own, since people sync by hand
				}
				if got := app.Spec.SyncPolicy.Retry.Limit; got != want {
					t.Errorf("%s: %s of %+v is tried again %d times, not %d", options, name, bounds, got, want)
				}
			}
		}
	}
}

// The project of a folder permits its destination, its workspace's bounds and the
// declarations of its namespace service, whatever the folder contains, and a namespace of
// any name.
func TestProjectsOfFolders(t *testing.T) {
	const declared = `{"name": "x", "namespaces": ["monitoring"], "objects": {"clusterScoped": ["rbac.authorization.k8s.io/ClusterRole"]}}`
	here, other := place{Server: inCluster}, place{Server: "https://far.example.test"}
	tenant, team := profile("tenant", model.Patterns{"own-*"}, model.Patterns{"scheduling.k8s.io/PriorityClass"}), profile("#Team", nil, nil)
	object := func(group, kind, namespace string) backends.Object {
		return backends.Object{Group: group, Kind: kind, Namespace: namespace, Name: "x"}
	}
	clusterRole, webhook := object("rbac.authorization.k8s.io", "ClusterRole", ""), object("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "")
	for name, c := range map[string]struct {
		options, service string
		of               *model.Workspace
		object           backends.Object
		at               place
		want             bool
	}{
		"its namespace":                    {defaults, "", tenant, object("apps", "Deployment", "dev-large-web-main"), here, true},
		"its namespace elsewhere":          {defaults, "", tenant, object("apps", "Deployment", "dev-large-web-main"), other, false},
		"its namespace on another cluster": {remote, "", tenant, object("apps", "Deployment", "dev-large-web-main"), here, false},
		"that of its workspace":            {defaults, "", tenant, object("", "Secret", "own-a"), here, true},
		"its namespace, taken away":        {defaults, "", profile("odd", model.Patterns{"*", "!dev-*", "!argo*"}, model.Patterns{"*", "!Name*"}), object("", "Secret", "dev-large-web-main"), here, true},
		"any namespace, taken away":        {defaults, "", profile("odd", model.Patterns{"*"}, model.Patterns{"*", "!Name*"}), object("", "Namespace", ""), here, true},
		"that of another":                  {defaults, "", tenant, object("", "Secret", "dev-large-db-main"), here, false},
		"that of Kubernetes":               {defaults, "", team, object("", "Secret", "kube-system"), here, false},
		"any of a team":                    {defaults, "", team, object("", "Secret", "shared"), here, true},
		"that of the namespace service":    {defaults, declared, tenant, object("", "ConfigMap", "monitoring"), here, true},
		"beside Argo CD":                   {defaults, "", tenant, object("argoproj.io", "Application", "argocd"), here, true},
		"beside Argo CD, of far":           {remote, "", tenant, object("argoproj.io", "Application", "argocd"), here, false},
		"beside Argo CD, of an inventory":  {each, "", tenant, object("argoproj.io", "Application", "argocd"), other, false},
		"a former namespace":               {defaults, "", tenant, object("", "Namespace", ""), here, true},
		"a kind of its workspace":          {defaults, "", tenant, object("scheduling.k8s.io", "PriorityClass", ""), here, true},
		"a kind of others":                 {defaults, "", tenant, clusterRole, here, false},
		"a kind of the namespace service":  {defaults, declared, tenant, clusterRole, here, true},
		"a kind of a team":                 {defaults, "", team, clusterRole, here, true},
		"no kind of a team":                {defaults, "", team, webhook, here, false},
	} {
		target := bt.Target{Name: "web/main", Manifests: bt.Git, Bounds: c.of, Service: c.service}
		tree := bt.Build(t, argocd.New(), bt.Platform{Options: c.options, GitOps: bt.GitOps, Clusters: []model.Cluster{cluster(t, "edge-1", "")}, Targets: []bt.Target{target}})
		p := parse(t, backends.File{Path: "assignments.yaml", Data: tree.Files["assignments.yaml"]}).projects["dev.large.web-main"]
		if got := p.permitsObject(c.object, c.at); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A namespace service with objects that no project permits is an error. Its hint shows the lines to
// add, and with them the platform builds. Without AppProjects there is no error.
func TestNamespaceServiceBeyondProject(t *testing.T) {
	const manifests = `"manifests": [
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "x"}},
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "monitoring"}}]}`
	build := func(declared string, gitOps *model.GitOps, of *model.Workspace) []diag.Diagnostic {
		target := bt.Target{Name: "web/main", Manifests: bt.Git, Bounds: of, Service: `{"name": "x", ` + declared + manifests}
		return bt.Build(t, argocd.New(), bt.Platform{Options: defaults, GitOps: gitOps, Targets: []bt.Target{target}}).Diagnostics
	}
	tenant := profile("tenant", model.Patterns{}, model.Patterns{})
	ds := build("", bt.GitOps, tenant)
	if len(ds) != 1 || ds[0].Code != diag.BadSpec || !strings.HasSuffix(ds[0].Message, "rbac.authorization.k8s.io/ClusterRole x, ConfigMap x in monitoring") ||
		!strings.Contains(ds[0].Hint, `namespaces: ["monitoring"]; namespaceServices: `) || !strings.Contains(ds[0].Hint, `objects: clusterScoped: ["rbac.authorization.k8s.io/ClusterRole"]`) {
		t.Error(ds)
	}
	for _, ds := range [][]diag.Diagnostic{
		build(`"namespaces": ["monitoring"], "objects": {"clusterScoped": ["rbac.authorization.k8s.io/ClusterRole"]}, `, bt.GitOps, tenant),
		build("", nil, tenant), build("", bt.GitOps, profile("#Team", nil, nil)), build("", bt.GitOps, nil),
	} {
		if slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Code == diag.BadSpec }) {
			t.Error(ds)
		}
	}
}

// A folder that is kept from an earlier release keeps the project that permits everything.
// The content of the folder is not known, and neither is the content on a cluster that is
// behind.
func TestProjectOfKeptFolder(t *testing.T) {
	p := bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "web/main", Manifests: bt.Git, Bounds: profile("tenant", model.Patterns{}, model.Patterns{})}}}
	folders := bt.Build(t, argocd.New(), p).Folders
	for _, earlier := range []bool{false, true} {
		if earlier {
			folders[0].Shared = []byte(`{"repo": "https://git.example.test/app", "own": true}`)
		}
		files, _ := argocd.New().Index(p.ClusterType(t), folders)
		at := slices.IndexFunc(files, func(f backends.File) bool { return f.Path == backends.AssignmentsFile })
		project := parse(t, files[at]).projects["dev.large.web-main"]
		object := backends.Object{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration", Name: "x"}
		if project.permitsObject(object, place{Server: inCluster}) != earlier {
			t.Errorf("earlier %t: %+v", earlier, project)
		}
	}
}
