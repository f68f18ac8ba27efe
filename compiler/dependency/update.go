package dependency

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/address"
)

// Use is a source that is needed.
type Use struct {
	Source Source
	// By are the users of the source, sorted: a deployment target by its full name, a
	// registration as "registration <name>", an application by its name.
	By []string
	// Also are further names for the choice of sources to update, such as the workload of a
	// deployment target.
	Also []string
	// At are the places in the platform's files that name the source.
	At []model.Position
	// Reach is the set of servers on which the source may be.
	Reach address.Reach
}

// Fetcher fetches sources. Several goroutines call it at once.
type Fetcher interface {
	// Within returns a Fetcher that connects only to the servers of a reach.
	Within(address.Reach) Fetcher
	// Resolve returns the current revision of a source, with its content.
	Resolve(context.Context, Source) (Entry, []byte, error)
	// Fetch returns exactly the content that an entry pins.
	Fetch(context.Context, Entry) ([]byte, error)
}

// UpdateRequest has the inputs of Update.
type UpdateRequest struct {
	Root    string // the folder of kalypso.lock
	Lock    *Lock
	Store   *Store
	Uses    []Use
	Fetcher Fetcher
	// Renew reports whether a pinned source is resolved again; nil for never. It is called
	// once for each use, also for new ones, one after the other.
	Renew func(Use) bool
	// Prune removes unused sources.
	Prune bool
}

// Status is the result for a source.
type Status string

// The results for a source.
const (
	Added     Status = "added"
	Updated   Status = "updated"   // to another revision
	Unchanged Status = "unchanged" // pinned, and in the store
	Fetched   Status = "fetched"   // pinned, and now in the store
	Removed   Status = "removed"   // nobody uses it
	Failed    Status = "failed"
)

// Result is the result for one source.
type Result struct {
	Entry
	By     []string
	At     []model.Position // the places that name it, sorted
	Status Status
	// Before is the revision that the source was pinned to, or "".
	Before string
	// Err is why it failed.
	Err error
}

// maxAtOnce is the largest number of sources that are fetched at once.
const maxAtOnce = 4

// Update locks the used sources, and writes kalypso.lock if it changes. The results are
// sorted as in the lock. The error is about the lock or the context; errors of sources are
// in their results.
func Update(ctx context.Context, r UpdateRequest) (*Lock, []Result, error) {
	uses := merge(r.Uses)
	out := make([]Result, len(uses))
	group, fetching := errgroup.WithContext(ctx)
	group.SetLimit(maxAtOnce)
	there := make([]bool, len(uses)) // before anything is fetched: several may have one content
	for i, use := range uses {
		before, _ := r.Lock.Find(use.Source)
		there[i] = r.Store.has(before.Content)
	}
	for i, use := range uses {
		renew := r.Renew != nil && r.Renew(use)
		group.Go(func() error {
			if out[i] = r.one(fetching, use, renew); out[i].Status == Unchanged && !there[i] && !renew {
				out[i].Status = Fetched
			}
			return fetching.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	locked := r.assemble(&out)
	if err := locked.Write(r.Root); err != nil {
		return nil, nil, err
	}
	return locked, out, nil
}

// assemble returns the new lock, and adds the unused sources to the results.
func (r *UpdateRequest) assemble(all *[]Result) *Lock {
	var entries []Entry
	used := map[Source]bool{}
	for _, s := range *all {
		used[s.Source] = true
		if s.Status != Failed || s.Before != "" {
			entries = append(entries, s.Entry)
		}
	}
	for _, e := range r.Lock.Sources {
		switch {
		case used[e.Source]:
		case r.Prune:
			*all = append(*all, Result{Entry: e, Status: Removed, Before: e.Revision})
		default:
			entries = append(entries, e)
		}
	}
	slices.SortFunc(*all,
		func(a, b Result) int { return strings.Compare(a.Source.String(), b.Source.String()) })
	return NewLock(entries)
}

// one locks one source.
func (r *UpdateRequest) one(ctx context.Context, use Use, renew bool) Result {
	before, pinned := r.Lock.Find(use.Source)
	s := Result{Entry: before, By: use.By, At: use.At, Before: before.Revision}
	s.Source = use.Source
	var content []byte
	switch {
	case pinned && !renew:
		content, s.Err = r.Store.Get(before.Content)
		if s.Err == nil {
			if s.Err = before.Fits(content); s.Err == nil {
				s.Status = Unchanged
				return s
			}
			break // a person has to decide
		}
		if damaged := (*DamagedError)(nil); errors.As(s.Err, &damaged) && damaged.Vendored {
			break // which fetching does not repair
		}
		content, s.Err = r.Fetcher.Within(use.Reach).Fetch(ctx, before)
		s.Status = Fetched
	default:
		var entry Entry
		if entry, content, s.Err = r.Fetcher.Within(use.Reach).Resolve(ctx, use.Source); s.Err == nil {
			s.Entry = entry
		}
		switch {
		case !pinned:
			s.Status = Added
		case s.Revision == before.Revision && s.Content == before.Content:
			s.Status = Unchanged
		default:
			s.Status = Updated
		}
	}
	if s.Err == nil {
		s.Err = r.keep(s.Entry, content)
	}
	if s.Err != nil {
		s.Status = Failed
		if pinned {
			s.Entry = before
		}
	}
	return s
}

// keep puts content into the store, and checks that builds can read it there.
func (r *UpdateRequest) keep(e Entry, content []byte) error {
	digest, err := r.Store.Put(content)
	if err == nil && digest != e.Content {
		err = fmt.Errorf("what was fetched has the digest %s, and not %s", digest, e.Content)
	}
	if err == nil {
		err = e.Fits(content)
	}
	if err == nil {
		_, err = r.Store.Get(digest)
	}
	return err
}

// merge joins the uses of each source. If one of them may reach a server, all of them may,
// because it is the same source.
func merge(uses []Use) []Use {
	by, also := map[Source][]string{}, map[Source][]string{}
	at, reach := map[Source][]model.Position{}, map[Source]address.Reach{}
	for _, u := range uses {
		by[u.Source] = append(by[u.Source], u.By...)
		also[u.Source] = append(also[u.Source], u.Also...)
		at[u.Source] = append(at[u.Source], u.At...)
		if r, other := reach[u.Source]; other {
			reach[u.Source] = r.Or(u.Reach)
		} else {
			reach[u.Source] = u.Reach
		}
	}
	var out []Use
	for s, who := range by {
		slices.Sort(who)
		slices.Sort(also[s])
		slices.SortFunc(at[s], model.Position.Compare)
		out = append(out,
			Use{s, slices.Compact(who), slices.Compact(also[s]), slices.Compact(at[s]), reach[s]})
	}
	slices.SortFunc(out,
		func(a, b Use) int { return strings.Compare(a.Source.String(), b.Source.String()) })
	return out
}
