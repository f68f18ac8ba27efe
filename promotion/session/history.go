package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/message"
)

// History is the history of an environment's branch, commit by commit. It is read as far
// as it is needed.
type History struct {
	of     *Environment
	states []Past // newest first
	depth  int    // the number of requested commits; 0 for the first look
	whole  bool   // there is nothing more
}

// Past is the environment in one commit of its branch.
type Past struct {
	git.Link
	Record   *tree.Record // nil if it could not be read, or did not exist
	RecordID git.Hash     // of its file, or zero
}

// The history is read in growing parts: requested commits are mostly near its end.
const (
	firstDepth  = 32
	depthFactor = 8
)

// Each calls a function with the states of the environment, newest first, until it returns
// false.
func (h *History) Each(ctx context.Context, f func(Past) bool) error {
	for i := 0; ; i++ {
		p, there, err := h.At(ctx, i)
		if err != nil || !there || !f(p) {
			return err
		}
	}
}

// At returns the state that is a number of commits before the newest; false if there
// are not as many.
func (h *History) At(ctx context.Context, i int) (Past, bool, error) {
	for i >= len(h.states) {
		if h.whole || h.of.Tip.IsZero() {
			return Past{}, false, nil
		}
		if err := h.more(ctx); err != nil {
			return Past{}, false, err
		}
	}
	return h.states[i], true, nil
}

// more reads a greater part of the history.
func (h *History) more(ctx context.Context) error {
	h.depth = max(firstDepth, h.depth*depthFactor)
	env := h.of
	if err := env.Repository.Remote.Fetch(ctx, []git.Hash{env.Tip}, h.depth); err != nil {
		return err
	}
	links, err := h.links()
	if err != nil {
		return err
	}
	h.whole = len(links) < h.depth || h.depth >= ledger.MaxDepth ||
		len(links[len(links)-1].Parents) == 0
	var ids []git.Hash
	records := map[git.Hash]git.Hash{} // commit -> its record
	objects := env.Repository.Staging
	for _, l := range links[len(h.states):] {
		id, err := env.recordIn(l)
		if err != nil {
			return err
		}
		if !id.IsZero() {
			records[l.ID] = id
			ids = append(ids, id)
		}
	}
	if err := env.Repository.Remote.Prefetch(ctx, ids); err != nil {
		return err
	}
	for _, l := range links[len(h.states):] {
		p := Past{Link: l, RecordID: records[l.ID]}
		if id, ok := records[l.ID]; ok {
			data, err := objects.Blob(id)
			if err != nil {
				return err
			}
			p.Record, _ = tree.ParseRecord(data, nil)
		}
		h.states = append(h.states, p)
	}
	return nil
}

// links returns the commits that are here, newest first.
func (h *History) links() ([]git.Link, error) {
	var links []git.Link
	for l, err := range h.of.Repository.Staging.Mainline(h.of.Tip) {
		if missing := (*git.MissingError)(nil); errors.As(err, &missing) && len(links) > 0 {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the history of branch %s: %w", h.of.Branch, err)
		}
		if links = append(links, l); len(links) == h.depth {
			break
		}
	}
	return links, nil
}

// All returns all states of the environment, newest first.
func (h *History) All(ctx context.Context) ([]Past, error) {
	err := h.Each(ctx, func(Past) bool { return true })
	return h.states, err
}

// Deployed returns the commits in which a ring has its present source, newest first. The last of
// them deployed the source. It returns nil if the ring has no source.
func (h *History) Deployed(ctx context.Context, ring string) (run []git.Hash, err error) {
	has := h.of.has(ring)
	if has == (tree.Source{}) {
		return nil, nil
	}
	err = h.Each(ctx, func(p Past) bool {
		if h.of.SourceIn(p.Record, ring) != has {
			return false
		}
		run = append(run, p.ID)
		return true
	})
	return run, err
}

// Running returns the commits in which a ring has its present files, newest first. landings are
// the commits among them that deployed a source, newest first. The first landing deployed the
// present source. It returns nil if the ring has no source.
func (h *History) Running(ctx context.Context, ring string) (commits, landings []git.Hash,
	err error) {
	if h.of.has(ring) == (tree.Source{}) {
		return nil, nil, nil
	}
	err = h.landings(ctx, ring, func(l landing) bool {
		commits, landings = append(commits, l.commits...), append(landings, l.id)
		return l.same
	})
	return commits, landings, err
}

