package observe

import (
	"cmp"
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

// Stay returns the time of a base commit in a stage; with own, the time of the base commit together
// with the environment's own files.
func (ob *Observer) Stay(ctx context.Context, st *session.Stage, of tree.Source,
	own bool) (gate.Stay, error) {
	stay := gate.Stay{Environment: st.Policy.Name, Ring: st.RingName()}
	if st.Environment.Repository == nil || st.Environment.Record == nil {
		return stay, nil
	}
	if own {
		return ob.pairStay(ctx, st, of, stay)
	}
	v, err := st.Environment.History.VisitOf(ctx, st.RingName(), of.Base)
	if err == nil && len(v.Deployed) == 0 {
		stay.Missed, err = ob.state.HasNewer(st, of.Base)
	}
	if err != nil || len(v.Deployed) == 0 {
		return stay, err
	}
	if stay.Held = true; v.As.Base != of.Base {
		stay.As = v.As
	}
	if err := ob.lookBack(ctx, st, &stay, v); err != nil {
		return stay, err
	}
	if why, err := ob.rolledBackFrom(ctx, st, tree.Source{Base: of.Base}); err != nil || why != "" {
		stay.State, stay.Reason = forge.Failure, why
		return stay, err
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
	// It left when the next one was first reported. If the next one was never reported, it
	// counts as having left at once.
	if stay.Left = stay.Since; stay.Left.IsZero() {
		stay.Left = ob.state.Now
	}
	statuses, err := st.Environment.Repository.Statuses().Of(ctx, v.Followed)
	if following, ok := ledger.CourseOf(statuses, st.ID(), st.RolloutGate().By); ok &&
		following.Entered.After(stay.Since) {
		stay.Left = following.Entered
	}
	return stay, err
}

// courseDuring returns the course of a base commit in its last stay in a stage, by the statuses
// of the GitOps commits of the stay. If any of these commits succeeded, the course is a success.
// If the policy names reporters, and they reported nothing about these commits, the statuses of
// the base commit count.
func (ob *Observer) courseDuring(ctx context.Context, st *session.Stage, v session.Visit,
	base git.Hash) (ledger.Course, error) {
	by := st.RolloutGate().By
	statuses := st.Environment.Repository.Statuses()
	if err := statuses.Load(ctx, v.All()...); err != nil {
		return ledger.Course{}, err
	}
	var out ledger.Course
	reported := false
	for _, run := range v.Runs {
		c, ok := statuses.CourseOver(run, st.ID(), by)
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

// pairStay returns the time of a base commit with an environment's own files in a stage. A pair
// stays while the stage has newer own files with the same base commit, until their rollout fails.
func (ob *Observer) pairStay(ctx context.Context, st *session.Stage, of tree.Source,
	stay gate.Stay) (gate.Stay, error) {
	v, err := ob.state.VisitOfPair(ctx, st, of)
	if err != nil || len(v.Runs) == 0 {
		return stay, err
	}
	stay.Held, stay.As = true, v.As
	if err := ob.lookBack(ctx, st, &stay, v); err != nil {
		return stay, err
	}
	if why, err := ob.rolledBackFrom(ctx, st, of); err != nil || why != "" {
		stay.State, stay.Reason = forge.Failure, why
		return stay, err
	}
	if v.Followed.IsZero() {
		edited, err := ob.records.Edited(ctx, st.Environment)
		if err != nil || edited != "" {
			stay.State, stay.Reason = forge.Failure, edited
			return stay, err
		}
	}
	statuses := st.Environment.Repository.Statuses()
	by := st.RolloutGate().By
	if err := statuses.Load(ctx, v.All()...); err != nil {
		return stay, err
	}
	own, newer := v.Runs[0], v.Runs[1:]
	c, reported := statuses.CourseOver(own, st.ID(), by)
	if !reported && len(by) > 0 {
		whole, err := st.Environment.History.VisitOf(ctx, st.RingName(), of.Base)
		if err == nil && len(whole.Deployed) == 1 { // reports of the base commit are about the pair
			c, err = ob.courseDuring(ctx, st, whole, of.Base.Hash())
		}
		if err != nil {
			return stay, err
		}
	}
	if v.Followed.IsZero() && len(newer) == 0 {
		return ob.asOfNow(ctx, st, stay, c)
	}
	stay.Entered, stay.State, stay.Since, stay.Reason = c.Entered, c.State, c.Since, c.Reason
	left := func(run []git.Hash) {
		next, ok := statuses.CourseOver(run, st.ID(), by)
		if stay.Left = cmp.Or(stay.Since, ob.state.Now); ok && next.Entered.After(stay.Since) {
			stay.Left = next.Entered
		}
	}
	for i, run := range newer {
		c, _ := statuses.CourseOver(run, st.ID(), by)
		now := gate.Stay{State: c.State, Failing: stay.Failing, FailingSince: stay.FailingSince,
			OKSince: stay.OKSince}
		if i == len(newer)-1 && v.Followed.IsZero() && stay.State == forge.Success {
			if now, err = ob.asOfNow(ctx, st, now, c); err != nil {
				return stay, err
			}
			stay.Failing, stay.FailingSince, stay.OKSince = now.Failing, now.FailingSince, now.OKSince
		}
		if now.State == forge.Failure || stay.State != forge.Success {
			left(run)
			return stay, nil
		}
	}
	if !v.Followed.IsZero() {
		left([]git.Hash{v.Followed})
	}
	return stay, nil
}

// lookBack adds the reports about a stay after its rollout succeeded. It also adds the time of
// its arrival if its files were there before.
func (ob *Observer) lookBack(ctx context.Context, st *session.Stage, stay *gate.Stay,
	v session.Visit) error {
	statuses := st.Environment.Repository.Statuses()
	if err := statuses.Load(ctx, v.All()...); err != nil {
		return err
	}
	h := statuses.HealthOver(v.Runs, st.ID(), st.RolloutGate().By)
	if h.Failing {
		stay.Failing, stay.FailingSince = h.Reason, h.Since
	} else {
		stay.OKSince = h.Since
	}
	if stay.As == (tree.Source{}) {
		return nil
	}
	stay.Came = ob.state.Now // nobody has reported it yet
	if c, ok := ledger.CourseOf(statuses.Loaded(v.Deployed[0]), st.ID(), st.RolloutGate().By); ok {
		stay.Came = c.Entered
	}
	return nil
}

// rolledBackFrom returns the reason why a stage was rolled back from a pair, or from a base
// commit if the source has no own files. It returns "" if the stage was not rolled back from it.
func (ob *Observer) rolledBackFrom(ctx context.Context, st *session.Stage, of tree.Source) (string,
	error) {
	hold, _, err := ob.records.Held(ctx, st)
	if err != nil || hold == nil || hold.Base == "" {
		return "", err
	}
	why := "it was rolled back from: " + hold.Reason
	has := st.Has()
	// its own files went back as well
	if hold.Environment != "" && of.Environment != "" && of.Base == has.Base {
		newer, err := ob.state.OwnNewer(ctx, st, of.Environment, has.Environment)
		if err != nil || !newer {
			return "", err
		}
		return why, nil
	}
	if hold.Environment != "" && hold.Base == has.Base {
		return "", nil // nothing else went back
	}
	if hold.Base == of.Base {
		return why, nil
	}
	newer, err := ob.state.Newer(has) // nor the commits in between
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(newer,
		func(b source.Base) bool { return tree.RevisionOf(b.Commit) == of.Base }) {
		return why, nil
	}
	return "", nil
}

// asOfNow completes the stay of a stage's present commit, given its reported course. Unless the
// course is a success, it reads the sources of reports, because a run for other stages reports
// nothing about this one.
func (ob *Observer) asOfNow(ctx context.Context, st *session.Stage, stay gate.Stay,
	c ledger.Course) (gate.Stay, error) {
	stay.Entered, stay.State, stay.Since, stay.Reason = c.Entered, c.State, c.Since, c.Reason
	if c.State == forge.Success && !ob.state.SoaksForSome(st) {
		return stay, nil
	}
	was, err := ob.Reports(ctx, st)
	if err != nil || was == nil {
		return stay, err
	}
	r := ob.asked[deployment{st.ID(), was.Deployed}]
	if r == nil {
		if r, err = ob.Rollout(ctx, st, was); err != nil {
			return stay, err
		}
	}
	if c.State == forge.Success {
		if stay.Failing, stay.OKSince = "", r.OKSince; r.Failing != nil {
			stay.Failing, stay.FailingSince = r.Failing.Reason, r.Failing.Since
		} else if since := r.unchangedSince(); ob.unrecorded[st] && r.OKSince.Equal(ob.state.Now) &&
			!since.IsZero() {
			stay.OKSince = since
		}
		return stay, nil
	}
	if stay.State, stay.Since = r.State,
		r.Since; r.State == forge.Pending && c.State == forge.Pending && c.Reason != "" {
		stay.Reason = c.Reason + "; " + r.Reason
	} else {
		stay.Reason = r.Reason
	}
	if since := r.unchangedSince(); ob.unrecorded[st] && r.State == forge.Success && !since.IsZero() {
		stay.Since = since
	}
	if stay.Entered.IsZero() { // nobody has reported it yet
		stay.Entered = ob.state.Now
	}
	return stay, nil
}

// unchangedSince returns the time since which all clusters have been in their states; zero if one
// does not report that.
func (r *Rollout) unchangedSince() (last time.Time) {
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
