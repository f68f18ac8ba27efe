package verify

import (
	"context"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Changes of GitOps branches that kalypso did not make have one rule for all commands. A tree
// that is as kalypso left it, and has an earlier commit than before, is a rollback: it
// holds until somebody releases it. A record that is gone is a branch that is gone.
// Everything else is drift.

// RestoreAll restores the requested environments. One that cannot be restored counts as one
// that cannot be read.
func (r *Records) RestoreAll(ctx context.Context) error {
	for _, env := range r.state.RequestedEnvironments() {
		if err := r.Restore(ctx, env); err != nil {
			if err := r.state.Unreadable(ctx, env.Policy, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// Restore sets the state of an environment to the newest commit by kalypso, if somebody has
// changed the environment since and the request overwrites such changes. If the record is true,
// it is the newest commit with the state in the record, because somebody may have rolled back
// since. The holds in force stay.
func (r *Records) Restore(ctx context.Context, env *session.Environment) error {
	if !r.state.Request.Overwrite || env.Aside || env.Repository == nil || env.Tip.IsZero() {
		return nil
	}
	env.Restored = git.Hash{}
	if intact, err := r.intact(ctx, env); err != nil || intact {
		return err
	}
	holds := map[*session.Stage]*tree.Hold{}
	for _, st := range r.state.StagesOf(env.Policy.Name) {
		var err error
		if holds[st], _, err = r.Held(ctx, st); err != nil {
			return err
		}
	}
	edited, err := r.Edited(ctx, env)
	if err != nil {
		return err
	}
	if edited == "" && env.Record != nil {
		env.Restored, err = r.newestIntact(ctx, env, func(p session.Past) bool {
			return p.Record.Tree == env.Record.Tree && sameSources(p.Record, env.Record)
		})
	}
	if err == nil && env.Restored.IsZero() {
		env.Restored, err = r.newestIntact(ctx, env, func(session.Past) bool { return true })
	}
	if err != nil || env.Restored.IsZero() {
		return err
	}
	from, err := env.Repository.View(env.Branch, env.Restored)
	if err != nil {
		return err
	}
	if env.Tree, err = env.Repository.View(env.Branch, env.Tip); err != nil {
		return err
	}
	if err := env.Tree.Instead(env.Folder, from); err != nil {
		return err
	}
	env.Record, env.Problems, err = env.Tree.Record(env.Folder)
	for st, hold := range holds {
		st.SetHold(env.Record, hold)
	}
	return err
}

// newestIntact returns the newest commit before the tip in which the environment was unchanged
// since kalypso wrote it, and for which a function returns true. It returns zero if there is no
// such commit.
func (r *Records) newestIntact(ctx context.Context, env *session.Environment,
	of func(session.Past) bool) (git.Hash, error) {
	for i := 1; ; i++ {
		p, there, err := env.History.At(ctx, i)
		if err != nil || !there {
			return git.Hash{}, err
		}
		if p.Record == nil || !of(p) {
			continue
		}
		before, err := env.AtCommit(ctx, p.ID)
		if err != nil {
			return git.Hash{}, err
		}
		if intact, err := r.intact(ctx, before); err != nil || intact {
			return p.ID, err
		}
	}
}

// sameSources reports whether two records were compiled from the same commits.
func sameSources(a, b *tree.Record) bool {
	return a.Source == b.Source && slices.EqualFunc(a.Rings, b.Rings,
		func(a, b tree.Ring) bool { return a.Name == b.Name && a.Source == b.Source })
}

// intact reports whether an environment is as kalypso left it.
func (r *Records) intact(ctx context.Context, env *session.Environment) (bool, error) {
	if env.Record == nil || !env.IsNamed(env.Record.Environment) {
		return false, nil
	}
	if drift, err := env.DriftIn(ctx, env.Tree, env.Record); err != nil || len(drift) > 0 {
		return false, err
	}
	edited, err := r.Edited(ctx, env)
	return edited == "", err
}
