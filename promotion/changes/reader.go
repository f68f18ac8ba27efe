package changes

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Step is a commit of an environment's branch, and the one before it, or the zero Past.
type Step struct{ Before, Now session.Past }

// isKnown reports whether the records of both commits are known. If a history starts with a
// commit that has parents, that commit cannot be compared.
func (s *Step) isKnown() bool {
	return !unreadable(s.Before) && !unreadable(s.Now) &&
		!(s.Before.ID.IsZero() && len(s.Now.Parents) > 0)
}

// Reader computes the changes of an environment's commits on clusters. Read commits in their
// order, because each record of a folder is then read only once. It is for one goroutine.
type Reader struct {
	env     *session.Environment
	effects effect.Reader
	opened  map[git.Hash]*tree.Record // of the last step, by id
}

// NewReader returns a Reader of an environment that has a repository.
func NewReader(env *session.Environment) *Reader { return &Reader{env: env} }

// Prefetch fetches the records that differ in some steps, in one request.
func (r *Reader) Prefetch(ctx context.Context, steps []Step) error {
	var ids []git.Hash
	for i := range steps {
		if !steps[i].isKnown() {
			continue
		}
		before, now := entries(steps[i].Before.Record), entries(steps[i].Now.Record)
		for name, is := range now {
			if before[name].Record != is.Record {
				ids = append(ids, tree.Revision(is.Record).Hash())
			}
		}
		for name, was := range before {
			if now[name].Record != was.Record {
				ids = append(ids, tree.Revision(was.Record).Hash())
			}
		}
	}
	return prefetch(ctx, r.env, ids)
}

func prefetch(ctx context.Context, env *session.Environment, ids []git.Hash) error {
	err := env.Repository.Remote.Prefetch(ctx, ids)
	// a person may have written an id that does not exist
	if errors.As(err, new(*remote.NotFoundError)) {
		return nil
	}
	return err
}

// Effect returns the changes of a step on clusters. It returns nil if a record cannot be read, so
// that they are not known. It returns an error if the repository cannot be reached.
func (r *Reader) Effect(ctx context.Context, s Step) (*effect.Effect, error) {
	if !s.isKnown() {
		return nil, nil
	}
	before, err := r.open(s.Before)
	if err != nil {
		return nil, nil
	}
	now, err := r.open(s.Now)
	if err != nil {
		return nil, nil
	}
	r.opened = map[git.Hash]*tree.Record{s.Before.RecordID: before, s.Now.RecordID: now}
	var failed error
	r.effects.Prefetch = func(ids []tree.ID) error {
		hashes := make([]git.Hash, len(ids))
		for i, id := range ids {
			hashes[i] = tree.Revision(id).Hash()
		}
		failed = prefetch(ctx, r.env, hashes)
		return failed
	}
	e, err := r.effects.Compare(before, now)
	if err != nil {
		return nil, failed
	}
	return e, nil
}

// open returns the record of a commit, with its folders' records within reach; nil if the
// environment is not in the commit.
func (r *Reader) open(p session.Past) (*tree.Record, error) {
	if p.Record == nil || r.opened[p.RecordID] != nil {
		return r.opened[p.RecordID], nil
	}
	staging := r.env.Repository.Staging
	data, err := staging.BlobWithin(p.RecordID, tree.MaxRecord)
	if err != nil {
		return nil, err
	}
	var record *tree.Record
	record, err = tree.ParseRecord(data, func(name string) ([]byte, error) {
		i, _ := slices.BinarySearchFunc(record.ClusterTypes, name,
			func(e tree.ClusterTypeEntry, name string) int { return strings.Compare(e.Name, name) })
		return staging.BlobWithin(tree.Revision(record.ClusterTypes[i].Record).Hash(), tree.MaxRecord)
	})
	return record, err
}
