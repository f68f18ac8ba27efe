package zarf_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends/zarf"
	"github.com/kalypso-io/kalypso/compiler/diag"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// component has the fields of a shared component that the tests check.
type component struct{ Images, Repos []string }

// TestSources checks the list of sources that the agents of Flux and Argo CD pull at the
// site.
func TestSources(t *testing.T) {
	flux := func(kind, spec string) string {
		version := "source.toolkit.fluxcd.io/v1"
		if kind == "HelmRelease" {
			version = "helm.toolkit.fluxcd.io/v2"
		}
		return `{"apiVersion": "` + version + `", "kind": "` + kind + `", "metadata": {"name": "x", "namespace": "flux-system"}, "spec": ` + spec + `}`
	}
	git := func(ref string) []string {
		return []string{flux("GitRepository", `{"url": "https://git.example.test/app.git", "ref": `+ref+`}`)}
	}
	argo := func(source string) []string {
		return []string{`{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "x"}, "spec": {"source": ` + source + `}}`}
	}
	const repo = "https://git.example.test/app.git"
	release := `{"chart": {"spec": {"chart": "app", "version": "1.2.3+b", "sourceRef": {"kind": "HelmRepository", "name": "x"}}}}`
	for name, c := range map[string]struct {
		objects []string
		want    string // the component's repos and images
		codes   []diag.Code
	}{
		"git-commit":      {git(`{"branch": "main", "commit": "` + commit + `"}`), repo + "@" + commit, nil},
		"git-tag":         {git(`{"branch": "main", "tag": "v1"}`), repo + "@v1", nil},
		"git-name-tag":    {git(`{"name": "refs/tags/v1"}`), repo + "@refs/tags/v1", nil},
		"git-name":        {git(`{"name": "refs/pull/1/head"}`), repo + "@refs/pull/1/head", []diag.Code{diag.Unpinned}},
		"git-branch":      {git(`{"branch": "main"}`), repo + "@refs/heads/main", []diag.Code{diag.Unpinned}},
		"git-semver":      {git(`{"semver": "1.x", "tag": "v1"}`), repo, []diag.Code{diag.Unpinned}},
		"git-default":     {git(`{}`), repo + "@refs/heads/master", []diag.Code{diag.Unpinned}},
		"git-ssh":         {[]string{flux("GitRepository", `{"url": "ssh://git@git.example.test/app", "ref": {"tag": "v1"}}`)}, "ssh://git@git.example.test/app@v1", nil},
		"git-no-url":      {[]string{flux("GitRepository", `{}`)}, "", []diag.Code{diag.UnsupportedManifests}},
		"git-odd-tag":     {git(`{"tag": "v1 x"}`), "", []diag.Code{diag.UnsupportedManifests}},
		"oci-digest":      {[]string{flux("OCIRepository", `{"url": "oci://registry.example.test/app", "ref": {"tag": "1", "digest": "`+digest+`"}}`)}, "registry.example.test/app@" + digest, nil},
		"oci-tag":         {[]string{flux("OCIRepository", `{"url": "oci://registry.example.test/app", "ref": {"tag": "1"}}`)}, "registry.example.test/app:1", []diag.Code{diag.Unpinned}},
		"oci-latest":      {[]string{flux("OCIRepository", `{"url": "oci://registry.example.test/app"}`)}, "registry.example.test/app:latest", []diag.Code{diag.Unpinned}},
		"oci-semver":      {[]string{flux("OCIRepository", `{"url": "oci://x/y", "ref": {"semver": "1.x", "tag": "1"}}`)}, "", []diag.Code{diag.UnsupportedManifests}},
		"oci-bad":         {[]string{flux("OCIRepository", `{"url": "oci://X/Y"}`)}, "", []diag.Code{diag.UnsupportedManifests}},
		"helm-http":       {[]string{flux("HelmRepository", `{"url": "https://charts.example.test"}`), flux("HelmRelease", release)}, "", []diag.Code{diag.NoEffect}},
		"helm-oci":        {[]string{flux("HelmRelease", release), flux("HelmRepository", `{"type": "oci", "url": "oci://registry.example.test/charts/"}`)}, "registry.example.test/charts/app:1.2.3_b", []diag.Code{diag.Unpinned}},
		"helm-range":      {[]string{flux("HelmRepository", `{"url": "oci://r.example.test"}`), flux("HelmRelease", strings.Replace(release, "1.2.3+b", "1.x", 1))}, "", []diag.Code{diag.UnsupportedManifests}},
		"helm-v":          {[]string{flux("HelmRepository", `{"url": "oci://r.example.test"}`), flux("HelmRelease", strings.Replace(release, "1.2.3+b", "v1.2.3", 1))}, "r.example.test/app:v1.2.3", []diag.Code{diag.Unpinned}},
		"helm-elsewhere":  {[]string{flux("HelmRelease", release)}, "", nil},
		"helm-reference":  {[]string{flux("HelmRelease", `{"chartRef": {"kind": "OCIRepository", "name": "x"}}`)}, "", nil},
		"argo-commit":     {argo(`{"repoURL": "` + repo + `", "targetRevision": "` + commit + `"}`), repo + "@" + commit, nil},
		"argo-tag":        {argo(`{"repoURL": "` + repo + `", "targetRevision": "refs/tags/v1"}`), repo + "@refs/tags/v1", nil},
		"argo-branch":     {argo(`{"repoURL": "` + repo + `", "targetRevision": "refs/heads/main"}`), repo + "@refs/heads/main", []diag.Code{diag.Unpinned}},
		"argo-name":       {argo(`{"repoURL": "` + repo + `", "targetRevision": "v1.2.3"}`), repo, []diag.Code{diag.Unpinned}},
		"argo-head":       {argo(`{"repoURL": "` + repo + `"}`), repo, []diag.Code{diag.Unpinned}},
		"argo-oci":        {argo(`{"repoURL": "oci://registry.example.test/app", "targetRevision": "` + digest + `"}`), "registry.example.test/app@" + digest, nil},
		"argo-oci-tag":    {argo(`{"repoURL": "oci://registry.example.test/app", "targetRevision": "main"}`), "registry.example.test/app:main", []diag.Code{diag.Unpinned}},
		"argo-oci-range":  {argo(`{"repoURL": "oci://registry.example.test/app", "targetRevision": "^1.2"}`), "", []diag.Code{diag.UnsupportedManifests}},
		"argo-chart-oci":  {argo(`{"repoURL": "oci://registry.example.test/charts/app", "path": ".", "targetRevision": "1.2.3+b"}`), "registry.example.test/charts/app:1.2.3_b", []diag.Code{diag.Unpinned}},
		"argo-chart-bare": {argo(`{"repoURL": "registry.example.test/charts", "chart": "app", "targetRevision": "1.2.3"}`), "", []diag.Code{diag.UnsupportedManifests}},
		"argo-chart-http": {argo(`{"repoURL": "https://charts.example.test", "chart": "app", "targetRevision": "1.2.3"}`), "", []diag.Code{diag.UnsupportedManifests}},
		"argo-several": {[]string{`{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "x"}, "spec": {"sources": [
			{"repoURL": "https://git.example.test/b", "targetRevision": "` + commit + `"}, {"repoURL": "https://git.example.test/a", "targetRevision": "` + commit + `", "ref": "values"}]}}`},
			"https://git.example.test/a@" + commit + " https://git.example.test/b@" + commit, nil},
		"argo-set": {[]string{`{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "x"}, "spec": {"template": {"spec": {"source": {"repoURL": "https://git.example.test/a", "targetRevision": "` + commit + `"}}}}}`},
			"https://git.example.test/a@" + commit, nil},
		"argo-set-generator": {[]string{`{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "x"}, "spec": {"generators": [{"list": {}}, {"git": {"repoURL": "https://git.example.test/a", "revision": "refs/tags/v1"}}]}}`},
			"https://git.example.test/a@refs/tags/v1", nil},
		"argo-set-template": {[]string{`{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "x"}, "spec": {"template": {"spec": {"source": {"repoURL": "{{ .url }}", "targetRevision": "HEAD"}}}}}`},
			"", []diag.Code{diag.UnsupportedManifests}},
		"list": {[]string{`{"apiVersion": "v1", "kind": "List", "items": ` + "[" + strings.Join(git(`{"tag": "v1"}`), ",") + "]}"}, repo + "@v1", nil},
		"other": {[]string{
			`{"apiVersion": "example.test/v1", "kind": "GitRepository", "metadata": {"name": "x"}, "spec": {"url": "https://git.example.test/a"}}`,
			`{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "x"}, "spec": "?"}`,
			flux("Bucket", `{"bucketName": "x"}`)}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := bt.Platform{Options: defaults}
			a := p.Assignment(t, bt.Target{Name: "app/main", Manifests: bt.Git, Projection: projected(t, commit, c.objects...)})
			emission, ds := zarf.New().Emit(a)
			var got component
			if !diag.Errors(ds) {
				if err := json.Unmarshal(emission.Shared, &got); err != nil {
					t.Fatal(err)
				}
			}
			if listed := strings.Join(append(got.Repos, got.Images...), " "); listed != c.want {
				t.Errorf("got %s, want %s", listed, c.want)
			}
			if codes := bt.Codes(ds); !slices.Equal(codes, c.codes) {
				t.Errorf("got %+v, want %v", ds, c.codes)
			}
			for _, d := range ds {
				if d.Hint == "" || len(d.Sites) == 0 {
					t.Errorf("no site or no way out: %+v", d)
				}
			}
		})
	}
}
