// Package delivery is what the backends whose reconcilers run on Kubernetes do
// alike: it reads a deployment target's manifests, composes a chart's values,
// and lays out the assignment's folder. A function that cannot do its work says
// why in diagnostics; what it returns beside an error is not to be used.
package delivery

import (
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Source is what a reconciler fetches: exactly one of Git, OCI and Helm.
type Source struct {
	Git  *model.Git
	OCI  *model.OCI
	Helm *model.Helm
	// Overlay has the changes to the overlay that the source holds; nil where it
	// holds none.
	Overlay *model.Kustomize
	// Field is the source's path in the manifests, for diagnostics.
	Field string
}

// Support is that of the reconcilers which fetch manifests and charts themselves,
// and bring them to Kubernetes.
func Support(kind model.SourceKind) backends.Support {
	switch kind {
	case model.PackageSource, model.AnsibleSource:
		const why = "it is for machines, and the reconciler is for Kubernetes"
		return backends.Support{Referenced: why, Rendered: why}
	}
	return backends.Support{}
}

// SourceOf returns the source of the assignment's manifests: an overlay is the
// git or OCI source that holds it. What it returns can be fetched: a version or
// range is one, a chart of a repository has a name, a verified source is pinned.
func SourceOf(a *backends.Assignment) (Source, []diag.Diagnostic) {
	var s Source
	var ds []diag.Diagnostic
	m := a.Manifests
	switch {
	case m.Git != nil:
		s = Source{Git: m.Git, Field: "git"}
	case m.OCI != nil:
		s = Source{OCI: m.OCI, Field: "oci"}
	case m.Helm != nil:
		s = Source{Helm: m.Helm, Field: "helm"}
	case m.Kustomize != nil:
		s, ds = overlay(a, m.Kustomize)
	default:
		return s, []diag.Diagnostic{Unsupported(a, "", "the manifests have no source")}
	}
	return s, append(ds, check(a, s)...)
}

// check says what of a source no reconciler can fetch or verify.
func check(a *backends.Assignment, s Source) []diag.Diagnostic {
	var ds []diag.Diagnostic
	refuse := func(field, message, hint string) {
		ds = append(ds, Unsupported(a, s.Field+"."+field, message).Hinting(hint))
	}
	switch {
	case s.Git != nil:
		if s.Git.Semver != "" && !isRange(s.Git.Semver) {
			refuse("semver", notARange(s.Git.Semver), "name a tag with tag")
		}
		if s.Git.VerifiesNothing() { // by a pin: evaluate refuses what is written
			refuse("verify", "only a pinned tag can be verified", "pin the source with tag")
		}
	case s.OCI != nil:
		if s.OCI.Semver != "" && !isRange(s.OCI.Semver) {
			refuse("semver", notARange(s.OCI.Semver), "name a tag with tag")
		}
		if s.OCI.VerifiesNothing() {
			refuse("verify", "only a pinned tag or digest can be verified", "pin the source with tag or digest")
		}
	case s.Helm != nil:
		if !Exact(s.Helm.Version) && !isRange(s.Helm.Version) {
			refuse("version", notARange(s.Helm.Version), "charts have versions of SemVer, such as 1.2.3 or >=1.2 <2")
		}
		if s.Helm.Repo != "" && s.Helm.Chart == "" {
			refuse("chart", "a chart repository holds many charts, and chart does not say which", "name the chart with chart")
		}
	}
	return ds
}

func notARange(v string) string { return v + " is neither a version nor a range of versions" }

// Unsupported returns the diagnostic that a field of the assignment's manifests
// cannot be delivered.
func Unsupported(a *backends.Assignment, field, message string) diag.Diagnostic {
	path := model.JoinPath("manifests", field)
	return diag.New(diag.UnsupportedManifests, message).On(path).At(a.Ref.At(path), "").For(a.ID())
}

// ChartURL returns where a chart of an OCI registry lies.
func ChartURL(h *model.Helm) string {
	if h.Chart == "" {
		return h.OCI
	}
	return strings.TrimRight(h.OCI, "/") + "/" + h.Chart
}
