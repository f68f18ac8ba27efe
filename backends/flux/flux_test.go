package flux_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/flux"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

const (
	defaults = `{"interval": "10m", "namespace": "flux-system", "prune": true, "wait": true}`
	hasty    = `{"interval": "10m", "namespace": "flux-system", "prune": true, "wait": false}`
	all      = `{"interval": "30s", "retryInterval": "2m", "timeout": "1h30m", "namespace": "gitops", "secretRef": "repo-secret",
		"credentials": {"git.example.test:80": {"secretRef": "repo-secret"}, "charts.example.test": {"secretRef": "charts"}, "registry.example.test": {"secretRef": "registry"}},
		"prune": false, "wait": false, "serviceAccountName": "deployer", "namePattern": "dev-large-app"}`
)

var (
	digest   = "sha256:" + strings.Repeat("0a", 32)
	commit   = strings.Repeat("0b", 20)
	identity = []model.OIDCIdentity{{Issuer: "^https://issuer$", Subject: "^app$"}}
)

// manifests are all kinds of source that Flux delivers.
func manifests(t *testing.T) map[string]model.Manifests {
	values := bt.Value(t, `{"replicas": 2, "global": {"zone": "no", "port": "8080"}}`)
	return map[string]model.Manifests{
		"git-branch":        bt.Git,
		"git-tag-verified":  {Git: &model.Git{Repo: "ssh://git@git.example.test/app", Tag: "v1.2.3", SecretRef: "own", Verify: &model.GitVerify{Mode: "TagAndHEAD", SecretRef: "keys"}}},
		"git-semver":        {Git: &model.Git{Repo: "git@git.example.test:team/app.git", Semver: ">=1.2 <2", Path: "."}},
		"git-commit":        {Git: &model.Git{Repo: "http://git.example.test/app", Commit: commit, Path: "a/b/"}},
		"oci-tag":           bt.OCI,
		"oci-semver":        {OCI: &model.OCI{URL: "oci://registry.example.test/app", Semver: "1.x", Path: "deploy", SecretRef: "own"}},
		"oci-digest-signed": {OCI: &model.OCI{URL: "oci://registry.example.test/app", Digest: digest, Verify: &model.OCIVerify{Provider: "cosign", MatchOIDCIdentity: identity}}},
		"oci-tag-notation":  {OCI: &model.OCI{URL: "oci://registry.example.test/app", Tag: "1", Verify: &model.OCIVerify{Provider: "notation", SecretRef: "keys"}}},
		"helm-repo":         bt.Chart,
		"helm-repo-values": {Helm: &model.Helm{Repo: "https://charts.example.test", Chart: "app", Version: "1.x", Values: &values,
			ReleaseName: "release", PlatformValues: "global.platform", SecretRef: "own"}},
		"helm-oci":          bt.Registry,
		"helm-oci-range":    {Helm: &model.Helm{OCI: "oci://registry.example.test/charts", Chart: "app", Version: "1.2", PlatformValues: "platform"}},
		"helm-oci-build":    {Helm: &model.Helm{OCI: "oci://registry.example.test/charts/app", Version: "1.2.3-rc.1+build.5", SecretRef: "own"}},
		"kustomize-changes": bt.Overlay,
		"kustomize-git":     {Kustomize: &model.Kustomize{Git: &model.Git{Repo: "https://git.example.test/app", Tag: "v1"}, Path: "overlays/dev"}},
		"kustomize-oci":     {Kustomize: &model.Kustomize{OCI: &model.OCI{URL: "oci://registry.example.test/app", Tag: "1"}, Path: "./overlays/dev"}},
		"git-inside":        {Git: &model.Git{Repo: "https://git.example.test/app", Branch: "main", Path: "../../etc"}},
		"git-branch-number": {Git: &model.Git{Repo: "https://git.example.test/app", Branch: "1.10", Path: "0x10"}},
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
				tree := bt.Build(t, flux.New(), p)
				tree.Check(t)
				tree.Golden(t)
			})
		}
	}
}

