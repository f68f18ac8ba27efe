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

const (
	automationOption = `"syncPolicy": {"automated": {"prune": true, "selfHeal": true}}`
	defaults         = `{"namespace": "argocd", ` + automationOption + `}`
	named            = `{"namespace": "argocd", "project": "default", ` + automationOption + `}`
	remote           = `{"namespace": "argocd", "destination": {"name": "edge-1"}, ` + automationOption + `}`
	server           = `{"namespace": "argocd", "destination": {"server": "https://edge.example.test:6443"}, ` + automationOption + `}`
	local            = `{"namespace": "argocd", "destination": {"name": "in-cluster"}, ` + automationOption + `}`
	byHand           = `{"namespace": "argocd", "syncPolicy": {"automated": false}}`
	all              = `{"namespace": "gitops", "syncPolicy": {"automated": {"prune": false, "selfHeal": false, "allowEmpty": true},
		"retry": {"limit": 3, "backoff": {"duration": "10s", "factor": 3, "maxDuration": "1h"}}},
		"syncOptions": ["CreateNamespace=true", "ServerSideApply=true"],
		"ignoreDifferences": [{"group": "apps", "kind": "Deployment", "name": "x", "namespace": "y", "jsonPointers": ["/spec/replicas"],
			"jqPathExpressions": [".spec.x"], "managedFieldsManagers": ["hpa"]}, {"kind": "Secret"}]}`
)

// manifests are all kinds of source that Argo CD delivers.
func manifests(t *testing.T) map[string]model.Manifests {
	values := bt.Value(t, `{"replicas": 2, "global": {"zone": "no", "port": "8080"}}`)
	git := func(g model.Git) model.Manifests {
		g.Repo = "https://git.example.test/app"
		return model.Manifests{Git: &g}
	}
	return map[string]model.Manifests{
		"git-branch":       bt.Git,
		"git-branch-range": git(model.Git{Branch: "1.x", Path: "."}),
		"git-tag":          git(model.Git{Tag: "v1.2.3", SecretRef: "own"}),
		"git-tag-range":    git(model.Git{Tag: "v1.x"}),
		"git-semver":       git(model.Git{Semver: ">=1.2 <2", Path: "a/b/"}),
		"git-semver-exact": git(model.Git{Semver: "1.2.3", Path: "0x10"}),
		"git-commit":       git(model.Git{Commit: strings.Repeat("0b", 20)}),
		"git-ssh":          {Git: &model.Git{Repo: "git@git.example.test:team/app.git", Branch: "main"}},
		"oci-tag":          bt.OCI,
		"oci-semver":       {OCI: &model.OCI{URL: "oci://registry.example.test/app", Semver: "1.2", Path: "./deploy"}},
		"oci-digest":       {OCI: &model.OCI{URL: "oci://registry.example.test/app", Digest: "sha256:" + strings.Repeat("0a", 32)}},
		"helm-repo":        bt.Chart,
		"helm-repo-values": {Helm: &model.Helm{Repo: "https://charts.example.test", Chart: "app", Version: "1.2", Values: &values,
			ReleaseName: "release", PlatformValues: "global.platform"}},
		"helm-oci":          bt.Registry,
		"helm-oci-range":    {Helm: &model.Helm{OCI: "oci://registry.example.test/charts", Chart: "app", Version: ">=1.2 <2", PlatformValues: "platform"}},
		"helm-oci-build":    {Helm: &model.Helm{OCI: "oci://registry.example.test/charts/app", Version: "1.2.3-rc.1+build.5"}},
		"kustomize-changes": bt.Overlay,
		"kustomize-git":     {Kustomize: &model.Kustomize{Git: &model.Git{Repo: "https://git.example.test/app", Tag: "v1"}, Path: "./overlays/dev"}},
		"kustomize-oci":     {Kustomize: &model.Kustomize{OCI: &model.OCI{URL: "oci://registry.example.test/app", Tag: "1"}, Path: "overlays/dev"}},
	}
}

// TestManifests builds every kind of source with the default options and with
// all options, with and without gitops.
func TestManifests(t *testing.T) {
	for kind, m := range manifests(t) {
		target := []bt.Target{{Name: "app/main", Manifests: m}}
		for options, p := range map[string]bt.Platform{
			"defaults": {Options: defaults, Targets: target},
			"options":  {Options: all, GitOps: bt.GitOps, Targets: target},
		} {
			t.Run(kind+"/"+options, func(t *testing.T) {
				tree := bt.Build(t, argocd.New(), p)
				tree.Check(t)
				checkArgoCD(t, tree)
				tree.Golden(t)
			})
		}
	}
}

