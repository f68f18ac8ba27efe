package observe

import (
	"context"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Stay returns the time of a base commit in a stage. own says that it is about the
// environment's own files as well: then the rollout of both counts.
func (ob *Observer) Stay(ctx context.Context, st *session.Stage, of tree.Source, own bool) (gate.Stay, error) {
	stay := gate.Stay{Environment: st.Policy.Name, Ring: st.RingName()}
	if st.Environment.Repository == nil || st.Environment.Record == nil {
		return stay, nil
	}
	if own {
		return ob.ownStay(ctx, st, of, stay)
	}
	v, err := st.Environment.History.VisitOf(ctx, st.RingName(), of.Base)
	if err != nil || len(v.Deployed) == 0 {
		return stay, err
	}
	stay.Held = true
	hold, _, err := ob.records.Held(ctx, st)
	if err != nil {
		return stay, err
	}
	back := hold != nil && hold.Base == of.Base
	if hold != nil && hold.Base != "" && !back { // nor what came between
		newer, err := ob.state.Newer(st.Has())
		if err != nil {
			return stay, err
		}
		back = slices.ContainsFunc(newer, func(b source.Base) bool { return tree.RevisionOf(b.Commit) == of.Base })
	}
	if back {
		stay.State, stay.Reason = forge.Failure, "it was rolled back from: "+hold.Reason
		return stay, nil
	}
	if v.Followed.IsZero() {
		edited, err := ob.records.Edited(ctx, st.Environment)
		if err != nil || edited != "" {
			stay.State, stay.Reason = forge.Failure, edited
			return stay, err
		}
	}
	c, err := ob.courseDuring(ctx, st, v, of.Base.Hash())
	if err != nil {
		return stay, err
	}
	if v.Followed.IsZero() {
		return ob.asOfNow(ctx, st, stay, c)
	}
	stay.Entered, stay.State, stay.Since, stay.Reason = c.Entered, c.State, c.Since, c.Reason
	// It left when the next one was first reported. Where that never was, it counts as
	// having left at once.
	if stay.Left = stay.Since; stay.Left.IsZero() {
		stay.Left = ob.state.Now
	}
	statuses, err := st.Environment.Repository.Statuses().Of(ctx, v.Followed)
	if following, ok := ledger.CourseOf(statuses, st.ID(), st.RolloutGate().By); ok && following.Entered.After(stay.Since) {
		stay.Left = following.Entered
	}
	return stay, err
}

// courseDuring returns the course of a base commit in its last stay in a stage, by the
// statuses of the GitOps commits of the stay: once it succeeded, it did. Where the policy
// names who may report, and those reported nothing of these commits, the statuses of the
// base commit count.
func (ob *Observer) courseDuring(ctx context.Context, st *session.Stage, v session.Visit, base git.Hash) (ledger.Course, error) {
	by := st.RolloutGate().By
	statuses := st.Environment.Repository.Statuses()
	if err := statuses.Load(ctx, append(slices.Clone(v.Deployed), v.Followed)...); err != nil {
		return ledger.Course{}, err
	}
	var out ledger.Course
	reported := false
	for _, landing := range v.Deployed {
		c, ok := ledger.CourseOf(statuses.Loaded(landing), st.ID(), by)
		if !ok {
			continue
		}
		if reported {
			c.Entered = out.Entered
		}
		if out, reported = c, true; c.State == forge.Success {
			break
		}
	}
	if reported || len(by) == 0 {
		return out, nil
	}
	ofBase, err := ob.state.Statuses(st.Environment).Of(ctx, base)
	out, _ = ledger.CourseOf(ofBase, st.ID(), by)
	return out, err
}

// ownStay returns the time of a commit with an environment's own files in a stage.
func (ob *Observer) ownStay(ctx context.Context, st *session.Stage, of tree.Source, stay gate.Stay) (gate.Stay, error) {
	if st.Has() != of {
		return stay, nil
	}
	run, err := st.Environment.History.Deployed(ctx, st.RingName())
	if err != nil || len(run) == 0 {
		return stay, err
	}
	statuses, err := st.Environment.Repository.Statuses().Of(ctx, run[len(run)-1])
	if err != nil {
		return stay, err
	}
	stay.Held = true
	c, _ := ledger.CourseOf(statuses, st.ID(), st.RolloutGate().By)
	return ob.asOfNow(ctx, st, stay, c)
}

// asOfNow completes the stay of what a stage has now, given its course as it was reported. Unless that
// is a success, the sources of reports are asked: a run that is not about the stage reports nothing of it.
func (ob *Observer) asOfNow(ctx context.Context, st *session.Stage, stay gate.Stay, c ledger.Course) (gate.Stay, error) {
	stay.Entered, stay.State, stay.Since, stay.Reason = c.Entered, c.State, c.Since, c.Reason
	if c.State == forge.Success {
		return stay, nil
	}
	was, err := ob.Reported(ctx, st)
	if err != nil || was == nil {
		return stay, err
	}
	r := ob.asked[deployed{st.ID(), was.Deployed}]
	if r == nil {
		if r, err = ob.Rollout(ctx, st, was); err != nil {
			return stay, err
		}
	}
	if stay.State, stay.Since = r.State, r.Since; r.State == forge.Pending && c.State == forge.Pending && c.Reason != "" {
		stay.Reason = c.Reason + "; " + r.Reason
	} else {
		stay.Reason = r.Reason
	}
	if since := r.held(); ob.unrecorded[st] && r.State == forge.Success && !since.IsZero() {
		stay.Since = since
	}
	if stay.Entered.IsZero() { // nobody has reported it yet
		stay.Entered = ob.state.Now
	}
	return stay, nil
}

// held returns since when all clusters have been in their states; zero where one does not say that.
func (r *Rollout) held() (last time.Time) {
	if r.Counts == nil {
		return last
	}
	for i := range r.Counts.Assignments {
		since := r.Counts.Assignments[i].Since
		if since.IsZero() {
			return time.Time{}
		}
		if since.After(last) {
			last = since
		}
	}
	return last
}
