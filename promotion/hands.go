package promotion

import (
	"context"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// What people do in GitOps branches by hand has one rule for all commands. A tree that is
// as kalypso left it, and has an earlier commit than before, is a rollback: it holds
// until somebody releases it. A record that is gone is a branch that is gone. Everything
// else is drift.

// restoreAll restores the environments that the request is about. One that cannot be
// restored cannot be read.
func (r *records) restoreAll(ctx context.Context) error {
	for _, o := range r.state.askedOutputs() {
		if err := r.restore(ctx, o); err != nil {
			if err := r.state.unreadable(ctx, o.stage, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore finds the newest commit in which the environment was as kalypso left it, and
// takes the branch for having that, where that is not what it has. If the record is as it
// should be, it is the newest that had what that says: somebody may have gone back since.
// Holds are those that stand.
func (r *records) restore(ctx context.Context, o *output) error {
	if !r.state.request.Overwrite || o.aside || o.repository == nil || o.tip.IsZero() {
		return nil
	}
	o.restored = git.Hash{}
	if intact, err := r.intact(ctx, o); err != nil || intact {
		return err
	}
	holds := map[*stop]*tree.Hold{}
	for _, st := range r.state.stopsOf(o.stage.Name) {
		var err error
		if holds[st], _, err = r.held(ctx, st); err != nil {
			return err
		}
	}
	edited, err := r.edited(ctx, o)
	if err != nil {
		return err
	}
	if edited == "" && o.record != nil {
		o.restored, err = r.newestIntact(ctx, o, func(p past) bool { return p.record.Tree == o.record.Tree && sameSources(p.record, o.record) })
	}
	if err == nil && o.restored.IsZero() {
		o.restored, err = r.newestIntact(ctx, o, func(past) bool { return true })
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
		st.setHold(o.record, hold)
	}
	return err
}

// newestIntact is the newest commit before the tip in which the environment was as kalypso
// left it, of those that are of use; zero for none.
func (r *records) newestIntact(ctx context.Context, o *output, of func(past) bool) (git.Hash, error) {
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
		if intact, err := r.intact(ctx, before); err != nil || intact {
			return p.ID, err
		}
	}
}

// sameSources says whether two records say that the same was compiled.
func sameSources(a, b *tree.Record) bool {
	return a.Source == b.Source && slices.EqualFunc(a.Rings, b.Rings, func(a, b tree.Ring) bool { return a.Name == b.Name && a.Source == b.Source })
}

// intact says whether an environment is as kalypso left it.
func (r *records) intact(ctx context.Context, o *output) (bool, error) {
	if o.record == nil || o.record.Environment != o.stage.Name {
		return false, nil
	}
	if drift, err := o.driftIn(ctx, o.at, o.record); err != nil || len(drift) > 0 {
		return false, err
	}
	edited, err := r.edited(ctx, o)
	return edited == "", err
}
