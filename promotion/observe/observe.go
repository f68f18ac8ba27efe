// Package observe reads the progress of rollouts: of a stage's commit, and of base commits
// that were in it.
//
// In come statuses and reports of clusters, out come a Rollout, or the Stay that gates ask
// for. Nothing is written.
//
// For example, the tour of docs/promotion.md brings the first commit of examples/promotion to dev.
// Nobody has reported yet, so Observe of the stage dev returns a Rollout with the State pending and
// Counts of 0/1 ok, 1 unknown. Then a cluster of the cluster type small reports
// dev/small/checkout-dev-app as healthy. The next run observes the State success, with 1/1 ok.
package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/status"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/verify"
)

// Observer determines the progress of rollouts. It writes nothing.
type Observer struct {
	state   *session.State
	records *verify.Records
	// asked has the last answers of sources about a stage's commit, by the GitOps commit that
	// deployed it. Later questions use them.
	asked map[deployment]*Rollout
	// unrecorded are the stages whose rollouts this run may not record.
	unrecorded map[*session.Stage]bool
}

// deployment is a stage with the commit that deployed its present source.
type deployment struct {
	stage  string
	commit git.Hash
}

// New returns an Observer of a state.
func New(state *session.State, records *verify.Records) *Observer {
	return &Observer{state, records, map[deployment]*Rollout{}, map[*session.Stage]bool{}}
}

// NotRecorded records that this run may not record the rollout of a stage. Then a success counts
// from the time that clusters report.
func (ob *Observer) NotRecorded(st *session.Stage) { ob.unrecorded[st] = true }

// Rollout is the progress of a commit on the clusters.
type Rollout struct {
	State  forge.State `json:"state"`
	Since  time.Time   `json:"since,omitzero"`
	Reason string      `json:"reason"` // of a success, the reason at the time of its report
	// Failing are assignments that fail although the rollout succeeded, or nil. It counts while other
	// stages soak commits in the stage.
	Failing *Failing `json:"failing,omitempty"`
	// OKSince is the time since which nothing fails any more; zero if nothing has failed since the
	// rollout succeeded.
	OKSince time.Time `json:"okSince,omitzero"`
	// Counts are the present counts; nil if nobody reports, or if no source answered.
	Counts *rollout.Counts `json:"counts,omitempty"`
	// NotAsked names the sources that did not answer, and why, if Counts do not exist or are
	// incomplete; "" otherwise.
	NotAsked string `json:"notAsked,omitempty"`
}

// Failing is a failure after a rollout that succeeded.
type Failing struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

// Reports are the reports of the rollout of a stage's commit.
type Reports struct {
	ledger.Course      // also of earlier commits that brought the same files
	Known         bool // something was reported
	Own           ledger.Course
	Health        ledger.Health // also of these commits, since the rollout succeeded
	OwnKnown      bool          // something was reported of Deployed itself, which is Own
	run           []git.Hash    // the commits that have its files, newest first
	landings      []git.Hash    // those of them that deployed a source, oldest first
	Deployed      git.Hash      // the commit that deployed it
	// Ignored is the reason why a report of this run would not count; "" if it would.
	Ignored string
}

// Reports returns the reports of the rollout of a stage's commit; nil if it has no
// commit.
func (ob *Observer) Reports(ctx context.Context, st *session.Stage) (*Reports, error) {
	if st.Environment.Repository == nil || st.Has() == (tree.Source{}) {
		return nil, nil
	}
	run, landings, err := st.Environment.History.Running(ctx, st.RingName())
	if err != nil || len(run) == 0 {
		return nil, err
	}
	r := &Reports{run: run, Deployed: landings[0]}
	slices.Reverse(landings)
	r.landings = landings
	if err := ob.Reread(ctx, st, r); err != nil {
		return nil, err
	}
	r.Ignored, err = ob.whyIgnored(ctx, st)
	return r, err
}

// Reread reads the statuses again of the commits that deployed the present source of a stage, or
// the same files before.
func (ob *Observer) Reread(ctx context.Context, st *session.Stage, r *Reports) error {
	statuses, by := st.Environment.Repository.Statuses(), st.RolloutGate().By
	err := statuses.Load(ctx, r.landings...)
	r.Course, r.Known = statuses.CourseOver(r.landings, st.ID(), by)
	r.Health = statuses.HealthOver([][]git.Hash{r.landings}, st.ID(), by)
	r.Own, r.OwnKnown = ledger.CourseOf(statuses.Loaded(r.Deployed), st.ID(), by)
	return err
}

// Observe returns the progress of the rollout of a stage's commit; nil if it has no
// commit.
func (ob *Observer) Observe(ctx context.Context, st *session.Stage) (*Rollout, error) {
	r, err := ob.Reports(ctx, st)
	if err != nil || r == nil {
		return nil, err
	}
	return ob.Rollout(ctx, st, r)
}

