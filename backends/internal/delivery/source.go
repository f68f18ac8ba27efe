// Package delivery has the common steps of the backends whose reconcilers run on Kubernetes. It
// reads a deployment target's manifests, composes a chart's values, and lays out the assignment's
// folder. A function that cannot do its work returns the reasons as diagnostics. If it returns an
// error, do not use its other results.
//
// Take the deployment target performance-test of examples/hello-world. SourceOf returns its git
// source: the repository https://git.example.com/hello/app, the branch dev and the path
// ./performance-test, with the Field "git". Emission returns its folder with kustomization.yaml,
// which lists namespace.yaml, platform-config.yaml and reconciler.yaml.
package delivery

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Source is the source that a reconciler fetches: exactly one of Git, OCI and Helm, or both Git and
// Helm for a chart in a git repository.
type Source struct {
	Git  *model.Git
	OCI  *model.OCI
	Helm *model.Helm
	// Overlay has the changes to the overlay in the source; nil if there are no changes.
	Overlay *model.Kustomize
	// Field is the source's path in the manifests, for diagnostics.
	Field string
}

// Support returns the support of the reconcilers that fetch manifests and charts themselves, and
// apply them to Kubernetes.
func Support(kind model.SourceKind) backends.Support {
	switch kind {
	case model.PackageSource, model.AnsibleSource:
		const why = "it is for machines, and the reconciler is for Kubernetes"
		return backends.Support{Referenced: why, Rendered: why}
	case model.HelmPathSource:
		return backends.Support{Referenced: backends.OwnChart}
	}
	return backends.Support{}
}

// SourceOf returns the source of the assignment's manifests. The source of an overlay is the git or
// OCI source that contains it. SourceOf returns an error for a source that cannot be fetched. Every
// version or range is valid, a chart of a repository has a name, and a verified source is pinned.
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
		s = Source{Git: m.Helm.Git, Helm: m.Helm, Field: "helm"}
		if s.Git != nil {
			s.Field = "helm.git"
		}
		if len(m.Helm.ValuesFiles) > 0 {
			ds = append(ds, Unsupported(a, "helm.valuesFiles",
				"files of values are read where kalypso renders the chart, and the reconciler fetches this "+
					"one").
				Hinting("render it: set render: true on the deployment target; or write the values as values"))
		}
	case m.Kustomize != nil:
		s, ds = overlay(a, m.Kustomize)
	default:
		return s, []diag.Diagnostic{Unsupported(a, "", "the manifests have no source")}
	}
	return s, append(ds, check(a, s)...)
}

