package promotion

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/compiler/web"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
)

// What people do in GitOps branches by hand has one rule for all commands. A tree that is
// as kalypso left it, and has an earlier commit than before, is a rollback: it holds
// until somebody releases it. A record that is gone is a branch that is gone. Everything
// else is drift.

// restore finds the newest commit in which the environment was as kalypso left it, and
// takes the branch for having that, where that is not what it has. If the record is as it
// should be, it is the newest that had what that says: somebody may have gone back since.
// Holds are those that stand.
func (s *Session) restore(ctx context.Context, o *output) error {
	if !s.request.Overwrite || o.aside || o.repository == nil || o.tip.IsZero() {
		return nil
	}
	o.restored = git.Hash{}
	if intact, err := s.intact(ctx, o); err != nil || intact {
		return err
	}
	holds := map[*stop]*tree.Hold{}
	for _, st := range s.stopsOf(o.stage.Name) {
		var err error
		if holds[st], _, err = s.held(ctx, st); err != nil {
			return err
		}
	}
	edited, err := s.edited(ctx, o)
	if err != nil {
		return err
	}
	if edited == "" && o.record != nil {
		o.restored, err = s.newestIntact(ctx, o, func(p past) bool { return p.record.Tree == o.record.Tree && sameSources(p.record, o.record) })
	}
	if err == nil && o.restored.IsZero() {
		o.restored, err = s.newestIntact(ctx, o, func(past) bool { return true })
	}
	if err != nil || o.restored.IsZero() {
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
	for st, hold := range holds {
		s.setHold(o.record, st, hold)
	}
	return err
}

// newestIntact is the newest commit before the tip in which the environment was as kalypso
// left it, of those that are of use; zero for none.
func (s *Session) newestIntact(ctx context.Context, o *output, of func(past) bool) (git.Hash, error) {
	for i := 1; ; i++ {
		p, there, err := o.history.at(ctx, i)
		if err != nil || !there {
			return git.Hash{}, err
		}
		if p.record == nil || !of(p) {
			continue
		}
		before, err := o.atCommit(ctx, p.ID)
		if err != nil {
			return git.Hash{}, err
		}
		if intact, err := s.intact(ctx, before); err != nil || intact {
			return p.ID, err
		}
	}
}

// sameSources says whether two records say that the same was compiled.
func sameSources(a, b *tree.Record) bool {
	return a.Source == b.Source && slices.EqualFunc(a.Rings, b.Rings, func(a, b tree.Ring) bool { return a.Name == b.Name && a.Source == b.Source })
}

// intact says whether an environment is as kalypso left it.
func (s *Session) intact(ctx context.Context, o *output) (bool, error) {
	if o.record == nil || o.record.Environment != o.stage.Name {
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
	err := o.repository.remote.Prefetch(ctx, clusterTypesOf(record))
	if err != nil && !errors.As(err, new(*remote.NotFoundError)) { // somebody may have written an id of nothing
		return nil, err
	}
	return at.Drift(o.folder)
}

// drifted says whether what somebody else did to the environment's tree is to be written
// over. Unless that is asked for, it blocks the stop. recorded says that the record is not
// among what was changed.
func (s *Session) drifted(ctx context.Context, st *stop, out *Stop) (over, recorded bool, err error) {
	has := st.has() != (tree.Source{})
	if !st.out.restored.IsZero() {
		return has, true, nil
	}
	drift, err := st.out.at.Drift(st.out.folder)
	if err != nil {
		return false, false, err
	}
	recorded = !slices.ContainsFunc(drift, func(d tree.Drift) bool {
		return strings.HasPrefix(d.Path, path.Dir(tree.RecordPath)+"/") && d.Kind != tree.Spaced
	})
	if s.request.Adopt {
		drift = slices.DeleteFunc(drift, func(d tree.Drift) bool { return d.Kind == tree.Added })
	}
	var edited string
	if len(drift) == 0 {
		if edited, err = s.edited(ctx, st.out); err != nil || edited == "" {
			return false, true, err
		}
		recorded = false
	}
	if s.request.Overwrite { // there is no commit in which it was good: it is compiled over it
		return has, recorded, nil
	}
	out.State = Blocked
	if edited != "" {
		out.Drift = []string{edited}
		out.Reason = "drift: " + edited + "; --overwrite restores what was"
		return false, false, nil
	}
	var names []string
	adopts := "" // where nothing else is wrong
	if !slices.ContainsFunc(drift, func(d tree.Drift) bool { return d.Kind != tree.Added }) && !has {
		adopts = ", --adopt takes over what was added"
	}
	for _, d := range drift {
		out.Drift = append(out.Drift, d.String())
		names = append(names, d.Path+driftWords[d.Kind])
	}
	out.Reason = fmt.Sprintf("drift: branch %s is not what was promoted in %s: %s; --overwrite restores what was%s, and `git log -- FILE` says who changed it",
		st.out.branch, count(len(drift), "file"), list(names, 5), adopts)
	return false, recorded, nil
}

// driftWords are what a reason says of a file that is not just changed.
var driftWords = map[tree.DriftKind]string{tree.Gone: " (gone)", tree.Added: " (added)", tree.Spaced: " (spaces)"}

// foreign blocks a stop whose branch has a record that cannot be read, or another
// environment's, and says whether it does.
func (st *stop) foreign(out *Stop) bool {
	switch o := st.out; {
	case len(o.problems) > 0:
		out.Reason = fmt.Sprintf("%s; revert the commit of branch %s that broke it, or restore what was there with --overwrite", o.problems[0].Message, o.branch)
	case o.record != nil && o.record.Environment != o.stage.Name:
		out.Reason = fmt.Sprintf("the record of branch %s is that of environment %s: push what was there again, restore it with --overwrite, or remove the branch and begin anew with --adopt", o.branch, web.Printable(o.record.Environment))
	default:
		return false
	}
	out.State = Blocked
	return true
}

// recordGone finds an environment whose branch had a record, and has none: as good as a
// branch that is gone.
func (s *Session) recordGone(ctx context.Context, st *stop, out *Stop) error {
	if st.foreign(out) || st.out.tip.IsZero() || st.out.record != nil || s.request.Adopt {
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
	if st.out.repository == nil {
		return nil, since, nil
	}
	i, _, err := s.countsFrom(ctx, st.out, 0)
	if err != nil || i < 0 {
		return nil, since, err
	}
	return s.heldAt(ctx, st, i)
}

// heldAt is held as of so many commits before the newest.
func (s *Session) heldAt(ctx context.Context, st *stop, i int) (*tree.Hold, time.Time, error) {
	none, ring := time.Time{}, st.ringName()
	p, there, err := st.out.history.at(ctx, i)
	if err != nil || !there {
		return nil, none, err
	}
	hold, when := st.out.holdIn(p.record, ring), p.Committer.When.UTC()
	next, older, err := s.countsFrom(ctx, st.out, i+1)
	if err != nil || next < 0 {
		return hold, when, err
	}
	message, err := st.out.writer(ctx, p)
	if err != nil {
		return nil, none, err
	}
	byHand := message == ""
	had, has := st.out.sourceIn(older.record, ring), st.out.sourceIn(p.record, ring)
	of := trailerOf(message, "Kalypso-Ring") // "" where there were none, for all that came since
	switch ends := had != has || st.out.holdIn(older.record, ring) != nil; {
	case !byHand && hold == nil && trailerOf(message, releaseTrailer) != "" && (of == "" || of == ring):
		return nil, none, nil
	case p.recordID == older.recordID:
		return s.heldAt(ctx, st, next)
	case !byHand && hold == nil && ends:
		return nil, none, nil
	case !byHand && hold == nil:
		return s.heldAt(ctx, st, next)
	}
	before, since, err := s.heldAt(ctx, st, next)
	switch {
	case err != nil:
		return nil, none, err
	case hold != nil && sameHold(hold, before), byHand && before != nil && had == has:
		return before, since, nil
	case hold != nil || had == has:
		return hold, when, nil
	}
	if back, err := s.isBack(ctx, st, had, has, older); err != nil || !back {
		return nil, none, err
	}
	reason := fmt.Sprintf("%s (by hand, in commit %s)", firstLine(p.Message), git.Short(p.ID))
	hold = &tree.Hold{Reason: reason, By: p.Author.Name + " <" + p.Author.Email + ">", Base: had.Base}
	if before != nil && before.Base != "" {
		hold.Base = before.Base // a second step back is still from there
	}
	return hold, when, nil
}

// countsFrom is the newest state that counts, of those from one on: not one without a
// record, or of whose record somebody has made something that is not so. The number is -1
// where there is none.
func (s *Session) countsFrom(ctx context.Context, o *output, i int) (int, past, error) {
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
		at, err := o.atCommit(ctx, p.ID)
		if err != nil {
			return -1, p, err
		}
		if edited, err := s.edited(ctx, at); err != nil || edited == "" {
			return i, p, err
		}
	}
}

// isBack says whether what a stop got is earlier than what it had.
func (s *Session) isBack(ctx context.Context, st *stop, had, has tree.Source, before past) (bool, error) {
	if has == (tree.Source{}) {
		return true, nil
	}
	if had.Base != has.Base {
		if since, found, err := s.platform.bases.until(hashOf(has.Base)); err != nil {
			return false, err
		} else if _, known, err := s.platform.bases.until(hashOf(had.Base)); err != nil || found && known {
			return found && slices.ContainsFunc(since[:len(since)-1], func(b source.Base) bool { return revision(b.Commit) == had.Base }), err
		}
	} else if newer, found, err := s.platform.newest(ctx, st.stage, hashOf(had.Environment), hashOf(has.Environment)); err != nil || found {
		return revision(newer) == had.Environment, err
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
