package model

// Application is what an application team projects: a chart or overlays, with
// values for each target.
type Application struct {
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Manifests   ApplicationManifests `json:"manifests"`
	Namespace   string               `json:"namespace"`

	// KubernetesVersion and APIVersions are what a chart finds; "" and nil where
	// the application does not give them.
	KubernetesVersion string   `json:"kubernetesVersion"`
	APIVersions       []string `json:"apiVersions"`

	// Rings are those of environments that have such, and no errors.
	Rings map[string][]Ring `json:"-"`

	// Targets are those of all environments, sorted by environment, then name.
	Targets []ApplicationTarget `json:"-"`

	Positions *Positions `json:"-"`
}

// ApplicationManifests are either a chart or overlays.
type ApplicationManifests struct {
	Helm      *ApplicationChart `json:"helm"`
	Kustomize *struct {
		Path string `json:"path"` // from the target's folder
	} `json:"kustomize"`
}

// ApplicationChart is a chart: in the folder Path of the repository, or elsewhere.
type ApplicationChart struct {
	Path        string `json:"path"`
	Repo        string `json:"repo"`
	OCI         string `json:"oci"`
	Chart       string `json:"chart"`
	Version     string `json:"version"`
	ReleaseName string `json:"releaseName"`
}

// ApplicationTarget is a flavour of the application in one environment.
type ApplicationTarget struct {
	Environment string
	Name        string
	// Dir is the target's folder, from the application's, with slashes.
	Dir string
	// Layers are the values of its folder and those above it, the lowest first.
	Layers []ApplicationLayer
	// Contract is what the values must satisfy; nil for nothing.
	Contract *Contract
	// Invalid says that its values cannot be read.
	Invalid bool
}

// Ref of the target.
func (t *ApplicationTarget) Ref() Ref {
	return Ref{Collection: "targets", Name: t.Environment + "/" + t.Name}
}

// ApplicationLayer are the values of one folder.
type ApplicationLayer struct {
	File   string // values.yaml, from the application's folder
	Values Tree
}
