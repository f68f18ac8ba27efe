package promotion

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/terminal"
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
		out.Reason = fmt.Sprintf("the record of branch %s is that of environment %s: push what was there again, restore it with --overwrite, or remove the branch and begin anew with --adopt", o.branch, terminal.Line(o.record.Environment))
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