// Rollout determines the progress of a rollout from all sources of reports. A reported success
// stays one.
func (ob *Observer) Rollout(ctx context.Context, st *session.Stage, was *Reports) (*Rollout,
	error) {
	r, err := ob.rollout(ctx, st, was)
	if err == nil {
		ob.asked[deployment{st.ID(), was.Deployed}] = r
	}
	return r, err
}

func (ob *Observer) rollout(ctx context.Context, st *session.Stage, was *Reports) (*Rollout,
	error) {
	r, err := ob.progress(ctx, st, was)
	if err != nil {
		return nil, err
	}
	if was.Known && was.State == forge.Success { // the counts are the present ones anyway
		return ob.sinceSuccess(was, r), nil
	}
	if r.Since = was.Since; !was.Known || r.State != was.State {
		r.Since = ob.state.Now
	}
	if was.Ignored != "" && r.State != forge.Pending && r.State != was.State {
		r.State, r.Reason = forge.Pending, r.Reason+"; "+was.Ignored
	}
	return r, nil
}

// sinceSuccess returns the rollout of a commit that succeeded, given the present answers of the
// sources: only a failure and its end count.
func (ob *Observer) sinceSuccess(was *Reports, now *Rollout) *Rollout {
	r := &Rollout{State: was.State, Since: was.Since, Reason: was.Reason, Counts: now.Counts,
		NotAsked: now.NotAsked}
	h := was.Health
	switch {
	case now.State == forge.Failure && !h.Failing:
		h = ledger.Health{Failing: true, Since: ob.state.Now, Reason: now.Reason}
	case now.State == forge.Failure:
		h.Reason = now.Reason
	case now.State == forge.Success && h.Failing:
		h = ledger.Health{Since: ob.state.Now}
	}
	if h.Failing {
		r.Failing = &Failing{h.Since, h.Reason}
	} else {
		r.OKSince = h.Since
	}
	return r
}

// whyIgnored returns the reason why reports of this run would not count; "" if they do. The run
// then reports nothing, because the next run would report it again.
func (ob *Observer) whyIgnored(ctx context.Context, st *session.Stage) (string, error) {
	g := st.RolloutGate()
	if len(g.By) == 0 {
		return "", nil
	}
	for _, l := range []*ledger.Statuses{ob.state.Statuses(st.Environment),
		st.Environment.Repository.Statuses()} {
		viewer, err := l.Forge.Viewer(ctx)
		if err != nil {
			return "", err
		}
		if !slices.Contains(g.By, viewer) {
			return fmt.Sprintf("its result is not published, as gates.rollout.by of %s does not name %s",
				st.ID(), cmp.Or(terminal.Line(viewer), "who runs this")), nil
		}
	}
	return "", nil
}

// progress returns the progress of a rollout by all sources of the policy.
func (ob *Observer) progress(ctx context.Context, st *session.Stage, was *Reports) (*Rollout,
	error) {
	g := st.RolloutGate()
	r := &Rollout{State: forge.Success,
		Reason: "it is in the tree, and the policy asks for no reports"}
	switch {
	case !g.AllowEmpty &&
		!slices.ContainsFunc(st.Environment.Record.ClusterTypes, func(e tree.ClusterTypeEntry) bool {
			return st.Covers(e.Name) && (e.Assignments > 0 || ob.state.Platform.Subject.Form().Targets)
		}):
		r.State, r.Reason = forge.Pending, rollout.Empty
	case g.Source != "none":
		assignments, err := ob.wanted(st.Environment.Record, st.Covers)
		if broken := (*tree.RecordError)(nil); errors.As(err, &broken) {
			return &Rollout{State: forge.Pending, Reason: err.Error(), NotAsked: err.Error()}, nil
		}
		if err != nil {
			return nil, err
		}
		wanted := &rollout.DesiredState{Environment: st.Environment.Record.Environment,
			Ring:    st.RingName(),
			Commits: was.run, Assignments: assignments}
		// kalypso does not own the reconcilers of an application's targets
		if !ob.state.Platform.Subject.Form().Targets {
			wanted.Tree = origin.TreeOf(st.Environment.Policy.GitOps)
		}
		if err := ob.count(ctx, st, &g, wanted, r); err != nil {
			return nil, err
		}
	}
	if r.State == forge.Success && was.State != forge.Success {
		if err := ob.wantStatuses(ctx, st, &g, r); err != nil {
			return nil, err
		}
	}
	if r.State == forge.Pending && was.State != forge.Success && g.Timeout > 0 &&
		!was.Entered.IsZero() && ob.state.Now.Sub(was.Entered) >= g.Timeout {
		r.State, r.Reason = forge.Failure,
			fmt.Sprintf("not far enough within %s: %s", g.Timeout, r.Reason)
	}
	return r, nil
}

