// Package rollout finds out how far the clusters have come with what an environment's
// tree wants of them. In come the desired assignments; out comes what each of them
// was last reported to be, and a count. Where reports come from is a Source: commit
// statuses that Flux and Argo CD set, the objects of a cluster, a report of Ansible.
//
// What nobody reports is Unknown, and never taken for healthy.
package rollout

import (
	"context"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Assignment is one that the tree wants, with what is to be seen of it.
type Assignment struct {
	// ID is <environment>/<clusterType>/<workload>-<target>; for a target of an
	// application <environment>/<target>.
	ID          string
	ClusterType string
	Workload    string
	Version     string // of the manifests; "" where the platform names none
	Target      string // the deployment target's full name: that of the folder
	Backend     string // flux, argocd, fleet, ansible ...
	Namespace   string // of what is deployed
	// Object is the name of the reconciler's own object: the Kustomization or
	// Application that brings the folder to a cluster; "" for reconcilers that have
	// none of that name.
	Object string
	// Objects are the names of objects that bring the folder to one cluster each,
	// with the cluster's name: the Applications of an ApplicationSet. None where each
	// cluster has Object.
	Objects map[string]string
	// Clusters are the names of the clusters of the type, where the platform lists
	// them: each has to report. Where it lists none, one report is enough.
	Clusters []string
}

// Wanted is what a tree wants of the clusters.
type Wanted struct {
	Environment string
	// Commits are those of the GitOps branch that have the tree's assignments as they
	// are wanted, newest first: a report about any of them counts.
	Commits     []git.Hash
	Assignments []Assignment // sorted by ID
}

// State is what an assignment was last reported to be on one or all of its clusters.
type State string

// The states of an assignment.
const (
	Healthy     State = "healthy"     // runs what is wanted
	Progressing State = "progressing" // is on its way, or runs something older
	Failed      State = "failed"
	Stale       State = "stale"   // was reported, but not within the time allowed
	Unknown     State = "unknown" // nobody has reported
)

// Report is what somebody said of an assignment.
type Report struct {
	Assignment string // its ID
	Cluster    string // "" where the source does not say
	State      State  // never Unknown; Stale is for Count to find
	Message    string // one line, from outside
	By         string // who said it, as forge.Status.By, or the name of a file or context
	// At is when it was said, and Since from when on it has been in this state, by the
	// source's clock; the zero Time where it does not say.
	At, Since time.Time
}

// Source is where reports come from. It returns all that there are, in no order, with
// texts that web.Printable made one line of; more than one for an assignment and
// cluster may be there, and reports of what is not wanted are left out. An error is
// that of a source that cannot be asked, wholly or in part: what is returned with it
// is all that was said.
type Source interface {
	Name() string // in messages: "commit statuses", "kubeconfig prod.yaml"
	Reports(ctx context.Context, w *Wanted) ([]Report, error)
}