// landing is a source that a ring got, with the commit that deployed it.
type landing struct {
	id      git.Hash
	source  tree.Source
	same    bool       // the ring had the same files before
	commits []git.Hash // that have it, newest first
}

// landings calls f with each landing of a ring, newest first, until it returns false.
func (h *History) landings(ctx context.Context, ring string, f func(landing) bool) error {
	var last landing
	var record *tree.Record // of last.id
	more := true
	err := h.Each(ctx, func(p Past) bool {
		is := h.of.SourceIn(p.Record, ring)
		if len(last.commits) > 0 && is != last.source {
			last.same = is != (tree.Source{}) && h.of.filesIn(p.Record, ring) == h.of.filesIn(record, ring)
			more = f(last)
			last = landing{}
		}
		last.id, last.source, record = p.ID, is, p.Record
		last.commits = append(last.commits, p.ID)
		return more
	})
	if err == nil && more && len(last.commits) > 0 {
		f(last)
	}
	return err
}

// filesIn returns an identifier for the files of a ring in a record. It may only be compared
// between two successive commits, whose entries of clusters have the same files of other rings.
func (env *Environment) filesIn(record *tree.Record, ring string) string {
	if record == nil {
		return ""
	}
	var b strings.Builder
	for i := range record.ClusterTypes {
		e := &record.ClusterTypes[i]
		if ring == "" || e.Ring == ring || tree.IsShard(e.Name) ||
			env.Policy.Promotion.Ring(e.Ring) == nil {
			fmt.Fprintln(&b, e.Name, e.Record)
		}
	}
	return b.String()
}

// Visit is the last time that a base commit, or a pair, was in a ring. It lasts while the ring
// has its files, with any base commit.
type Visit struct {
	// Deployed are the commits that deployed it, and then other files of the environment with it,
	// oldest first. It is empty if the ring never had it.
	Deployed []git.Hash
	// Runs are all commits of the visit in groups with the same files, oldest first. They contain
	// the commits of Deployed. They also contain the commits before with the same files as the
	// first, and the commits after with the same files as the last.
	Runs [][]git.Hash
	// As is the source that first had the files of the first run; the zero Source if it is the
	// wanted source.
	As tree.Source
	// Followed is the commit that deployed other files after it, or zero.
	Followed git.Hash
}

// All returns the commits of all runs, with Followed.
func (v *Visit) All() []git.Hash { return append(slices.Concat(v.Runs...), v.Followed) }

// VisitOf returns when a base commit was last in a ring.
func (h *History) VisitOf(ctx context.Context, ring string, base tree.Revision) (Visit, error) {
	return h.visit(ctx, ring, func(l landing) bool { return l.source.Base == base },
		func(later landing) (bool, error) { return later.source.Base == base, nil })
}

// visit returns the last visit of the wanted source. goesOn reports whether it continues with the
// different files of a later commit.
func (h *History) visit(ctx context.Context, ring string, is func(landing) bool,
	goesOn func(landing) (bool, error)) (v Visit, err error) {
	var all []landing // newest first
	found, first := -1, 0
	err = h.landings(ctx, ring, func(l landing) bool {
		n := len(all)
		switch {
		case found < 0 && is(l):
			found, first = n, n
		case found >= 0 && is(l) && first == n-1:
			first = n
		case found >= 0 && !all[n-1].same:
			return false
		}
		all = append(all, l)
		return true
	})
	if err != nil || found < 0 {
		return Visit{}, err
	}
	for i, l := range slices.Backward(all) {
		n := len(v.Runs) - 1
		same := n >= 0 && l.same
		if !same && i < found {
			on, err := goesOn(l)
			if err != nil {
				return Visit{}, err
			}
			if !on {
				v.Followed = l.id
				break
			}
		}
		if same {
			v.Runs[n] = append(v.Runs[n], l.id)
		} else {
			v.Runs = append(v.Runs, []git.Hash{l.id})
		}
		if i >= found && i <= first {
			v.Deployed = append(v.Deployed, l.id)
		}
	}
	if oldest := all[len(all)-1].source; oldest != all[first].source {
		v.As = oldest
	}
	return v, nil
}

// BasesOf returns the newest state with each base commit that a ring had, newest first.
func (h *History) BasesOf(ctx context.Context, ring string) ([]Past, error) {
	states, err := h.All(ctx)
	return h.distinct(states, ring), err
}

