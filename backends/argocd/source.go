package argocd

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// indexInput is the data of a folder that Index needs for its Applications. It contains only
// differences from the usual case, because the provenance record contains it once per assignment.
type indexInput struct {
	// Repo is the source's URL, if kalypso makes the project; "" if the reconciler names
	// one.
	Repo string `json:"repo,omitempty"`
	// Destination is the cluster; nil if the reconciler does not name one.
	Destination *destination `json:"destination,omitempty"`
	// Clusters are the names of the clusters that the folder goes to, each by an Application
	// of an ApplicationSet; none if there is a Destination.
	Clusters []string `json:"clusters,omitempty"`
	// Own says that the workload's Application is in a project of its own. In records of earlier
	// releases, it is in the project of its workspace.
	Own bool `json:"own,omitempty"`
	// CreatesNamespace says that the workload's syncs may create the namespace.
	CreatesNamespace bool `json:"createsNamespace,omitempty"`
	// Bounds are the bounds of the workspace. It is nil if the workload may have any kind of object
	// in its namespace.
	Bounds *bounds `json:"bounds,omitempty"`
	// Permits are the permissions of the folder's project. It is nil in records of earlier
	// releases, whose projects permitted everything.
	Permits *permits `json:"permits,omitempty"`
	// Rendered has the fields with which the folder's Application syncs a workload in the folder
	// itself; nil if the workload has an Application of its own.
	Rendered *syncFields `json:"rendered,omitempty"`
}

// syncFields are the reconciler's fields that an assignment may set for itself.
type syncFields struct {
	SyncOptions       []string           `json:"syncOptions,omitempty"`
	IgnoreDifferences []ignoreDifference `json:"ignoreDifferences,omitempty"`
}

var (
	applicationKind = groupKind{Group: "argoproj.io", Kind: "Application"}
	setKind         = groupKind{Group: "argoproj.io", Kind: "ApplicationSet"}
)

// withDestination returns the shared data with the destination of the folder.
func (s indexInput) withDestination(a *backends.Assignment, o options) indexInput {
	if o.eachCluster() {
		for _, c := range a.Clusters {
			s.Clusters = append(s.Clusters, c.Name)
		}
	} else if d := o.destination(); d != (destination{Server: inCluster}) {
		s.Destination = &d
	}
	return s
}

// folder is a folder with its shared data.
type folder struct {
	backends.Folder
	indexInput
	// foreign says that another backend made the folder, and that its shared data is not
	// known.
	foreign bool
}

func (f folder) destination() destination {
	if f.Destination == nil {
		return destination{Server: inCluster}
	}
	return *f.Destination
}

// apart reports whether the list has the folder and its reconciler.yaml separately, because
// the objects of that file stay with Argo CD.
func (f folder) apart() bool { return f.remote() || len(f.Clusters) > 0 }

// hasApplication reports whether the folder contains an Application of the workload.
func (f folder) hasApplication() bool { return !f.foreign && f.Rendered == nil }

// remote reports whether the workload's Application must be listed apart from the
// folder.
func (f folder) remote() bool { return f.hasApplication() && f.destination().remote() }

// ignoreDifferences returns the differences that the folder's Application ignores.
func (s indexInput) ignoreDifferences() []ignoreDifference {
	if s.Rendered == nil {
		return nil
	}
	return s.Rendered.IgnoreDifferences
}

// read returns the folders with their shared data. It assumes that a foreign folder goes to the
// destination of the reconciler's folders, as a whole.
func read(o options, folders []backends.Folder) []folder {
	out := make([]folder, len(folders))
	for i, f := range folders {
		out[i] = folder{Folder: f, foreign: f.Backend != backend}
		if out[i].foreign {
			out[i].Destination = o.Destination
			continue
		}
		out[i].indexInput = delivery.SharedOf[indexInput](f, backend)
	}
	return out
}

