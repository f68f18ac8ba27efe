// Package model is the evaluated platform as Go types. Package evaluate creates it from the CUE
// sources, and all later steps use only this model.
//
// A leaf of the model is either data or an expression. Data is a Value. An expression is an
// Expr: CUE that is not concrete, as self-contained text. All slices of entities are sorted by
// name. A model is immutable once evaluated,
// and may be read by several goroutines.
//
// For example, the config everywhere of examples/hello-world, with the value
// GREETING: "Hello, world", is a [Config]. Its Values are a [Tree]: a struct with the field
// GREETING, which is a final leaf with the [Value] "Hello, world".
package model

// Environment is one environment's evaluated package: the files of the base and of the
// environment together.
type Environment struct {
	Name string
	Settings

	ClusterTypes []ClusterType
	// Clusters are the clusters that the platform declares and, after kalypso reads the
	// Inventories, also their rows.
	Clusters           []Cluster
	Inventories        []Inventory
	Workspaces         []Workspace
	Workloads          []Workload
	Registrations      []Registration
	SchedulingPolicies []SchedulingPolicy
	Configs            []Config
	ConfigSchemas      []ConfigSchema
	NamespaceServices  []NamespaceService
	Reconcilers        []Reconciler
	Tests              []Test

	// Invalid are the entities with errors, as far as their names are known. They are absent
	// from the slices above.
	Invalid map[Ref]bool `json:"-"`

	// Incomplete reports whether an error hides some of the assignments. A build must then not
	// remove any existing output.
	Incomplete bool
	// ClustersIncomplete reports whether an error hides some of the clusters.
	ClustersIncomplete bool `json:"-"`

	Positions *Positions `json:"-"`
}

// Settings are an environment's own fields, apart from its entities.
type Settings struct {
	Description string
	After       []string
	GitOps      *GitOps
	// Rings are the rings that the environment's own files set. If these files do not mention
	// rings, Rings is nil and the rings of the base apply.
	Rings []Ring
	// MaxRemovals is the number of assignments on clusters that one build may remove, or a
	// percentage such as "25%" of the existing ones; "" for the default. MaxEmptied is the
	// number of listed clusters that may lose all their assignments, in the same form.
	// EmptiedClusters are additional clusters that may lose them.
	MaxRemovals, MaxEmptied string
	EmptiedClusters         []string
	// RemovedClusters are the clusters whose entries a build removes once they are no longer
	// listed.
	RemovedClusters []string
	// PlaintextFails reports whether secrets in plain text are errors.
	PlaintextFails bool
}

// HidesClusters reports whether errors hide the assignments of some cluster.
func (e *Environment) HidesClusters() bool {
	if e.Incomplete || e.ClustersIncomplete {
		return true
	}
	for ref := range e.Invalid {
		if ref.Collection == "clusters" {
			return true
		}
	}
	return false
}

// GitOps is the place of an environment's compiled tree: a branch of a git repository (Repo,
// Branch), or a tag of an OCI repository (OCI, Tag).
type GitOps struct {
	Repo      string `json:"repo,omitempty"`
	Branch    string `json:"branch,omitempty"`
	OCI       string `json:"oci,omitempty"` // oci://registry/path
	Tag       string `json:"tag,omitempty"`
	Path      string `json:"path"`
	SecretRef string `json:"secretRef,omitempty"` // "" for the reconciler's own
	// Mirrors are other URLs of the repository, from which clusters may pull. They do not
	// affect the built tree.
	Mirrors []string `json:"mirrors,omitempty"`
}

// URL returns the address of the tree: a git URL, or oci://registry/path.
func (g *GitOps) URL() string {
	if g.OCI != "" {
		return g.OCI
	}
	return g.Repo
}

// ConfigFormat is the shape of the platform config: configmap, env, sh, json or yaml.
type ConfigFormat string

// The config formats.
const (
	ConfigMap ConfigFormat = "configmap"
	Env       ConfigFormat = "env"
	Sh        ConfigFormat = "sh"
	JSON      ConfigFormat = "json"
	YAML      ConfigFormat = "yaml"
)

// ClusterType is a class of clusters that run the same workloads with the same configuration. A
// declared cluster type with entries for each cluster becomes one ClusterType for each class of
// its clusters. These differ only in their names.
type ClusterType struct {
	// Name is the name of its folder: the declared name, or <declared name>.<class>.
	Name string `json:"name"`
	// Class is the class of the clusters. It is "" for a declared cluster type, and for
	// clusters that no selector of clusters holds for.
	Class string `json:"-"`
	// SelectedBy are the names of the selectors of clusters (see SelectorOf) that hold for its
	// clusters, sorted.
	SelectedBy []string `json:"-"`
	// Entries describes what its clusters pull: the folder of the type, or an entry of their
	// own.
	Entries Entries `json:"entries"`

	Description      string            `json:"description"`
	Labels           map[string]string `json:"labels"`
	Reconciler       string            `json:"reconciler"`
	NamespaceService string            `json:"namespaceService"`
	ConfigFormat     ConfigFormat      `json:"configFormat"`

	// KubernetesVersion and APIVersions are the capabilities of its clusters, for charts that
	// kalypso renders. They are "" and nil if the platform does not set them.
	KubernetesVersion string   `json:"kubernetesVersion"`
	APIVersions       []string `json:"apiVersions"`

	// Images replace image references in everything that is delivered to its clusters. No two
	// have the same Name or Registry, and no NewName is the Name of another.
	Images []Image `json:"images"`

	// Clusters selects clusters in addition to the clusters that name the type; nil if the type
	// has no selector.
	Clusters *Selector `json:"-"`

	// Digest identifies the type's content. It does not depend on positions or formatting.
	Digest Digest `json:"-"`
}

