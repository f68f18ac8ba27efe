package argocd

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
)

// shared is what Index needs to know of a folder to let its Applications do
// their work. It says only what differs from the usual, because the provenance
// record holds it once per assignment.
type shared struct {
	// Repo is the source's URL, where kalypso makes the project; "" where the
	// reconciler names one.
	Repo string `json:"repo,omitempty"`
	// Destination is the cluster; nil where the reconciler gives none.
	Destination *destination `json:"destination,omitempty"`
	// Clusters are the names of the clusters that the folder goes to, each by an
	// Application that an ApplicationSet makes; none where Destination says it.
	Clusters []string `json:"clusters,omitempty"`
	// CreatesNamespace says that the workload's syncs may create the namespace.
	CreatesNamespace bool `json:"createsNamespace,omitempty"`
	// Kinds of namespaced objects in the workspace, beside usualKinds.
	Kinds []groupKind `json:"kinds,omitempty"`
	// ClusterObjects are the cluster-scoped objects of the workspace, beside its
	// namespace.
	ClusterObjects []clusterObject `json:"clusterObjects,omitempty"`
	// Namespaces that the workspace has objects in, beside its own.
	Namespaces []string `json:"namespaces,omitempty"`
	// Rendered says how the folder's Application syncs the workload that is in the
	// folder itself; nil where the workload has an Application of its own.
	Rendered *syncing `json:"rendered,omitempty"`
}

// syncing are the reconciler's fields that an assignment may set for itself.
type syncing struct {
	SyncOptions       []string           `json:"syncOptions,omitempty"`
	IgnoreDifferences []ignoreDifference `json:"ignoreDifferences,omitempty"`
}

// usualKinds are what every workspace may have.
var usualKinds = []groupKind{{Kind: "ConfigMap"}, {Kind: "ServiceAccount"}}

var (
	applicationKind = groupKind{Group: "argoproj.io", Kind: "Application"}
	setKind         = groupKind{Group: "argoproj.io", Kind: "ApplicationSet"}
)

// withObjects returns what is shared with what the project of the assignments must
// permit for these objects.
func (s shared) withObjects(a *backends.Assignment, o options, objects []backends.Object) shared {
	out := s
	if o.eachCluster() {
		for _, c := range a.Clusters {
			out.Clusters = append(out.Clusters, c.Name)
		}
	} else if d := o.destination(); d != (destination{Server: inCluster}) {
		out.Destination = &d
	}
	own := []string{applicationName(a.Environment, a.ClusterType, a.DeploymentTarget), backends.AssignmentName(a.Environment, a.ClusterType, a.DeploymentTarget)}
	for _, object := range objects {
		kind := groupKind{Group: object.Group, Kind: object.Kind}
		switch {
		case (kind == applicationKind || kind == setKind) && object.Namespace == o.Namespace && slices.Contains(own, object.Name):
			// What brings the workload: Index knows of it.
		case object.Namespace == "":
			if kind != (groupKind{Kind: "Namespace"}) || object.Name != a.Namespace {
				out.ClusterObjects = append(out.ClusterObjects, clusterObject{Group: object.Group, Kind: object.Kind, Name: object.Name})
			}
		default:
			if !slices.Contains(usualKinds, kind) {
				out.Kinds = append(out.Kinds, kind)
			}
			if object.Namespace != a.Namespace {
				out.Namespaces = append(out.Namespaces, object.Namespace)
			}
		}
	}
	out.Kinds = unique(out.Kinds, compareKinds)
	out.ClusterObjects = unique(out.ClusterObjects, compareObjects)
	out.Namespaces = unique(out.Namespaces, cmp.Compare[string])
	return out
}

// encode returns the JSON of s, nil for the zero value.
func (s shared) encode() json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic("argocd: " + err.Error()) // strings and bools always have JSON
	}
	if string(b) == "{}" {
		return nil
	}
	return b
}

// unique returns s sorted, each element once.
func unique[T comparable](s []T, compare func(a, b T) int) []T {
	slices.SortFunc(s, compare)
	return slices.Compact(s)
}

func compareKinds(a, b groupKind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
}

func compareObjects(a, b clusterObject) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func compareDestinations(a, b destination) int {
	return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
}

// folder is a folder with what was shared of it.
type folder struct {
	backends.Folder
	shared
	// foreign says that another backend made it, which shares nothing with us.
	foreign bool
}

func (f folder) destination() destination {
	if f.Destination == nil {
		return destination{Server: inCluster}
	}
	return *f.Destination
}

// destinations are the places that the folder's objects go to.
func (f folder) destinations() []destination {
	if len(f.Clusters) == 0 {
		return []destination{f.destination()}
	}
	out := make([]destination, len(f.Clusters))
	for i, name := range f.Clusters {
		out[i] = destination{Name: name}
	}
	return out
}

// apart says whether reconciler.yaml is listed apart from the folder: it holds what
// stays with Argo CD.
func (f folder) apart() bool { return f.remote() || len(f.Clusters) > 0 }

// hasApplication says whether the folder holds an Application of the workload.
func (f folder) hasApplication() bool { return !f.foreign && f.Rendered == nil }

// local says whether the folder brings an Application to Argo CD's own cluster.
func (f folder) local() bool {
	return f.Rendered == nil && len(f.Clusters) == 0 && !f.destination().remote()
}

// remote says whether the workload's Application must be listed apart from the
// folder.
func (f folder) remote() bool { return f.hasApplication() && f.destination().remote() }

// ignoreDifferences returns those of the folder's Application.
func (s shared) ignoreDifferences() []ignoreDifference {
	if s.Rendered == nil {
		return nil
	}
	return s.Rendered.IgnoreDifferences
}

// read returns the folders with what was shared of them. A foreign one is taken
// to go where the reconciler's folders go, as a whole.
func read(o options, folders []backends.Folder) []folder {
	out := make([]folder, len(folders))
	for i, f := range folders {
		out[i] = folder{Folder: f, foreign: f.Backend != backend}
		if out[i].foreign {
			out[i].Destination = o.Destination
			continue
		}
		if len(f.Shared) > 0 {
			// It is what encode wrote: only a damaged record is not readable, and
			// then the folder has the usual rights.
			_ = json.Unmarshal(f.Shared, &out[i].shared)
		}
	}
	return out
}
