package promotion

import (
	"context"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// A record says which commits an environment was compiled from, and which clusters are to
// report, and gates rest on that. What a commit by hand says there counts if the branch
// had just that before, if it was merged, or if it is what these commits compile to.

// edited says what is wrong with what the record of an environment says by hand; "" for
// nothing.
func (s *Session) edited(ctx context.Context, o *output) (string, error) {
	if o.record == nil || !o.restored.IsZero() || !isID(string(o.record.Source.Base)) {
		return "", nil
	}
	if known, ok := s.byHand[o]; ok && known.tip == o.tip {
		return known.problem, nil
	}
	problem, err := s.editedSince(ctx, o)
	if err == nil {
		s.byHand[o] = handwritten{o.tip, problem}
	}
	return problem, err
}

// handwritten is what edited found at a commit.
type handwritten struct {
	tip     git.Hash
	problem string
}

func (s *Session) editedSince(ctx context.Context, o *output) (string, error) {
	var by past // the commit that brought what the record says
	err := o.history.each(ctx, func(p past) bool {
		same := p.record != nil && sameRecord(p.record, o.record)
		if same {
			by = p
		}
		return same
	})
	if err != nil || by.record == nil || wroteSources(o.stage.Name, by.Message, by.record) {
		return "", err
	}
	// What was merged, and what was there before, is as good as it was there.
	for _, id := range by.Parents[min(1, len(by.Parents)):] {
		merged, err := o.atCommit(ctx, id)
		if err != nil {
			return "", err
		}
		c, err := o.repository.staging.Commit(id)
		if err != nil {
			return "", err
		}
		if merged.record != nil && sameRecord(merged.record, by.record) && wroteSources(o.stage.Name, c.Message, by.record) {
			return "", nil
		}
	}
	var was past
	older := false
	err = o.history.each(ctx, func(p past) bool {
		if older && p.record != nil && sameRecord(p.record, by.record) {
			was = p
		}
		older = older || p.ID == by.ID
		return was.record == nil
	})
	if err != nil {
		return "", err
	}
	if was.record != nil {
		before, err := o.atCommit(ctx, was.ID)
		if err != nil {
			return "", err
		}
		return s.edited(ctx, before)
	}
	v := &Verification{}
	if err := (&verifier{s, v, o, map[string]bool{}}).recompile(ctx); err != nil || len(v.Problems) == 0 {
		return "", err
	}
	return fmt.Sprintf("commit %s changed the record of branch %s by hand, and what it says is not so: %s", git.Short(by.ID), o.branch, v.Problems[0]), nil
}

// wroteSources says whether a commit is one of kalypso's that brought what a record says.
func wroteSources(environment, message string, record *tree.Record) bool {
	says := tree.Source{Base: tree.Revision(trailerOf(message, "Kalypso-Source-Commit")), Environment: tree.Revision(trailerOf(message, "Kalypso-Config-Commit"))}
	is := record.Source
	if ring := record.Ring(trailerOf(message, "Kalypso-Ring")); ring != nil {
		is = ring.Source
	}
	return trailerOf(message, "Kalypso-Environment") == environment && says == is
}
