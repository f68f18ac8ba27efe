package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Held returns the hold of a stage, and since when it applies: the record's or, without
// one, the hold that somebody set by going back without kalypso. It returns nil without
// either.
func (r *Records) Held(ctx context.Context, st *session.Stage) (hold *tree.Hold, since time.Time,
	err error) {
	if st.Environment.Repository == nil {
		return nil, since, nil
	}
	i, _, err := r.countsFrom(ctx, st.Environment, 0)
	if err != nil || i < 0 {
		return nil, since, err
	}
	return r.heldAt(ctx, st, i)
}

// heldAt is Held at a number of commits before the newest.
func (r *Records) heldAt(ctx context.Context, st *session.Stage, i int) (*tree.Hold, time.Time,
	error) {
	none, ring := time.Time{}, st.RingName()
	by, err := st.Environment.Introduced(ctx, i)
	if err != nil {
		return nil, none, err
	}
	for ; i < by; i++ { // in which the record is the same
		if released, err := r.releases(ctx, st, i); err != nil || released {
			return nil, none, err
		}
	}
	p, there, err := st.Environment.History.At(ctx, by)
	if err != nil || !there {
		return nil, none, err
	}
	hold, when := st.Environment.HoldIn(p.Record, ring), p.Committer.When.UTC()
	next, older, err := r.countsFrom(ctx, st.Environment, by+1)
	if err != nil || next < 0 {
		return hold, when, err
	}
	text, err := st.Environment.Writer(ctx, p)
	if err != nil {
		return nil, none, err
	}
	manual := text == ""
	had, has := st.Environment.SourceIn(older.Record, ring), st.Environment.SourceIn(p.Record, ring)
	if !manual && hold == nil {
		released, err := r.releases(ctx, st, by)
		if err != nil || released || had != has || st.Environment.HoldIn(older.Record, ring) != nil {
			return nil, none, err
		}
		return r.heldAt(ctx, st, next)
	}
	before, since, err := r.heldAt(ctx, st, next)
	switch {
	case err != nil:
		return nil, none, err
	case hold != nil && session.SameHold(hold, before), manual && before != nil && had == has:
		return before, since, nil
	case hold != nil || had == has:
		return hold, when, nil
	}
	if back, err := r.IsBack(ctx, st, had, has, older); err != nil || !back {
		return nil, none, err
	}
	reason := fmt.Sprintf("%s (by hand, in commit %s)", message.FirstLine(p.Message), git.Short(p.ID))
	hold = &tree.Hold{Reason: reason, By: p.Author.Name + " <" + p.Author.Email + ">", Base: had.Base}
	if had.Base == has.Base {
		hold.Environment = had.Environment
	}
	if before != nil && before.Base != "" {
		// a second step back is still from there
		hold.Base, hold.Environment = before.Base, before.Environment
	}
	return hold, when, nil
}

// releases reports whether a commit ends the hold of a stage, also one that the record does
// not have.
func (r *Records) releases(ctx context.Context, st *session.Stage, i int) (bool, error) {
	p, _, err := st.Environment.History.At(ctx, i)
	if err != nil || !st.Environment.IsOwn(p) && len(p.Parents) < 2 {
		return false, err
	}
	text, err := st.Environment.Writer(ctx, p)
	of := message.Trailer(text, "Kalypso-Ring") // "" without rings, for all commits since
	return message.Trailer(text, ReleaseTrailer) != "" && (of == "" || of == st.RingName()), err
}

// countsFrom returns the newest state from one on that has a true record. The number is -1 if
// there is no such state.
func (r *Records) countsFrom(ctx context.Context, env *session.Environment, i int) (int,
	session.Past, error) {
	for ; ; i++ {
		p, there, err := env.History.At(ctx, i)
		if err != nil || !there {
			return -1, p, err
		}
		if p.Record == nil {
			continue
		}
		if env.IsOwn(p) {
			return i, p, nil
		}
		if edited, err := r.editedAt(ctx, env, i); err != nil || edited == "" {
			return i, p, err
		}
	}
}

// IsBack reports whether a stage got an earlier source than the one it had.
func (r *Records) IsBack(ctx context.Context, st *session.Stage, had, has tree.Source,
	before session.Past) (bool, error) {
	if has == (tree.Source{}) {
		return true, nil
	}
	if had.Base != has.Base {
		if since, found, err := r.state.Platform.Bases.Until(has.Base.Hash()); err != nil {
			return false, err
		} else if _, known,
			err := r.state.Platform.Bases.Until(had.Base.Hash()); err != nil || found && known {
			return found && slices.ContainsFunc(since[:len(since)-1],
				func(b source.Base) bool { return tree.RevisionOf(b.Commit) == had.Base }), err
		}
	} else if newer, found,
		err := r.state.NewestOwn(ctx, st, had.Environment, has.Environment); err != nil || found {
		return newer == had.Environment, err
	}
	// In a rewritten history, a source that entered a second time came back.
	earlier, back := false, false
	err := st.Environment.History.Each(ctx, func(p session.Past) bool {
		back = earlier && st.Environment.SourceIn(p.Record, st.RingName()) == has
		earlier = earlier || p.ID == before.ID
		return !back
	})
	return back, err
}

// ReleaseTrailer is the name of the trailer that ends a hold that the record does not have.
const ReleaseTrailer = "Kalypso-Release"
