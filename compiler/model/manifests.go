package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Manifests is the source of a deployment target's manifests. Exactly one of the sources is
// set.
type Manifests struct {
	Git       *Git       `json:"git,omitempty"`
	OCI       *OCI       `json:"oci,omitempty"`
	Helm      *Helm      `json:"helm,omitempty"`
	Kustomize *Kustomize `json:"kustomize,omitempty"`
	Package   *Package   `json:"package,omitempty"`
	Ansible   *Playbook  `json:"ansible,omitempty"`
	// Attributes are for the platform's own templates and functions: a struct of
	// strings, or nil.
	Attributes *Value `json:"attributes,omitempty"`
}

// SourceKind is a kind of manifests, named like its field in schema.#Manifests. A chart in a folder
// has a kind of its own, which is the path of the field.
type SourceKind string

// The kinds of manifests.
const (
	GitSource       SourceKind = "git"
	OCISource       SourceKind = "oci"
	HelmSource      SourceKind = "helm"      // of a chart repository or an OCI registry
	HelmGitSource   SourceKind = "helm.git"  // in a git repository
	HelmPathSource  SourceKind = "helm.path" // in the platform's folder; it is always rendered
	KustomizeSource SourceKind = "kustomize"
	PackageSource   SourceKind = "package"
	AnsibleSource   SourceKind = "ansible"
)

// SourceKinds are all kinds of manifests, in the schema's order.
var SourceKinds = []SourceKind{GitSource, OCISource, HelmSource, HelmGitSource, HelmPathSource,
	KustomizeSource, PackageSource, AnsibleSource}

// Kind returns the kind of the manifests. It returns "" if no source is set.
func (m Manifests) Kind() SourceKind {
	switch {
	case m.Git != nil:
		return GitSource
	case m.OCI != nil:
		return OCISource
	case m.Helm != nil && m.Helm.Git != nil:
		return HelmGitSource
	case m.Helm != nil && m.Helm.Path != "":
		return HelmPathSource
	case m.Helm != nil:
		return HelmSource
	case m.Kustomize != nil:
		return KustomizeSource
	case m.Package != nil:
		return PackageSource
	case m.Ansible != nil:
		return AnsibleSource
	}
	return ""
}

// VersionSource is the part of a source that gave a version: "" for a version that the platform
// names.
type VersionSource string

// The sources of derived versions.
const (
	ChartVersion  VersionSource = "chart"  // the version of the chart
	TagVersion    VersionSource = "tag"    // a tag of a git repository or an OCI artifact
	DigestVersion VersionSource = "digest" // the first 12 digits of an OCI artifact's digest
	CommitVersion VersionSource = "commit" // the first 12 digits of a commit's id
)

// Compares reports whether versions of this source are compared: versions that the
// platform names, and versions of charts.
func (s VersionSource) Compares() bool { return s == "" || s == ChartVersion }

// Version derives a version from the fields of the manifests: of the chart, or else the tag, the
// digest or the commit. It returns "" for a source that names only a branch or a range of tags.
func (m Manifests) Version() (string, VersionSource) {
	var g *Git
	var o *OCI
	switch {
	case m.Helm != nil && m.Helm.Version != "":
		return m.Helm.Version, ChartVersion
	case m.Helm != nil:
		g = m.Helm.Git
	case m.Kustomize != nil:
		g, o = m.Kustomize.Git, m.Kustomize.OCI
	case m.Ansible != nil:
		g = m.Ansible.Git
	default:
		g, o = m.Git, m.OCI
	}
	switch {
	case g != nil && g.Tag != "":
		return g.Tag, TagVersion
	case o != nil && o.Tag != "":
		return o.Tag, TagVersion
	case o != nil && o.Digest != "":
		return ShortRevision(o.Digest), DigestVersion
	case g != nil && g.Commit != "":
		return ShortRevision(g.Commit), CommitVersion
	}
	return "", ""
}

// ShortRevision returns the first 12 digits of a commit's id, or of a digest.
func ShortRevision(revision string) string {
	revision = strings.TrimPrefix(revision, "sha256:")
	return revision[:min(12, len(revision))]
}

// WithoutSecrets returns a copy of the manifests without the names of secrets with credentials.
// Functions and templates that are not the platform's own get this copy.
func (m Manifests) WithoutSecrets() Manifests {
	git := func(g *Git) *Git {
		if g == nil {
			return nil
		}
		out := *g
		out.SecretRef = ""
		return &out
	}
	oci := func(o *OCI) *OCI {
		if o == nil {
			return nil
		}
		out := *o
		out.SecretRef = ""
		return &out
	}
	m.Git, m.OCI = git(m.Git), oci(m.OCI)
	if m.Helm != nil {
		helm := *m.Helm
		helm.SecretRef, helm.Git = "", git(helm.Git)
		m.Helm = &helm
	}
	if m.Kustomize != nil {
		overlay := *m.Kustomize
		overlay.Git, overlay.OCI = git(overlay.Git), oci(overlay.OCI)
		m.Kustomize = &overlay
	}
	if m.Ansible != nil {
		playbook := *m.Ansible
		playbook.Git = git(playbook.Git)
		m.Ansible = &playbook
	}
	return m
}

