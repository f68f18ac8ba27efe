package promotion

import (
	"context"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/git"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// A record says which commits an environment was compiled from, and gates of others rest
// on that. Where a commit by hand says it, it counts if the branch had just that before,
// if it was merged, or if it is true: what these commits compile to.

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
		same := sameSources(p.record, o.record)
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
		if sameSources(merged.record, by.record) && wroteSources(o.stage.Name, c.Message, by.record) {
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

// sameSources says whether two records, which may be nil, say that the same was compiled.
func sameSources(a, b *tree.Record) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Source == b.Source && slices.EqualFunc(a.Rings, b.Rings, func(a, b tree.Ring) bool { return a.Name == b.Name && a.Source == b.Source })
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