func TestClusterType(t *testing.T) {
	long := strings.Repeat("w", 63)
	for name, p := range map[string]bt.Platform{
		"empty":        {Options: defaults},
		"empty-gitops": {Options: defaults, GitOps: bt.GitOps},
		"images": {Options: defaults, Images: bt.Images, Targets: []bt.Target{
			{Name: "app/folder", Manifests: bt.Git}, {Name: "app/chart", Manifests: bt.Chart}, {Name: "app/overlay", Manifests: bt.Overlay},
		}},
		"several": {Options: defaults, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Git}, {Name: "chart/main", Manifests: bt.Chart},
		}},
		"depends-on": {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Git, DependsOn: []string{"db-main", "queue-main"}, Wave: 1},
			{Name: "db/main", Manifests: bt.Registry}, {Name: "queue/main", Manifests: bt.OCI},
		}},
		"depends-on-hasty": {Options: hasty, GitOps: bt.GitOps, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Git, DependsOn: []string{"db-main"}, Wave: 1}, {Name: "db/main", Manifests: bt.Registry},
		}},
		"long-names": {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{
			{Name: long + "/a", Manifests: bt.Registry}, {Name: long + "/b", Manifests: bt.Git, DependsOn: []string{long + "-a"}, Wave: 1},
		}},
		"registry": {Options: defaults, GitOps: bt.Registered, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Git, DependsOn: []string{"db-main"}, Wave: 1}, {Name: "db/main", Manifests: bt.Registry},
		}},
		"root-path": {Options: defaults, GitOps: &model.GitOps{Repo: "git@git.example.test:platform/gitops", Branch: "dev", Path: "."}, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Git},
		}},
		"namespace-service": {Options: defaults, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Git, Service: `{"name": "x", "deletion": "orphan", "quota": {"requests.cpu": "4"}}`},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, flux.New(), p)
			tree.Check(t)
			tree.Golden(t)
		})
	}
}

// TestRefusals checks requests that Flux cannot fulfill, or would fulfill wrongly.
func TestRefusals(t *testing.T) {
	git := func(g model.Git) model.Manifests { return model.Manifests{Git: &g} }
	helm := func(h model.Helm) model.Manifests { return model.Manifests{Helm: &h} }
	named := func(name string) string {
		return `{"interval": "10m", "namespace": "flux-system", "namePattern": "` + name + `"}`
	}
	one := func(m model.Manifests) bt.Platform {
		return bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "app/main", Manifests: m}}}
	}
	with := func(p bt.Platform, change func(*bt.Platform)) bt.Platform { change(&p); return p }

	for name, c := range map[string]struct {
		platform bt.Platform
		want     []diag.Code
		message  string
	}{
		"no-source":         {one(model.Manifests{}), []diag.Code{diag.UnsupportedManifests}, "no source"},
		"overlay-no-source": {one(model.Manifests{Kustomize: &model.Kustomize{Path: "x"}}), []diag.Code{diag.UnsupportedManifests}, "no source"},
		"git-protocol":      {one(git(model.Git{Repo: "git://git.example.test/app", Branch: "main"})), []diag.Code{diag.UnsupportedManifests}, "https, http or ssh"},
		"git-file":          {one(git(model.Git{Repo: "file:///app", Branch: "main"})), []diag.Code{diag.UnsupportedManifests}, "https, http or ssh"},
		"git-no-range":      {one(git(model.Git{Repo: "https://x", Semver: "latest"})), []diag.Code{diag.UnsupportedManifests}, "range of versions"},
		"git-verify-branch": {one(git(model.Git{Repo: "https://x", Branch: "main", Verify: &model.GitVerify{Mode: "Tag", SecretRef: "k"}})), []diag.Code{diag.UnsupportedManifests}, "pinned tag"},
		"oci-verify-semver": {one(model.Manifests{OCI: &model.OCI{URL: "oci://x/y", Semver: "1.x", Verify: &model.OCIVerify{Provider: "cosign"}}}), []diag.Code{diag.UnsupportedManifests}, "pinned tag or digest"},
		"oci-no-range":      {one(model.Manifests{OCI: &model.OCI{URL: "oci://x/y", Semver: "newest"}}), []diag.Code{diag.UnsupportedManifests}, "range of versions"},
		"helm-no-version":   {one(helm(model.Helm{OCI: "oci://x/y", Version: "latest"})), []diag.Code{diag.UnsupportedManifests}, "range of versions"},
		"helm-no-chart":     {one(helm(model.Helm{Repo: "https://x", Version: "1.2.3"})), []diag.Code{diag.UnsupportedManifests}, "does not say which"},
		"depends-on-without-gitops": {bt.Platform{Options: defaults, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git, DependsOn: []string{"db-main"}}}},
			[]diag.Code{diag.NeedsGitOps, diag.NeedsGitOps}, "dependsOn of app-main needs"},
		"name-empty":      {with(one(bt.Git), func(p *bt.Platform) { p.Options = named("") }), []diag.Code{diag.BadSpec}, "no name for the Flux objects"},
		"name-upper":      {with(one(bt.Git), func(p *bt.Platform) { p.Options = named("App") }), []diag.Code{diag.BadSpec}, "no name for the Flux objects"},
		"name-assignment": {with(one(bt.Git), func(p *bt.Platform) { p.Options = named("dev-large-db-main-assignment") }), []diag.Code{diag.NameCollision}, "dev-large-db-main-assignment"},
		"name-root":       {with(one(bt.Git), func(p *bt.Platform) { p.Options = named("kalypso-dev-large") }), []diag.Code{diag.NameCollision}, "kalypso-dev-large"},
		"name-cluster":    {with(one(bt.Git), func(p *bt.Platform) { p.Options = named("kalypso-dev-large-cluster") }), []diag.Code{diag.NameCollision}, "kalypso-dev-large-cluster"},
		"name-assignment-long": {with(one(bt.Git), func(p *bt.Platform) {
			p.Options = named("dev-large-" + strings.Repeat("x", 63) + "-assignment")
		}), []diag.Code{diag.NameCollision}, "cannot be named"},
		"no-options": {with(one(bt.Git), func(p *bt.Platform) { p.Options = `{"interval": 5}` }), []diag.Code{diag.BadSpec, diag.BadSpec, diag.BadSpec}, "cannot be read"},
		"too-long": {with(one(bt.Git), func(p *bt.Platform) { p.Options = `{"interval": "99999999h", "namespace": "flux-system"}` }),
			[]diag.Code{diag.BadSpec, diag.BadSpec, diag.BadSpec}, "too long"},
		"gitops-protocol": {bt.Platform{Options: defaults, GitOps: &model.GitOps{Repo: "git://x/y", Branch: "main"}}, []diag.Code{diag.BadSpec}, "https, http or ssh"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, flux.New(), c.platform)
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

