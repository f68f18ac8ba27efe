package hub

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// Want replaces the wanted state of an environment, which has a position among all environments. It
// requires the limits that state.DesiredState.Bound sets for a database.
func (h *Hub) Want(ctx context.Context, position int, w *state.DesiredState) error {
	return h.Do(ctx, func(ctx context.Context, tx *store.Tx) (*state.Changes, error) {
		// The old state may have been complete for less than releaseEvery.
		if _, err := h.judgeReleases(ctx, tx, h.fleet.Load(), h.options.Now()); err != nil {
			return nil, err
		}
		if err := tx.Wanted(ctx, h.now, position, w); err != nil {
			return nil, err
		}
		var before *state.DesiredState
		for _, is := range h.fleet.Load().Environments() {
			if is.Environment == w.Environment {
				before = is
			}
		}
		if err := tx.Releases(ctx, store.ReadAt(h.options.Now(), before, w)); err != nil {
			return nil, err
		}
		changes := h.fleet.Load().Want(h.options.Now(), w)
		return changes, h.early(ctx, tx, changes)
	})
}

// early applies the reports that arrived before the hub read the branch with their clusters.
func (h *Hub) early(ctx context.Context, tx *store.Tx, changes *state.Changes) error {
	fleet, read := h.fleet.Load(), map[string]bool{}
	for _, w := range fleet.Environments() {
		read[w.Environment] = true
	}
	return tx.Early(ctx, h.options.Now(), func(r *state.Report) bool {
		more, outcome := fleet.Observe(r)
		if outcome.Unlisted {
			return false
		}
		changes.Append(more)
		changes.AddContact(r.Cluster)
		// another branch must still be read
		return !slices.ContainsFunc(r.Items, func(it state.Item) bool {
			environment, _, named := strings.Cut(it.Assignment, "/")
			return named && !read[environment]
		})
	})
}

// Order sets the list of environments, in the order of promotion. It removes all others.
func (h *Hub) Order(ctx context.Context, names []string) error {
	return h.Do(ctx, func(ctx context.Context, tx *store.Tx) (*state.Changes, error) {
		if err := tx.Order(ctx, names); err != nil {
			return nil, err
		}
		return h.fleet.Load().Order(names), nil
	})
}

// judgeReleases records when all assignments of a ring were ok for the first time since its newest
// release, and when they were ok again after a failure. It also records when more of them had
// failed than allowed. It returns the number of records.
func (h *Hub) judgeReleases(ctx context.Context, tx *store.Tx, fleet *state.Fleet,
	now time.Time) (noted int, err error) {
	for _, w := range fleet.Environments() {
		newest := map[string]string{} // the commit of each ring's newest release
		for _, r := range store.ReleasesOf(w) {
			if _, there := newest[r.Ring]; !there {
				newest[r.Ring] = r.Commit
			}
		}
		for _, g := range fleet.Count(state.Filter{Environments: state.In(w.Environment)}, state.ByRing) {
			commit, wanted := newest[g.Values[0]], g.Tally.Wanted()
			if commit == "" || wanted == 0 {
				continue
			}
			var is []func(ctx context.Context, environment, ring, commit string, at time.Time) (int, error)
			if g.Tally[state.OK] == wanted {
				is = append(is, tx.Complete)
				n, err := tx.Restore(ctx, w.Environment, g.Values[0], now)
				if err != nil {
					return 0, err
				}
				noted += n
			}
			if g.Tally[state.Failed] > w.MaxFailed {
				is = append(is, tx.Fail)
			}
			for _, note := range is {
				n, err := note(ctx, w.Environment, g.Values[0], commit, now)
				if err != nil {
					return 0, err
				}
				noted += n
			}
		}
	}
	return noted, nil
}

// sweep removes, at intervals, history that is too old.
func (h *Hub) sweep(ctx context.Context) {
	now := h.options.Now()
	if h.options.Keep == 0 || !due(h.swept, now, sweepEvery) {
		return
	}
	h.swept = now
	if !h.sweeping.TryLock() {
		return // the last sweep has not finished
	}
	// Steps are short, and reports are handled between them.
	go func() {
		defer h.sweeping.Unlock()
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = h.options.Store.Sweep(ctx, now.Add(-h.options.Keep)); err != nil {
				h.options.Problem(err)
				return
			}
		}
		if err := h.options.Store.Clean(ctx, now); err != nil && ctx.Err() == nil {
			h.options.Problem(err)
		}
	}()
}
