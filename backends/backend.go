// Package backends separates kalypso's decisions from the files that a reconciler pulls. A Backend
// turns assignments into files.
//
// A backend is a set of pure functions. One returns the files of an assignment's folder, one the
// files at a cluster type's root, and one the reconciler's own set-up. The others describe the
// backend to other packages. A backend reads no files, no clock and no environment, and does not
// know CUE: its input is plain data, and its output is bytes. To add a backend, see
// docs/architecture.md.
//
// Take as an example the assignment of hello-world-performance-test to the cluster type large in
// dev, from examples/hello-world. Emit of flux gets
//
//	Assignment{Environment: "dev", ClusterType: "large",
//		DeploymentTarget: "hello-world-performance-test",
//		Namespace:        "dev-large-hello-world-performance-test",
//		Manifests:        git https://git.example.com/hello/app, branch dev, path ./performance-test
//		Values:           {LOG_LEVEL: "debug", REGION: "West US", ...}}
//
// It returns the files kustomization.yaml, namespace.yaml, platform-config.yaml and
// reconciler.yaml, with the identities of five objects. One of them is the ConfigMap
// platform-config in the namespace dev-large-hello-world-performance-test.
package backends

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Assignment is one deployment target on one cluster type, with everything that
// was decided about it.
type Assignment struct {
	Environment string
	ClusterType string
	// Folder is the name of the class's folder if the clusters are a class, or "" for a
	// folder with the cluster type's name. No name of an object contains it.
	Folder    string
	Clusters  []model.Cluster // of the cluster type, or the class; sorted by name
	Entries   bool            // each cluster pulls an entry of its own
	Workspace string
	// Bounds are the bounds of the workspace. It is nil if the workspace may contain everything.
	Bounds           *model.Workspace
	Application      string
	Workload         string
	Registration     string // the registration that adds the workload; "" if the platform declares it
	Target           string // the deployment target's short name
	DeploymentTarget string // its full name, which is also the name of the folder
	Namespace        string
	// Labels are the deployment target's, over the workload's.
	Labels map[string]string
	// ClusterTypeLabels are the cluster type's.
	ClusterTypeLabels map[string]string
	// Images are the cluster type's. They are already replaced in the Projection and the
	// NamespaceService.
	Images    []model.Image
	Version   string // "" if it has no version
	GitOps    *model.GitOps
	Manifests model.Manifests
	// Render says that the reconciler applies the Projection, and does not process the manifests
	// itself.
	Render bool
	// Restart says that pods must restart when the platform config changes.
	Restart bool
	// Decrypts is set by a backend whose reconciler decrypts SOPS's ciphertext in everything
	// that it applies for the assignment.
	Decrypts bool
	// Projection is the result of rendering the manifests. It is nil unless Render is set, or the
	// backend Looks into manifests of that kind.
	Projection   *model.Projection
	ConfigFormat model.ConfigFormat
	Values       model.Value // a struct: the platform config, without secrets
	// for charts: a struct of nulls for the values that configs remove, or null
	Removed          model.Value
	Digest           model.Digest // of the composed values; "" if it is not known
	Secrets          []Secret     // sorted by path
	NamespaceService Spec
	Reconciler       Spec
	DependsOn        []string // full names, sorted
	// Wave is the length of the longest chain of dependencies below the
	// assignment on its cluster type.
	Wave int
	// Ref is the deployment target, for diagnostics.
	Ref model.Ref
}

// ID returns the assignment as <environment>/<folder>/<workload>-<target>, for diagnostics.
func (a *Assignment) ID() string {
	return a.Environment + "/" + cmp.Or(a.Folder, a.ClusterType) + "/" + a.DeploymentTarget
}

// Origin returns the name of the assignment in emitted files,
// <environment>/<clusterType>/<workload>-<target>. It is the same for all classes of clusters.
func (a *Assignment) Origin() string {
	return a.Environment + "/" + a.ClusterType + "/" + a.DeploymentTarget
}

// Spec is a namespace service or a reconciler. It may be a function of the assignment: it is
// evaluated for one assignment, or without an assignment in a ClusterType.
type Spec struct {
	Ref   model.Ref
	Value model.Value // a struct with the fields of the schema
}

// Decode reads the spec into a Go type by its JSON tags.
func (s Spec) Decode(v any) error { return json.Unmarshal(s.Value.AppendJSON(nil), v) }

// Fields reads the fields of a reconciler into a Go type, as Decode does.
func (s Spec) Fields(v any) []diag.Diagnostic {
	if err := s.Decode(v); err != nil {
		return []diag.Diagnostic{diag.New(diag.BadSpec,
			"the reconciler's fields cannot be read: "+err.Error()).At(s.Ref, "")}
	}
	return nil
}

