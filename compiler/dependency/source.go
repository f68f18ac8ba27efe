package dependency

import (
	"cmp"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
)

// Kind is a kind of source.
type Kind string

// The kinds of sources.
const (
	Git    Kind = "git"    // a git repository
	Chart  Kind = "chart"  // a Helm chart, of a chart repository or an OCI registry
	OCI    Kind = "oci"    // an OCI artifact
	Module Kind = "module" // a CUE module
)

// Source is a dependency as the platform's files name it: the place of its content, and the
// revision. Equal sources share one entry of the lock.
type Source struct {
	Kind Kind `json:"kind"`
	// URL is the address of a git repository or of a chart repository. For a chart or an
	// artifact in a registry, it is oci://HOST/PATH. For a CUE module, it is the module's
	// path with its major version, such as example.com/base@v1.
	URL string `json:"url"`
	// Chart names the chart of a chart repository.
	Chart string `json:"chart,omitempty"`

	// Exactly one of these selects the revision. A git repository has Branch, Tag, Semver
	// (the newest tag in a range) and Commit. A chart has Version, which may be a range. An
	// OCI artifact has Tag, Semver and Digest. A module has Version.
	Branch  string `json:"branch,omitempty"`
	Tag     string `json:"tag,omitempty"`
	Semver  string `json:"semver,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

// SourceOf returns the source of manifests. It returns false for a chart in the platform's
// folder, and for a package of a machine, which fetches its files itself.
func SourceOf(m model.Manifests) (Source, bool) {
	switch {
	case m.Git != nil:
		return gitSource(m.Git), true
	case m.OCI != nil:
		return ociSource(m.OCI), true
	case m.Helm != nil && m.Helm.Git != nil:
		return gitSource(m.Helm.Git), true
	case m.Helm != nil && m.Helm.Path == "":
		return chartSource(m.Helm), true
	case m.Kustomize != nil && m.Kustomize.Git != nil:
		return gitSource(m.Kustomize.Git), true
	case m.Kustomize != nil && m.Kustomize.OCI != nil:
		return ociSource(m.Kustomize.OCI), true
	case m.Ansible != nil && m.Ansible.Git != nil:
		return gitSource(m.Ansible.Git), true
	}
	return Source{}, false
}

func gitSource(g *model.Git) Source {
	return Source{Kind: Git, URL: g.Repo, Branch: g.Branch, Tag: g.Tag, Semver: g.Semver,
		Commit: g.Commit}
}

func ociSource(o *model.OCI) Source {
	return Source{Kind: OCI, URL: o.URL, Tag: o.Tag, Semver: o.Semver, Digest: o.Digest}
}

// chartSource returns the source of a chart. In an OCI registry, the chart's name is
// appended to the URL, so each chart has only one form.
func chartSource(h *model.Helm) Source {
	s := Source{Kind: Chart, URL: h.Repo, Chart: h.Chart, Version: h.Version}
	if h.Repo == "" {
		s.URL, s.Chart = h.OCI, ""
		if h.Chart != "" {
			s.URL = strings.TrimRight(h.OCI, "/") + "/" + h.Chart
		}
	}
	return s
}

// revisionField is a field of a source that selects the revision, with its value.
type revisionField struct{ name, value string }

func (s Source) revisionFields() []revisionField {
	var fields []revisionField
	for _, f := range []revisionField{
		{"branch", s.Branch}, {"tag", s.Tag}, {"semver", s.Semver},
		{"commit", s.Commit}, {"version", s.Version}, {"digest", s.Digest},
	} {
		if f.value != "" {
			fields = append(fields, f)
		}
	}
	return fields
}

// String returns the source for people, on one line: "git https://example.com/app branch
// main", "chart podinfo >=1.2 <2 of https://example.com/charts". It has no password,
// whatever the URL is.
func (s Source) String() string {
	url, which := credential.Hide(s.URL), ""
	for _, f := range s.revisionFields() {
		if f.name != "version" {
			which += " " + f.name
		}
		which += " " + f.value
	}
	if s.Chart != "" {
		return string(s.Kind) + " " + s.Chart + which + " of " + url
	}
	return string(s.Kind) + " " + url + which
}

// compare orders sources by kind, URL, chart, and revision.
func (s Source) compare(t Source) int {
	return cmp.Or(
		cmp.Compare(s.Kind, t.Kind), cmp.Compare(s.URL, t.URL), cmp.Compare(s.Chart, t.Chart),
		cmp.Compare(s.Branch, t.Branch), cmp.Compare(s.Tag, t.Tag), cmp.Compare(s.Semver, t.Semver),
		cmp.Compare(s.Commit, t.Commit), cmp.Compare(s.Version, t.Version),
		cmp.Compare(s.Digest, t.Digest),
	)
}
