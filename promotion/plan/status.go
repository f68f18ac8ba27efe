package plan

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/observe"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// State is the state of a stage.
type State string

// The states of a stage, each computed again in every run.
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

// Kind is the kind of a step.
type Kind string

// The kinds of steps.
const (
	Promote   Kind = "promote"   // another base commit
	Configure Kind = "configure" // only the environment's own files are new
	RollBack  Kind = "rollback"  // an earlier base commit
	Restore   Kind = "restore"   // files that somebody else changed
	First     Kind = "first"     // the branch's first tree
)

// StageStatus is the state of a stage, and its next step.
type StageStatus struct {
	Environment string `json:"environment"`
	Ring        string `json:"ring,omitempty"`
	State       State  `json:"state"`
	// Reason is one line for people.
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	// Has is the source in the record; empty before the first promotion. Tip is the GitOps
	// branch's commit, and Deployed the one that deployed Has.
	Has      tree.Source `json:"has"`
	Branch   string      `json:"branch,omitempty"`
	Tip      string      `json:"tip,omitempty"`
	Deployed string      `json:"deployed,omitempty"`
	// Landed is Deployed under its old name, which v1alpha1 keeps.
	Landed string `json:"landed,omitempty"`
	// Rollout is the progress of Has on the clusters.
	Rollout *observe.Rollout `json:"rollout,omitempty"`
	// Step is the next step, or nil.
	Step *Step `json:"step,omitempty"`
	// Others are newer base commits that are not the candidate, newest first, with the reasons.
	// They do not include commits that can no longer enter because the candidate is newer.
	Others []Other    `json:"others,omitempty"`
	Hold   *tree.Hold `json:"hold,omitempty"`
	// Resumes is a person's decision that an earlier run proposed, if the step continues it, or
	// nil.
	Resumes *Intent `json:"-"`
	// Drift lists other people's changes of the environment's tree, a line for each file.
	Drift []string `json:"drift,omitempty"`
}

// StatusOf returns the status of a stage with its source. Its state is not known yet.
func StatusOf(st *session.Stage) *StageStatus {
	return &StageStatus{Environment: st.Policy.Name, Ring: st.RingName(), Has: st.Has(),
		Branch: st.Environment.Branch, Tip: string(tree.RevisionOf(st.Environment.Tip))}
}

// ID returns environment, or environment/ring.
func (s *StageStatus) ID() string { return session.StageID(s.Environment, s.Ring) }

// Diagnostics returns the diagnostics of the step's compilation, and of the obstacle
// that blocks its files.
func (s *StageStatus) Diagnostics() []diag.Diagnostic {
	if s.Step == nil || s.Step.Prepared == nil {
		return nil
	}
	return s.Step.Prepared.diagnostics
}

// Other is a base commit that is not the candidate.
type Other struct {
	Commit string `json:"commit"`
	Reason string `json:"reason"`
	// Refused is true if somebody rejected or cancelled it, so that nothing waits for it.
	Refused bool `json:"refused,omitempty"`
}

// Step is a change that a stage may get.
type Step struct {
	Kind   Kind        `json:"kind"`
	Source tree.Source `json:"source"`
	// Verdicts are the gates' answers, in the order of their evaluation.
	Verdicts []gate.Verdict `json:"gates"`
	// Change is the planned change; nil if it was not compiled, because a gate that needs only the
	// commit does not pass.
	Change *gate.Change `json:"change,omitempty"`
	// EndsHold is the hold that ends because somebody promotes the commit by name, or nil.
	EndsHold *tree.Hold `json:"endsHold,omitempty"`
	// NoOp is true if only the record changes, and no other file.
	NoOp bool `json:"noOp,omitempty"`
	// Tree is the id of the environment's tree without .kalypso after the step.
	Tree tree.ID `json:"tree,omitempty"`
	// Commit is the GitOps commit that was or would be made.
	Commit string `json:"commit,omitempty"`
	// URL is the change request's page, or "".
	URL string `json:"url,omitempty"`
	// Title and Body are the change request's.
	Title string `json:"title,omitempty"`
	Body  string `json:"body,omitempty"`

	Prepared *PreparedCommit `json:"-"`
	contains []string        // rejected commits that come with it
}

// Ending is the hold that the step ends, or "".
func (step *Step) Ending() string {
	if step.EndsHold == nil {
		return ""
	}
	return fmt.Sprintf(", which ends the hold by %s: %s",
		terminal.Line(cmp.Or(step.EndsHold.By, "somebody")), terminal.Line(step.EndsHold.Reason))
}