// Secret is a value that refers to a secret.
type Secret struct {
	Name     string // the value's path, such as DB_PASSWORD or db.password
	Store    string
	Key      string
	Property string // "" if the platform names no property
	Version  string // "" if the platform names no version
}

// AssignmentsFile is the file at a cluster type's root that applies its folders one by one,
// if the environment has gitops.
const AssignmentsFile = "assignments.yaml"

// AssignmentName returns the name of the object in AssignmentsFile that delivers an assignment's
// folder to a cluster. The object is a Kustomization of Flux, or an Application or ApplicationSet
// of Argo CD. The name has at most 63 characters, because both reconcilers use it as the value of a
// label.
func AssignmentName(environment, clusterType, deploymentTarget string) string {
	return model.ShortName(environment+"-"+clusterType+"-"+deploymentTarget+"-assignment",
		model.MaxLabel)
}

// File is a file to write. Its path is relative, with slashes. Executable is the
// only permission that git knows.
type File struct {
	Path       string
	Data       []byte
	Executable bool
}

// Emission is the result of Emit for an assignment.
type Emission struct {
	// Files of the assignment's folder, by path in it, sorted.
	Files []File
	// Objects are the identities of all Kubernetes objects that the files create
	// on a cluster, so that two assignments that create the same one are found.
	Objects []Object
	// Shared is the data that Index needs of the folder, in addition to Folder. The provenance
	// record stores it, so that it is known when a build keeps the folder.
	Shared json.RawMessage
}

// Object identifies a Kubernetes object on a cluster.
type Object struct {
	Group     string
	Kind      string
	Namespace string // "" for cluster-scoped objects
	Name      string
}

// Folder is an assignment's folder as Index sees it. It comes from this build,
// or from the provenance record of the build that the folder was kept from.
type Folder struct {
	DeploymentTarget string `json:"deploymentTarget"`
	Workspace        string `json:"workspace"`
	Workload         string `json:"workload"`
	Namespace        string `json:"namespace"`
	Version          string `json:"version,omitempty"`
	// VersionFrom is the source of a derived Version; "" if the platform names it.
	VersionFrom model.VersionSource `json:"versionFrom,omitempty"`
	Orphan      bool                `json:"orphan,omitempty"` // the namespace outlives the assignment
	DependsOn   []string            `json:"dependsOn,omitempty"`
	Wave        int                 `json:"wave,omitempty"`
	Backend     string              `json:"backend"`
	// Retained are the objects that stay on the cluster when the assignment goes, as "Kind
	// name" or "Kind namespace/name", sorted. The ones in Namespace go if the namespace
	// goes.
	Retained []string        `json:"retained,omitempty"`
	Shared   json.RawMessage `json:"shared,omitempty"`
}

// ClusterType is a cluster type as Index and Bootstrap see it.
type ClusterType struct {
	Environment string
	Name        string
	Description string
	GitOps      *model.GitOps // nil if the environment has none
	Reconciler  Spec
	Clusters    []model.Cluster // of the cluster type, or the class; sorted by name
	// Folder is the name of the class's folder if the clusters are a class, or "" for a folder with
	// the cluster type's name.
	Folder string
	// Entries says that each cluster pulls an entry of its own instead of the folder.
	Entries bool
	// Cluster is the cluster that Bootstrap is for; "" for any cluster of the type.
	Cluster string
	Ref     model.Ref
}

// Dir returns the folder of the cluster type, or of the class, in the environment's tree.
func (ct *ClusterType) Dir() string { return cmp.Or(ct.Folder, ct.Name) }

// Pulled returns the folder of the environment's tree that the cluster pulls: its entry, or
// that of its type.
func (ct *ClusterType) Pulled() string {
	if ct.Entries {
		return EntryDir(ct.Cluster)
	}
	return ct.Dir()
}

// EntriesDir is the folder of an environment's tree that has the entries of clusters, in
// folders that each have about as many.
const EntriesDir = "clusters"

// ShardOf returns the folder in EntriesDir that has the entry of a cluster: two digits that
// follow from its name.
func ShardOf(cluster string) string {
	sum := sha256.Sum256([]byte(cluster))
	return hex.EncodeToString(sum[:1])
}

// EntryDir returns the folder of an environment's tree that is the entry of a cluster.
func EntryDir(cluster string) string { return EntriesDir + "/" + ShardOf(cluster) + "/" + cluster }

// Support describes whether a backend delivers manifests of one kind.
type Support struct {
	// Referenced and Rendered are the reasons why it does not, as the end of a
	// sentence that begins with the backend's name; "" if it does.
	Referenced, Rendered string
	// Looks says that the backend wants the projection of manifests that it only refers to.
	Looks bool
	// Images and Registries say that the reconciler replaces the images of the cluster type in
	// manifests that it fetches: those with a name, and those with a registry.
	Images, Registries bool
}

