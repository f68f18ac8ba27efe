package promotion

import (
	"context"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// A record says which commits an environment was compiled from, and which clusters are to
// report, and gates rest on that. Each commit of kalypso's names the id of the record that
// it wrote. What another commit says in a record counts if the branch had just that
// before, if it was merged, or if it is what its commits compile to.

// edited says what is wrong with what somebody wrote into the record of an environment;
// "" for nothing.
func (r *records) edited(ctx context.Context, o *output) (string, error) {
	if o.record == nil || !o.restored.IsZero() {
		return "", nil
	}
	return r.editedAt(ctx, o, 0)
}

// editedAt is edited as of so many commits before the newest.
func (r *records) editedAt(ctx context.Context, o *output, i int) (string, error) {
	by, err := o.brought(ctx, i)
	if err != nil {
		return "", err
	}
	p, _, err := o.history.at(ctx, by)
	if err != nil || p.record == nil {
		return "", err
	}
	key := recordKey{o.stage.Name, p.ID}
	if known, ok := r.found[key]; ok {
		return known, nil
	}
	problem, err := r.wrong(ctx, o, by, p)
	if broken := (*tree.RecordError)(nil); errors.As(err, &broken) {
		problem, err = "somebody changed the record of branch "+o.branch+": "+err.Error(), nil
	}
	if err == nil {
		r.found[key] = problem
	}
	return problem, err
}

// records answers what of the records in GitOps branches counts: what somebody changed by
// hand, and which holds stand.
type records struct {
	state *sessionState
	found map[recordKey]string // what is wrong with a record; "" for nothing
}

// recordKey is an environment in the commit that brought its record.
type recordKey struct {
	environment string
	commit      git.Hash
}

// wrong is what is wrong with the record that a commit brought.
func (r *records) wrong(ctx context.Context, o *output, i int, by past) (string, error) {
	if message, err := o.writer(ctx, by); err != nil || message != "" {
		return "", err
	}
	promoted := false
	for older := i + 1; ; older++ {
		p, there, err := o.history.at(ctx, older)
		if err != nil {
			return "", err
		}
		if !there {
			break
		}
		if p.recordID == by.recordID { // what was there before is as good as it was
			return r.editedAt(ctx, o, older)
		}
		promoted = promoted || o.isOwn(p)
	}
	if !promoted && !by.record.Source.Base.IsCommit() {
		return "", nil // `kalypso build` wrote it
	}
	said := fmt.Sprintf("commit %s changed the record of branch %s by hand, and what it says is not so", git.Short(by.ID), o.branch)
	for _, st := range r.state.stopsOf(o.stage.Name) {
		hold, _, err := r.heldAt(ctx, &stop{stage: st.stage, ring: st.ring, out: o}, i)
		if err != nil {
			return "", err
		}
		if is := o.holdIn(by.record, st.ringName()); is != nil && !sameHold(is, hold) {
			return fmt.Sprintf("%s: %s is held for another reason, or for another time", said, st.id()), nil
		}
	}
	at, err := o.atCommit(ctx, by.ID)
	if err != nil {
		return "", err
	}
	v := &Verification{}
	if err := newVerifier(r.state, v, at).recompile(ctx); err != nil || len(v.Problems) == 0 {
		return "", err
	}
	return said + ": " + v.Problems[0], nil
}