// Registration is a reference to another team's declarations in a repository.
type Registration struct {
	Name      string
	Workspace string // "" if each of its workloads names a workspace
	Git       Git
	Workloads bool // whether it may bring workloads
	Configs   bool // whether it may bring configs
	// Names are the names of workloads, deployment targets and configs that belong to it if
	// other registrations bring them, too.
	Names Patterns
	// Match selects the assignments that its configs may affect.
	Match Selector
	// MinLayer and MaxLayer are the bounds of its configs' layers.
	MinLayer, MaxLayer int
	// Bounds are the bounds of its workspace, whose secrets its configs may refer to, as
	// STORE/KEY; nil if the workspace has errors.
	Bounds *Workspace

	// Digest identifies the registration's content. It does not depend on positions or
	// formatting.
	Digest Digest `json:"-"`
}

// Ref returns the registration's reference.
func (r *Registration) Ref() Ref { return Ref{Collection: "registrations", Name: r.Name} }

// Workload is an application or service.
type Workload struct {
	Name        string
	Description string
	Workspace   string
	Application string // the workload's name if the platform sets none
	// Registration is the registration that provides the workload; "" if the platform declares
	// it.
	Registration string
	Labels       map[string]string
	Requires     *Contract
	Chart        ChartValues // of the charts of all its targets

	// Targets are the deployment targets of this environment.
	Targets []DeploymentTarget

	// Digest identifies the workload's content. It does not depend on positions or formatting.
	Digest Digest `json:"-"`
}

// DeploymentTarget is one flavour of a workload in this environment.
type DeploymentTarget struct {
	Name      string // the short name
	FullName  string
	Labels    map[string]string // its own over the workload's
	Version   string            // "" if the platform sets no version
	Manifests Manifests
	Render    bool // whether the manifests are rendered when the platform is built
	// RestartOnConfigChange reports whether pods restart when the platform config changes.
	RestartOnConfigChange bool
	Chart                 ChartValues
	Requires              *Contract
	// AllowEmpty reports whether it may be assigned to no cluster type.
	AllowEmpty bool
	DependsOn  []string // full names

	// Digest identifies the target's content. It does not depend on positions or formatting.
	Digest Digest `json:"-"`
}

// ChartValues are an application's values for a chart.
type ChartValues struct{ Values, Defaults Tree }

// TargetRef returns the reference to the deployment target with this short name.
func (w *Workload) TargetRef(target string) Ref {
	return Ref{"workloads", w.Name, "deploymentTargets." + Label(target)}
}

// Contract is a constraint on composed values.
type Contract struct {
	// Ref is the place of the contract.
	Ref Ref
	// Expr is the constraint, opened at every level.
	Expr Expr
	// Mentions are the top level fields that the contract constrains; nil if it may constrain
	// any field.
	Mentions []string
	// Fields are the paths that the contract names, sorted, with the constraint on each path.
	Fields []ContractField
	// Advise reports whether a breach is only reported, and does not fail the assignment.
	Advise bool

	// Digest identifies all fields except Ref.
	Digest Digest
}

// ContractField is a path that a contract names.
type ContractField struct {
	Path     string // a CUE path
	Optional bool
	Text     string // the constraint as it is written, for people
}

// SchedulingPolicy assigns deployment targets to cluster types.
type SchedulingPolicy struct {
	Name              string
	DeploymentTargets Selector
	ClusterTypes      Selector
	Clusters          *Selector // of these cluster types; nil for all
	Except            []Except  // cluster types that any of them selects are excluded
	Deny              bool
	Pin               *Pin
	// AllowEmpty reports whether the selectors may select nothing.
	AllowEmpty bool

	// Digest identifies the policy's content. It does not depend on positions or formatting.
	Digest Digest `json:"-"`
}

// Except are pairs that a policy excludes.
type Except struct {
	Path              string // in the policy: except, or except[2] of a list
	DeploymentTargets Selector
	ClusterTypes      Selector
	Clusters          *Selector // of these cluster types; nil for all
}

// Pin replaces the version or the manifests of a policy's assignments.
type Pin struct {
	Version string `json:"version,omitempty"`
	// Highest reports whether the highest version wins if several pins have it.
	Highest bool `json:"highest,omitempty"`
	// Manifests are the fields to replace, as written.
	Manifests *Value `json:"manifests,omitempty"`
}