// OwnChart is the reason why no reconciler fetches a chart of the platform's folder.
const OwnChart = "kalypso renders the charts of the platform's own folder"

// Refuse returns a diagnostic with the reason if a backend does not deliver the assignment. It
// returns nil if the backend delivers it.
func Refuse(b Backend, a *Assignment) []diag.Diagnostic {
	kind := a.Manifests.Kind()
	s := b.Support(kind)
	why, way, hint := s.Referenced, "", "render it: set render: true on the deployment target"
	if a.Render {
		why, way, hint = s.Rendered, " that are rendered", "let the reconciler fetch it: remove "+
			"render: true from the deployment target"
	}
	if why == "" {
		return refuseImages(s, a)
	}
	d := diag.New(diag.UnsupportedManifests,
		fmt.Sprintf("the reconciler %s cannot deliver manifests of kind %s%s: %s", a.Reconciler.Ref.Name,
			kind, way, why)).
		On("manifests."+string(kind)).At(a.Ref.At("manifests."+string(kind)), "").At(a.Reconciler.Ref,
		"").For(a.ID())
	other := s.Rendered
	if a.Render {
		other = s.Referenced
	}
	if other != "" {
		hint = "give the cluster type another reconciler, or leave it out of the policy that selects it"
	}
	return []diag.Diagnostic{d.Hinting(hint)}
}

// refuseImages returns a diagnostic if the reconciler cannot replace the cluster type's images in
// the manifests that it fetches. Manifests for machines have no images.
func refuseImages(s Support, a *Assignment) []diag.Diagnostic {
	kind := a.Manifests.Kind()
	if a.Render || kind == model.PackageSource || kind == model.AnsibleSource {
		return nil
	}
	for i, image := range a.Images {
		why := ""
		switch {
		case !s.Images:
			why = fmt.Sprintf("it fetches manifests of kind %s as they are", kind)
		case image.Registry != "" && !s.Registries:
			why = "it fetches the manifests, and must know the name of each image in " + image.Registry
		default:
			continue
		}
		return []diag.Diagnostic{diag.New(diag.UnsupportedManifests,
			fmt.Sprintf("the reconciler %s cannot replace the images of cluster type %s: %s",
				a.Reconciler.Ref.Name, a.ClusterType, why)).
			On("manifests."+string(kind)).At(a.Ref.At("manifests."+string(kind)), "").
			At(a.ImageRef(i), "").For(a.ID()).
			Hinting("render it: set render: true on the deployment target")}
	}
	return nil
}

// ImageRef returns the reference of an element of Images.
func (a *Assignment) ImageRef(i int) model.Ref {
	return model.Ref{Collection: "clusterTypes", Name: a.ClusterType}.At(fmt.Sprintf("images[%d]", i))
}

// NoRestart returns the warning that restartOnConfigChange has no effect. It returns nil if
// the option is not set.
func NoRestart(a *Assignment, why, hint string) []diag.Diagnostic {
	if !a.Restart {
		return nil
	}
	const field = "restartOnConfigChange"
	return []diag.Diagnostic{diag.New(diag.NoRestart,
		fmt.Sprintf("restartOnConfigChange of %s has no effect: %s", a.DeploymentTarget, why)).
		On(field).At(a.Ref.At(field), "").At(a.Reconciler.Ref, "").Hinting(hint).For(a.ID())}
}

// Traits are the properties of everything that a backend delivers.
type Traits struct {
	PerCluster bool // values of single clusters reach them
	Machines   bool // it delivers only to machines, which have no namespaces
	// KeepsDefinitions says that CustomResourceDefinitions are never deleted.
	// SkipsDefinitions says that the reconciler can leave out the definitions of a chart
	// that it fetches.
	KeepsDefinitions, SkipsDefinitions bool
	// DeletesUnlisted says that a cluster loses its workloads when it is no longer listed.
	// Otherwise they stay until a person removes the bootstrapped agent.
	DeletesUnlisted bool
	// Removal is a hint about delays of a removal; "" if nothing delays one.
	Removal string
	// Groups are the API groups of the objects that reconcile folders and workloads on
	// clusters. It is nil if there are no such objects. AnyGroup says that they may be of
	// any group, because a team wrote them.
	Groups   []string
	AnyGroup bool
	// Bootstraps is the help text about the output of Bootstrap and the place to apply it.
	// It is "" if kalypso does not know how the folder of a cluster type is pulled.
	Bootstraps string
	// StatusNames are segments in the name of a commit status that do not name an object or
	// a cluster: kinds of objects and prefixes. The reconciler's notifications add them.
	// They are in lower case.
	StatusNames []string
	// Webhook describes the events that the reconciler sends to a hub; nil if it sends none.
	// It needs a handler in hub/server.
	Webhook *Webhook
}