// several are targets of two workspaces, and chain depend on each other.
var (
	several = []bt.Target{
		{Name: "app/main", Manifests: bt.Git}, {Name: "app/test", Manifests: bt.Registry},
		{Name: "db/main", Workspace: "data", Manifests: bt.Chart},
	}
	chain = []bt.Target{
		{Name: "app/main", Manifests: bt.Git, DependsOn: []string{"db-main"}, Wave: 2},
		{Name: "db/main", Manifests: bt.Registry, DependsOn: []string{"disk-main"}, Wave: 1}, {Name: "disk/main", Manifests: bt.OCI},
	}
)

func TestClusterType(t *testing.T) {
	long := strings.Repeat("w", 63)
	service := `{"name": "x", "deletion": "orphan", "quota": {"requests.cpu": "4"}, "manifests": [
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "team"}},
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "team", "namespace": "shared"}}]}`
	for name, p := range map[string]bt.Platform{
		"empty":            {Options: defaults},
		"empty-gitops":     {Options: defaults, GitOps: bt.GitOps},
		"images":           {Options: defaults, Images: bt.Images, Targets: []bt.Target{{Name: "app/overlay", Manifests: bt.Overlay}}},
		"several":          {Options: defaults, Targets: several},
		"several-gitops":   {Options: defaults, GitOps: bt.GitOps, Targets: several},
		"project":          {Options: named, Targets: several},
		"project-gitops":   {Options: named, GitOps: bt.GitOps, Targets: several},
		"remote-name":      {Options: remote, GitOps: bt.GitOps, Targets: several},
		"remote-server":    {Options: server, GitOps: bt.GitOps, Targets: several[:1]},
		"in-cluster-name":  {Options: local, Targets: several[:1]},
		"depends-on":       {Options: defaults, GitOps: bt.GitOps, Targets: chain},
		"depends-on-far":   {Options: remote, GitOps: bt.GitOps, Targets: chain},
		"by-hand":          {Options: byHand, GitOps: bt.GitOps, Targets: several[:1]},
		"long-names":       {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{{Name: long + "/a", Manifests: bt.Registry, Workspace: long}, {Name: long + "/b", Manifests: bt.Git}}},
		"registry":         {Options: defaults, GitOps: bt.Registered, Targets: several},
		"registry-far":     {Options: remote, GitOps: bt.Registered, Targets: chain},
		"root-path":        {Options: defaults, GitOps: &model.GitOps{Repo: "git@git.example.test:platform/gitops", Branch: "1.x", Path: "."}, Targets: several[:1]},
		"service":          {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git, Service: service}}},
		"service-far":      {Options: remote, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git, Service: service}}},
		"assignment-named": {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "home/assignment", Manifests: bt.Git}}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, argocd.New(), p)
			tree.Check(t)
			checkArgoCD(t, tree)
			tree.Golden(t)
		})
	}
}

