package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// history is what an environment's branch was, commit by commit.
type history struct {
	out    *output
	states []past // newest first
	depth  int    // how many commits were asked for; 0 for those of the first look
	whole  bool   // there is nothing more
}

// past is the environment in one commit of its branch.
type past struct {
	git.Link
	record   *tree.Record // nil where it could not be read, or was not there
	recordID git.Hash     // of its file; zero where there is none
}

// The history is read in growing parts: what is asked for is mostly near its end.
const (
	firstDepth  = 32
	depthFactor = 8
	mostDepth   = 20_000
)

// each calls a function with the states of the environment from the newest on, until it
// returns false.
func (h *history) each(ctx context.Context, f func(past) bool) error {
	for i := 0; ; i++ {
		p, there, err := h.at(ctx, i)
		if err != nil || !there || !f(p) {
			return err
		}
	}
}

// at returns the state that is so many commits before the newest; false where there are
// not as many.
func (h *history) at(ctx context.Context, i int) (past, bool, error) {
	for i >= len(h.states) {
		if h.whole || h.out.tip.IsZero() {
			return past{}, false, nil
		}
		if err := h.more(ctx); err != nil {
			return past{}, false, err
		}
	}
	return h.states[i], true, nil
}

// more reads a greater part of the history.
func (h *history) more(ctx context.Context) error {
	h.depth = max(firstDepth, h.depth*depthFactor)
	o := h.out
	if err := o.repository.remote.Fetch(ctx, []git.Hash{o.tip}, h.depth); err != nil {
		return err
	}
	links, err := h.links()
	if err != nil {
		return err
	}
	h.whole = len(links) < h.depth || h.depth >= mostDepth || len(links[len(links)-1].Parents) == 0
	var ids []git.Hash
	records := map[git.Hash]git.Hash{} // commit -> its record
	objects := o.repository.staging
	for _, l := range links[len(h.states):] {
		id, err := o.recordIn(l)
		if err != nil {
			return err
		}
		if !id.IsZero() {
			records[l.ID] = id
			ids = append(ids, id)
		}
	}
	if err := o.repository.remote.Prefetch(ctx, ids); err != nil {
		return err
	}
	for _, l := range links[len(h.states):] {
		p := past{Link: l, recordID: records[l.ID]}
		if id, ok := records[l.ID]; ok {
			data, err := objects.Blob(id)
			if err != nil {
				return err
			}
			p.record, _ = tree.ParseRecord(data, nil)
		}
		h.states = append(h.states, p)
	}
	return nil
}

// links are the commits that are here, newest first.
func (h *history) links() ([]git.Link, error) {
	var links []git.Link
	for l, err := range h.out.repository.staging.Mainline(h.out.tip) {
		if missing := (*git.MissingError)(nil); errors.As(err, &missing) && len(links) > 0 {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the history of branch %s: %w", h.out.branch, err)
		}
		if links = append(links, l); len(links) == h.depth {
			break
		}
	}
	return links, nil
}

// all returns all states of the environment, newest first.
func (h *history) all(ctx context.Context) ([]past, error) {
	err := h.each(ctx, func(past) bool { return true })
	return h.states, err
}

// landed returns the commit that brought what a ring has now; zero for nothing. run are
// the commits since, that one included, newest first.
func (h *history) landed(ctx context.Context, ring string) (run []git.Hash, err error) {
	has := h.out.has(ring)
	if has == (tree.Source{}) {
		return nil, nil
	}
	err = h.each(ctx, func(p past) bool {
		if h.out.sourceIn(p.record, ring) != has {
			return false
		}
		run = append(run, p.ID)
		return true
	})
	return run, err
}

// visit is the last time that a base commit was in a ring.
type visit struct {
	// landings are the commits that brought it, and then other files of the environment
	// with it, oldest first; none where it never was there.
	landings []git.Hash
	// followed is the commit that brought the next base commit; zero where it is still
	// there.
	followed git.Hash
}

// visitOf returns when a base commit was last in a ring.
func (h *history) visitOf(ctx context.Context, ring string, base tree.Revision) (v visit, err error) {
	var newer git.Hash
	var last tree.Source
	err = h.each(ctx, func(p past) bool {
		is := h.out.sourceIn(p.record, ring)
		n := len(v.landings)
		switch {
		case is.Base == base && n > 0 && is == last:
			v.landings[n-1] = p.ID
		case is.Base == base:
			if n == 0 {
				v.followed = newer
			}
			v.landings = append(v.landings, p.ID)
		case n > 0:
			return false
		}
		newer, last = p.ID, is
		return true
	})
	slices.Reverse(v.landings)
	return v, err
}

// basesOf returns the base commits that a ring had, the newest first, each once.
func (h *history) basesOf(ctx context.Context, ring string) ([]past, error) {
	states, err := h.all(ctx)
	return h.distinct(states, ring), err
}

// distinct are the newest states with each base commit that a ring had.
func (h *history) distinct(states []past, ring string) []past {
	var out []past
	var seen []tree.Revision
	for _, p := range states {
		if is := h.out.sourceIn(p.record, ring).Base; is != "" && !slices.Contains(seen, is) {
			seen = append(seen, is)
			out = append(out, p)
		}
	}
	return out
}

// basesBefore returns the base commits that a ring had before the one that it has came
// to it for the first time, the newest first, each once: where steps back lead. What it
// was rolled back from is not among them.
func (h *history) basesBefore(ctx context.Context, ring string) ([]past, error) {
	states, err := h.all(ctx)
	if err != nil {
		return nil, err
	}
	has, first := h.out.has(ring).Base, 0
	for i, p := range states {
		if h.out.sourceIn(p.record, ring).Base == has {
			first = i
		}
	}
	return h.distinct(states[min(first+1, len(states)):], ring), nil
}

// hadSince returns which of some base commits a ring has or had.
func (h *history) hadSince(ctx context.Context, ring string, of []source.Base) (map[tree.Revision]bool, error) {
	wanted := map[tree.Revision]bool{}
	for _, b := range of {
		wanted[tree.RevisionOf(b.Commit)] = true
	}
	had := map[tree.Revision]bool{}
	older := 0
	var last tree.Revision
	err := h.each(ctx, func(p past) bool {
		is := h.out.sourceIn(p.record, ring).Base
		switch {
		case wanted[is]:
			had[is], older = true, 0
		case is != last: // others may be in the branch as well
			older++
		}
		last = is
		// What came before all that is wanted is not looked at, but for a rollback.
		return len(had) < len(wanted) && older < firstDepth
	})
	return had, err
}