// CRDs describes the lifecycle of the CustomResourceDefinitions of rendered manifests.
type CRDs string

// The values of CRDs. The zero value "" means KeepCRDs.
const (
	KeepCRDs   CRDs = "keep"   // they outlive the assignment
	DeleteCRDs CRDs = "delete" // they are deleted with the assignment
	SkipCRDs   CRDs = "skip"   // they are not applied
)

// CRDs returns the setting of the source for CustomResourceDefinitions. It returns "" if the
// source has no setting.
func (m Manifests) CRDs() CRDs {
	switch {
	case m.Git != nil:
		return m.Git.CRDs
	case m.OCI != nil:
		return m.OCI.CRDs
	case m.Helm != nil:
		return m.Helm.CRDs
	case m.Kustomize != nil:
		return m.Kustomize.CRDs
	}
	return ""
}

// Git is a folder of a git repository, at exactly one of Branch, Tag, Semver
// and Commit.
type Git struct {
	Repo      string     `json:"repo"`
	Branch    string     `json:"branch,omitempty"`
	Tag       string     `json:"tag,omitempty"`
	Semver    string     `json:"semver,omitempty"`
	Commit    string     `json:"commit,omitempty"`
	Path      string     `json:"path,omitempty"`
	SecretRef string     `json:"secretRef,omitempty"`
	Anonymous bool       `json:"anonymous,omitempty"`
	Verify    *GitVerify `json:"verify,omitempty"`
	CRDs      CRDs       `json:"crds,omitempty"`
}

// VerifiesNothing reports whether the source asks for verification of a commit that is not a
// pinned tag. Only a pinned tag can be verified.
func (g *Git) VerifiesNothing() bool { return g != nil && g.Verify != nil && g.Tag == "" }

// GitVerify verifies the signatures of a git tag.
type GitVerify struct {
	Mode      string `json:"mode"`
	SecretRef string `json:"secretRef"`
}

// OCI is a folder of an OCI artifact, at exactly one of Tag, Semver and Digest.
type OCI struct {
	URL       string     `json:"url"`
	Tag       string     `json:"tag,omitempty"`
	Semver    string     `json:"semver,omitempty"`
	Digest    string     `json:"digest,omitempty"`
	Path      string     `json:"path,omitempty"`
	SecretRef string     `json:"secretRef,omitempty"`
	Anonymous bool       `json:"anonymous,omitempty"`
	Verify    *OCIVerify `json:"verify,omitempty"`
	CRDs      CRDs       `json:"crds,omitempty"`
}

// VerifiesNothing reports whether the source asks for verification of an artifact without a
// pinned tag or digest. Only these can be verified.
func (o *OCI) VerifiesNothing() bool {
	return o != nil && o.Verify != nil && o.Tag == "" && o.Digest == ""
}

// OCIVerify verifies the signature of an OCI artifact.
type OCIVerify struct {
	Provider          string         `json:"provider"`
	SecretRef         string         `json:"secretRef,omitempty"`
	MatchOIDCIdentity []OIDCIdentity `json:"matchOIDCIdentity,omitempty"`
}

// OIDCIdentity is an identity that a keyless signature may carry.
type OIDCIdentity struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// Helm is a chart of a chart repository (Repo), an OCI registry (OCI), a git repository (Git), or
// a folder of the platform (Path, relative to its root). Only the first two have a Version.
type Helm struct {
	Repo    string `json:"repo,omitempty"`
	OCI     string `json:"oci,omitempty"`
	Git     *Git   `json:"git,omitempty"`
	Path    string `json:"path,omitempty"`
	Chart   string `json:"chart,omitempty"`
	Version string `json:"version,omitempty"`
	// ValuesFiles are files of values, the later over the earlier. Their paths are relative to the
	// root of the git repository, to the root of the platform, or to the chart.
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	// Values are the values of the chart; nil before they are composed.
	Values         *Value `json:"values,omitempty"`
	ReleaseName    string `json:"releaseName,omitempty"`
	PlatformValues string `json:"platformValues,omitempty"`
	SecretRef      string `json:"secretRef,omitempty"`
	Anonymous      bool   `json:"anonymous,omitempty"`
	CRDs           CRDs   `json:"crds,omitempty"`
}

// Kustomize is an overlay, from exactly one of Git and OCI, with changes to it. The Path of the
// source is empty.
type Kustomize struct {
	Git        *Git          `json:"git,omitempty"`
	OCI        *OCI          `json:"oci,omitempty"`
	Path       string        `json:"path"`
	Patches    []KustomPatch `json:"patches,omitempty"`
	Images     []KustomImage `json:"images,omitempty"`
	NamePrefix string        `json:"namePrefix,omitempty"`
	CRDs       CRDs          `json:"crds,omitempty"`
}

// KustomPatch is a patch of a Kustomize overlay.
type KustomPatch struct {
	Patch  string            `json:"patch"`
	Target map[string]string `json:"target,omitempty"`
}

