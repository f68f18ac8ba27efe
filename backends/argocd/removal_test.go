package argocd_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/argocd"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// synced is the state of Argo CD after it has synced a tree.
type synced struct {
	objects
	// applied are the objects of each Application, by its name.
	applied map[string][]backends.Object
	// root are the objects of the root Application.
	root []bt.Object
}

func sync(t *testing.T, tree bt.Tree) synced {
	t.Helper()
	var files []backends.File
	var root []bt.Object
	for _, file := range slices.Sorted(maps.Keys(tree.Files)) {
		if base := path.Base(file); base == "reconciler.yaml" || base == "assignments.yaml" {
			files = append(files, backends.File{Path: file, Data: tree.Files[file]})
		}
	}
	s := synced{objects: parse(t, append(files, backends.File{Path: "bootstrap", Data: tree.Bootstrap})...), applied: map[string][]backends.Object{}}
	for name, app := range s.applications {
		s.applied[name] = synthetic(app)
		if app.Spec.Source.RepoURL == bt.GitOps.Repo {
			s.applied[name] = applied(t, tree, strings.TrimPrefix(strings.TrimPrefix(app.Spec.Source.Path, "fleet/large"), "/"))
		}
	}
	var k struct{ Resources []string }
	read(t, tree.Files["kustomization.yaml"], &k)
	for _, file := range k.Resources {
		root = append(root, bt.Objects(t, tree.Files[file])...)
	}
	s.root = root
	return s
}

// synthetic returns objects that an application team's repository may contain.
func synthetic(app application) []backends.Object {
	in := app.Spec.Destination.Namespace
	return []backends.Object{
		{Group: "apps", Kind: "Deployment", Namespace: in, Name: "app"},
		{Group: app.Spec.Source.TargetRevision + ".example.test", Kind: "Shop", Namespace: in, Name: "app"},
	}
}

// inForce returns the project that an Application has when a commit has been synced. It is the
// commit's project. If the project has left the tree, it is the old one, because its finalizer
// keeps it until no Application uses it.
func inForce(t *testing.T, before, after synced, name string) (project, bool) {
	if p, there := after.projects[name]; there {
		return p, true
	}
	p, there := before.projects[name]
	if there && !slices.Contains(p.Metadata.Finalizers, "resources-finalizer.argocd.argoproj.io") {
		t.Errorf("project %s goes before its Applications", name)
	}
	return p, there
}

// located is an object on a cluster.
type located struct {
	at place
	backends.Object
}

func on(app application) place {
	return place{Server: app.Spec.Destination.Server, Name: app.Spec.Destination.Name}
}

// checkRemoval follows a commit that turns one tree into another. For each object that leaves the
// tree, the project of the deleting Application must permit it, or it goes with its namespace.
func checkRemoval(t *testing.T, before, after synced) {
	t.Helper()
	wanted := map[located]bool{}
	for name, app := range after.applications {
		for _, o := range after.applied[name] {
			wanted[located{on(app), o}] = true
		}
	}
	gone, left := map[located]bool{}, map[located]string{}
	for name, app := range before.applications {
		if now, stays := after.applications[name]; stays {
			if on(now) != on(app) {
				continue // Argo CD looks only at the new cluster: docs/reconcilers/argocd.md
			}
			app.Spec.Project = now.Spec.Project
		}
		p, ours := inForce(t, before, after, app.Spec.Project)
		for _, o := range before.applied[name] {
			if l := (located{on(app), o}); !wanted[l] {
				if ours && !p.permitsObject(o, app.Spec.Destination) {
					left[l] = p.Metadata.Name
				} else {
					gone[l] = true
				}
			}
		}
	}
	for l, project := range left {
		if !gone[located{l.at, backends.Object{Kind: "Namespace", Name: l.Namespace}}] {
			t.Errorf("%+v stays for ever: project %s does not permit it", l, project)
		}
	}
}

