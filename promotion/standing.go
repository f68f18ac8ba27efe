package promotion

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/git"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// drifted says whether somebody else changed the stop's generated files. Nothing is
// written over what anybody changed in the environment unless it is asked for.
func (s *Session) drifted(st *stop, out *Stop) (bool, error) {
	drift, err := st.out.at.Drift(st.out.folder)
	if err != nil || len(drift) == 0 {
		return false, err
	}
	if s.request.Overwrite {
		return slices.ContainsFunc(drift, func(d tree.Drift) bool {
			clusterType, _, _ := strings.Cut(d.Path, "/")
			return st.covers(clusterType)
		}), nil
	}
	var names []string
	for _, d := range drift {
		name := d.Path
		if d.Gone {
			name += " (gone)"
		}
		names = append(names, name)
	}
	out.State = Blocked
	out.Reason = fmt.Sprintf("drift: %d generated files of branch %s are not what was promoted: %s; --overwrite restores them, and `git log -- FILE` says who changed them",
		len(drift), st.out.branch, list(names, 5))
	return false, nil
}

// findGone finds a branch that was there and is not any more: statuses tell of commits
// that came to the stop. The error is git.ErrLostRace where another run has made the branch
// since the session was opened.
func (s *Session) findGone(ctx context.Context, st *stop, out *Stop) error {
	if !st.out.tip.IsZero() || s.request.Adopt {
		return nil
	}
	bases, err := s.platform.bases.newest(mostJudged)
	if err != nil {
		return err
	}
	ledger := s.ledger(st.out)
	for some := range slices.Chunk(bases, 20) {
		var commits []git.Hash
		for _, b := range some {
			commits = append(commits, b.Commit)
		}
		if err := ledger.load(ctx, commits...); err != nil {
			return err
		}
		for _, c := range commits {
			if told, ok := courseOf(ledger.known[c], st.id(), st.rolloutGate().By); ok {
				refs, err := st.out.repository.remote.Refs(ctx)
				if err != nil {
					return err
				}
				if !refs[branchRef(st.out.branch)].IsZero() {
					return fmt.Errorf("%w: branch %s is new", git.ErrLostRace, st.out.branch)
				}
				out.State = Blocked
				out.Reason = fmt.Sprintf("branch %s is gone from %s: %s came to %s at %s; push it again, or begin it anew with --adopt",
					st.out.branch, st.out.repository.url, git.Short(c), st.id(), told.entered.UTC().Format("2006-01-02 15:04Z"))
				return nil
			}
		}
	}
	return nil
}

// settled says why there is nothing to do for a stop.
func (s *Session) settled(ctx context.Context, st *stop, out *Stop) error {
	has := st.has()
	switch {
	case has.Base != "":
		if _, known, err := s.platform.bases.until(hashOf(has.Base)); err == nil && !known {
			out.State = Blocked
			out.Reason = fmt.Sprintf("%s is not in the history of branch %s any more, which was rewritten: name the commit that comes next, with --commit", short(has.Base), s.platform.branch)
			return nil
		}
		out.State, out.Reason = Current, "it has "+short(has.Base)
	default:
		out.State, out.Reason = Waiting, "there is no commit yet"
	}
	for _, o := range out.Others {
		if !o.Refused {
			out.State, out.Reason = Waiting, fmt.Sprintf("%s: %s", shortID(o.Commit), o.Reason)
			return nil
		}
		if has.Base != "" {
			out.Reason = fmt.Sprintf("it has %s; %s was %s", short(has.Base), shortID(o.Commit), o.Reason)
		}
	}
	if out.Rollout != nil {
		out.Since = out.Rollout.Since
	}
	hold, err := s.holdFacts(ctx, st)
	if err != nil {
		return err
	}
	orders := st.ordered(gate.CommitFacts{Now: s.now, Reachable: true, Hold: hold, Freeze: st.out.orders.frozen.freeze()})
	if len(orders) > 0 {
		v := orders[0]
		out.State, out.Reason, out.Since, out.Until = Held, v.Gate+": "+v.Reason, v.Since, v.Until
	}
	return nil
}
