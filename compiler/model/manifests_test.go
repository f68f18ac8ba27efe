package model

import "testing"

// Versions are derived from the source in a fixed order: the chart, a tag, a digest, a commit.
func TestVersion(t *testing.T) {
	commit, digest := "0123456789abcdef0123456789abcdef01234567", "sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	for name, c := range map[string]struct {
		of   Manifests
		want string
		from VersionSource
	}{
		"chart":         {Manifests{Helm: &Helm{Version: "1.2.3"}}, "1.2.3", ChartVersion},
		"chart range":   {Manifests{Helm: &Helm{Version: "1.x"}}, "1.x", ChartVersion},
		"chart git tag": {Manifests{Helm: &Helm{Git: &Git{Tag: "v1"}}}, "v1", TagVersion},
		"chart folder":  {Manifests{Helm: &Helm{Path: "charts/a"}}, "", ""},
		"git tag":       {Manifests{Git: &Git{Tag: "v2"}}, "v2", TagVersion},
		"git commit":    {Manifests{Git: &Git{Commit: commit}}, "0123456789ab", CommitVersion},
		"git branch":    {Manifests{Git: &Git{Branch: "main"}}, "", ""},
		"git range":     {Manifests{Git: &Git{Semver: ">=1"}}, "", ""},
		"oci tag":       {Manifests{OCI: &OCI{Tag: "3"}}, "3", TagVersion},
		"oci digest":    {Manifests{OCI: &OCI{Digest: digest}}, "fedcba987654", DigestVersion},
		"overlay git":   {Manifests{Kustomize: &Kustomize{Git: &Git{Tag: "v4"}}}, "v4", TagVersion},
		"overlay oci":   {Manifests{Kustomize: &Kustomize{OCI: &OCI{Digest: digest}}}, "fedcba987654", DigestVersion},
		"playbook":      {Manifests{Ansible: &Playbook{Git: &Git{Commit: commit}}}, "0123456789ab", CommitVersion},
		"package":       {Manifests{Package: &Package{}}, "", ""},
		"nothing":       {Manifests{}, "", ""},
	} {
		if version, from := c.of.Version(); version != c.want || from != c.from {
			t.Errorf("%s: got %q from %q, want %q from %q", name, version, from, c.want, c.from)
		}
	}
}
