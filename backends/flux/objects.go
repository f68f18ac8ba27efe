package flux

// The API groups of Flux, in the only versions that Flux 2.9 serves.
const (
	sourceAPI    = "source.toolkit.fluxcd.io/v1"
	kustomizeAPI = "kustomize.toolkit.fluxcd.io/v1"
	helmAPI      = "helm.toolkit.fluxcd.io/v2"
)

// The kinds of source.
const (
	gitKind  = "GitRepository"
	ociKind  = "OCIRepository"
	helmKind = "HelmRepository"
)

// reference names an object in the same namespace. Flux may run so that it follows only such
// references (--no-cross-namespace-refs).
type reference struct {
	Name string `yaml:"name"`
}

// referenceTo returns a reference to a name. It returns nil if the name is "".
func referenceTo(name string) *reference {
	if name == "" {
		return nil
	}
	return &reference{Name: name}
}

// kindReference names an object of one of several kinds in the same namespace.
type kindReference struct {
	Kind string `yaml:"kind"`
	Name string `yaml:"name"`
}

// gitRepository is the spec of a GitRepository
// (https://fluxcd.io/flux/components/source/gitrepositories).
type gitRepository struct {
	Interval  string     `yaml:"interval"`
	Timeout   string     `yaml:"timeout,omitempty"`
	URL       string     `yaml:"url"`
	Ref       gitRef     `yaml:"ref"`
	SecretRef *reference `yaml:"secretRef,omitempty"`
	Verify    *gitVerify `yaml:"verify,omitempty"`
	Ignore    string     `yaml:"ignore,omitempty"`
}

type gitRef struct {
	Branch string `yaml:"branch,omitempty"`
	Tag    string `yaml:"tag,omitempty"`
	Semver string `yaml:"semver,omitempty"`
	Commit string `yaml:"commit,omitempty"`
}

type gitVerify struct {
	Mode      string    `yaml:"mode"`
	SecretRef reference `yaml:"secretRef"`
}

// ociRepository is the spec of an OCIRepository
// (https://fluxcd.io/flux/components/source/ocirepositories).
type ociRepository struct {
	Interval      string         `yaml:"interval"`
	Timeout       string         `yaml:"timeout,omitempty"`
	URL           string         `yaml:"url"`
	LayerSelector *layerSelector `yaml:"layerSelector,omitempty"`
	Ref           ociRef         `yaml:"ref"`
	SecretRef     *reference     `yaml:"secretRef,omitempty"`
	Verify        *ociVerify     `yaml:"verify,omitempty"`
	Ignore        string         `yaml:"ignore,omitempty"`
}

type layerSelector struct {
	MediaType string `yaml:"mediaType"`
	Operation string `yaml:"operation"`
}

type ociRef struct {
	Tag    string `yaml:"tag,omitempty"`
	Semver string `yaml:"semver,omitempty"`
	Digest string `yaml:"digest,omitempty"`
}

type ociVerify struct {
	Provider          string         `yaml:"provider"`
	SecretRef         *reference     `yaml:"secretRef,omitempty"`
	MatchOIDCIdentity []oidcIdentity `yaml:"matchOIDCIdentity,omitempty"`
}

type oidcIdentity struct {
	Issuer  string `yaml:"issuer"`
	Subject string `yaml:"subject"`
}

// helmRepository is the spec of a HelmRepository of type default
// (https://fluxcd.io/flux/components/source/helmrepositories).
type helmRepository struct {
	Interval  string     `yaml:"interval"`
	Timeout   string     `yaml:"timeout,omitempty"`
	URL       string     `yaml:"url"`
	SecretRef *reference `yaml:"secretRef,omitempty"`
}

// kustomization is the spec of a Kustomization
// (https://fluxcd.io/flux/components/kustomize/kustomizations). It has a postBuild only if
// the folder gets values of the cluster. kalypso inserts all other values, and Flux would
// replace every ${x} of a script.
type kustomization struct {
	DependsOn          []reference   `yaml:"dependsOn,omitempty"`
	Interval           string        `yaml:"interval"`
	RetryInterval      string        `yaml:"retryInterval,omitempty"`
	Timeout            string        `yaml:"timeout,omitempty"`
	ServiceAccountName string        `yaml:"serviceAccountName,omitempty"`
	TargetNamespace    string        `yaml:"targetNamespace,omitempty"`
	SourceRef          kindReference `yaml:"sourceRef"`
	Path               string        `yaml:"path"`
	Prune              bool          `yaml:"prune"` // required, without a default
	Wait               bool          `yaml:"wait,omitempty"`
	Decryption         *decryption   `yaml:"decryption,omitempty"`
	NamePrefix         string        `yaml:"namePrefix,omitempty"`
	Patches            []patch       `yaml:"patches,omitempty"`
	Images             []image       `yaml:"images,omitempty"`
	PostBuild          *postBuild    `yaml:"postBuild,omitempty"`
}

// decryption describes how a Kustomization decrypts SOPS's ciphertext. Flux does not check
// the MAC, so kalypso can add labels
// (https://fluxcd.io/flux/components/kustomize/kustomizations/#decryption).
type decryption struct {
	Provider           string     `yaml:"provider"`
	ServiceAccountName string     `yaml:"serviceAccountName,omitempty"`
	SecretRef          *reference `yaml:"secretRef,omitempty"`
}

type postBuild struct {
	SubstituteFrom []kindReference `yaml:"substituteFrom"` // each must be there
}

type patch struct {
	Patch  string            `yaml:"patch"`
	Target map[string]string `yaml:"target,omitempty"`
}

type image struct {
	Name    string `yaml:"name"`
	NewName string `yaml:"newName,omitempty"`
	NewTag  string `yaml:"newTag,omitempty"`
	Digest  string `yaml:"digest,omitempty"`
}
