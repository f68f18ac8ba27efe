package model

// Manifests says where a deployment target's manifests are. Exactly one field
// is set.
type Manifests struct {
	Git       *Git       `json:"git,omitempty"`
	OCI       *OCI       `json:"oci,omitempty"`
	Helm      *Helm      `json:"helm,omitempty"`
	Kustomize *Kustomize `json:"kustomize,omitempty"`
	Package   *Package   `json:"package,omitempty"`
	Ansible   *Playbook  `json:"ansible,omitempty"`
}

// SourceKind is a kind of manifests, named like its field in schema.#Manifests.
type SourceKind string

// The kinds of manifests.
const (
	GitSource       SourceKind = "git"
	OCISource       SourceKind = "oci"
	HelmSource      SourceKind = "helm"
	KustomizeSource SourceKind = "kustomize"
	PackageSource   SourceKind = "package"
	AnsibleSource   SourceKind = "ansible"
)

// SourceKinds are all kinds of manifests, in the schema's order.
var SourceKinds = []SourceKind{GitSource, OCISource, HelmSource, KustomizeSource, PackageSource, AnsibleSource}

// Kind returns which kind the manifests are; "" for none.
func (m Manifests) Kind() SourceKind {
	switch {
	case m.Git != nil:
		return GitSource
	case m.OCI != nil:
		return OCISource
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
	Verify    *GitVerify `json:"verify,omitempty"`
}

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
	Verify    *OCIVerify `json:"verify,omitempty"`
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

// Helm is a chart of a chart repository (Repo) or an OCI registry (OCI). Values are
// those that the chart gets; nil until they are composed.
type Helm struct {
	Repo           string `json:"repo,omitempty"`
	OCI            string `json:"oci,omitempty"`
	Chart          string `json:"chart,omitempty"`
	Version        string `json:"version"`
	Values         *Value `json:"values,omitempty"`
	ReleaseName    string `json:"releaseName,omitempty"`
	PlatformValues string `json:"platformValues,omitempty"`
	SecretRef      string `json:"secretRef,omitempty"`
}

// Kustomize is an overlay, from exactly one of Git and OCI, with changes to it.
// The Path of the source is empty.
type Kustomize struct {
	Git        *Git          `json:"git,omitempty"`
	OCI        *OCI          `json:"oci,omitempty"`
	Path       string        `json:"path"`
	Patches    []KustomPatch `json:"patches,omitempty"`
	Images     []KustomImage `json:"images,omitempty"`
	NamePrefix string        `json:"namePrefix,omitempty"`
}

// KustomPatch is a patch of a Kustomize overlay.
type KustomPatch struct {
	Patch  string            `json:"patch"`
	Target map[string]string `json:"target,omitempty"`
}

// KustomImage is an image reference to replace.
type KustomImage struct {
	Name    string `json:"name"`
	NewName string `json:"newName,omitempty"`
	NewTag  string `json:"newTag,omitempty"`
	Digest  string `json:"digest,omitempty"`
}