// Webhook describes the signed events of a reconciler.
type Webhook struct {
	// Event names one of them, with its article, for the hub's API description.
	Event string
	// Signatures are the headers that may have the HMAC of the body, in the order in which a
	// hub reads them.
	Signatures []string
}

// Reconciled names the objects that deliver an assignment's folder to clusters.
type Reconciled struct {
	Object string // its name; "" if it is not known
	// Objects are the names of such objects if there is one for each cluster, with the names
	// of the clusters.
	Objects map[string]string
}

// Accounts are the service accounts that apply assignments to a cluster, as the cluster sees them.
type Accounts struct {
	// Folders are the accounts that apply the folders of assignments. Some of them also apply
	// fetched objects.
	Folders []Account
	// Fetched are the other accounts. They apply only objects that are fetched for assignments.
	Fetched []Account
	// Namespaces contain the service accounts of workspaces and of assignments.
	Namespaces []string
	// Unknown is the reason why the accounts are not known, as the end of a sentence; "" if they
	// are known.
	Unknown string
}

// Account names a service account.
type Account struct{ Namespace, Name string }

// Backend emits the files of one reconciler family. Its methods are pure: equal arguments give
// equal bytes. Several goroutines may call them at once. The diagnostics that they return describe
// requests of the user that the reconciler cannot fulfill. A diagnostic of severity error fails the
// assignment, or in Index the cluster type's files.
//
// No other package asks for a backend by its name: Traits describes the backend to other packages.
// Three features are optional. Entries refuses with diag.NoEntries if a cluster cannot have a
// folder of its own. A backend is also Needing if its folders use values from such entries. A
// backend that writes the parts of several clusters into one file is also Dividing. Then only the
// clusters whose part changed count as changed.
type Backend interface {
	// Name is the backend's key in #Reconciler.
	Name() string

	// Support reports whether the backend delivers manifests of a kind. Emit is never called with
	// other kinds.
	Support(model.SourceKind) Support

	// Traits returns the properties of the backend that other packages need.
	Traits() Traits

	// Reconciled names the object that delivers an assignment's folder to clusters. Its status
	// shows a rollout. It is zero if no object in a cluster shows one.
	Reconciled(environment, clusterType string, f Folder) Reconciled

	// Emit returns the files of the assignment's folder.
	Emit(*Assignment) (Emission, []diag.Diagnostic)

	// Central returns the object that Emit creates for each deployment target in the place
	// where the reconciler itself runs. The names are full names. It returns nil unless that
	// place may serve other cluster types too.
	Central(ct *ClusterType, deploymentTargets []string) []Object

	// Index returns the files at the cluster type's root, by path in it, sorted.
	// folders are sorted by deployment target, and may be empty.
	Index(*ClusterType, []Folder) ([]File, []diag.Diagnostic)

	// Entries returns a function that returns the files of a cluster's entry, by path in it,
	// sorted. The files make the cluster's reconciler apply the folder, which may be of another
	// class in the next commit. Entries returns a diagnostic with the reason if clusters cannot
	// have entries.
	Entries(*ClusterType) (func(*model.Cluster) []File, []diag.Diagnostic)

	// Bootstrap returns the objects that a cluster's root reconciler needs to pull the cluster
	// type's folder, as one YAML stream. With an error it may still return the part that does not
	// depend on missing data.
	Bootstrap(*ClusterType, []Folder) ([]byte, []diag.Diagnostic)

	// Accounts returns the service accounts that apply assignments to a cluster of the type, as the
	// cluster sees them.
	Accounts(*ClusterType) Accounts
}

// Needing is a Backend whose folders use values from the entry of each cluster.
type Needing interface {
	Backend
	// Needs returns the names of the values that a folder needs from entries. It reads them from
	// the data that the folder shares with Index (Emission.Shared). It returns nil if the folder
	// needs no values.
	Needs(shared json.RawMessage) []string
}

// Dividing is a Backend that writes files with parts for single clusters.
type Dividing interface {
	Backend
	// Divide returns the parts of a file that are for single clusters, by cluster, and the
	// part for all clusters under "". It returns nil if the whole file is for all clusters.
	// The file is a cluster type's own, or in an assignment's folder.
	Divide(path string, data []byte, own bool) map[string][]byte
	// Takes reports whether an assignment's folder uses the value at a path in a YAML document. The
	// document is one of a cluster type's own files for single clusters, or of a cluster's entry.
	// If the path leads to a string with the JSON of a value, name is the name of the value.
	// Otherwise name is "".
	Takes(f Folder, path string) (name string, takes bool)
}