// check reports the fields of a source that no reconciler can fetch or verify.
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
		if s.Git.VerifiesNothing() { // from a pin: evaluate refuses it in the platform
			refuse("verify", "only a pinned tag can be verified", "pin the source with tag")
		}
	case s.OCI != nil:
		if s.OCI.Semver != "" && !isRange(s.OCI.Semver) {
			refuse("semver", notARange(s.OCI.Semver), "name a tag with tag")
		}
		if s.OCI.VerifiesNothing() {
			refuse("verify", "only a pinned tag or digest can be verified",
				"pin the source with tag or digest")
		}
	case s.Helm != nil:
		if !Exact(s.Helm.Version) && !isRange(s.Helm.Version) {
			refuse("version", notARange(s.Helm.Version),
				"charts have versions of SemVer, such as 1.2.3 or >=1.2 <2")
		}
		if s.Helm.Repo != "" && s.Helm.Chart == "" {
			refuse("chart", "a chart repository holds many charts, and chart does not say which",
				"name the chart with chart")
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

// ChartURL returns the URL of a chart in an OCI registry.
func ChartURL(h *model.Helm) string {
	if h.Chart == "" {
		return h.OCI
	}
	return strings.TrimRight(h.OCI, "/") + "/" + h.Chart
}

// Exact reports whether v is one version of SemVer 2.0. Flux, Argo CD and Helm also accept
// other versions, such as 1.2. Each decides in its own way whether they are ranges.
func Exact(v string) bool {
	_, err := semver.StrictNewVersion(v)
	return err == nil
}

// isRange reports whether v is a range of versions as Flux, Argo CD and Helm read
// it, all by the same library.
func isRange(v string) bool {
	_, err := semver.NewConstraint(v)
	return err == nil
}

// ChartTag returns the tag of a chart's version in an OCI registry. A tag cannot contain a
// plus sign, so Helm writes an underscore (https://helm.sh/docs/topics/registries).
func ChartTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// overlay returns the source of an overlay, at the overlay's path, with the changes to it.
// It reports changes that kustomize cannot make.
func overlay(a *backends.Assignment, k *model.Kustomize) (Source, []diag.Diagnostic) {
	var ds []diag.Diagnostic
	refuse := func(field, message, hint string) {
		ds = append(ds, Unsupported(a, "kustomize."+field, message).Hinting(hint))
	}
	for i, p := range k.Patches {
		if problem, hint := badPatch(p); problem != "" {
			refuse(fmt.Sprintf("patches[%d]", i), problem, hint)
		}
	}
	for i, image := range k.Images {
		if problem, hint := image.Problem(); problem != "" {
			refuse(fmt.Sprintf("images[%d]", i), problem, hint)
		}
	}
	ds = append(ds, checkImages(a, k)...)
	if k.NamePrefix != "" && !namePrefix.MatchString(k.NamePrefix) {
		refuse("namePrefix", fmt.Sprintf("no object can have a name that begins with %q", k.NamePrefix),
			"use lower case letters, digits, dashes and dots")
	}
	s := Source{Overlay: k}
	switch {
	case k.Git != nil:
		git := *k.Git
		git.Path = k.Path
		s.Git, s.Field = &git, "kustomize.git"
	case k.OCI != nil:
		oci := *k.OCI
		oci.Path = k.Path
		s.OCI, s.Field = &oci, "kustomize.oci"
	default:
		ds = append(ds, Unsupported(a, "kustomize", "the overlay has no source"))
	}
	return s, ds
}

// namePrefix begins the name of an object (RFC 1123).
var namePrefix = lazyregexp.New(`^[a-z0-9][a-z0-9.-]*$`)

// badPatch returns the reason why kustomize would refuse a patch. It returns "" for a valid patch.
func badPatch(p model.KustomPatch) (problem, hint string) {
	var patch any
	if err := yaml.Unmarshal([]byte(p.Patch), &patch); err != nil {
		return "the patch cannot be read: " + firstLine(err), "write a strategic merge patch, or a " +
			"list of JSON 6902 operations"
	}
	for _, field := range []string{"name", "namespace"} {
		if _, err := regexp.Compile(p.Target[field]); err != nil {
			return fmt.Sprintf("the target's %s is no regular expression: %s", field, firstLine(err)), ""
		}
	}
	switch patch := patch.(type) {
	case []any:
		if len(p.Target) == 0 {
			return "a JSON 6902 patch does not say which objects it changes", "name them with target"
		}
		for _, operation := range patch {
			o, _ := operation.(map[string]any)
			if op, _ := o["op"].(string); op == "" {
				return "an operation of the JSON 6902 patch has no op",
					"write op: add, remove, replace, move, copy or test"
			}
		}
	case map[string]any:
		metadata, _ := patch["metadata"].(map[string]any)
		if len(p.Target) == 0 &&
			(patch["kind"] == nil || patch["apiVersion"] == nil || metadata["name"] == nil) {
			return "a strategic merge patch names the object that it changes, by apiVersion, kind and " +
				"metadata.name", "name it there, or the objects with target"
		}
	default:
		return "the patch is neither a strategic merge patch nor a list of JSON 6902 operations", ""
	}
	return "", ""
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// ChartValues returns the values of the assignment's chart: the application's values, with
// the platform's values under the path platformValues. There, null removes a default of the
// chart. It returns nil if there are no values. Composition has checked that the application
// has no values under that path. Helm does not know the text of a number, so numbers are in
// canonical form.
func ChartValues(a *backends.Assignment, h *model.Helm) *model.Value {
	values := model.StructOf()
	if h.Values != nil {
		values = *h.Values
	}
	if h.PlatformValues != "" {
		values, _ = values.Insert(strings.Split(h.PlatformValues, "."), model.Merge(a.Removed, a.Values))
	} else if len(values.Fields()) == 0 {
		return nil
	}
	values = values.Canonical()
	return &values
}

// HasNull reports whether a value is null, or contains a null. Reconcilers that change
// objects with merge patches lose nulls, because a merge patch reads null as "no such key".
func HasNull(v model.Value) bool {
	return v.Kind() == model.Null || slices.ContainsFunc(v.Elems(), HasNull) ||
		slices.ContainsFunc(v.Fields(), func(f model.Field) bool { return HasNull(f.Value) })
}

// ClusterValues refers to the values of a cluster.
func ClusterValues(c *model.Cluster) model.Ref {
	return model.Ref{Collection: "clusters", Name: c.Name, Path: "values"}
}

// ReleaseName returns the name of the chart's release.
func ReleaseName(a *backends.Assignment, h *model.Helm) string {
	if h.ReleaseName != "" {
		return h.ReleaseName
	}
	return model.ShortName(a.DeploymentTarget, model.MaxHelmRelease)
}
