package argocd

import (
	"encoding/json"

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
	// Own says that the workload's Application is in a project of its own: in
	// records of earlier releases, it is in that of its workspace.
	Own bool `json:"own,omitempty"`
	// CreatesNamespace says that the workload's syncs may create the namespace.
	CreatesNamespace bool `json:"createsNamespace,omitempty"`
	// Bounds are those of the workspace; nil for any kind of object in the workload's
	// namespace.
	Bounds *bounds `json:"bounds,omitempty"`
	// Permits is what the folder's project permits; nil in records of earlier releases, whose
	// projects permitted everything.
	Permits *permits `json:"permits,omitempty"`
	// Rendered says how the folder's Application syncs the workload that is in the
	// folder itself; nil where the workload has an Application of its own.
	Rendered *syncing `json:"rendered,omitempty"`
}

// syncing are the reconciler's fields that an assignment may set for itself.
type syncing struct {
	SyncOptions       []string           `json:"syncOptions,omitempty"`
	IgnoreDifferences []ignoreDifference `json:"ignoreDifferences,omitempty"`
}

var (
	applicationKind = groupKind{Group: "argoproj.io", Kind: "Application"}
	setKind         = groupKind{Group: "argoproj.io", Kind: "ApplicationSet"}
)

// at returns what is shared with where the folder goes.
func (s shared) at(a *backends.Assignment, o options) shared {
	if o.eachCluster() {
		for _, c := range a.Clusters {
			s.Clusters = append(s.Clusters, c.Name)
		}
	} else if d := o.destination(); d != (destination{Server: inCluster}) {
		s.Destination = &d
	}
	return s
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

// apart says whether reconciler.yaml is listed apart from the folder: it holds what
// stays with Argo CD.
func (f folder) apart() bool { return f.remote() || len(f.Clusters) > 0 }

// hasApplication says whether the folder holds an Application of the workload.
func (f folder) hasApplication() bool { return !f.foreign && f.Rendered == nil }

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
