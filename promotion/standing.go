package promotion

import (
	"context"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// findGone finds a branch that was there and is not any more.
func (s *Session) findGone(ctx context.Context, st *stop, out *Stop) error {
	if !st.out.tip.IsZero() || s.request.Adopt {
		return nil
	}
	reason, err := s.gone(ctx, st)
	if reason != "" {
		out.State, out.Reason = Blocked, reason+"; push it again, or begin it anew with --adopt"
	}
	return err
}

// gone says why a branch that was there is not any more, or is another one; "" where it
// never was, as far as statuses tell. The error is git.ErrLostRace where another run has
// made the branch, or written to it, since the session was opened.
func (s *Session) gone(ctx context.Context, st *stop) (string, error) {
	ledger, most := s.ledger(st.out), mostJudged
	if s.platform.repository.plain { // whose statuses are all here
		most = mostNew
	}
	bases, err := s.platform.bases.newest(most)
	if err != nil {
		return "", err
	}
	for some := range slices.Chunk(bases, 20) {
		var commits []git.Hash
		for _, b := range some {
			commits = append(commits, b.Commit)
		}
		if err := ledger.load(ctx, commits...); err != nil {
			return "", err
		}
		for _, c := range commits {
			told, ok := courseOf(ledger.known[c], st.id(), st.rolloutGate().By)
			if !ok {
				continue
			}
			refs, err := st.out.repository.remote.Refs(ctx)
			if err != nil {
				return "", err
			}
			if refs[branchRef(st.out.branch)] != st.out.tip {
				return "", fmt.Errorf("%w: branch %s is new", git.ErrLostRace, st.out.branch)
			}
			what := "branch " + st.out.branch + " is gone from " + st.out.repository.url
			if !st.out.tip.IsZero() {
				what = "branch " + st.out.branch + " of " + st.out.repository.url + " does not have what was promoted to it"
			}
			return fmt.Sprintf("%s: %s came to %s at %s", what, git.Short(c), st.id(), told.entered.UTC().Format("2006-01-02 15:04Z")), nil
		}
	}
	return "", nil
}

// settled says why there is nothing to do for a stop.
func (s *Session) settled(ctx context.Context, st *stop, out *Stop) error {
	has := st.has()
	switch {
	case has.Base != "":
		if _, known, err := s.platform.bases.until(has.Base.Hash()); err == nil && !known {
			out.State = Blocked
			out.Reason = fmt.Sprintf("%s is not in the history of branch %s any more, which was rewritten: name the commit that comes next, with --commit", has.Base.Short(), s.platform.branch)
			return nil
		}
		out.State, out.Reason = Current, "it has "+has.Base.Short()
	default:
		out.State, out.Reason = Waiting, "there is no commit yet"
	}
	if held, err := s.stands(ctx, st, out); err != nil || held {
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
func (s *Session) stands(ctx context.Context, st *stop, out *Stop) (bool, error) {
	hold, err := s.holdFacts(ctx, st)
	if err != nil {
		return false, err
	}
	orders := st.ordered(gate.CommitFacts{Now: s.now, Reachable: true, Hold: hold, Freeze: st.out.orders.frozen.freeze()})
	if len(orders) > 0 {
		v := orders[0]
		out.State, out.Reason, out.Since, out.Until = Held, v.Gate+": "+v.Reason, v.Since, v.Until
	}
	return len(orders) > 0, nil
}
