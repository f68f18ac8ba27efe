package promotion

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// gather brings what is read of environments: from all repositories beside each other,
// and from each in as few requests as there can be. What cannot be had is asked for
// again by those who read it, and then it is an error of theirs.
func (s *sessionState) gather(ctx context.Context) {
	of := map[*repository][]*output{}
	for i := range s.platform.stages {
		if out := s.outputs[s.platform.stages[i].Name]; out.repository != nil && !out.tip.IsZero() {
			of[out.repository] = append(of[out.repository], out)
		}
	}
	var all sync.WaitGroup
	limit := make(chan struct{}, mostAtOnce)
	for r, outs := range of {
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			_ = r.gather(ctx, outs)
		})
	}
	all.Wait()
}

// gather brings the newest commits of branches, the orders, and then the records.
func (r *repository) gather(ctx context.Context, outs []*output) error {
	var deep []git.Hash
	flat := r.orderIDs()
	for _, out := range outs {
		if out.aside {
			flat = append(flat, out.tip)
		} else {
			deep = append(deep, out.tip)
		}
	}
	if err := errors.Join(r.remote.Fetch(ctx, deep, firstDepth), r.remote.Fetch(ctx, flat, 1)); err != nil {
		return err
	}
	var ids []git.Hash
	for _, out := range outs {
		records, err := out.records()
		if err != nil {
			return err
		}
		ids = append(ids, records...)
	}
	if err := r.remote.Prefetch(ctx, ids); err != nil {
		return err
	}
	ids = nil
	for _, out := range outs {
		at, err := r.view(out.branch, out.tip)
		if err != nil {
			return err
		}
		if record, _, err := at.Record(out.folder); err == nil && record != nil && !out.aside {
			ids = append(ids, clusterTypesOf(record)...)
		}
	}
	return r.remote.Prefetch(ctx, ids)
}

// records are the ids of an environment's records in the commits that are here, the
// first of which are read in any case.
func (o *output) records() (ids []git.Hash, err error) {
	links, err := (&history{out: o, depth: firstDepth}).links()
	if err != nil {
		return nil, err
	}
	if o.aside {
		links = links[:1]
	}
	for _, l := range links {
		id, err := o.recordIn(l)
		if err != nil {
			return nil, err
		}
		if !id.IsZero() && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// recordIn is the id of the environment's record in a commit; zero where it has none.
func (o *output) recordIn(l git.Link) (git.Hash, error) {
	e, found, err := o.repository.staging.Find(l.Tree, path.Join(o.folder, tree.RecordPath))
	if err != nil || !found || e.Mode != git.FileMode {
		return git.Hash{}, err
	}
	return e.ID, nil
}

// clusterTypesOf are the ids of the records of cluster types.
func clusterTypesOf(record *tree.Record) []git.Hash {
	var ids []git.Hash
	for _, ct := range record.ClusterTypes {
		ids = append(ids, tree.Revision(ct.Record).Hash())
	}
	return ids
}
