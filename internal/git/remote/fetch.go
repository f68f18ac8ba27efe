package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Fetch makes commits available, with all their trees and with so many commits of
// each one's history, itself counted; 0 for all of it. An id may also be that of an
// annotated tag. Only what is not there is asked for.
//
// A commit that no ref names is asked for where the server lets it be; else all
// branches and tags are fetched, among which it may be. The error is a
// *NotFoundError where it is not.
func (r *Remote) Fetch(ctx context.Context, commits []git.Hash, depth int) error {
	return r.failed(ctx, r.fetch(ctx, commits, depth, r.options.Whole))
}

// FetchFiles is Fetch for commits whose files are about to be read: their content comes
// with them. Of a commit that is there already, nothing is asked for.
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
	for _, ask := range r.ladder(ids, depth, whole) {
		err = r.repeat(ctx, func() error { return r.wire.get(ctx, r.store, ask) })
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

// unlessMoved returns the error of objects that a server does not give, or a lost race
// where it had commits under refs that are elsewhere now: those it has no reason to give.
func (r *Remote) unlessMoved(ctx context.Context, err error, commits []git.Hash) error {
	r.mu.Lock()
	commits = slices.DeleteFunc(slices.Clone(commits), func(id git.Hash) bool { return !r.named[id] })
	r.mu.Unlock()
	if len(commits) == 0 {
		return err
	}
	told, asked := r.ask(ctx)
	if asked != nil {
		return err
	}
	now := told.named()
	for _, id := range commits {
		if _, still := now[id]; !still {
			return &lostRace{detail: "no ref is at " + git.Short(id) + " any more"}
		}
	}
	return err
}

// note marks commits as fetched.
func (r *Remote) note(commits []git.Hash, depth int) error {
	var ids []git.Hash
	whole := depth == 0 && len(r.advertisement().cut) == 0 // a clone may get the rest some day
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

// ladder returns the ways to ask for commits, the cheapest first. A server may lack
// a filter, or have one that fails, and may give nothing but what its refs name.
func (r *Remote) ladder(ids []git.Hash, depth int, whole bool) []want {
	told := r.advertisement()
	named := told.named()
	alone := true
	asked := slices.Clone(ids)
	for i, id := range asked {
		if ref, ok := named[id]; ok {
			asked[i] = ref
		} else if !told.anyID {
			alone = false
		}
	}
	var ways []want
	filters := []bool{false, true}
	if whole || !told.filter {
		filters = filters[1:]
	}
	for _, whole := range filters {
		if alone {
			ways = append(ways, want{ids: asked, depth: depth, whole: whole})
		}
	}
	for _, whole := range filters {
		if tips := told.tips(); len(tips) > 0 {
			ways = append(ways, want{ids: tips, whole: whole})
		}
	}
	return ways
}

// named returns what refs name, and for a commit that only an annotated tag names,
// the tag: most servers give nothing else.
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
		if isBranchOrTag(ref) {
			all[id] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b git.Hash) int { return bytes.Compare(a[:], b[:]) })
}

// Prefetch makes objects available that were left with the server: all that are not
// there, in one request. What several goroutines want while another request is on
// its way is asked for together.
func (r *Remote) Prefetch(ctx context.Context, ids []git.Hash) error {
	absent, err := r.store.local.Absent(ids)
	if err == nil && len(absent) > 0 {
		err = r.queue.do(ctx, absent, func(ids []git.Hash) error { return r.bring(ctx, ids) })
	}
	return r.failed(ctx, err)
}

// bring fetches objects of any kind.
func (r *Remote) bring(ctx context.Context, ids []git.Hash) error {
	ids, err := r.store.local.Absent(ids)
	if err != nil || len(ids) == 0 {
		return err
	}
	parents, err := r.store.beforeCut()
	if err != nil {
		return err
	}
	// A commit that was cut off comes alone, as those did that it comes before.
	commits := slices.DeleteFunc(slices.Clone(ids), func(id git.Hash) bool { return !parents[id] })
	if len(commits) > 0 {
		if err := r.fetch(ctx, commits, 1, r.options.Whole); err != nil {
			return err
		}
	}
	if ids, err = r.store.local.Absent(ids); err != nil || len(ids) == 0 {
		return err
	}
	for _, ask := range r.rescue(ids) {
		err := r.repeat(ctx, func() error { return r.wire.get(ctx, r.store, ask) })
		if err != nil && !errors.Is(err, errRefused) {
			return err
		}
		if ids, err = r.store.local.Absent(ids); err != nil || len(ids) == 0 {
			return err
		}
	}
	err = &NotFoundError{Problem: fmt.Sprintf("the server does not have the object %s, or does not give it", ids[0])}
	return r.unlessMoved(ctx, err, r.everNamed())
}

// everNamed are the commits that the server has named since the Remote was opened.
func (r *Remote) everNamed() []git.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.named))
}

// rescue returns the ways to ask for objects that were left with the server. One
// that gives no objects by their ids is asked for commits anew, with their files.
func (r *Remote) rescue(ids []git.Hash) []want {
	told := r.advertisement()
	var ways []want
	if told.ids {
		ways = append(ways, want{ids: ids, alone: true})
	}
	named := told.named()
	var fetched []git.Hash
	for _, folder := range []string{cut, complete} {
		marked, _ := r.store.marked(folder)
		for _, id := range marked {
			if ref, ok := named[id]; ok {
				fetched = append(fetched, ref)
			}
		}
	}
	if len(fetched) > 0 && told.shallow {
		ways = append(ways, want{ids: fetched, depth: 1, whole: true, alone: true})
	}
	if tips := told.tips(); len(tips) > 0 {
		ways = append(ways, want{ids: tips, whole: true, alone: true})
	}
	return ways
}

// beforeCut returns the commits that are not there because history was cut.
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

// batches makes one request at a time, each for all that was asked for since the one
// before it began.
type batches struct {
	busy chan struct{} // holds one while a request is on its way

	mu   sync.Mutex
	next *batch
}

type batch struct {
	ids  []git.Hash
	done bool
	err  error
}

// do asks for objects. Where the caller whose request it became was cancelled, the
// others ask for themselves.
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
