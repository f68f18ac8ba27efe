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

// recordTrailer is the name of the trailer with the id of a record.
const recordTrailer = "Kalypso-Record"

// isOwn says whether a commit is one of kalypso's that wrote the record that is there.
func (o *output) isOwn(p past) bool {
	return p.record != nil && trailerOf(p.Message, "Kalypso-Environment") == o.stage.Name && trailerOf(p.Message, recordTrailer) == p.recordID.String()
}

// writer is the message of the commit that wrote the record that is there, which may have
// come with a merge; "" where somebody else did.
func (o *output) writer(ctx context.Context, p past) (string, error) {
	if o.isOwn(p) {
		return p.Message, nil
	}
	const deep = 2 // a forge merges into a proposal before that is merged
	parents := p.Parents[min(1, len(p.Parents)):]
	for range deep {
		var older []git.Hash
		for _, id := range parents {
			q, err := o.pastAt(ctx, id)
			if err != nil {
				return "", err
			}
			if o.isOwn(q) && q.recordID == p.recordID {
				return q.Message, nil
			}
			older = append(older, q.Parents...)
		}
		if len(parents) != 1 || len(older) < 2 {
			break
		}
		parents = older
	}
	return "", nil
}

// pastAt is the environment in any commit.
func (o *output) pastAt(ctx context.Context, id git.Hash) (past, error) {
	at, err := o.atCommit(ctx, id)
	if err != nil {
		return past{}, err
	}
	p, _, err := at.history.at(ctx, 0)
	return p, err
}

// edited says what is wrong with what somebody wrote into the record of an environment;
// "" for nothing.
func (s *Session) edited(ctx context.Context, o *output) (string, error) {
	if o.record == nil || !o.restored.IsZero() {
		return "", nil
	}
	return s.editedAt(ctx, o, 0)
}

// editedAt is edited as of so many commits before the newest.
func (s *Session) editedAt(ctx context.Context, o *output, i int) (string, error) {
	by, err := o.brought(ctx, i)
	if err != nil {
		return "", err
	}
	p, _, err := o.history.at(ctx, by)
	if err != nil || p.record == nil {
		return "", err
	}
	key := handwritten{o.stage.Name, p.ID}
	if known, ok := s.byHand[key]; ok {
		return known, nil
	}
	problem, err := s.wrong(ctx, o, by, p)
	if broken := (*tree.RecordError)(nil); errors.As(err, &broken) {
		problem, err = "somebody changed the record of branch "+o.branch+": "+err.Error(), nil
	}
	if err == nil {
		s.byHand[key] = problem
	}
	return problem, err
}

// handwritten is an environment in the commit that brought its record.
type handwritten struct {
	environment string
	commit      git.Hash
}

// brought returns which commit brought the record that is there so many commits before
// the newest.
func (o *output) brought(ctx context.Context, i int) (int, error) {
	p, there, err := o.history.at(ctx, i)
	for err == nil && there {
		var older past
		if older, there, err = o.history.at(ctx, i+1); err != nil || !there || older.recordID != p.recordID {
			break
		}
		i++
	}
	return i, err
}

// wrong is what is wrong with the record that a commit brought.
func (s *Session) wrong(ctx context.Context, o *output, i int, by past) (string, error) {
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
			return s.editedAt(ctx, o, older)
		}
		promoted = promoted || o.isOwn(p)
	}
	if !promoted && !by.record.Source.Base.IsCommit() {
		return "", nil // `kalypso build` wrote it
	}
	said := fmt.Sprintf("commit %s changed the record of branch %s by hand, and what it says is not so", git.Short(by.ID), o.branch)
	for _, st := range s.stopsOf(o.stage.Name) {
		hold, _, err := s.heldAt(ctx, &stop{stage: st.stage, ring: st.ring, out: o}, i)
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
	if err := (&verifier{s, v, at, map[string]bool{}}).recompile(ctx); err != nil || len(v.Problems) == 0 {
		return "", err
	}
	return said + ": " + v.Problems[0], nil
}