// TestRefusals checks requests that Argo CD cannot fulfill, or would fulfill wrongly.
func TestRefusals(t *testing.T) {
	one := func(m model.Manifests) bt.Platform {
		return bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "app/main", Manifests: m}}}
	}
	verified := model.Git{Repo: "https://x/y", Tag: "v1", Verify: &model.GitVerify{Mode: "Tag", SecretRef: "keys"}}
	signed := model.OCI{URL: "oci://x/y", Tag: "1", Verify: &model.OCIVerify{Provider: "cosign"}}
	glob := model.Git{Repo: "https://git.example.test/*", Branch: "main"}
	for name, c := range map[string]struct {
		platform bt.Platform
		want     []diag.Code
		message  string
	}{
		"git-verify": {one(model.Manifests{Git: &verified}), []diag.Code{diag.UnsupportedManifests}, "verifies no signatures"},
		"oci-verify": {one(model.Manifests{OCI: &signed}), []diag.Code{diag.UnsupportedManifests}, "verifies no signatures"},
		"glob":       {one(model.Manifests{Git: &glob}), []diag.Code{diag.UnsupportedManifests}, "pattern"},
		"both":       {bt.Platform{Options: `{"destination": {"name": "x", "server": "https://x"}}`, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git}}}, []diag.Code{diag.BadSpec, diag.BadSpec, diag.BadSpec}, "either a server or a name"},
		"neither":    {bt.Platform{Options: `{"destination": {}}`, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git}}}, []diag.Code{diag.BadSpec, diag.BadSpec, diag.BadSpec}, "either a server or a name"},
		"unreadable": {bt.Platform{Options: `{"namespace": 1}`, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git}}}, []diag.Code{diag.BadSpec, diag.BadSpec, diag.BadSpec}, "cannot be read"},
		"registry-range": {bt.Platform{Options: defaults, GitOps: &model.GitOps{OCI: "oci://registry.example.test/fleet", Tag: "1.x", Path: "."}},
			[]diag.Code{diag.BadSpec, diag.BadSpec}, "for a range of versions"},
		"far-by-itself":   {bt.Platform{Options: remote, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git}}}, []diag.Code{diag.NeedsGitOps, diag.NeedsGitOps}, "a destination other than"},
		"server-itself":   {bt.Platform{Options: server, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git}}}, []diag.Code{diag.NeedsGitOps, diag.NeedsGitOps}, "a destination other than"},
		"order-by-itself": {bt.Platform{Options: defaults, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git, DependsOn: []string{"db-main"}}}}, []diag.Code{diag.NeedsGitOps, diag.NeedsGitOps}, "dependsOn of app-main"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, argocd.New(), c.platform)
			if got := bt.Codes(tree.Diagnostics); !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v: %+v", got, c.want, tree.Diagnostics)
			}
			if d := tree.Diagnostics[0]; !strings.Contains(d.Message, c.message) || len(d.Sites) == 0 {
				t.Errorf("got %+v, want a message with %q and a site", d, c.message)
			}
			if len(tree.Folders) > 0 {
				t.Errorf("the assignment is emitted all the same")
			}
		})
	}
}

// The Application of x-assignment has the same name as the one that delivers x.
func TestNameCollisions(t *testing.T) {
	p := bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{
		{Name: "x/main", Manifests: bt.Git}, {Name: "x/main-assignment", Manifests: bt.Git},
	}}
	tree := bt.Build(t, argocd.New(), p)
	if got := bt.Codes(tree.Diagnostics); !slices.Equal(got, []diag.Code{diag.NameCollision}) {
		t.Fatalf("got %+v", tree.Diagnostics)
	}
	if d := tree.Diagnostics[0]; len(d.Assignments) != 2 || !strings.Contains(d.Message, "dev-large-x-main-assignment") {
		t.Errorf("got %+v", d)
	}
}

// A folder of another backend, or of another destination, keeps its destination, and no part
// of it is listed twice.
func TestKeptFolders(t *testing.T) {
	p := bt.Platform{Options: remote, GitOps: bt.GitOps}
	files, ds := argocd.New().Index(p.ClusterType(t), []backends.Folder{
		{DeploymentTarget: "far-main", Workspace: "team", Namespace: "far", Backend: "argocd", Shared: []byte(`{"repo":"https://x/far","destination":{"name":"edge-1"}}`)},
		{DeploymentTarget: "flux-main", Workspace: "team", Namespace: "flux", Backend: "flux", Shared: []byte(`{"repo":"https://x/flux","noWait":true}`)},
		{DeploymentTarget: "near-main", Workspace: "team", Namespace: "near", Backend: "argocd", Shared: []byte(`{"repo":"https://x/near"}`)},
	})
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	text := map[string]string{}
	for _, f := range files {
		text[f.Path] = string(f.Data)
	}
	if k := text["kustomization.yaml"]; !strings.Contains(k, "far-main/reconciler.yaml") || strings.Contains(k, "near-main/") || strings.Contains(k, "flux-main/") {
		t.Errorf("only far-main's reconciler.yaml is to be listed:\n%s", k)
	}
	if a := text["assignments.yaml"]; strings.Contains(a, "https://x/flux") || !strings.Contains(a, "https://x/near") {
		t.Errorf("what another backend shares is not ours to read:\n%s", a)
	}
	apps := parse(t, backends.File{Data: []byte(text["assignments.yaml"])}).applications
	for name, want := range map[string]string{"far": "edge-1", "flux": "edge-1", "near": ""} {
		if got := apps["dev-large-"+name+"-main-assignment"].Spec.Destination.Name; got != want {
			t.Errorf("%s goes to cluster %q, want %q", name, got, want)
		}
	}
}
