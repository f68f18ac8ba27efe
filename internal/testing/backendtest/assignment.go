// Package backendtest runs a backend over the assignments of a cluster type, as the compiler
// does. It compares the output with golden files, and checks the conditions that the output of
// every backend must meet.
package backendtest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// GitOps is the place of the tree of the tests' environment.
var GitOps = &model.GitOps{Repo: "https://git.example.test/platform/gitops", Branch: "dev", Path: "fleet"}

// Registered is the place of that tree as an artifact of an OCI registry.
var Registered = &model.GitOps{OCI: "oci://registry.example.test/platform/fleet", Tag: "dev",
	Path: "fleet", SecretRef: "registry"}

// Git, OCI, Chart and Registry are sources without anything special.
var (
	Git      = model.Manifests{Git: &model.Git{Repo: "https://git.example.test/app", Branch: "main", Path: "./deploy"}}
	OCI      = model.Manifests{OCI: &model.OCI{URL: "oci://registry.example.test/app", Tag: "1.2.3", Path: "./"}}
	Chart    = model.Manifests{Helm: &model.Helm{Repo: "https://charts.example.test", Chart: "app", Version: "1.2.3"}}
	Registry = model.Manifests{Helm: &model.Helm{OCI: "oci://registry.example.test/charts/app", Version: "1.2.3"}}
)

// Images are of a cluster type. One has the final name of an image of Overlay.
var Images = []model.Image{
	{KustomImage: model.KustomImage{Name: "mirror.example.test/web", NewName: "site.example.test:5000/web"}},
	{KustomImage: model.KustomImage{Name: "app", Digest: "sha256:" + strings.Repeat("0b", 32)}},
	{KustomImage: model.KustomImage{Name: "cache", NewTag: "7"}},
}

// Overlay is a Kustomize overlay with all kinds of changes.
var Overlay = model.Manifests{Kustomize: &model.Kustomize{
	Git:  &model.Git{Repo: "https://git.example.test/app", Tag: "v1"},
	Path: "overlays/dev",
	Patches: []model.KustomPatch{
		{Patch: "- op: replace\n  path: /spec/replicas\n  value: 3\n",
			Target: map[string]string{"kind": "Deployment", "name": "app.*", "labelSelector": "tier=web"}},
		{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata:\n  home: ${HOME}\n"},
	},
	Images: []model.KustomImage{
		{Name: "app", NewTag: "1.2.3"},
		{Name: "registry.example.test:5000/team/app", NewName: "mirror.example.test/app"},
		{Name: "web", NewName: "mirror.example.test/web", NewTag: "2"},
		{Name: "db", Digest: "sha256:" + strings.Repeat("0a", 32)},
	},
	NamePrefix: "dev-",
}}

// Value returns JSON as a value.
func Value(t testing.TB, text string) model.Value {
	t.Helper()
	var v model.Value
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Platform is a cluster type with its assignments. The assignments are in environment dev on
// cluster type large. Each is in workspace team, unless it names another workspace.
type Platform struct {
	// Options are the reconciler's fields, as JSON.
	Options string
	GitOps  *model.GitOps
	Targets []Target
	// Clusters are the clusters of the cluster type, sorted by name.
	Clusters []model.Cluster
	// Images are the cluster type's.
	Images []model.Image
}

// Target is an assignment of the platform.
type Target struct {
	Name      string // workload/target
	Workspace string
	// Bounds are the bounds of the workspace, or nil.
	Bounds *model.Workspace
	// Registration brings the workload; "" if the platform declares it.
	Registration string
	Namespace    string // "" for one of its own
	Manifests    model.Manifests
	Render       bool
	Restart      bool
	// Projection is the output of rendering the manifests.
	Projection *model.Projection
	DependsOn  []string
	Wave       int
	// Service is the namespace service, as JSON.
	Service string
	// Values of the platform, as JSON.
	Values  string
	Secrets []backends.Secret
	// Format of the platform config; "" for configmap.
	Format model.ConfigFormat
}

// ClusterType returns the platform's cluster type.
func (p Platform) ClusterType(t testing.TB) *backends.ClusterType {
	return &backends.ClusterType{
		Environment: "dev", Name: "large", GitOps: p.GitOps,
		Reconciler: p.reconciler(t), Clusters: p.Clusters,
		Ref: model.Ref{Collection: "clusterTypes", Name: "large"},
	}
}

func (p Platform) reconciler(t testing.TB) backends.Spec {
	return backends.Spec{Ref: model.Ref{Collection: "reconcilers", Name: "main"}, Value: Value(t, p.Options)}
}

// Assignment returns the assignment of a target.
func (p Platform) Assignment(t testing.TB, target Target) *backends.Assignment {
	t.Helper()
	workload, short, ok := strings.Cut(target.Name, "/")
	if !ok {
		t.Fatalf("%s is no workload/target", target.Name)
	}
	if target.Workspace == "" {
		target.Workspace = "team"
	}
	if target.Service == "" {
		target.Service = `{"name": "default", "deletion": "delete"}`
	}
	if target.Values == "" {
		target.Values = `{"REGION": "no", "REPLICAS": 3, "db": {"host": "db.example.test"}}`
	}
	if target.Format == "" {
		target.Format = model.ConfigMap
	}
	full := model.FullName(workload, short)
	if target.Namespace == "" {
		target.Namespace = model.ShortName("dev-large-"+full, model.MaxLabel)
	}
	values := Value(t, target.Values)
	return &backends.Assignment{
		Environment: "dev", ClusterType: "large", Clusters: p.Clusters, Workspace: target.Workspace,
		Bounds: target.Bounds, Application: workload, Workload: workload, Target: short, DeploymentTarget: full,
		Namespace: target.Namespace, GitOps: p.GitOps, Registration: target.Registration,
		Images:    p.Images,
		Manifests: target.Manifests, Render: target.Render, Restart: target.Restart,
		Projection: target.Projection, ConfigFormat: target.Format,
		Values: values, Digest: model.DigestOf(values), Secrets: target.Secrets,
		NamespaceService: backends.Spec{Ref: model.Ref{Collection: "namespaceServices", Name: "default"},
			Value: Value(t, target.Service)},
		Reconciler: p.reconciler(t),
		DependsOn:  target.DependsOn, Wave: target.Wave,
		Ref: model.Ref{Collection: "workloads", Name: workload, Path: "deploymentTargets." + model.Label(short)},
	}
}

// JSON returns a text as a string of JSON.
func JSON(text string) string { return string(model.AppendJSONString(nil, text)) }
