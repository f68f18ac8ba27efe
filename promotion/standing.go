package promotion

import (
	"context"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// findGone finds a branch that was there and is not any more.
func (pl *planner) findGone(ctx context.Context, st *stop, out *Stop) error {
	if !st.out.tip.IsZero() || pl.state.request.Adopt {
		return nil
	}
	reason, err := pl.state.gone(ctx, st)
	if reason != "" {
		out.State, out.Reason = Blocked, reason+"; push it again, or begin it anew with --adopt"
	}
	return err
}

// settled says why there is nothing to do for a stop.
func (pl *planner) settled(ctx context.Context, st *stop, out *Stop) error {
	has := st.has()
	switch {
	case has.Base != "":
		if _, known, err := pl.state.platform.bases.until(has.Base.Hash()); err == nil && !known {
			out.State = Blocked
			out.Reason = fmt.Sprintf("%s is not in the history of branch %s any more, which was rewritten: name the commit that comes next, with --commit", has.Base.Short(), pl.state.platform.branch)
			return nil
		}
		out.State, out.Reason = Current, "it has "+has.Base.Short()
	default:
		out.State, out.Reason = Waiting, "there is no commit yet"
	}
	if held, err := pl.stands(ctx, st, out); err != nil || held {
		return err
	}
	for i, o := range out.Others {
		if !o.Refused {
			out.State, out.Reason = Waiting, fmt.Sprintf("%s: %s", tree.Revision(o.Commit).Short(), o.Reason)
			return nil
		}
		if i == 0 && has.Base != "" {
			out.Reason = fmt.Sprintf("it has %s; %s was %s", has.Base.Short(), tree.Revision(o.Commit).Short(), o.Reason)
		}
	}
	if out.Rollout != nil {
		out.Since = out.Rollout.Since
	}
	return nil
}

// stands says whether a hold or a freeze keeps the stop where it is.
func (pl *planner) stands(ctx context.Context, st *stop, out *Stop) (bool, error) {
	hold, err := pl.judge.holdFacts(ctx, st)
	if err != nil {
		return false, err
	}
	orders := ordersAgainst(st, gate.CommitFacts{Now: pl.state.now, Reachable: true, Hold: hold, Freeze: freezeOf(st.out.orders.frozen)})
	if len(orders) > 0 {
		v := orders[0]
		out.State, out.Reason, out.Since, out.Until = Held, v.Gate+": "+v.Reason, v.Since, v.Until
	}
	return len(orders) > 0, nil
}
