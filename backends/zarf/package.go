package zarf

// The types are the types of zarf.dev/v1alpha1 (zarf.schema.json of Zarf 0.84), with the fields
// that kalypso writes, in the order in which people write them. Zarf can also read v1beta1, and
// converts it to v1alpha1.

const apiVersion = "zarf.dev/v1alpha1"

// definition is a ZarfPackageConfig.
type definition struct {
	APIVersion string      `yaml:"apiVersion"`
	Kind       string      `yaml:"kind"`
	Metadata   metadata    `yaml:"metadata"`
	Components []component `yaml:"components"`
}

type metadata struct {
	Name         string `yaml:"name"`
	Description  string `yaml:"description,omitempty"`
	Version      string `yaml:"version,omitempty"`
	Architecture string `yaml:"architecture"`
	// AllowNamespaceOverride is false: an operator who renames a package's namespace would separate
	// its objects from the objects that refer to them.
	AllowNamespaceOverride bool              `yaml:"allowNamespaceOverride"`
	Annotations            map[string]string `yaml:"annotations"`
}

// component is an assignment in the package, and the data that Emit shares with Index. Paths are
// relative to zarf.yaml.
type component struct {
	Name        string     `yaml:"name" json:"name"`
	Description string     `yaml:"description" json:"description"`
	Required    bool       `yaml:"required,omitempty" json:"required,omitempty"`
	Default     bool       `yaml:"default,omitempty" json:"default,omitempty"`
	Only        *only      `yaml:"only,omitempty" json:"only,omitempty"`
	Charts      []chart    `yaml:"charts,omitempty" json:"charts,omitempty"`
	Manifests   []manifest `yaml:"manifests,omitempty" json:"manifests,omitempty"`
	Files       []file     `yaml:"files,omitempty" json:"files,omitempty"`
	Images      []string   `yaml:"images,omitempty" json:"images,omitempty"`
	Repos       []string   `yaml:"repos,omitempty" json:"repos,omitempty"`
}

type only struct {
	LocalOS string       `yaml:"localOS,omitempty" json:"localOS,omitempty"`
	Cluster *onlyCluster `yaml:"cluster,omitempty" json:"cluster,omitempty"`
}

type onlyCluster struct {
	Architecture string   `yaml:"architecture,omitempty" json:"architecture,omitempty"`
	Distros      []string `yaml:"distros,omitempty" json:"distros,omitempty"`
}

// chart is a chart of a repository or a registry, or a folder.
type chart struct {
	Name        string   `yaml:"name" json:"name"`
	URL         string   `yaml:"url,omitempty" json:"url,omitempty"`
	RepoName    string   `yaml:"repoName,omitempty" json:"repoName,omitempty"`
	LocalPath   string   `yaml:"localPath,omitempty" json:"localPath,omitempty"`
	Version     string   `yaml:"version" json:"version"`
	Namespace   string   `yaml:"namespace" json:"namespace"`
	ReleaseName string   `yaml:"releaseName" json:"releaseName"`
	ValuesFiles []string `yaml:"valuesFiles,omitempty" json:"valuesFiles,omitempty"`
}

// manifest is a release of plain objects. Objects without a namespace get this one.
type manifest struct {
	Name           string   `yaml:"name" json:"name"`
	Namespace      string   `yaml:"namespace" json:"namespace"`
	Files          []string `yaml:"files,omitempty" json:"files,omitempty"`
	Kustomizations []string `yaml:"kustomizations,omitempty" json:"kustomizations,omitempty"`
}

// file is a file of the machine that deploys the package.
type file struct {
	Source     string `yaml:"source" json:"source"`
	Target     string `yaml:"target" json:"target"`
	Shasum     string `yaml:"shasum,omitempty" json:"shasum,omitempty"`
	Executable bool   `yaml:"executable,omitempty" json:"executable,omitempty"`
}

// The names of a component's releases in Zarf.
const (
	workspaceName   = "workspace"
	definitionsName = "definitions"
	workloadName    = "workload"
)