// Config is a container of platform values.
type Config struct {
	Name string
	// UnknownOf is set for a placeholder for the unknown configs of a registration, and names
	// the registration. The assignments that the placeholder matches may need one of these
	// configs. It is "" for an ordinary config.
	UnknownOf string
	Match     Selector
	Clusters  *Selector // of the matching assignments; nil for all
	// MatchUnknown reports whether the selector could not be read. The config may then affect
	// every assignment.
	MatchUnknown bool
	// Invalid reports whether the config has errors. The assignments that it matches then fail.
	Invalid bool
	// AllowEmpty reports whether Match may select nothing.
	AllowEmpty bool
	Layer      int
	// Values are the config's values, defaults and overrides. They are zero trees if they
	// depend on Facts.
	Values, Defaults, Overrides Tree
	// Facts are the fields of #assignment that the values use, sorted; nil if they use no
	// facts.
	Facts []string
	Plain []string // paths

	// Digest identifies all fields except Match and Clusters: the content for a matching
	// assignment. If the values depend on Facts, it is the digest of the sources.
	Digest Digest
}

// ConfigSchema is the platform's contract on composed values.
type ConfigSchema struct {
	Name         string
	Match        Selector
	Clusters     *Selector // of the matching assignments; nil for all
	MatchUnknown bool
	Invalid      bool
	AllowEmpty   bool // whether Match may select nothing
	Schema       *Contract
	Lists        map[string]ListStrategy // by CUE path

	// Digest identifies all fields except Match and Clusters.
	Digest Digest
}

// ListStrategy is the way to compose lists: exactly one of append, unique and MergeBy.
type ListStrategy struct {
	Append  bool
	Unique  bool
	MergeBy string
}

// String returns the strategy for messages.
func (s ListStrategy) String() string {
	switch {
	case s.Append:
		return "append"
	case s.Unique:
		return "unique"
	}
	return "mergeBy " + s.MergeBy
}

// Test is an assertion about the assignments that it matches. No output depends on it.
type Test struct {
	Name         string
	Description  string
	Match        Selector // selects all if the test has no match
	MatchUnknown bool
	// Clusters are the clusters that the test is about; nil for all.
	Clusters *Selector
	// Invalid reports whether the test has errors, and cannot run.
	Invalid bool
	// Values and Assignment constrain the composed values and the facts of each assignment.
	// Count constrains the number of assignments. They are nil if the test does not constrain
	// them.
	Values, Assignment, Count *Contract
}

// NamespaceService describes the contents of an assignment's workspace on a cluster.
type NamespaceService struct {
	Name string
	// HasPattern reports whether a pattern determines the namespace's name.
	HasPattern bool
	// Spec has its fields; nil if they depend on Facts.
	Spec *Value
	// Facts are the fields of #assignment that it uses, sorted; nil if it uses no facts.
	Facts []string
	// PatternFacts are the facts that its pattern uses.
	PatternFacts []string

	// Digest identifies its content or, if it depends on Facts, its sources.
	Digest Digest
}

// Reconciler is a configured backend.
type Reconciler struct {
	Name    string
	Backend string // the backend's key: "flux"
	// Spec has the backend's options; null if they depend on Facts.
	Spec  Value
	Facts []string

	// Digest identifies its content or, if it depends on Facts, its sources.
	Digest Digest
}

// Application is the declaration that an application team projects: a chart or overlays, with
// values for each target.
type Application struct {
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Manifests   ApplicationManifests `json:"manifests"`
	Namespace   string               `json:"namespace"`

	// KubernetesVersion and APIVersions are the capabilities of the clusters, for a chart. They
	// are "" and nil if the application does not set them.
	KubernetesVersion string   `json:"kubernetesVersion"`
	APIVersions       []string `json:"apiVersions"`

	// Rings are the rings of each environment that has rings and no errors.
	Rings map[string][]Ring `json:"-"`

	// Targets are the targets of all environments, sorted by environment, then name.
	Targets []ApplicationTarget `json:"-"`

	Positions *Positions `json:"-"`
}

// ApplicationManifests are either a chart or overlays.
type ApplicationManifests struct {
	Helm      *ApplicationChart `json:"helm"`
	Kustomize *struct {
		Path string `json:"path"` // relative to the target's folder
	} `json:"kustomize"`
}

// ApplicationChart is a chart: in the folder Path of the repository, or from another source.
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
	// Dir is the target's folder, relative to the application's, with slashes.
	Dir string
	// Layers are the values of its folder and of the folders above it, the lowest first.
	Layers []ApplicationLayer
	// Contract is the condition for the values; nil if there is no condition.
	Contract *Contract
	// Invalid reports whether its values cannot be read.
	Invalid bool
}

// Ref returns the reference to the target.
func (t *ApplicationTarget) Ref() Ref {
	return Ref{Collection: "targets", Name: t.Environment + "/" + t.Name}
}

// ApplicationLayer are the values of one folder.
type ApplicationLayer struct {
	File   string // values.yaml, relative to the application's folder
	Values Tree
}
