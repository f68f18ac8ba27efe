// Package promotion moves commits of a platform, or of an application, from environment to environment: the
// base commit that ran in one is what the next one gets, as soon as gates say so.
//
// All state is in git and on the forge, and every run begins by reading it: what each
// environment and ring has is in the record of its GitOps tree, what people have
// ordered (rejections, freezes) in refs of the GitOps repository, and what was seen of
// rollouts in statuses of commits. Policies are those of the platform branch's head. A
// run does what can be done now, and ends; any number of runs may go on at once, and
// any of them may be killed at any moment: the next one goes on.
//
// Open reads the state. Plan says what could be done, and changes nothing; Apply does
// it. Rings of environments are called stops here, and an environment without rings is
// one stop: what is asked, compiled and written is always about one of them.
package promotion

import (
	"context"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/signature"
)

// Request says what is promoted, and with what.
type Request struct {
	// Repository is the platform's git repository: a URL, or a folder. Branch is what is
	// promoted from, "" for the repository's default; Path is the platform's folder in
	// it, "." for its root.
	Repository, Branch, Path string
	// Head is a commit to take for the head of the branch; zero for what it is.
	Head git.Hash
	// Environments are those to work on, and Ring is a ring of the one; none and "" for
	// all. The state of all others is read as far as gates need it.
	Environments []string
	Ring         string
	// Former lets Environments name some that the policy does not have any more.
	Former bool
	// Subjects compile: the first of them counts that the head is one of.
	Subjects []Subject
	// Remote opens a git repository by its URL.
	Remote func(ctx context.Context, url string) (*remote.Remote, error)
	// Forge returns what a repository is hosted on; nil for nothing but git.
	Forge func(ctx context.Context, url string) (forge.Forge, error)
	// Sources are where rollouts are reported, beside commit statuses.
	Sources []Source
	// Now is the clock. ClockSet says that it was set, and is not that of the machine:
	// records say so.
	Now      func() time.Time
	ClockSet bool
	// By is who runs this, for what only people decide: rollbacks, holds, freezes.
	By string
	// Committer is who makes commits; the zero Signature for kalypso itself.
	Committer git.Signature
	// Signer signs commits; nil for none.
	Signer *signature.Signer
	// Overwrite restores what somebody else changed in the generated files, and Adopt
	// takes over files that kalypso did not write.
	Overwrite, Adopt bool
	// AllRings lets changes of an environment's own files go to all rings at once.
	AllRings bool
}

// author is who makes commits: the same for all who run this, unless they say otherwise.
func (r *Request) author(when time.Time) author {
	by := author{Signature: git.Signature{Name: "kalypso", Email: "kalypso@localhost", When: when.UTC()}}
	if r.Committer.Name != "" {
		by.Name, by.Email = r.Committer.Name, r.Committer.Email
	}
	if r.Signer != nil {
		by.sign = r.Signer.Sign
	}
	return by
}

// clock is what records say of the clock.
func (r *Request) clock() string {
	if r.ClockSet {
		return tree.ClockSet
	}
	return ""
}

// Source is where rollouts are reported, of one kind as policies name them:
// kubernetes or report.
type Source struct {
	Kind string
	rollout.Source
}

// Intent is what a run is to do beside what policies say by themselves.
type Intent struct {
	// Commit is the base commit to promote, as git names it; "" for the candidate that
	// the policy chooses.
	Commit string
	Skip   gate.Skip
}

// State is where a stop is.
type State string

// The states of a stop, each computed anew in every run.
const (
	Current  State = "current"  // it has the newest commit that it may have
	Ready    State = "ready"    // a commit passed all gates
	Proposed State = "proposed" // a change request is open
	Waiting  State = "waiting"  // a gate is pending
	Blocked  State = "blocked"
	Held     State = "held" // by a hold or a freeze
	Promoted State = "promoted"
	Absent   State = "absent" // it has no gitops, or no branch yet
)

// Kind is what a step does.
type Kind string

// The kinds of steps.
const (
	Promote     Kind = "promote"   // another base commit
	Configure   Kind = "configure" // only the environment's own files are new
	RollBack    Kind = "rollback"  // an earlier base commit
	RestoreKind Kind = "restore"   // files that somebody else changed
	First       Kind = "first"     // the branch's first tree
)

// Stop is what is to say of one ring of an environment.
type Stop struct {
	Environment string `json:"environment"`
	Ring        string `json:"ring,omitempty"`
	State       State  `json:"state"`
	// Reason is one line for people.
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	// Has is what the record says; empty before the first promotion. Tip is the GitOps
	// branch's commit, and Landed the one that brought Has.
	Has    tree.Source `json:"has"`
	Branch string      `json:"branch,omitempty"`
	Tip    string      `json:"tip,omitempty"`
	Landed string      `json:"landed,omitempty"`
	// Rollout is what became of Has on the clusters.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Step is what is to be done; nil for nothing.
	Step *Step `json:"step,omitempty"`
	// Others are newer base commits that are not the candidate, newest first, and why.
	Others []Other    `json:"others,omitempty"`
	Hold   *tree.Hold `json:"hold,omitempty"`
	// Drift is what somebody did to the environment's tree, a line for each file.
	Drift []string `json:"drift,omitempty"`
}

// statusOf returns where a stage is, before anything is known of its state.
func statusOf(st *stop) *Stop {
	return &Stop{Environment: st.stage.Name, Ring: st.ringName(), Has: st.has(), Branch: st.out.branch, Tip: string(tree.RevisionOf(st.out.tip))}
}

// ID returns environment, or environment/ring.
func (s *Stop) ID() string { return stopID(s.Environment, s.Ring) }

// Diagnostics are what the compiler has to say of the step, and what is in the way of its
// files.
func (s *Stop) Diagnostics() []diag.Diagnostic {
	if s.Step == nil || s.Step.prepared == nil {
		return nil
	}
	return s.Step.prepared.diagnostics
}

// Rollout is what became of a commit on the clusters.
type Rollout struct {
	State  forge.State     `json:"state"`
	Since  time.Time       `json:"since,omitzero"`
	Reason string          `json:"reason"`
	Counts *rollout.Counts `json:"counts,omitempty"`
}

// Other is a base commit that is not the candidate.
type Other struct {
	Commit string `json:"commit"`
	Reason string `json:"reason"`
	// Refused says that somebody rejected it or called it off: nothing is waited for.
	Refused bool `json:"refused,omitempty"`
}

// Step is a change that a stop may get.
type Step struct {
	Kind   Kind        `json:"kind"`
	Source tree.Source `json:"source"`
	// Verdicts are the gates' answers, in the order of their evaluation.
	Verdicts []gate.Verdict `json:"gates"`
	// Change is what would change; nil where that was not compiled, because a gate of
	// the commit alone is not passed.
	Change *gate.Change `json:"change,omitempty"`
	// NoOp says that no file changes, only the record.
	NoOp bool `json:"noOp,omitempty"`
	// Tree is the id of the environment's tree without .kalypso after the step.
	Tree tree.ID `json:"tree,omitempty"`
	// Commit is the GitOps commit that was or would be made.
	Commit string `json:"commit,omitempty"`
	// URL is the change request's page; "" for none.
	URL string `json:"url,omitempty"`
	// Title and Body are those of the change request.
	Title string `json:"title,omitempty"`
	Body  string `json:"body,omitempty"`

	prepared *prepared
}