// Status has the positions of the newest base commits.
type Status struct {
	Stages []*StageStatus `json:"stages"`
	Stops  []*StageStatus `json:"stops"` // Stages under their old name, which v1alpha1 keeps
	// Commits are the newest base commits, newest first.
	Commits []CommitStatus `json:"commits"`
	// Own are the commits of own files that some rings of an environment have and others do not, by
	// environment in the order of Stages, newest first.
	Own []OwnStatus `json:"own,omitempty"`
}

// OwnStatus is the position of a commit of an environment's own files.
type OwnStatus struct {
	Environment string `json:"environment"`
	CommitStatus
}

// CommitStatus is the position of a base commit.
type CommitStatus struct {
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
	Author  string `json:"author"`
	// Stages has an entry for each stage that has or had the commit, by its ID: "here" with
	// the state of its rollout, or "was here".
	Stages map[string]string `json:"stages"`
	Stops  map[string]string `json:"stops"` // Stages under their old name, which v1alpha1 keeps
}

// Status plans all stages of the request, and returns the positions of the newest base commits.
// most is the largest number of commits.
func (pl *Planner) Status(ctx context.Context, most int) (*Status, error) {
	planned, err := pl.Plan(ctx, Intent{})
	if err != nil {
		return nil, err
	}
	out := &Status{Stages: planned.Stages, Stops: planned.Stages, Commits: []CommitStatus{}}
	bases, err := pl.state.Platform.Bases.Newest(max(most, 0))
	if err != nil {
		return nil, err
	}
	had := map[*session.Stage]map[tree.Revision]bool{}
	for _, st := range pl.state.Requested() {
		if had[st], err = st.Had(ctx, bases); err != nil {
			return nil, err
		}
	}
	for _, b := range bases {
		c := CommitStatus{Commit: b.Commit.String(), Subject: message.FirstLine(b.Message),
			Author: terminal.Line(b.Author), Stages: map[string]string{}}
		for i, st := range pl.state.Requested() {
			switch {
			case string(st.Has().Base) == c.Commit:
				c.Stages[st.ID()] = "here" + rolloutWord(out.Stages[i].Rollout)
			case had[st][tree.RevisionOf(b.Commit)]:
				c.Stages[st.ID()] = "was here"
			}
		}
		c.Stops = c.Stages
		out.Commits = append(out.Commits, c)
	}
	out.Own, err = pl.own(most)
	return out, err
}

// own returns the positions of the commits of own files that some rings lack. most is the largest
// number of commits of each environment.
func (pl *Planner) own(most int) (out []OwnStatus, err error) {
	for _, env := range pl.state.RequestedEnvironments() {
		stages := pl.state.StagesOf(env.Name())
		if env.Repository == nil || len(stages) < 2 {
			continue
		}
		has := map[tree.Revision][]string{} // IDs of stages
		for _, st := range stages {
			if own := st.Has().Environment; own != "" {
				has[own] = append(has[own], st.ID())
			}
		}
		head := tree.RevisionOf(env.Own.Commit)
		if len(has[head]) == len(stages) || len(has) == 0 {
			continue
		}
		commits, err := pl.state.Platform.OwnCommits(env.Policy, "", head, most)
		if err != nil {
			return nil, err
		}
		seen := 0
		for _, c := range commits {
			is := OwnStatus{env.Name(), CommitStatus{Commit: c.Commit.String(),
				Subject: message.FirstLine(c.Message), Author: terminal.Line(c.Author),
				Stages: map[string]string{}}}
			for _, id := range has[tree.RevisionOf(c.Commit)] {
				is.Stages[id] = "here"
			}
			is.Stops = is.Stages
			out = append(out, is)
			if seen += len(is.Stages); seen == len(stages) {
				break
			}
		}
	}
	return out, nil
}

// rolloutWord returns the state of a rollout as Status names it, or "".
func rolloutWord(r *observe.Rollout) string {
	if r == nil {
		return ""
	}
	if r.Failing != nil {
		return ", succeeded and fails now"
	}
	return ", " + string(map[forge.State]string{forge.Success: "healthy", forge.Failure: "failed",
		forge.Pending: "rolling out"}[r.State])
}

// CheckSkip returns an error if the policy of a stage of the request does not allow skipping the
// gates.
func (pl *Planner) CheckSkip(skip gate.Skip) error {
	if skip.IsZero() {
		return nil
	}
	for _, st := range pl.state.Requested() {
		if err := gate.CheckSkip(st.GatePolicy(), skip); err != nil {
			return fmt.Errorf("%s: %w", st.ID(), err)
		}
	}
	return nil
}
