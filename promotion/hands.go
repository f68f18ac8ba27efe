package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// What people do in GitOps branches by hand has one rule for all commands. A tree that is
// as kalypso left it, and has an earlier commit than before, is a rollback: it holds
// until somebody releases it. A record that is gone is a branch that is gone. Everything
// else is drift.

// restore finds the newest commit in which the environment was as kalypso left it, and
// takes the branch for having that, where that is not what it has.
func (s *Session) restore(ctx context.Context, o *output) error {
	if !s.request.Overwrite || o.aside || o.repository == nil || o.tip.IsZero() {
		return nil
	}
	o.restored = git.Hash{}
	if intact, err := s.intact(ctx, o); err != nil || intact {
		return err
	}
	var failed error
	err := o.history.each(ctx, func(p past) bool {
		if p.record == nil || p.ID == o.tip {
			return true
		}
		var before *output
		if before, failed = o.atCommit(ctx, p.ID); failed != nil {
			return false
		}
		var intact bool
		if intact, failed = s.intact(ctx, before); intact {
			o.restored = p.ID
		}
		return failed == nil && !intact
	})
	if err = errors.Join(err, failed); err != nil || o.restored.IsZero() {
		return err
	}
	from, err := o.repository.view(o.branch, o.restored)
	if err != nil {
		return err
	}
	if o.at, err = o.repository.view(o.branch, o.tip); err != nil {
		return err
	}
	if err := o.at.Instead(o.folder, from); err != nil {
		return err
	}
	o.record, o.problems, err = o.at.Record(o.folder)
	return err
}

// intact says whether an environment is as kalypso left it.
func (s *Session) intact(ctx context.Context, o *output) (bool, error) {
	if o.record == nil {
		return false, nil
	}
	if drift, err := o.driftIn(ctx, o.at, o.record); err != nil || len(drift) > 0 {
		return false, err
	}
	edited, err := s.edited(ctx, o)
	return edited == "", err
}

// driftIn is the drift of the environment in a commit with a record, which may be nil.
func (o *output) driftIn(ctx context.Context, at *tree.Branch, record *tree.Record) ([]tree.Drift, error) {
	if record == nil {
		return nil, nil
	}
	if err := o.repository.remote.Prefetch(ctx, clusterTypesOf(record)); err != nil {
		return nil, err
	}
	return at.Drift(o.folder)
}

// drifted says whether what somebody else did to the environment's tree is to be written
// over. Unless that is asked for, it blocks the stop.
func (s *Session) drifted(ctx context.Context, st *stop, out *Stop) (bool, error) {
	if !st.out.restored.IsZero() {
		return st.has() != (tree.Source{}), nil
	}
	drift, err := st.out.at.Drift(st.out.folder)
	if err != nil {
		return false, err
	}
	if s.request.Adopt {
		drift = slices.DeleteFunc(drift, func(d tree.Drift) bool { return d.Kind == tree.Added })
	}
	var edited string
	if len(drift) == 0 {
		if edited, err = s.edited(ctx, st.out); err != nil || edited == "" {
			return false, err
		}
	}
	if s.request.Overwrite { // there is no commit in which it was good: it is compiled over it
		return st.has() != (tree.Source{}), nil
	}
	out.State = Blocked
	if edited != "" {
		out.Drift = []string{edited}
		out.Reason = "drift: " + edited + "; --overwrite restores what was"
		return false, nil
	}
	var names []string
	adopts := "" // where nothing else is wrong
	if !slices.ContainsFunc(drift, func(d tree.Drift) bool { return d.Kind != tree.Added }) && st.has() == (tree.Source{}) {
		adopts = ", --adopt takes over what was added"
	}
	for _, d := range drift {
		out.Drift = append(out.Drift, d.String())
		names = append(names, d.Path+driftWords[d.Kind])
	}
	out.Reason = fmt.Sprintf("drift: branch %s is not what was promoted in %s: %s; --overwrite restores what was%s, and `git log -- FILE` says who changed it",
		st.out.branch, count(len(drift), "file"), list(names, 5), adopts)
	return false, nil
}

