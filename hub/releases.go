package hub

import (
	"context"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// Want replaces what is wanted of an environment, which has a position among all.
func (h *Hub) Want(ctx context.Context, position int, w *state.Wanted) error {
	return h.Do(ctx, func(ctx context.Context, tx *store.Tx) (*state.Changes, error) {
		if err := tx.Wanted(ctx, position, w); err != nil {
			return nil, err
		}
		if err := tx.Releases(ctx, store.ReleasesOf(w)); err != nil {
			return nil, err
		}
		return h.fleet.Load().Want(h.options.Now(), w), nil
	})
}

// Order says which environments there are, in the order of promotion. Others are removed.
func (h *Hub) Order(ctx context.Context, names []string) error {
	return h.Do(ctx, func(ctx context.Context, tx *store.Tx) (*state.Changes, error) {
		known := map[string]bool{}
		for _, name := range names {
			known[name] = true
		}
		for _, w := range h.fleet.Load().Environments() {
			if !known[w.Environment] {
				if err := tx.Remove(ctx, w.Environment); err != nil {
					return nil, err
				}
			}
		}
		h.fleet.Load().Order(names)
		return nil, nil
	})
}

func (h *Hub) loadParts(ctx context.Context) (err error) {
	h.parts, err = h.options.Store.PartsAt(ctx, time.Time{}, "")
	return err
}

// tally writes the counts that have changed, and which releases are complete or have failed.
func (h *Hub) tally(ctx context.Context, tx *store.Tx, fleet *state.Fleet, now time.Time) error {
	is, differ := fleet.Parts(), map[state.Part]state.Tally{}
	for p, tally := range is {
		if was, there := h.parts[p]; !there || was != tally {
			differ[p] = tally
		}
	}
	for p, was := range h.parts {
		if _, there := is[p]; !there && was != (state.Tally{}) {
			differ[p] = state.Tally{}
		}
	}
	if err := tx.Tallies(ctx, now, differ); err != nil {
		return err
	}
	h.parts = is
	return h.judgeReleases(ctx, tx, fleet, now)
}

// judgeReleases notes when all of what a ring has now was ok for the first time, and when
// more of it had failed than may.
func (h *Hub) judgeReleases(ctx context.Context, tx *store.Tx, fleet *state.Fleet, now time.Time) error {
	for _, w := range fleet.Environments() {
		newest := map[string]string{} // the commit that gave each ring what it has
		for _, r := range store.ReleasesOf(w) {
			if _, there := newest[r.Ring]; !there {
				newest[r.Ring] = r.Commit
			}
		}
		for _, g := range fleet.Count(state.Filter{Environment: w.Environment}, state.ByRing) {
			commit, wanted := newest[g.Values[0]], g.Tally.Wanted()
			if commit == "" || wanted == 0 {
				continue
			}
			if g.Tally[state.OK] == wanted {
				if err := tx.Complete(ctx, w.Environment, g.Values[0], commit, now); err != nil {
					return err
				}
			}
			if g.Tally[state.Failed] > w.MaxFailed {
				if err := tx.Fail(ctx, w.Environment, g.Values[0], commit, now); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
