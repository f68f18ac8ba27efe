package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Records reports whether the records in GitOps branches are true: it finds edits in them, and
// the holds that apply. It caches its results, and is for one goroutine.
type Records struct {
	state *session.State
	found map[recordKey]string // the error of a record, or ""
}

// New returns the Records of a state.
func New(state *session.State) *Records {
	return &Records{state: state, found: map[recordKey]string{}}
}

// recordKey is an environment in the commit that wrote its record.
type recordKey struct {
	environment string
	commit      git.Hash
}

// A record has the source commits of an environment, and the clusters that have to report. Gates
// depend on them. Each commit by kalypso names the id of the record that it wrote. A record in
// another commit counts in three cases: the branch had the same record just before, the commit
// was merged, or the record's source commits compile to it.

// Edited returns the error of a person's edit of the record of an environment, or
// "".
func (r *Records) Edited(ctx context.Context, env *session.Environment) (string, error) {
	if env.Record == nil || !env.Restored.IsZero() {
		return "", nil
	}
	return r.editedAt(ctx, env, 0)
}

// editedAt is Edited at a number of commits before the newest.
func (r *Records) editedAt(ctx context.Context, env *session.Environment, i int) (string, error) {
	by, err := env.Introduced(ctx, i)
	if err != nil {
		return "", err
	}
	p, _, err := env.History.At(ctx, by)
	if err != nil || p.Record == nil {
		return "", err
	}
	key := recordKey{env.Policy.Name, p.ID}
	if known, ok := r.found[key]; ok {
		return known, nil
	}
	problem, err := r.wrong(ctx, env, by, p)
	if broken := (*tree.RecordError)(nil); errors.As(err, &broken) {
		problem, err = "somebody changed the record of branch "+env.Branch+": "+err.Error(), nil
	}
	if err == nil {
		r.found[key] = problem
	}
	return problem, err
}

// wrong returns the error of the record that a commit wrote.
func (r *Records) wrong(ctx context.Context, env *session.Environment, i int,
	by session.Past) (string, error) {
	if text, err := env.Writer(ctx, by); err != nil || text != "" {
		return "", err
	}
	promoted := false
	for older := i + 1; ; older++ {
		p, there, err := env.History.At(ctx, older)
		if err != nil {
			return "", err
		}
		if !there {
			break
		}
		if p.RecordID == by.RecordID { // the earlier record is as good as it was
			return r.editedAt(ctx, env, older)
		}
		promoted = promoted || env.IsOwn(p)
	}
	if !promoted && !by.Record.Source.Base.IsCommit() {
		return "", nil // `kalypso build` wrote it
	}
	wrong := fmt.Sprintf("commit %s changed the record of branch %s by hand, and what it "+
		"says is not so", git.Short(by.ID), env.Branch)
	for _, st := range r.state.StagesOf(env.Policy.Name) {
		hold, _, err := r.heldAt(ctx, st.In(env), i)
		if err != nil {
			return "", err
		}
		if is := env.HoldIn(by.Record, st.RingName()); is != nil && !session.SameHold(is, hold) {
			return fmt.Sprintf("%s: %s is held for another reason, or for another time", wrong, st.ID()), nil
		}
	}
	at, err := env.AtCommit(ctx, by.ID)
	if err != nil {
		return "", err
	}
	v := &Verification{}
	if err := newVerifier(r.state, v, at).recompile(ctx); err != nil || len(v.Problems) == 0 {
		return "", err
	}
	return wrong + ": " + v.Problems[0], nil
}