// checkWaves looks for a sync of the root Application that waits for ever: for a
// project to go that an Application uses until a later wave.
func checkWaves(t *testing.T, before, after synced) {
	t.Helper()
	stays := map[backends.Object]bt.Object{}
	for _, o := range after.root {
		stays[o.ID()] = o
	}
	pruned := map[int][]string{} // projects
	waves := map[int]bool{}      // in which anything is pruned
	for _, o := range before.root {
		if _, there := stays[o.ID()]; there {
			continue
		}
		waves[wave(t, o)] = true
		if o.Kind == "AppProject" {
			pruned[wave(t, o)] = append(pruned[wave(t, o)], o.Metadata.Name)
		}
	}
	order := slices.Sorted(maps.Keys(waves))
	for i, w := range order {
		at := order[len(order)-1-i] // prunes go through the waves backwards
		for _, project := range pruned[w] {
			for _, o := range before.root {
				now, there := stays[o.ID()]
				if there && strings.Contains(string(o.Text), "project: "+project+"\n") && wave(t, now) > at {
					t.Errorf("the sync waits in wave %d for project %s to go, and %s %s uses it until wave %d", at, project, o.Kind, o.Metadata.Name, wave(t, now))
				}
			}
		}
	}
}

func wave(t *testing.T, o bt.Object) int {
	text := o.Metadata.Annotations["argocd.argoproj.io/sync-wave"]
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// checkTrust checks that the projects of other people's manifests do not permit objects that they
// must never reach: Argo CD's own namespace, other namespaces, and cluster-scoped objects.
func checkTrust(t *testing.T, s synced) {
	t.Helper()
	for name, app := range s.applications {
		p, ours := s.projects[app.Spec.Project]
		if app.Spec.Source.RepoURL == bt.GitOps.Repo || !ours {
			continue
		}
		for _, o := range []backends.Object{
			{Group: "argoproj.io", Kind: "Application", Namespace: "argocd", Name: "x"},
			{Kind: "ConfigMap", Namespace: app.Spec.Destination.Namespace + "-2", Name: "x"},
			{Kind: "Namespace", Name: "kube-system"},
			{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "x"},
		} {
			if p.permitsObject(o, app.Spec.Destination) {
				t.Errorf("%s may apply %+v", name, o)
			}
		}
		if p.permitsSource("https://git.example.test/other") || p.permitsSource(bt.GitOps.Repo) {
			t.Errorf("project %s takes other sources", p.Metadata.Name)
		}
	}
	for name, p := range s.projects {
		if !strings.HasSuffix(name, ".workload") && p.permitsSource("https://git.example.test/app") {
			t.Errorf("project %s applies what others wrote", name)
		}
	}
}

// bounded are workspaces for the targets of randomPlatform. elsewhere is a namespace that their
// objects may use. service has the declarations of their namespace services.
var bounded = map[string]struct {
	of                 *model.Workspace
	elsewhere, service string
}{
	"nobody's": {nil, "kube-system", ""},
	"team":     {profile("#Team", nil, nil), "shared-9", ""},
	"tenant": {
		profile("tenant", model.Patterns{}, model.Patterns{"PersistentVolume"}), "kube-system",
		`"namespaces": ["shared-*", "kube-system"], "objects": {"clusterScoped": ["rbac.authorization.k8s.io/ClusterRole"]}, `,
	},
	"wide": {
		profile("wide", model.Patterns{"*", "!kube-*", "!argo*"}, model.Patterns{"*", "!Namespace", "!rbac*"}), "kube-system",
		`"namespaces": ["kube-system"], "objects": {"clusterScoped": ["*/ClusterRole"]}, `,
	},
}

// profile returns a workspace with bounds. nil stands for the bounds of a team.
func profile(name string, namespaces, clusterScoped model.Patterns) *model.Workspace {
	w := &model.Workspace{Name: name, Namespaces: namespaces}
	w.Objects.ClusterScoped = clusterScoped
	w.Complete()
	return w
}

// randomPlatform returns a platform. The targets of all platforms have the same names and
// bounds.
func randomPlatform(t *testing.T, r *rand.Rand, options []string, workspace string) bt.Platform {
	p := bt.Platform{Options: options[r.IntN(len(options))], GitOps: bt.GitOps}
	for _, name := range []string{"edge-1", "edge-2", "edge-3"} {
		if r.IntN(3) > 0 || name == "edge-1" {
			p.Clusters = append(p.Clusters, cluster(t, name, ""))
		}
	}
	sources := []model.Manifests{bt.Git, bt.OCI, bt.Chart, bt.Registry}
	kinds := []string{"rbac.authorization.k8s.io/v1 ClusterRole", "v1 PersistentVolume", "example.test/v1 Shop", "apps/v1 StatefulSet"}
	object := func(namespace string) string {
		api, kind, _ := strings.Cut(kinds[r.IntN(len(kinds))], " ")
		return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": "x%d"%s}}`, api, kind, r.IntN(3), namespace)
	}
	for _, name := range []string{"app/main", "app/test", "db/main", "web/main"} {
		if r.IntN(3) == 0 {
			continue
		}
		target := bt.Target{Name: name, Bounds: bounded[workspace].of, Workspace: fmt.Sprintf("team-%d", r.IntN(2)), Manifests: sources[r.IntN(len(sources))]}
		short := strings.ReplaceAll(name, "/", "-")
		target.Namespace = fmt.Sprintf("%s-%d", short, r.IntN(2))
		target.Service = fmt.Sprintf(`{"name": "x", `+bounded[workspace].service+`"deletion": "delete", "manifests": [
			{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "%s-%d"}},
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%s", "namespace": "shared-%d"}}]}`, short, r.IntN(2), short, r.IntN(2))
		if target.Render = r.IntN(2) == 0; target.Render {
			target.Projection = bt.Projected(t, object(""), object(`, "namespace": "`+bounded[workspace].elsewhere+`"`))
		}
		p.Targets = append(p.Targets, target)
		if n := len(p.Targets); n > 1 && r.IntN(3) == 0 {
			p.Targets[n-1].Wave = p.Targets[n-2].Wave + 1
		}
	}
	return p
}

// TestNothingStays builds random pairs of platforms, and one platform of each pair follows the
// other. Assignments come and go. They change their namespaces, kinds, sources and teams, are
// rendered or not, and go to other clusters.
func TestNothingStays(t *testing.T) {
	creating := `{"namespace": "argocd", "syncOptions": ["CreateNamespace=true"], ` + automationOption + `}`
	for name, options := range map[string][]string{
		"here": {defaults, creating, local, named, byHand}, "far": {remote}, "each": {each}, "far and each": {remote, each}, "here and each": {defaults, each},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(16) {
				r := rand.New(rand.NewPCG(seed, 1))
				workspace := slices.Sorted(maps.Keys(bounded))[seed%uint64(len(bounded))]
				one := bt.Build(t, argocd.New(), randomPlatform(t, r, options, workspace))
				other := bt.Build(t, argocd.New(), randomPlatform(t, r, options, workspace))
				for _, d := range append(one.Diagnostics, other.Diagnostics...) {
					if d.Code == diag.BadSpec {
						t.Error(d)
					}
				}
				before, after := sync(t, one), sync(t, other)
				checkRemoval(t, before, after)
				checkWaves(t, before, after)
				if workspace != "wide" { // whose workloads may be in other namespaces
					checkTrust(t, after)
				}
				if t.Failed() {
					t.Fatalf("seed %d: %s", seed, workspace)
				}
			}
		})
	}
}