// Without gitops there are no assignment objects that a name could collide with.
func TestAnyNameWithoutGitOps(t *testing.T) {
	tree := bt.Build(t, flux.New(), bt.Platform{
		Options: `{"interval": "10m", "namespace": "flux-system", "prune": true, "wait": true, "namePattern": "dev-large-x-assignment"}`,
		Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git}},
	})
	if got := bt.Codes(tree.Diagnostics); !slices.Equal(got, []diag.Code{diag.NeedsGitOps}) { // of Bootstrap
		t.Errorf("got %v", got)
	}
	tree.Check(t)
}

// A folder of another backend is applied like any other, and its shared data is not read.
func TestForeignFolder(t *testing.T) {
	p := bt.Platform{Options: defaults, GitOps: bt.GitOps}
	files, ds := flux.New().Index(p.ClusterType(t), []backends.Folder{
		{DeploymentTarget: "app-main", DependsOn: []string{"db-main"}, Backend: "flux"},
		{DeploymentTarget: "db-main", Backend: "argocd", Shared: []byte(`{"noWait": true}`)},
	})
	if len(ds) > 0 {
		t.Errorf("got %+v", ds)
	}
	i := slices.IndexFunc(files, func(f backends.File) bool { return f.Path == "assignments.yaml" })
	if i < 0 || len(bt.Objects(t, files[i].Data)) != 2 {
		t.Errorf("got %v, want two assignments", files)
	}
}

// A pattern that makes two different long names must not make one short one.
func TestLongPatternsStayApart(t *testing.T) {
	names := map[backends.Object]string{}
	for _, suffix := range []string{"a", "b"} {
		p := bt.Platform{Options: `{"interval": "10m", "namespace": "flux-system", "namePattern": "` + strings.Repeat("x", 80) + suffix + `"}`}
		e, ds := flux.New().Emit(p.Assignment(t, bt.Target{Name: "app/" + suffix, Manifests: bt.Git}))
		if len(ds) > 0 {
			t.Fatal(ds)
		}
		for _, o := range e.Objects {
			if o.Namespace == "flux-system" && names[o] != "" {
				t.Errorf("%s and %s both create %v", names[o], suffix, o)
			}
			names[o] = suffix
		}
	}
}
