package promotion

import (
	"context"
	"errors"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

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

// wrote returns what the files of a cluster type were compiled from that are kept: the
// newest state of the branch in which they were not; the zero Source for none.
func (o *output) wrote(ctx context.Context, kept *tree.ClusterTypeRecord) (tree.Source, error) {
	var of tree.Source
	var failed error
	err := o.history.each(ctx, func(p past) bool {
		if p.record == nil {
			return true
		}
		i := slices.IndexFunc(p.record.ClusterTypes, func(e tree.ClusterTypeEntry) bool { return e.Name == kept.Name })
		if i < 0 {
			return false
		}
		e := &p.record.ClusterTypes[i]
		if failed = o.repository.remote.Prefetch(ctx, []git.Hash{tree.Revision(e.Record).Hash()}); failed != nil {
			return false
		}
		data, err := o.repository.staging.Blob(tree.Revision(e.Record).Hash())
		if err != nil {
			failed = err
			return false
		}
		ct, err := tree.ParseClusterTypeRecord(data)
		switch {
		case err != nil || tree.TreeID(ct.Files) != tree.TreeID(kept.Files):
			return false
		case ct.Kept != "":
			return true
		}
		of = p.record.SourceOf(e)
		return false
	})
	return of, errors.Join(err, failed)
}
