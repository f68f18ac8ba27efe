package observe_test

import (
	"fmt"
	"testing"
)

// The origin of a cluster's content is reported in full, as far as the reconciler's objects and
// their sources show it, and may be listed. A suspended source makes its objects suspended.
func TestOrigins(t *testing.T) {
	const (
		gitRepositories = "/apis/source.toolkit.fluxcd.io/v1/gitrepositories"
		ociRepositories = "/apis/source.toolkit.fluxcd.io/v1/ocirepositories"
		gitRepos        = "/apis/fleet.cattle.io/v1alpha1/gitrepos"
	)
	kustomization := func(kind string) object {
		return of("prod-eu-a-assignment", "prod/eu/a", `{"path": "./live/eu/a", "sourceRef": {"kind": "`+kind+`", "name": "tree"}}`,
			fmt.Sprintf(`{"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}], "lastAppliedRevision": "main@sha1:%s", "lastAttemptedRevision": "main@sha1:%[1]s"}`, newer))
	}
	git := func(spec string) []object {
		return []object{of("tree", "", `{"url": "https://me:secret@git.example/ops.git", `+spec+`}`, "{}")}
	}
	labels := object{
		"kalypso.io/environment": "prod", "kalypso.io/cluster-type": "eu", "kalypso.io/deployment-target": "a", "fleet.cattle.io/cluster": "c0",
		"fleet.cattle.io/commit": newer, "fleet.cattle.io/repo-name": "tree", "fleet.cattle.io/bundle-namespace": "n",
	}
	bundle := func(more string) object {
		out := of("b", "", `{"deploymentID": "1", "stagedDeploymentID": "1"`+more+`}`, `{"appliedDeploymentID": "1", "ready": true, "nonModified": true}`)
		out["metadata"].(object)["labels"] = labels
		return out
	}
	app := func(source, policy string) object {
		return of("prod-eu-a-assignment", "prod/eu/a", `{"source": `+source+`, "syncPolicy": `+policy+`}`, `{"sync": {"status": "Synced", "revision": "`+newer+`"}, "health": {"status": "Healthy"}}`)
	}
	const source = `{"repoURL": "https://git.example/ops.git", "targetRevision": "refs/heads/prod", "path": "live/eu/a"}`
	manual := app(source, `{}`)
	manual["metadata"].(object)["annotations"].(object)["kalypso.io/sync"] = "manual"
	for title, c := range map[string]struct {
		lists lists
		want  string
	}{
		"a branch":                       {lists{kustomizations: {kustomization("GitRepository")}, gitRepositories: git(`"ref": {"branch": "prod"}`)}, "ok https://git.example/ops.git prod live/eu/a"},
		"the default branch":             {lists{kustomizations: {kustomization("GitRepository")}, gitRepositories: git(`"interval": "1m"`)}, "ok https://git.example/ops.git master live/eu/a"},
		"a commit counts":                {lists{kustomizations: {kustomization("GitRepository")}, gitRepositories: git(`"ref": {"branch": "prod", "commit": "` + older + `"}`)}, "ok https://git.example/ops.git " + older + " live/eu/a"},
		"a ref of any name":              {lists{kustomizations: {kustomization("GitRepository")}, gitRepositories: git(`"ref": {"name": "refs/heads/prod", "branch": "x"}`)}, "ok https://git.example/ops.git prod live/eu/a"},
		"an artifact":                    {lists{kustomizations: {kustomization("OCIRepository")}, ociRepositories: {of("tree", "", `{"url": "oci://registry.example/ops"}`, "{}")}}, "ok oci://registry.example/ops  live/eu/a"},
		"sources that may not be listed": {lists{kustomizations: {kustomization("GitRepository")}, gitRepositories: nil}, "ok  main live/eu/a"},
		"no such API":                    {lists{kustomizations: {kustomization("GitRepository")}}, "ok  main live/eu/a"},
		"a suspended source": {lists{kustomizations: {kustomization("GitRepository")}, gitRepositories: git(`"ref": {"branch": "prod"}, "suspend": true`)},
			"suspended https://git.example/ops.git prod live/eu/a Kustomization n/prod-eu-a-assignment has a source that is suspended, GitRepository n/tree: it is at main@sha1:" + newer},
		"an Application":                 {lists{applications: {app(source, `{"automated": {}}`)}}, "ok https://git.example/ops.git prod live/eu/a"},
		"one that follows HEAD":          {lists{applications: {app(`{"repoURL": "https://git.example/ops.git", "targetRevision": "HEAD", "path": "live/eu/a"}`, `{"automated": {}}`)}}, "ok https://git.example/ops.git  live/eu/a"},
		"one without automated sync":     {lists{applications: {app(source, `{}`)}}, "suspended https://git.example/ops.git prod live/eu/a Application n/prod-eu-a-assignment has no automated sync: it is at " + newer},
		"one whose sync is switched off": {lists{applications: {app(source, `{"automated": {"enabled": false}}`)}}, "suspended https://git.example/ops.git prod live/eu/a Application n/prod-eu-a-assignment has no automated sync: it is at " + newer},
		"one that people are to sync":    {lists{applications: {manual}}, "ok https://git.example/ops.git prod live/eu/a"},
		"a bundle": {lists{bundleDeployments: {bundle("")}, gitRepos: {of("tree", "", `{"repo": "https://git.example/ops.git", "branch": "prod", "paths": ["live/eu/*"]}`, "{}")}},
			"ok https://git.example/ops.git prod live/eu/*"},
		"a bundle of a workload":  {lists{bundleDeployments: {bundle("")}, gitRepos: {of("tree", "", `{"repo": "https://git.example/shop.git", "paths": ["deploy"]}`, "{}")}}, "ok   "},
		"a bundle that is paused": {lists{bundleDeployments: {bundle(`, "paused": true`)}}, "suspended    BundleDeployment n/b is paused: it is deployed"},
		"a GitRepo that is paused": {lists{bundleDeployments: {bundle("")}, gitRepos: {of("tree", "", `{"repo": "https://git.example/ops.git", "paths": ["live/eu/*"], "paused": true}`, "{}")}},
			"suspended https://git.example/ops.git master live/eu/* BundleDeployment n/b has a GitRepo that is paused: it is deployed"},
	} {
		reports, err := contexts(t, c.lists).Reports(t.Context())
		if err != nil || len(reports) != 1 || len(reports[0].Items) != 1 {
			t.Errorf("%s: got %+v, %v", title, reports, err)
			continue
		}
		it := &reports[0].Items[0]
		got := fmt.Sprintf("%s %s %s %s", it.State, it.Repository, it.Branch, it.Path)
		if it.Message != "" {
			got += " " + it.Message
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", title, got, c.want)
		}
	}
}