// Image replaces the references of one image, by its Name, or of all images in a Registry, which
// is in full: docker.io, or docker.io/library. Exactly one of the two is set.
type Image struct {
	KustomImage
	Registry    string `json:"registry,omitempty"`
	NewRegistry string `json:"newRegistry,omitempty"`
}

// KustomImage is an image reference to replace.
type KustomImage struct {
	Name    string `json:"name,omitempty"`
	NewName string `json:"newName,omitempty"`
	NewTag  string `json:"newTag,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

// An image's name has no tag and no digest: a registry with its port, and a path
// (https://pkg.go.dev/github.com/distribution/reference).
var (
	imageName = lazyregexp.New(`^([A-Za-z0-9.-]+(:[0-9]+)?/)?[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)
	imageTag  = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
)

// FinalName returns the name that the image has after the replacement.
func (i KustomImage) FinalName() string { return cmp.Or(i.NewName, i.Name) }

// Problem returns the reason why an image cannot be replaced. It returns "" if it can.
func (i KustomImage) Problem() (problem, hint string) {
	for _, name := range []string{i.Name, i.NewName} {
		if name != "" && !imageName.MatchString(name) {
			return fmt.Sprintf("%q is no name of an image", name),
				"a name has no tag and no digest: those are newTag and digest"
		}
	}
	switch {
	case i.NewTag != "" && !imageTag.MatchString(i.NewTag):
		return fmt.Sprintf("%q is no tag of an image", i.NewTag), ""
	case i.NewName == "" && i.NewTag == "" && i.Digest == "":
		return "nothing of the image " + i.Name + " is replaced", "give newName, newTag or digest"
	case i.NewTag != "" && i.Digest != "":
		return "the image " + i.Name + " gets a tag and a digest, and kustomize takes the digest alone",
			"remove newTag"
	}
	return "", ""
}

// Package is software that a machine runs without containers.
type Package struct {
	Deb   map[string]Deb         `json:"deb,omitempty"`   // by name
	Files map[string]MachineFile `json:"files,omitempty"` // by absolute path
	Units map[string]Unit        `json:"units,omitempty"` // by name with type
}

// Deb is a Debian package at one version. It comes from the machine's own package sources, or
// from the file at URL with Digest.
type Deb struct {
	Version string `json:"version"`
	URL     string `json:"url,omitempty"`
	Digest  string `json:"digest,omitempty"` // sha256:…
}

// MachineFile is a file of a machine: either Content, or the file at URL with Digest.
type MachineFile struct {
	Content *string `json:"content,omitempty"`
	URL     string  `json:"url,omitempty"`
	Digest  string  `json:"digest,omitempty"` // sha256:…
	Mode    string  `json:"mode"`             // four octal digits
	Owner   string  `json:"owner,omitempty"`
	Group   string  `json:"group,omitempty"`
}

// Unit is a systemd unit. A unit without any section comes with a Debian package.
type Unit struct {
	Unit    *Value `json:"unit,omitempty"`
	Service *Value `json:"service,omitempty"`
	Socket  *Value `json:"socket,omitempty"`
	Timer   *Value `json:"timer,omitempty"`
	Path    *Value `json:"path,omitempty"`
	Install *Value `json:"install,omitempty"`
	Enabled bool   `json:"enabled"`
	Harden  bool   `json:"harden"`
}

// Playbook is an Ansible playbook of a git repository. The Path of Git is empty.
type Playbook struct {
	Git      *Git   `json:"git"`
	Playbook string `json:"playbook"` // its path in the repository
	Vars     *Value `json:"vars,omitempty"`
}

// Projection is the result of rendering a chart, an overlay or a folder of manifests.
type Projection struct {
	// Objects are Kubernetes objects in the order of their application. The CRDs come first.
	Objects []Projected
	// Files are the files of an Ansible playbook's repository, by path, sorted.
	Files []ProjectedFile
	// Revision is the rendered revision: a commit, a chart's version, or the digest of an OCI
	// manifest, as kalypso.lock records it.
	Revision string
}

// Projected is an object of a projection: a struct.
type Projected struct {
	Value Value
	// Hooks are the Helm hooks of the object, such as "pre-install", sorted. An ordinary object
	// has no hooks.
	Hooks []string
	// Unstable is the reason why two renders of a chart differ in the object; "" if they do not
	// differ. Only a hook that is not Applied has a reason, and kalypso never writes such a
	// hook.
	Unstable string
}

// Applied reports whether an installation or an upgrade of a chart applies the object. It
// applies every object that is not a hook, and the hooks of installations and upgrades. Hooks
// of tests, deletions and rollbacks run later, if at all.
func (o Projected) Applied() bool {
	return len(o.Hooks) == 0 || slices.ContainsFunc(o.Hooks, func(hook string) bool {
		return strings.HasSuffix(hook, "-install") || strings.HasSuffix(hook, "-upgrade")
	})
}

// ProjectedFile is a file of a projection. Its path is relative, with slashes.
type ProjectedFile struct {
	Path       string
	Data       []byte
	Executable bool
}