// sourceOf returns the Application's source. Credentials are not a part of it:
// Argo CD finds them by URL in its own repository secrets, so a source's
// secretRef has no effect.
func sourceOf(a *backends.Assignment, o options) (source, []diag.Diagnostic) {
	from, ds := delivery.SourceOf(a)
	if diag.Errors(ds) {
		return source{}, ds
	}
	var s source
	field := "repo"
	switch {
	case from.Git != nil:
		s = gitSource(from.Git)
		if from.Helm != nil {
			s.Helm = release(a, from.Helm)
		}
		if from.Git.Verify != nil {
			ds = append(ds, unverified(a, from))
		}
	case from.OCI != nil:
		s, field = ociSource(from.OCI), "url"
		if from.OCI.Verify != nil {
			ds = append(ds, unverified(a, from))
		}
	default:
		s = chartSource(from.Helm)
		s.Helm = release(a, from.Helm)
		if from.Helm.OCI != "" {
			field = "oci"
		}
	}
	if from.Overlay != nil {
		s.Kustomize = changes(from.Overlay, kubernetes.RestartPatches(a),
			delivery.Images(a, from.Overlay))
	} else {
		const why = "Argo CD changes only what is fetched as an overlay"
		hint := "render it: set render: true on the deployment target"
		if from.Helm == nil {
			hint = "fetch it as an overlay, by manifests: kustomize, or " + hint
		}
		ds = append(ds, backends.NoRestart(a, why, hint)...)
	}
	// A project lists the URL, and reads it as a glob.
	if o.Project == "" && strings.ContainsAny(s.RepoURL, `*?[]{}\`) {
		ds = append(ds, delivery.Unsupported(a, from.Field+"."+field,
			"Argo CD's projects would read "+s.RepoURL+" as a pattern").
			Hinting("give the reconciler a project of your own"))
	}
	return s, ds
}

// release returns how Argo CD renders a chart. Argo CD loses a null in valuesObject. An
// ApplicationSet leaves such keys out (deeplyReplaceWithFilter in
// applicationset/utils/utils.go). For a merge patch of an Application, null means "no such
// key". Text keeps the null.
func release(a *backends.Assignment, h *model.Helm) *helmSource {
	r := &helmSource{SkipCRDs: h.CRDs == model.SkipCRDs, ReleaseName: delivery.ReleaseName(a, h)}
	r.ValuesObject = delivery.ChartValues(a, h)
	if r.ValuesObject != nil && delivery.HasNull(*r.ValuesObject) {
		r.Values, r.ValuesObject = string(yaml.Must(*r.ValuesObject)), nil
	}
	return r
}

// changes returns the changes to an overlay, with further patches after its own. It returns nil if
// there are no changes.
func changes(k *model.Kustomize, further []model.KustomPatch,
	images []model.KustomImage) *kustomizeSource {
	if len(k.Patches)+len(further)+len(images) == 0 && k.NamePrefix == "" {
		return nil
	}
	out := &kustomizeSource{NamePrefix: k.NamePrefix}
	for _, p := range slices.Concat(k.Patches, further) {
		out.Patches = append(out.Patches, patch{Patch: p.Patch, Target: p.Target})
	}
	for n, i := range images {
		if n >= len(k.Images) && i.NewTag == "" && i.Digest == "" {
			// Without a tag, Argo CD drops the tag of the overlay's own kustomization.yaml. An
			// asterisk keeps it.
			i.NewTag = "*"
		}
		out.Images = append(out.Images, imageOverride(i))
	}
	return out
}

// imageOverride returns a replacement in the form of `kustomize edit set image`, which Argo
// CD calls with it: name=newName:tag, or @digest.
func imageOverride(i model.KustomImage) string {
	out := i.Name
	if i.NewName != "" {
		out += "=" + i.NewName
	}
	switch {
	case i.Digest != "":
		out += "@" + i.Digest
	case i.NewTag != "":
		out += ":" + i.NewTag
	}
	return out
}

func unverified(a *backends.Assignment, from delivery.Source) diag.Diagnostic {
	return delivery.Unsupported(a, from.Field+".verify",
		"an Application of Argo CD verifies no signatures").
		Hinting("remove verify, and set sourceIntegrity in an AppProject of your own")
}

func gitSource(g *model.Git) source {
	s := source{RepoURL: g.Repo, Path: delivery.Path(g.Path)}
	switch {
	case g.Branch != "":
		s.TargetRevision = gitName("refs/heads/", g.Branch)
	case g.Tag != "":
		s.TargetRevision = gitName("refs/tags/", g.Tag)
	case g.Semver != "":
		s.TargetRevision = versions(g.Semver)
	default:
		s.TargetRevision = g.Commit
	}
	return s
}

// gitName returns a branch or a tag. Argo CD would read 1.x as a range of versions, so such
// a name is written in full.
func gitName(prefix, name string) string {
	if _, err := semver.NewVersion(name); err == nil {
		return name
	}
	if _, err := semver.NewConstraint(name); err != nil {
		return name
	}
	return prefix + name
}

// versions returns a range of versions. Argo CD reads a range that may be a single version, such as
// 1.2, as the name of a tag. Flux reads it as 1.2.x. With an equals sign, both read a range.
func versions(semverRange string) string {
	if _, err := semver.NewVersion(semverRange); err == nil {
		return "=" + semverRange
	}
	return semverRange
}

// ociSource is an artifact as Argo CD 3.1 and later read it
// (https://argo-cd.readthedocs.io/en/stable/user-guide/oci).
func ociSource(c *model.OCI) source {
	s := source{RepoURL: c.URL, Path: delivery.Path(c.Path)}
	switch {
	case c.Tag != "":
		s.TargetRevision = c.Tag
	case c.Semver != "":
		s.TargetRevision = versions(c.Semver)
	default:
		s.TargetRevision = c.Digest
	}
	return s
}

// chartSource is a chart. In an OCI registry it is an artifact like any other,
// and its path is always the root.
func chartSource(h *model.Helm) source {
	revision := h.Version
	if !delivery.Exact(revision) {
		revision = versions(revision)
	}
	if h.OCI == "" {
		return source{RepoURL: h.Repo, Chart: h.Chart, TargetRevision: revision}
	}
	if delivery.Exact(revision) {
		revision = delivery.ChartTag(revision)
	}
	return source{RepoURL: delivery.ChartURL(h), Path: ".", TargetRevision: revision}
}
