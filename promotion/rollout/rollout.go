// Package rollout computes the state of a rollout: how many clusters run the assignments in an
// environment's tree. The inputs are the wanted assignments and the reports of a Source. A source
// can be commit statuses of Flux and Argo CD, the objects of a cluster, files of Ansible, or a
// hub's collection of them all. The results are the state of each assignment, and the counts.
//
// An assignment without reports is Unknown. It never counts as healthy.
package rollout

import (
	"cmp"
	"context"
	"time"

	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/internal/git"
)

// Assignment is a wanted assignment, with the names of its objects on clusters.
type Assignment struct {
	// ID is <environment>/<clusterType>/<workload>-<target>; for a target of an
	// application <environment>/<target>.
	ID          string
	ClusterType string
	Workload    string
	Version     string // of the manifests; "" if the platform does not name one
	Target      string // the deployment target's full name, which is the name of the folder
	Backend     string // flux, argocd, fleet, ansible ...
	Namespace   string // of the deployed files
	// Object is the name of the reconciler's own object, such as the Kustomization or Application
	// that applies the folder to a cluster. It is "" for reconcilers without an object of that
	// name.
	Object string
	// Objects are the names of objects that apply the folder to one cluster each, with the
	// cluster's name: the Applications of an ApplicationSet. It is empty if each cluster has
	// Object.
	Objects map[string]string
	// Clusters are the names of the clusters of the type, if the platform lists them: each
	// must report. If it lists no clusters, one report is enough.
	Clusters []string
}

// DesiredState are the desired assignments of a tree on the clusters.
type DesiredState struct {
	Environment string
	Ring        string // "" for all of the environment
	// Commits are the commits of the GitOps branch with the tree's assignments as they are
	// wanted, newest first: a report about any of them counts.
	Commits     []git.Hash
	Assignments []Assignment // sorted by ID
	// where the tree is; the zero Tree if reports do not say where they take it from
	Tree origin.Tree
}

// State is the newest reported state of an assignment, on one or all of its clusters.
type State string

// The states of an assignment.
const (
	Healthy     State = "healthy"     // runs what is wanted
	Progressing State = "progressing" // in progress, or runs something older
	Suspended   State = "suspended"   // somebody suspended it in its reconciler
	Failed      State = "failed"
	Stale       State = "stale"   // was reported, but too long ago
	Unknown     State = "unknown" // was never reported
)

// badness orders the states, the worst last.
var badness = map[State]int{Healthy: 0, Progressing: 1, Suspended: 2, Stale: 3, Unknown: 4,
	Failed: 5}

// Compare orders states, the worst last.
func (s State) Compare(other State) int { return cmp.Compare(badness[s], badness[other]) }

// Report is a report about an assignment on a cluster.
type Report struct {
	Assignment string // its ID
	Cluster    string // "" if the source does not report it
	// State is never Unknown, which Count computes, as it does Stale for reports that are
	// old by their time. A source that knows better reports Stale itself.
	State   State
	Message string // one line, from outside
	By      string // the author: forge.Status.By, or the name of a file or context
	// At is the time of the report, and Since the time since which the state holds, by the
	// source's clock; the zero Time if it does not report that.
	At, Since time.Time
}

// Source is a source of reports. Reports returns all of them, in no order, with texts that
// terminal.Line returned. There may be several reports for an assignment and cluster. Reports of
// unwanted assignments are left out. If the source cannot be read completely, Reports returns an
// error with the reports that it could read.
type Source interface {
	Name() string // in messages: "commit statuses", "kubeconfig prod.yaml"
	Reports(ctx context.Context, w *DesiredState) ([]Report, error)
}
