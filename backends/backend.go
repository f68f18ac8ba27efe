// Package backends is the wall between what kalypso decides and what a
// reconciler pulls: a Backend turns assignments into files.
//
// A backend is pure functions: one for the files of an assignment's folder, one for
// those at a cluster type's root, one for the reconciler's own set-up, and what others
// have to know of it. It reads no file, no clock and no environment, and never sees CUE:
// what it gets is plain data, what it gives is bytes. docs/architecture.md says how to
// add one.
//
// An example is the assignment of hello-world-performance-test to the cluster type large in
// dev, of examples/hello-world. Emit of flux gets
//
//	Assignment{Environment: "dev", ClusterType: "large",
//		DeploymentTarget: "hello-world-performance-test",
//		Namespace:        "dev-large-hello-world-performance-test",
//		Manifests:        git https://git.example.com/hello/app, branch dev, path ./performance-test
//		Values:           {LOG_LEVEL: "debug", REGION: "West US", ...}}
//
// and returns the files kustomization.yaml, namespace.yaml, platform-config.yaml and
// reconciler.yaml, with the identities of their objects: {Kind: "ConfigMap", Namespace:
// "dev-large-hello-world-performance-test", Name: "platform-config"} and four others.
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
	// Folder is the cluster type's folder, where that is of a class of its clusters: no
	// object has its name. "" for the cluster type's name.
	Folder    string
	Clusters  []model.Cluster // of the cluster type, or the class; sorted by name
	Entries   bool            // each cluster pulls an entry of its own
	Workspace string
	// Bounds are what the workspace may bring; nil for everything.
	Bounds           *model.Workspace
	Application      string
	Workload         string
	Registration     string // what brings the workload; "" if the platform declares it
	Target           string // the deployment target's short name
	DeploymentTarget string // its full name, which is also the folder's
	Namespace        string
	// Labels are the deployment target's, over the workload's.
	Labels map[string]string
	// ClusterTypeLabels are the cluster type's.
	ClusterTypeLabels map[string]string
	Version           string // "" if there is none
	GitOps            *model.GitOps
	Manifests         model.Manifests
	// Render says that what is applied is the Projection, and not what the
	// reconciler makes of the manifests.
	Render bool
	// Restart says that pods restart when the platform config changes.
	Restart bool
	// Decrypts is set by a backend whose reconciler decrypts what SOPS has encrypted, in
	// everything that it applies for the assignment.
	Decrypts bool
	// Projection is what the manifests render to. It is there if Render is set, or
	// if the backend Looks into manifests of that kind; nil otherwise.
	Projection       *model.Projection
	ConfigFormat     model.ConfigFormat
	Values           model.Value  // a struct: the platform config, without secrets
	Removed          model.Value  // what configs take away: a struct of nulls, for charts; null for none
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

// Origin returns the assignment as what is emitted says it, which is the same for all classes
// of clusters: <environment>/<clusterType>/<workload>-<target>.
func (a *Assignment) Origin() string {
	return a.Environment + "/" + a.ClusterType + "/" + a.DeploymentTarget
}

// Spec is a namespace service or a reconciler, evaluated for one assignment or,
// where it is a function of the assignment, for none.
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
	Property string // "" if there is none
	Version  string // "" if there is none
}

// AssignmentsFile is the file at a cluster type's root that applies its folders
// one by one, where the environment has gitops.
const AssignmentsFile = "assignments.yaml"

// AssignmentName returns the name of the object that brings an assignment's folder
// to a cluster, and that is in AssignmentsFile: a Kustomization of Flux, or an
// Application or ApplicationSet of Argo CD. It has at most 63 characters, because
// both use it as a label value.
func AssignmentName(environment, clusterType, deploymentTarget string) string {
	return model.ShortName(environment+"-"+clusterType+"-"+deploymentTarget+"-assignment", model.MaxLabel)
}

// File is a file to write. Its path is relative, with slashes. Executable is the
// only permission that git knows.
type File struct {
	Path       string
	Data       []byte
	Executable bool
}

