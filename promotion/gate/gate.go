// Package gate decides whether a commit may advance, with one evaluation for plan, apply and
// status. The inputs are the policy of an environment, or of a ring of it, and facts that others
// have gathered. The result is a Verdict for every gate. The package reads no clock, no network
// and no repository, except through the functions in the facts.
//
// Unknown facts are pending, and never passed.
//
// For example, the package's tests have a [Policy] for prod with a soak gate of 24h in qa. It is
// 12:12 on 2026-11-20, and the [Stay] of the commit in qa has had the State success for 1h. Commit
// returns one Verdict of the gate soak, with the State pending and the Reason
//
//	soaking in qa for 1h of 24h, until 2026-11-21T11:12:00Z
package gate

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// State is the answer of a gate.
type State string

// The answers of a gate.
const (
	Passed  State = "passed"
	Pending State = "pending" // it may pass by itself: with time, reports or approvals
	Blocked State = "blocked" // it will not pass unless somebody does something
)

// Verdict is a gate's answer.
type Verdict struct {
	Gate  string `json:"gate"`           // the name of its Kind, or Advance
	Name  string `json:"name,omitempty"` // which one, if there can be several of a kind
	State `json:"state"`
	// Reason is one line for people: the present state, and the wanted one.
	Reason string `json:"reason"`
	// Since is the beginning of the cause of the answer. Until is the time when a pending gate
	// passes, or should be evaluated again. Each is the zero Time if it is not known.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Never is true if a blocked gate will not pass unless people skip it.
	Never bool `json:"-"`
	// Fails is true if a pending gate waits for the end of a failure.
	Fails bool `json:"-"`
	// Skipped is the reason for skipping the gate with --skip-gate; its State is Passed then.
	Skipped string `json:"skipped,omitempty"`
}

// Overall returns the answer of all gates together: blocked if one is, else pending if
// one is, else passed. No verdict at all is passed.
func Overall(vs []Verdict) State {
	all := Passed
	for _, v := range vs {
		switch {
		case v.State == Blocked:
			return Blocked
		case v.State == Pending:
			all = Pending
		}
	}
	return all
}

// Stay is the time of a base commit in a ring of an environment.
type Stay struct {
	Environment, Ring string // Ring is "" if the environment has no rings
	// Held is true if the history of the environment's tree has the commit. Only that proves that
	// the commit was there.
	Held bool
	// Missed is true if the ring never had the commit and has a newer one, so that it will not
	// enter.
	Missed bool
	// Entered is the time of the first report about the commit's rollout there. Left is the time
	// when the ring got another commit; Left is the zero Time while the commit is there.
	Entered, Left time.Time
	// State is the newest report of the rollout: success, failure, or pending. Since is the time
	// of that report, by the clock of the forge. Success is latched. It stays if clusters report
	// something else later, and ends with a reported failure.
	State forge.State
	Since time.Time
	// Reason is the count: "73/100 healthy, 2 failed, 25 stale".
	Reason string
	// Failing describes the failures there since FailingSince. They started after the rollout
	// succeeded, or existed when the commit left. It is "" if nothing fails. OKSince is the time
	// since which there are no failures any more. It is zero if there never was a failure.
	Failing      string
	FailingSince time.Time
	OKSince      time.Time
	// As is the source that brought the commit's files there first; the zero Source if the commit
	// did. Reports of the rollout since then count. Came is the time when the commit itself
	// arrived.
	As   tree.Source
	Came time.Time
}

// Policy has the requirements of one ring of an environment.
type Policy struct {
	Environment, Ring string
	// After are the environments, or in a ring with such the rings of the same
	// environment, that have to be passed before; Any is that one is enough.
	After []string
	Rings bool // After are rings
	Any   bool
	// OwnAtOnce is true if own files of the environment do not soak in After.
	OwnAtOnce bool
	// Gates are the gates of the environment and then the gates of the ring. Either may be
	// missing.
	Gates []model.Gates
	// AllowErrors and AllowKept allow a change with errors or kept folders.
	AllowErrors, AllowKept bool
	Skippable              []string
}

// Freeze is an order to stop.
type Freeze struct {
	Reason, By string
	At, Until  time.Time // Until is zero for ever
}

// Rejection is an order against a commit that a candidate contains.
type Rejection struct {
	Commit git.Hash
	Freeze
}

// Skip are gates to pass over.
type Skip struct {
	Gates []string // their kinds
	// OwnAtOnce lets own files of an environment enter a ring before the rings in After had them.
	OwnAtOnce bool `json:",omitempty"`
	Reason    string
	By        string
}

// IsZero reports whether no gate is passed over.
func (s Skip) IsZero() bool { return len(s.Gates) == 0 && !s.OwnAtOnce }