// driftWords are what a reason says of a file that is not just changed.
var driftWords = map[tree.DriftKind]string{tree.Gone: " (gone)", tree.Added: " (added)", tree.Spaced: " (spaces)"}

// recordGone finds an environment whose branch had a record, and has none: as good as a
// branch that is gone.
func (s *Session) recordGone(ctx context.Context, st *stop, out *Stop) error {
	if st.out.tip.IsZero() || st.out.record != nil || s.request.Adopt {
		return nil
	}
	var by past
	gone := false
	err := st.out.history.each(ctx, func(p past) bool {
		if gone = p.record != nil; !gone {
			by = p
		}
		return !gone
	})
	if err != nil {
		return err
	}
	if !gone { // nor had it any: somebody may have replaced the branch
		reason, err := s.gone(ctx, st)
		if reason != "" {
			out.State, out.Reason = Blocked, reason+"; push that again, or begin anew with --adopt"
		}
		return err
	}
	out.State = Blocked
	out.Reason = fmt.Sprintf("the record of branch %s is gone: commit %s removed it; revert that, restore it with --overwrite, or begin anew with --adopt", st.out.branch, git.Short(by.ID))
	return nil
}

// held is the hold of a stop, with the time from which on it stands: that of the record
// or, where there is none, the one that somebody set by going back by hand, or ended by
// hand. nil for none.
func (s *Session) held(ctx context.Context, st *stop) (hold *tree.Hold, since time.Time, err error) {
	if hold = st.out.hold(st.ringName()); hold != nil {
		err = st.out.history.each(ctx, func(p past) bool {
			is := sameHold(st.out.holdIn(p.record, st.ringName()), hold)
			if is {
				since = p.Committer.When.UTC()
			}
			return is
		})
		return hold, since, err
	}
	var newer past
	var failed error
	err = st.out.history.each(ctx, func(p past) bool {
		if newer.ID.IsZero() {
			newer = p
			return true
		}
		done := false
		if hold, done, failed = s.heldSince(ctx, st, p, newer); hold != nil {
			since = newer.Committer.When.UTC()
		}
		newer = p
		return failed == nil && !done
	})
	return hold, since, errors.Join(err, failed)
}

// heldSince is the hold that a commit set by hand. done says that nothing before it counts.
func (s *Session) heldSince(ctx context.Context, st *stop, older, newer past) (hold *tree.Hold, done bool, err error) {
	ring, by := st.ringName(), trailerOf(newer.Message, "Kalypso-Environment")
	had, has := st.out.sourceIn(older.record, ring), st.out.sourceIn(newer.record, ring)
	before := st.out.holdIn(older.record, ring)
	of := trailerOf(newer.Message, "Kalypso-Ring") // "" where there were none, for all that came since
	switch same := had == has || newer.record == nil; {
	case by == st.stage.Name && (of == "" || of == ring) && trailerOf(newer.Message, releaseTrailer) != "":
		return nil, true, nil
	case same && by == "" && before != nil && st.out.holdIn(newer.record, ring) == nil:
		return before, true, nil
	case same || older.record == nil:
		return nil, false, nil
	case by != "":
		return nil, true, nil
	}
	if back, err := s.isBack(ctx, st, had, has, older); err != nil || !back {
		return nil, true, err
	}
	reason := fmt.Sprintf("%s (by hand, in commit %s)", firstLine(newer.Message), git.Short(newer.ID))
	return &tree.Hold{Reason: reason, By: newer.Author.Name + " <" + newer.Author.Email + ">", Base: had.Base}, true, nil
}

// isBack says whether what a stop got is earlier than what it had.
func (s *Session) isBack(ctx context.Context, st *stop, had, has tree.Source, before past) (bool, error) {
	if had.Base != has.Base {
		since, found, err := s.platform.bases.until(hashOf(has.Base))
		return found && slices.ContainsFunc(since[:len(since)-1], func(b source.Base) bool { return revision(b.Commit) == had.Base }), err
	}
	// An environment commit never comes a second time by itself.
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
