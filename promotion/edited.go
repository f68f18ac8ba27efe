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
			if err != nil || o.isOwn(q) && q.recordID == p.recordID {
				return q.Message, err
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
	key := handwritten{o.stage.Name, o.tip}
	if known, ok := s.byHand[key]; ok {
		return known, nil
	}
	problem, err := s.editedSince(ctx, o)
	if broken := (*tree.RecordError)(nil); errors.As(err, &broken) {
		problem, err = "somebody changed the record of branch "+o.branch+": "+err.Error(), nil
	}
	if err == nil {
		s.byHand[key] = problem
	}
	return problem, err
}

// handwritten is an environment at a commit of its branch.
type handwritten struct {
	environment string
	tip         git.Hash
}

func (s *Session) editedSince(ctx context.Context, o *output) (string, error) {
	var by past // the commit that brought the record
	first := 0
	for i := 0; ; i++ {
		p, there, err := o.history.at(ctx, i)
		if err != nil {
			return "", err
		}
		if !there || i > 0 && p.recordID != by.recordID {
			break
		}
		by, first = p, i
	}
	if message, err := o.writer(ctx, by); err != nil || message != "" {
		return "", err
	}
	promoted := false
	for i := first + 1; ; i++ {
		p, there, err := o.history.at(ctx, i)
		if err != nil {
			return "", err
		}
		if !there {
			break
		}
		if promoted = promoted || o.isOwn(p); p.recordID == by.recordID { // what was there before is as good as it was
			before, err := o.atCommit(ctx, p.ID)
			if err != nil {
				return "", err
			}
			return s.edited(ctx, before)
		}
	}
	if !promoted && !isID(string(o.record.Source.Base)) {
		return "", nil // `kalypso build` wrote it
	}
	said := fmt.Sprintf("commit %s changed the record of branch %s by hand, and what it says is not so", git.Short(by.ID), o.branch)
	for _, st := range s.stopsOf(o.stage.Name) {
		at := &stop{stage: st.stage, ring: st.ring, out: o}
		hold, _, err := s.heldAt(ctx, at, first)
		if err != nil {
			return "", err
		}
		if is := o.holdIn(by.record, st.ringName()); is != nil && !sameHold(is, hold) {
			return fmt.Sprintf("%s: %s is held for another reason, or for another time", said, st.id()), nil
		}
	}
	v := &Verification{}
	if err := (&verifier{s, v, o, map[string]bool{}}).recompile(ctx); err != nil || len(v.Problems) == 0 {
		return "", err
	}
	return said + ": " + v.Problems[0], nil
}