// Emission is what Emit makes of an assignment.
type Emission struct {
	// Files of the assignment's folder, by path in it, sorted.
	Files []File
	// Objects are the identities of all Kubernetes objects that the files create
	// on a cluster, so that two assignments that create the same one are found.
	Objects []Object
	// Shared is what Index needs to know of the folder and Folder does not say.
	// It is kept in the provenance record, for when the folder is kept.
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
	DeploymentTarget string   `json:"deploymentTarget"`
	Workspace        string   `json:"workspace"`
	Workload         string   `json:"workload"`
	Namespace        string   `json:"namespace"`
	Version          string   `json:"version,omitempty"`
	Orphan           bool     `json:"orphan,omitempty"` // the namespace outlives the assignment
	DependsOn        []string `json:"dependsOn,omitempty"`
	Wave             int      `json:"wave,omitempty"`
	Backend          string   `json:"backend"`
	// Retained are the objects that stay on the cluster when the assignment goes, as
	// "Kind name" or "Kind namespace/name", sorted. Those in Namespace go with it.
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
	// Folder is that of a class of its clusters; "" for the cluster type's name.
	Folder string
	// Entries says that each cluster pulls an entry of its own, and not the folder.
	Entries bool
	// Cluster is the one that Bootstrap is for; "" for any of them.
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
func EntryDir(cluster string) string {
	return EntriesDir + "/" + ShardOf(cluster) + "/" + cluster
}

// Support reports whether a backend delivers manifests of one kind.
type Support struct {
	// Referenced and Rendered are the reasons why it does not, as the end of a
	// sentence that begins with the backend's name; "" if it does.
	Referenced, Rendered string
	// Looks says that the backend wants the projection of what it only refers to.
	Looks bool
}

// Refuse says why a backend does not deliver the assignment; nothing where it does.
func Refuse(b Backend, a *Assignment) []diag.Diagnostic {
	kind := a.Manifests.Kind()
	s := b.Support(kind)
	why, way, hint := s.Referenced, "", "render it: set render: true on the deployment target"
	if a.Render {
		why, way, hint = s.Rendered, " that are rendered", "let the reconciler fetch it: remove "+
			"render: true from the deployment target"
	}
	if why == "" {
		return nil
	}
	d := diag.New(diag.UnsupportedManifests,
		fmt.Sprintf("the reconciler %s cannot deliver manifests of kind %s%s: %s", a.Reconciler.Ref.Name,
			kind, way, why)).
		On("manifests."+string(kind)).At(a.Ref.At("manifests."+string(kind)), "").At(a.Reconciler.Ref, "").For(a.ID())
	other := s.Rendered
	if a.Render {
		other = s.Referenced
	}
	if other != "" {
		hint = "give the cluster type another reconciler, or leave it out of the policy that selects it"
	}
	return []diag.Diagnostic{d.Hinting(hint)}
}

// NoRestart returns the warning that restartOnConfigChange has no effect, where it
// is set.
func NoRestart(a *Assignment, why, hint string) []diag.Diagnostic {
	if !a.Restart {
		return nil
	}
	const field = "restartOnConfigChange"
	return []diag.Diagnostic{diag.New(diag.NoRestart,
		fmt.Sprintf("restartOnConfigChange of %s has no effect: %s", a.DeploymentTarget, why)).
		On(field).At(a.Ref.At(field), "").At(a.Reconciler.Ref, "").Hinting(hint).For(a.ID())}
}

// Traits are what is true of all that a backend delivers.
type Traits struct {
	PerCluster bool // values of single clusters reach them
	Machines   bool // it delivers to machines alone, which have no namespaces
	// KeepsDefinitions says that CustomResourceDefinitions are never deleted, and
	// SkipsDefinitions that the ones of a chart which it fetches can be left out.
	KeepsDefinitions, SkipsDefinitions bool
	// DeletesUnlisted says that a cluster loses its workloads when it is no longer listed.
	// Without it they stay until a person removes the bootstrapped agent.
	DeletesUnlisted bool
	// Removal says, as a hint, what holds up a removal; "" if nothing does.
	Removal string
	// Groups are the API groups of the objects that reconcile folders and workloads on
	// clusters; none if there are no such objects. AnyGroup says that they may be of
	// any, because a team wrote them.
	Groups   []string
	AnyGroup bool
	// Bootstraps says, as lines of help, what Bootstrap returns and where it is applied; "" if
	// kalypso does not know what pulls the folder of a cluster type.
	Bootstraps string
	// StatusNames are the segments that the reconciler's notifications put into the name of a
	// commit status beside an object and a cluster, in lower case: kinds of objects and prefixes.
	StatusNames []string
	// Webhook describes the events that the reconciler sends to a hub; nil if it sends none. A
	// backend that has one needs a handler in hub/server.
	Webhook *Webhook
}

// Webhook describes the signed events of a reconciler.
type Webhook struct {
	// Event names one of them, with its article, for the hub's API description.
	Event string
	// Signatures are the headers that may hold the HMAC of the body, in the order in which a hub
	// reads them.
	Signatures []string
}

// Reconciled names what brings an assignment's folder to clusters.
type Reconciled struct {
	Object string // its name; "" if nothing is known of it
	// Objects are the names of such objects, where there is one for each cluster, with the
	// names of the clusters.
	Objects map[string]string
}

// Accounts are the service accounts as which a cluster sees what applies assignments to it.
type Accounts struct {
	// Folders are those that apply the folders of assignments; some apply what is fetched too.
	Folders []Account
	// Fetched are the others, which apply what is fetched for assignments alone.
	Fetched []Account
	// Namespaces are where workspaces name service accounts, and where those of assignments are.
	Namespaces []string
	// Unknown says why nobody knows them, as a sentence's end; "" if they are known.
	Unknown string
}

// Account names a service account.
type Account struct{ Namespace, Name string }

// Backend emits the files of one reconciler family. Its methods are pure: equal
// arguments give equal bytes. They may be called by several goroutines at once.
// The diagnostics that they return say what the user asked for that the
// reconciler cannot do; one of severity error fails the assignment, or in Index
// the cluster type's files.
//
// Nobody asks for a backend by its name: what other packages need to know of it is in
// Traits. Three things are optional. Entries refuses with diag.NoEntries where a cluster
// cannot have a folder of its own. A backend whose folders take values from such entries is
// also Needing, and a backend that writes several clusters' parts into one file is also
// Dividing, so that only the clusters whose part changed count as changed.
type Backend interface {
	// Name is the backend's key in #Reconciler.
	Name() string

	// Support reports whether the backend delivers manifests of a kind. Emit is never
	// called with what it does not deliver.
	Support(model.SourceKind) Support

	// Traits are what others have to know of the backend.
	Traits() Traits

	// Reconciled names what brings an assignment's folder to clusters, where a
	// rollout is seen; the zero Reconciled where nothing in a cluster tells.
	Reconciled(environment, clusterType string, f Folder) Reconciled

	// Emit returns the files of the assignment's folder.
	Emit(*Assignment) (Emission, []diag.Diagnostic)

	// Central returns, for deployment targets by their full names, the object that
	// Emit creates for each where the reconciler itself runs; nil unless that may
	// serve other cluster types too.
	Central(ct *ClusterType, deploymentTargets []string) []Object

	// Index returns the files at the cluster type's root, by path in it, sorted.
	// folders are sorted by deployment target, and may be empty.
	Index(*ClusterType, []Folder) ([]File, []diag.Diagnostic)

	// Entries returns what makes the files of a cluster's entry, by path in it, sorted: they
	// make its reconciler apply the folder, which may be of another class in the next
	// commit. It says why where clusters cannot have entries.
	Entries(*ClusterType) (func(*model.Cluster) []File, []diag.Diagnostic)

	// Bootstrap returns what a cluster's root reconciler needs to pull the
	// cluster type's folder, as one YAML stream. With an error it may still
	// return the part that does not depend on what is missing.
	Bootstrap(*ClusterType, []Folder) ([]byte, []diag.Diagnostic)

	// Accounts returns the service accounts as which a cluster of the type sees what applies
	// its assignments.
	Accounts(*ClusterType) Accounts
}

// Needing is a Backend whose folders take values from the entry of each cluster.
type Needing interface {
	Backend
	// Needs returns the names of the values that a folder takes, of what it shares with Index
	// (Emission.Shared); nil if there is none.
	Needs(shared json.RawMessage) []string
}

// Dividing is a Backend some of whose files have parts for single clusters.
type Dividing interface {
	Backend
	// Divide returns the parts of a file that are for single clusters, by cluster, and the
	// part for all clusters under "". It returns nil if the whole file is for all clusters.
	// The file is a cluster type's own, or in an assignment's folder.
	Divide(path string, data []byte, own bool) map[string][]byte
	// Takes reports whether an assignment's folder takes the value at a path in a YAML document of
	// a cluster type's own files for single clusters, or of a cluster's entry. If the path leads
	// to a string that holds a value's JSON, name is the value's name; otherwise it is "".
	Takes(f Folder, path string) (name string, takes bool)
}