// count counts the reports of a rollout.
func (ob *Observer) count(ctx context.Context, st *session.Stage, g *model.RolloutGate,
	wanted *rollout.DesiredState, r *Rollout) error {
	var err error
	if wanted.Commits, err = ob.untouched(ctx, st, wanted.Commits); err != nil {
		return err
	}
	sources := ob.sources(st, g)
	if len(sources) == 0 && len(wanted.Assignments) > 0 {
		how := map[string]string{"report": "the reports with --report",
			"kubernetes": "the clusters with --kubeconfig", "hub": "the hub with --hub"}[g.Source]
		r.State, r.Reason = forge.Pending, "nobody was asked: give "+how
		if g.Source == "hub" { // which is always there, as files and clusters need not be
			r.NotAsked = r.Reason
		}
		return nil
	}
	var reports []rollout.Report
	var failed []string
	for _, source := range sources {
		more, err := source.Reports(ctx, wanted)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, git.ErrLostRace) {
				return err
			}
			failed = append(failed, fmt.Sprintf("%s: %v", source.Name(), err))
			continue
		}
		reports = append(reports, more...)
	}
	unreachable := rollout.Block
	if g.Exclude {
		unreachable = rollout.Exclude
	}
	// Reports of this moment are newer than the state.
	r.Counts = rollout.Count(wanted, reports,
		rollout.Options{Now: ob.state.Request.Now(), StaleAfter: g.StaleAfter, Unreachable: unreachable})
	verdict, reason := r.Counts.Verdict(
		rollout.Policy{Min: g.Min, MaxFailed: g.MaxFailed, AllowEmpty: g.AllowEmpty})
	r.State = map[rollout.Verdict]forge.State{rollout.Passed: forge.Success,
		rollout.Pending: forge.Pending, rollout.Blocked: forge.Failure}[verdict]
	r.Reason = reason
	if len(failed) == 0 {
		return nil
	}
	r.NotAsked = "not asked: " + strings.Join(failed, "; ")
	if len(reports) == 0 && verdict == rollout.Pending { // it is not known that nobody has reported
		r.Counts, r.Reason = nil, r.NotAsked
		return nil
	}
	r.Reason += "; " + r.NotAsked
	return nil
}

// untouched returns the commits in which the generated files of a stage are as
// promoted. Reports about other commits are about edited files.
func (ob *Observer) untouched(ctx context.Context, st *session.Stage, run []git.Hash) ([]git.Hash,
	error) {
	var out []git.Hash
	for _, commit := range run {
		view, err := st.Environment.Repository.View(st.Environment.Branch, commit)
		if err != nil {
			return nil, err
		}
		record, _, err := view.Record(st.Environment.Folder)
		if err != nil {
			return nil, err
		}
		drift, err := st.Environment.DriftIn(ctx, view, record)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(drift, func(d tree.Drift) bool { return st.CoversFile(d.Path) }) {
			out = append(out, commit)
		}
	}
	return out, nil
}

// wanted returns the wanted assignments of some cluster types, by a record.
func (ob *Observer) wanted(record *tree.Record,
	in func(clusterType string) bool) ([]rollout.Assignment, error) {
	if ob.state.Platform.Subject.Form().Targets {
		return rollout.TargetsOf(record, in), nil
	}
	return rollout.WantedOf(record, in, record.ClustersOf)
}

// sources returns the sources of reports that the policy of a stage names.
func (ob *Observer) sources(st *session.Stage, g *model.RolloutGate) []rollout.Source {
	var out []rollout.Source
	if g.Source == "any" || g.Source == "status" {
		out = append(out, status.New(st.Environment.Repository.Forge.Statuses, status.Options{By: g.By}))
	}
	for _, given := range ob.state.Request.Sources {
		if g.Source == "any" || g.Source == given.Kind {
			out = append(out, given.Source)
		}
	}
	return out
}

// wantStatuses makes a rollout wait for statuses of the base commit.
func (ob *Observer) wantStatuses(ctx context.Context, st *session.Stage, g *model.RolloutGate,
	r *Rollout) error {
	if len(g.Status) == 0 {
		return nil
	}
	commit := st.Has().Base.Hash()
	statuses, err := ob.state.Platform.Repository.StatusesOf(ctx, ob.state.Statuses(st.Environment),
		commit)
	if err != nil {
		return err
	}
	verdicts := gate.Commit(
		gate.Policy{Environment: st.Policy.Name, Ring: st.RingName(),
			Gates: []model.Gates{{Status: g.Status}}},
		gate.CommitFacts{Now: ob.state.Now, Commit: commit, Reachable: true, Statuses: statuses,
			StatusesKnown: true}, gate.Skip{})
	for _, v := range verdicts {
		switch v.State {
		case gate.Blocked:
			r.State, r.Reason = forge.Failure, v.Reason
			return nil
		case gate.Pending:
			r.State, r.Reason = forge.Pending, r.Reason+"; "+v.Reason
		}
	}
	return nil
}