// distinct returns the newest of some states with each base commit of a ring.
func (h *History) distinct(states []Past, ring string) []Past {
	var out []Past
	var seen []tree.Revision
	for _, p := range states {
		if is := h.of.SourceIn(p.Record, ring).Base; is != "" && !slices.Contains(seen, is) {
			seen = append(seen, is)
			out = append(out, p)
		}
	}
	return out
}

// BasesBefore returns the same of the base commits that a ring had before it had its
// present one for the first time: the targets of rollbacks. A commit from which it was
// rolled back is not among them.
func (h *History) BasesBefore(ctx context.Context, ring string) ([]Past, error) {
	states, err := h.All(ctx)
	if err != nil {
		return nil, err
	}
	has, first := h.of.has(ring).Base, 0
	for i, p := range states {
		if h.of.SourceIn(p.Record, ring).Base == has {
			first = i
		}
	}
	return h.distinct(states[min(first+1, len(states)):], ring), nil
}

// had returns which of some base commits a ring has or had.
func (h *History) had(ctx context.Context, ring string, of []source.Base) (map[tree.Revision]bool,
	error) {
	wanted := map[tree.Revision]bool{}
	for _, b := range of {
		wanted[tree.RevisionOf(b.Commit)] = true
	}
	had := map[tree.Revision]bool{}
	older := 0
	var last tree.Revision
	err := h.Each(ctx, func(p Past) bool {
		is := h.of.SourceIn(p.Record, ring).Base
		switch {
		case wanted[is]:
			had[is], older = true, 0
		case is != last: // others may be in the branch as well
			older++
		}
		last = is
		// Commits before all wanted ones are not read, except a rollback.
		return len(had) < len(wanted) && older < firstDepth
	})
	return had, err
}

// RecordTrailer is the name of the trailer with the id of a record.
const RecordTrailer = "Kalypso-Record"

// IsOwn reports whether kalypso made a commit, and wrote the record that it has.
func (env *Environment) IsOwn(p Past) bool {
	return p.Record != nil && env.IsNamed(message.Trailer(p.Message, "Kalypso-Environment")) &&
		message.Trailer(p.Message, RecordTrailer) == p.RecordID.String()
}

// Writer returns the message of kalypso's commit that wrote the record of a commit, even if that
// came with a merge. It returns "" if kalypso did not write it.
func (env *Environment) Writer(ctx context.Context, p Past) (string, error) {
	if env.IsOwn(p) {
		return p.Message, nil
	}
	const deep = 2 // a forge merges into a proposal before that is merged
	parents := p.Parents[min(1, len(p.Parents)):]
	for range deep {
		var older []git.Hash
		for _, id := range parents {
			q, err := env.pastAt(ctx, id)
			if err != nil {
				return "", err
			}
			if env.IsOwn(q) && q.RecordID == p.RecordID {
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

// pastAt returns the environment in any commit.
func (env *Environment) pastAt(ctx context.Context, id git.Hash) (Past, error) {
	at, err := env.AtCommit(ctx, id)
	if err != nil {
		return Past{}, err
	}
	p, _, err := at.History.At(ctx, 0)
	return p, err
}

// Introduced returns the commit that wrote a record, both as numbers of commits before the
// newest.
func (env *Environment) Introduced(ctx context.Context, i int) (int, error) {
	p, there, err := env.History.At(ctx, i)
	for err == nil && there {
		var older Past
		if older, there,
			err = env.History.At(ctx, i+1); err != nil || !there || older.RecordID != p.RecordID {
			break
		}
		i++
	}
	return i, err
}

// CompiledFrom returns the source commits of retained files of a cluster type. They are the
// commits of the newest state in which the files were not retained. It returns the zero Source if
// the history has no such state.
func (env *Environment) CompiledFrom(ctx context.Context,
	kept *tree.ClusterTypeRecord) (tree.Source, error) {
	var of tree.Source
	var failed error
	err := env.History.Each(ctx, func(p Past) bool {
		if p.Record == nil {
			return true
		}
		i := slices.IndexFunc(p.Record.ClusterTypes,
			func(e tree.ClusterTypeEntry) bool { return e.Name == kept.Name })
		if i < 0 {
			return false
		}
		e := &p.Record.ClusterTypes[i]
		if failed = env.Repository.Remote.Prefetch(ctx,
			[]git.Hash{tree.Revision(e.Record).Hash()}); failed != nil {
			return false
		}
		data, err := env.Repository.Staging.Blob(tree.Revision(e.Record).Hash())
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
		of = p.Record.SourceOf(e)
		return false
	})
	return of, errors.Join(err, failed)
}