// TestNothingStaysOfEarlierReleases rebuilds trees of earlier releases, whose assignments shared
// projects, and checks objects that have left the tree since.
func TestNothingStaysOfEarlierReleases(t *testing.T) {
	plain := []model.Cluster{cluster(t, "edge-1", ""), cluster(t, "edge-2", "")}
	rendered := bt.Target{Name: "rendered/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, bt.Rendered...)}
	for name, p := range map[string]bt.Platform{
		"several-gitops": {Options: defaults, GitOps: bt.GitOps, Targets: several},
		"depends-on":     {Options: defaults, GitOps: bt.GitOps, Targets: chain},
		"depends-on-far": {Options: remote, GitOps: bt.GitOps, Targets: chain},
		"clusters":       {Options: each, GitOps: bt.GitOps, Clusters: plain, Targets: []bt.Target{rendered, {Name: "raw/main", Manifests: bt.Git}}},
	} {
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join("testdata", "earlier", name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			old := bt.Build(t, argocd.New(), p) // for the files that golden trees leave out
			for _, f := range archive.Files {
				if old.Files[f.Name] = f.Data; f.Name == "(bootstrap)" {
					old.Bootstrap = f.Data
				}
			}
			before := sync(t, old)
			if _, there := before.projects["kalypso.dev.large.assignments"]; !there {
				t.Fatalf("there is no shared project: %v", slices.Sorted(maps.Keys(before.projects)))
			}
			for n := range 1 << len(p.Targets) {
				next := p
				next.Targets = nil
				for i, target := range p.Targets {
					if n&(1<<i) > 0 {
						next.Targets = append(next.Targets, target)
					}
				}
				after := sync(t, bt.Build(t, argocd.New(), next))
				checkRemoval(t, before, after)
				checkWaves(t, before, after)
			}
		})
	}
}
