package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Fetch makes commits available, with all their trees and with depth commits of each history, the
// commit included; 0 for all of it. An id may also be an annotated tag's. Only missing objects
// are requested.
//
// If no ref names a commit, Fetch requests it by its id, provided that the server allows that.
// Otherwise it fetches all branches and tags, which may contain the commit. It returns a
// *NotFoundError if they do not.
func (r *Remote) Fetch(ctx context.Context, commits []git.Hash, depth int) error {
	return r.failed(ctx, r.fetch(ctx, commits, depth, r.options.Whole))
}

// FetchFiles is Fetch for commits whose files are about to be read. It also fetches their
// content. If a commit is already present, it makes no request.
func (r *Remote) FetchFiles(ctx context.Context, commits []git.Hash, depth int) error {
	return r.failed(ctx, r.fetch(ctx, commits, depth, true))
}

func (r *Remote) fetch(ctx context.Context, commits []git.Hash, depth int, whole bool) error {
	lacking := func() (ids []git.Hash, err error) {
		for _, id := range commits {
			there, err := r.store.has(id, depth, r.advertisement().cut)
			if err != nil {
				return nil, err
			}
			if !there {
				ids = append(ids, id)
			}
		}
		return ids, nil
	}
	ids, err := lacking()
	if err != nil || len(ids) == 0 {
		return err
	}
	for _, ask := range r.fetchAttempts(ids, depth, whole) {
		err = r.repeat(ctx, func() error { return r.backend.get(ctx, r.store, ask) })
		if err != nil && !errors.Is(err, errRefused) {
			return err
		}
		left, lookErr := lacking()
		if lookErr != nil {
			return lookErr
		}
		if len(left) == 0 {
			return r.note(commits, depth)
		}
		ids = left
	}
	if err == nil && len(r.advertisement().cut) > 0 {
		err = &ShallowError{Commit: ids[0]}
	} else if err == nil {
		err = &NotFoundError{Problem: fmt.Sprintf("there is no commit %s on any branch or tag", ids[0])}
	}
	return r.unlessMoved(ctx, err, ids)
}

// unlessMoved returns the error for objects that a server does not send. If refs that had the
// commits have moved since, it returns a lost race.
func (r *Remote) unlessMoved(ctx context.Context, err error, commits []git.Hash) error {
	r.mu.Lock()
	commits = slices.DeleteFunc(slices.Clone(commits), func(id git.Hash) bool { return !r.named[id] })
	r.mu.Unlock()
	if len(commits) == 0 {
		return err
	}
	latest, asked := r.ask(ctx)
	if asked != nil {
		return err
	}
	now := latest.named()
	for _, id := range commits {
		if _, named := now[id]; !named {
			return &lostRace{detail: "no ref is at " + git.Short(id) + " any more"}
		}
	}
	return err
}

// note marks commits as fetched.
func (r *Remote) note(commits []git.Hash, depth int) error {
	var ids []git.Hash
	whole := depth == 0 && len(r.advertisement().cut) == 0 // a clone may be completed later
	for _, id := range commits {
		commit, err := r.store.local.Peel(id)
		if err != nil {
			return err
		}
		ids = append(ids, commit)
	}
	if whole {
		return r.store.mark(complete, ids)
	}
	return r.store.mark(cut, ids)
}

// fetchAttempts returns the requests for commits, the cheapest first. A server may lack
// filters, or have ones that fail, and may send only objects that its refs name.
func (r *Remote) fetchAttempts(ids []git.Hash, depth int, whole bool) []want {
	latest := r.advertisement()
	named := latest.named()
	alone := true
	asked := slices.Clone(ids)
	for i, id := range asked {
		if ref, ok := named[id]; ok {
			asked[i] = ref
		} else if !latest.anyID {
			alone = false
		}
	}
	var ways []want
	filters := []bool{false, true}
	if whole || !latest.filter {
		filters = filters[1:]
	}
	for _, whole := range filters {
		if alone {
			ways = append(ways, want{ids: asked, depth: depth, whole: whole})
		}
	}
	for _, whole := range filters {
		if tips := latest.tips(); len(tips) > 0 {
			ways = append(ways, want{ids: tips, whole: whole})
		}
	}
	return ways
}

// named returns the objects that refs name, and for a commit that only an annotated tag
// names, the tag: most servers send nothing else.
func (a *advertisement) named() map[git.Hash]git.Hash {
	out := map[git.Hash]git.Hash{}
	for _, id := range a.refs {
		out[id] = id
	}
	for ref, id := range a.peeled {
		if _, ok := out[id]; !ok {
			out[id] = a.refs[ref]
		}
	}
	return out
}

