package promotion

import (
	"context"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// stay returns the time of a base commit in a stop. own says that it is about the
// environment's own files as well: what counts then is the rollout of both.
func (ob *observer) stay(ctx context.Context, st *stop, of tree.Source, own bool) (gate.Stay, error) {
	stay := gate.Stay{Environment: st.stage.Name, Ring: st.ringName()}
	if st.out.repository == nil || st.out.record == nil {
		return stay, nil
	}
	if own {
		return ob.ownStay(ctx, st, of, stay)
	}
	v, err := st.out.history.visitOf(ctx, st.ringName(), of.Base)
	if err != nil || len(v.landings) == 0 {
		return stay, err
	}
	stay.Held = true
	hold, _, err := ob.records.held(ctx, st)
	if err != nil {
		return stay, err
	}
	back := hold != nil && hold.Base == of.Base
	if hold != nil && hold.Base != "" && !back { // nor what came between
		newer, err := ob.state.newer(st.has())
		if err != nil {
			return stay, err
		}
		back = slices.ContainsFunc(newer, func(b source.Base) bool { return tree.RevisionOf(b.Commit) == of.Base })
	}
	if back {
		stay.State, stay.Reason = forge.Failure, "it was rolled back from: "+hold.Reason
		return stay, nil
	}
	if v.followed.IsZero() {
		edited, err := ob.records.edited(ctx, st.out)
		if err != nil || edited != "" {
			stay.State, stay.Reason = forge.Failure, edited
			return stay, err
		}
	}
	c, err := ob.courseDuring(ctx, st, v, of.Base.Hash())
	if err != nil {
		return stay, err
	}
	stay.Entered, stay.State, stay.Since, stay.Reason = c.entered, c.state, c.since, c.reason
	if v.followed.IsZero() {
		return stay, nil
	}
	// It left when the next one was first heard of. Where that was never told, it is
	// taken to have left at once.
	if stay.Left = stay.Since; stay.Left.IsZero() {
		stay.Left = ob.state.now
	}
	said, err := st.out.repository.ledger().of(ctx, v.followed)
	if following, ok := courseOf(said, st.id(), st.rolloutGate().By); ok && following.entered.After(stay.Since) {
		stay.Left = following.entered
	}
	return stay, err
}

// courseDuring is what was said of a base commit in its last stay in a stop, by what was
// said of the GitOps commits of the stay: once it went well, it did. Where policies name
// who may report, and they say nothing of these, what they say of the base commit counts.
func (ob *observer) courseDuring(ctx context.Context, st *stop, v visit, base git.Hash) (course, error) {
	by := st.rolloutGate().By
	ledger := st.out.repository.ledger()
	if err := ledger.load(ctx, append(slices.Clone(v.landings), v.followed)...); err != nil {
		return course{}, err
	}
	var out course
	told := false
	for _, landing := range v.landings {
		c, ok := courseOf(ledger.loaded(landing), st.id(), by)
		if !ok {
			continue
		}
		if told {
			c.entered = out.entered
		}
		if out, told = c, true; c.state == forge.Success {
			break
		}
	}
	if told || len(by) == 0 {
		return out, nil
	}
	said, err := ob.state.ledger(st.out).of(ctx, base)
	out, _ = courseOf(said, st.id(), by)
	return out, err
}

// ownStay is the time of a commit with an environment's own files in a ring of it.
func (ob *observer) ownStay(ctx context.Context, st *stop, of tree.Source, stay gate.Stay) (gate.Stay, error) {
	if st.has() != of {
		return stay, nil
	}
	run, err := st.out.history.landed(ctx, st.ringName())
	if err != nil || len(run) == 0 {
		return stay, err
	}
	said, err := st.out.repository.ledger().of(ctx, run[len(run)-1])
	if err != nil {
		return stay, err
	}
	stay.Held = true
	c, _ := courseOf(said, st.id(), st.rolloutGate().By)
	stay.Entered, stay.State, stay.Since, stay.Reason = c.entered, c.state, c.since, c.reason
	return stay, nil
}