// CommitFacts are the facts about a base commit as a candidate for a ring, before
// anything is compiled.
type CommitFacts struct {
	Now    time.Time
	Commit git.Hash
	// Reachable is true if the commit is in the history of the platform's branch.
	Reachable bool
	Rejected  *Freeze // the order to reject it, or nil
	Aborted   *Freeze // the order that called it off, or nil
	// Contains are the orders against other commits that it contains.
	Contains []Rejection
	// Named is the person who promotes the commit by name in spite of orders against its contents,
	// with the reason, or "".
	Named  string
	Hold   *Freeze // the ring's own, after a rollback, or nil
	Freeze *Freeze // the environment's, or nil
	// Stays are the stays of the commit in the rings of After and of the environments that
	// soak gates name. An environment with rings has one for each of them.
	Stays []Stay
	// Statuses are the statuses of the commit, oldest first. StatusesKnown is false if the forge
	// did not answer.
	Statuses      []forge.Status
	StatusesKnown bool
	// EnvironmentOnly is true if the ring has the base commit already and gets only the
	// environment's own files again. Then only rings in After count, and soak gates about them.
	EnvironmentOnly bool
	// Inherits is true if the commit soaks since its files are in a stay, although the commit
	// itself arrived later. It must not change anything else.
	Inherits bool
	// AtOnce is the reason why own files need not be in the rings of After before; "" if they
	// must.
	AtOnce string
}

// Change is the planned change, as http and policy gates see it. It counts pairs of a
// deployment target and a cluster; a cluster type that lists no clusters counts as one.
type Change struct {
	Environment string   `json:"environment"`
	Ring        string   `json:"ring,omitempty"`
	Base        git.Hash `json:"base"`
	Own         git.Hash `json:"own"` // the environment's own commit
	// Counts are all pairs that differ. Removed, Added and Changed describe them, with equal pairs
	// together, and name the first maxNamed clusters. Assignments are their ids.
	Counts      compare.Total   `json:"counts"`
	Removed     []compare.Entry `json:"removed"`
	Added       []compare.Entry `json:"added"`
	Changed     []compare.Entry `json:"changed"`
	Assignments struct {
		Added   []string `json:"added"`
		Changed []string `json:"changed"`
		Removed []string `json:"removed"`
	} `json:"assignments"`
	ClusterTypes []string `json:"clusterTypes"` // with such an assignment
	// Clusters is the number of clusters that change, and Emptied are the first of the
	// clusters that stay and lose everything.
	Clusters int      `json:"clusters"`
	Emptied  []string `json:"emptied"`
	// Created, Updated and Deleted are numbers of objects by kind on all clusters, such as
	// {"Namespace": 1}. Documents that are not Kubernetes objects count as File.
	Created map[string]int `json:"created"`
	Updated map[string]int `json:"updated"`
	Deleted map[string]int `json:"deleted"`
	Errors  int            `json:"errors"` // assignments with errors
	Kept    int            `json:"kept"`   // folders that stay as they were
	// Removals are the counts that removals.max and removals.emptied of the environment limit.
	Removals effect.Removals `json:"removals"`
}

// maxNamed is the largest number of names of clusters in each list of a Change.
const maxNamed = 1000

// Set sets the changes on clusters.
func (c *Change) Set(r *compare.Report) {
	a := r.Assignments
	c.Counts = r.Total
	c.Removed, c.Added, c.Changed = clipped(r.Removed), clipped(r.Added), clipped(r.Changed)
	c.Assignments.Added, c.Assignments.Changed, c.Assignments.Removed = a.Added, a.Changed, a.Removed
	c.Created, c.Updated, c.Deleted = r.Objects.Created, r.Objects.Updated, r.Objects.Deleted
	types, unlisted := map[string]bool{}, 0
	for _, list := range [][]compare.Entry{c.Removed, c.Added, c.Changed} {
		for i := range list {
			types[list[i].ClusterType] = true
		}
	}
	c.ClusterTypes = slices.Sorted(maps.Keys(types))
	for i := range r.Counts {
		if of := &r.Counts[i]; !of.Lists && of.Added+of.Changed+of.Removed > 0 {
			unlisted++
		}
	}
	c.Clusters = unlisted
	if r.Clusters != nil {
		c.Clusters += r.Clusters.Concerned
		c.Emptied = r.Clusters.Emptied[:min(len(r.Clusters.Emptied), maxNamed)]
	}
}

// clipped returns entries with the names of the first clusters of all of them together.
func clipped(entries []compare.Entry) []compare.Entry {
	out, left := slices.Clone(entries), maxNamed
	for i := range out {
		names := out[i].Names()
		out[i].Clusters = names[:min(len(names), left)]
		left -= len(out[i].Clusters)
	}
	return out
}

// ChangeFacts are the known facts about a planned change.
type ChangeFacts struct {
	Now    time.Time
	Change *Change
	// Reviews are the reviews of the change request with the head Head and the author Author. They
	// are nil while there is no change request.
	Reviews *forge.Reviews
	Head    git.Hash
	Author  string
	// NoReviews is the reason why nobody can approve, such as a branch that is written to
	// directly. It is "" if somebody can approve.
	NoReviews string
	// OwnFiles is true if the change has other own files of the environment.
	OwnFiles bool
	// Post sends JSON to a URL and returns the answer's body. It is bounded in time and
	// size.
	Post func(ctx context.Context, g model.HTTPGate, body []byte) ([]byte, error)
	// Satisfies evaluates a constraint on a JSON document. It returns the violations, a line each.
	// It returns no lines if the document satisfies the constraint.
	Satisfies func(ctx context.Context, constraint model.Expr, document json.RawMessage) ([]string,
		error)

	document func() ([]byte, error) // Change as JSON, made once, and only for gates that get it
}