// tips are the commits and tags that branches and tags name.
func (a *advertisement) tips() []git.Hash {
	all := map[git.Hash]bool{}
	for ref, id := range a.refs {
		if strings.HasPrefix(ref, branches) || strings.HasPrefix(ref, tags) {
			all[id] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all),
		func(a, b git.Hash) int { return bytes.Compare(a[:], b[:]) })
}

// Prefetch makes objects available that were left with the server: all the missing ones, in
// one request. While a request is under way, the objects that goroutines want wait for the
// next one.
func (r *Remote) Prefetch(ctx context.Context, ids []git.Hash) error {
	absent, err := r.store.local.Absent(ids)
	if err == nil && len(absent) > 0 {
		err = r.queue.do(ctx, absent, func(ids []git.Hash) error { return r.fetchObjects(ctx, ids) })
	}
	return r.failed(ctx, err)
}

// fetchObjects fetches objects of any kind.
func (r *Remote) fetchObjects(ctx context.Context, ids []git.Hash) error {
	ids, err := r.store.local.Absent(ids)
	if err != nil || len(ids) == 0 {
		return err
	}
	parents, err := r.store.beforeCut()
	if err != nil {
		return err
	}
	// A commit beyond a cut of the history comes without its parents, like the commits at
	// the cut.
	commits := slices.DeleteFunc(slices.Clone(ids), func(id git.Hash) bool { return !parents[id] })
	if len(commits) > 0 {
		if err := r.fetch(ctx, commits, 1, r.options.Whole); err != nil {
			return err
		}
	}
	if ids, err = r.store.local.Absent(ids); err != nil || len(ids) == 0 {
		return err
	}
	for _, ask := range r.prefetchAttempts(ids) {
		err := r.repeat(ctx, func() error { return r.backend.get(ctx, r.store, ask) })
		if err != nil && !errors.Is(err, errRefused) {
			return err
		}
		if ids, err = r.store.local.Absent(ids); err != nil || len(ids) == 0 {
			return err
		}
	}
	err = &NotFoundError{Problem: fmt.Sprintf(
		"the server does not have the object %s, or does not give it", ids[0])}
	return r.unlessMoved(ctx, err, r.everAdvertised())
}

// everAdvertised returns the commits that refs of the server have named since the Remote
// was opened.
func (r *Remote) everAdvertised() []git.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.named))
}

// prefetchAttempts returns the requests for objects that were left with the server. If a
// server sends no objects by their ids, they request the commits again, with files.
func (r *Remote) prefetchAttempts(ids []git.Hash) []want {
	latest := r.advertisement()
	var ways []want
	if latest.ids {
		ways = append(ways, want{ids: ids, alone: true})
	}
	named := latest.named()
	var fetched []git.Hash
	for _, folder := range []string{cut, complete} {
		marked, _ := r.store.marked(folder)
		for _, id := range marked {
			if ref, ok := named[id]; ok {
				fetched = append(fetched, ref)
			}
		}
	}
	if len(fetched) > 0 && latest.shallow {
		ways = append(ways, want{ids: fetched, depth: 1, whole: true, alone: true})
	}
	if tips := latest.tips(); len(tips) > 0 {
		ways = append(ways, want{ids: tips, whole: true, alone: true})
	}
	return ways
}

// beforeCut returns the commits that are missing because history was cut.
func (s *store) beforeCut() (map[git.Hash]bool, error) {
	shallow, err := s.shallow()
	if err != nil {
		return nil, err
	}
	out := map[git.Hash]bool{}
	for _, id := range shallow {
		parents, err := s.local.Parents(id)
		if err != nil {
			return nil, err
		}
		for _, p := range parents {
			out[p] = true
		}
	}
	return out, nil
}

// batches makes one request at a time, each for all objects that were wanted since the one
// before it began.
type batches struct {
	busy chan struct{} // has one element during a request

	mu   sync.Mutex
	next *batch
}

type batch struct {
	ids  []git.Hash
	done bool
	err  error
}

// do fetches objects. If the caller who makes the request for all was cancelled, the
// others make their own.
func (q *batches) do(ctx context.Context, ids []git.Hash, ask func([]git.Hash) error) error {
	q.mu.Lock()
	if q.next == nil {
		q.next = &batch{}
	}
	mine := q.next
	mine.ids = append(mine.ids, ids...)
	q.mu.Unlock()

	select {
	case q.busy <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-q.busy }()
	if mine.done && (mine.err == nil || ctx.Err() != nil) {
		return mine.err
	}
	if mine.done {
		return ask(ids)
	}
	q.mu.Lock()
	if q.next == mine {
		q.next = nil
	}
	q.mu.Unlock()
	mine.err = ask(mine.ids)
	mine.done = true
	return mine.err
}
