package promotion

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// held is the hold of a stop, with the time from which on it stands: that of the record
// or, where there is none, the one that somebody set by going back by hand, or ended by
// hand. nil for none.
func (r *records) held(ctx context.Context, st *stop) (hold *tree.Hold, since time.Time, err error) {
	if st.out.repository == nil {
		return nil, since, nil
	}
	i, _, err := r.countsFrom(ctx, st.out, 0)
	if err != nil || i < 0 {
		return nil, since, err
	}
	return r.heldAt(ctx, st, i)
}

// heldAt is held as of so many commits before the newest.
func (r *records) heldAt(ctx context.Context, st *stop, i int) (*tree.Hold, time.Time, error) {
	none, ring := time.Time{}, st.ringName()
	by, err := st.out.brought(ctx, i)
	if err != nil {
		return nil, none, err
	}
	for ; i < by; i++ { // in which the record is the same
		if released, err := r.releases(ctx, st, i); err != nil || released {
			return nil, none, err
		}
	}
	p, there, err := st.out.history.at(ctx, by)
	if err != nil || !there {
		return nil, none, err
	}
	hold, when := st.out.holdIn(p.record, ring), p.Committer.When.UTC()
	next, older, err := r.countsFrom(ctx, st.out, by+1)
	if err != nil || next < 0 {
		return hold, when, err
	}
	message, err := st.out.writer(ctx, p)
	if err != nil {
		return nil, none, err
	}
	byHand := message == ""
	had, has := st.out.sourceIn(older.record, ring), st.out.sourceIn(p.record, ring)
	if !byHand && hold == nil {
		released, err := r.releases(ctx, st, by)
		if err != nil || released || had != has || st.out.holdIn(older.record, ring) != nil {
			return nil, none, err
		}
		return r.heldAt(ctx, st, next)
	}
	before, since, err := r.heldAt(ctx, st, next)
	switch {
	case err != nil:
		return nil, none, err
	case hold != nil && sameHold(hold, before), byHand && before != nil && had == has:
		return before, since, nil
	case hold != nil || had == has:
		return hold, when, nil
	}
	if back, err := r.isBack(ctx, st, had, has, older); err != nil || !back {
		return nil, none, err
	}
	reason := fmt.Sprintf("%s (by hand, in commit %s)", firstLine(p.Message), git.Short(p.ID))
	hold = &tree.Hold{Reason: reason, By: p.Author.Name + " <" + p.Author.Email + ">", Base: had.Base}
	if before != nil && before.Base != "" {
		hold.Base = before.Base // a second step back is still from there
	}
	return hold, when, nil
}

// releases says whether a commit ends the hold of a stop, also one that the record does
// not have.
func (r *records) releases(ctx context.Context, st *stop, i int) (bool, error) {
	p, _, err := st.out.history.at(ctx, i)
	if err != nil || !st.out.isOwn(p) && len(p.Parents) < 2 {
		return false, err
	}
	message, err := st.out.writer(ctx, p)
	of := trailerOf(message, "Kalypso-Ring") // "" where there were none, for all that came since
	return trailerOf(message, releaseTrailer) != "" && (of == "" || of == st.ringName()), err
}

// countsFrom is the newest state that counts, of those from one on: not one without a
// record, or of whose record somebody has made something that is not so. The number is -1
// where there is none.
func (r *records) countsFrom(ctx context.Context, o *output, i int) (int, past, error) {
	for ; ; i++ {
		p, there, err := o.history.at(ctx, i)
		if err != nil || !there {
			return -1, p, err
		}
		if p.record == nil {
			continue
		}
		if o.isOwn(p) {
			return i, p, nil
		}
		if edited, err := r.editedAt(ctx, o, i); err != nil || edited == "" {
			return i, p, err
		}
	}
}

// isBack says whether what a stop got is earlier than what it had.
func (r *records) isBack(ctx context.Context, st *stop, had, has tree.Source, before past) (bool, error) {
	if has == (tree.Source{}) {
		return true, nil
	}
	if had.Base != has.Base {
		if since, found, err := r.state.platform.bases.until(has.Base.Hash()); err != nil {
			return false, err
		} else if _, known, err := r.state.platform.bases.until(had.Base.Hash()); err != nil || found && known {
			return found && slices.ContainsFunc(since[:len(since)-1], func(b source.Base) bool { return tree.RevisionOf(b.Commit) == had.Base }), err
		}
	} else if newer, found, err := r.state.platform.newest(ctx, st.stage, had.Environment.Hash(), has.Environment.Hash()); err != nil || found {
		return tree.RevisionOf(newer) == had.Environment, err
	}
	// Of a history that was rewritten, what came a second time came back.
	earlier, back := false, false
	err := st.out.history.each(ctx, func(p past) bool {
		back = earlier && st.out.sourceIn(p.record, st.ringName()) == has
		earlier = earlier || p.ID == before.ID
		return !back
	})
	return back, err
}

// releaseTrailer is what ends a hold that the record does not have.
const releaseTrailer = "Kalypso-Release"
