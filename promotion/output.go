package promotion

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/git"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// output is an environment's GitOps tree, as it is in its branch.
type output struct {
	stage      *evaluate.Stage
	aside      bool        // only what comes after it was asked for
	repository *repository // nil where there is no git branch to promote to
	absent     string      // why there is none
	unreadable bool        // there is one, and it cannot be read
	branch     string
	folder     string   // of the tree in the branch; "" for its root
	tip        git.Hash // zero where the branch does not exist
	at         *tree.Branch
	record     *tree.Record
	// problems are what is wrong with the record: it cannot be read.
	problems []diag.Diagnostic
	own      source.Own // where the environment's own files are, at the platform's head
	orders   *orders
	history  *history
	// overwrites says that what somebody did to the tree is written over; then restored
	// is the newest commit in which it was as kalypso left it, where that is not the tip.
	overwrites bool
	restored   git.Hash
}

// noRings is the error of an environment whose own files have rings that are not known.
func noRings(stage *evaluate.Stage) error {
	return fmt.Errorf("which rings it has is not known, because its own files have errors; see `kalypso vet %s`", stage.Name)
}

// openOutput reads where an environment's tree is.
func (s *Session) openOutput(ctx context.Context, stage *evaluate.Stage) (*output, error) {
	out := &output{stage: stage}
	g := stage.GitOps
	switch {
	case g == nil:
		out.absent = "environments." + stage.Name + " has no gitops, which says where its tree is kept"
		return out, nil
	case g.Repo == "":
		out.absent = "its tree is kept in an OCI registry, where `kalypso publish` puts it"
		return out, nil
	}
	if stage.NoRings {
		return nil, noRings(stage)
	}
	var err error
	if out.own, err = s.platform.own(ctx, stage); err != nil {
		return nil, err
	}
	if out.repository, err = s.repository(ctx, g.Repo); err != nil {
		return nil, err
	}
	if s.platform.repository.plain && !out.repository.plain && out.repository.elsewhere == nil {
		notes, err := s.plainForge(out.repository)
		if err != nil {
			return nil, err
		}
		out.repository.elsewhere = newLedger(notes)
	}
	out.branch, out.folder = g.Branch, strings.TrimPrefix(path.Clean("/"+g.Path), "/")
	if p := s.platform; out.repository == p.repository && out.branch == p.branch && (p.path == "." || out.folder == "" || isFolderOf(p.path, out.folder) || isFolderOf(out.folder, p.path) || p.path == out.folder) {
		return nil, fmt.Errorf("its tree would be kept in branch %s, which it is promoted from: name a branch of its own in gitops", out.branch)
	}
	out.tip = out.repository.refs[branchRef(out.branch)]
	out.overwrites = s.request.Overwrite
	out.aside = len(s.request.Environments) > 0 && !slices.Contains(s.request.Environments, stage.Name)
	return out, nil
}

// read reads the branch, and what was ordered.
func (o *output) read(ctx context.Context) (err error) {
	if o.repository == nil {
		return nil
	}
	if err := o.look(ctx); err != nil {
		return err
	}
	o.history = &history{out: o}
	o.orders, err = o.repository.orders(ctx, o.stage.Name)
	return err
}

// look reads the branch as it is at the tip.
func (o *output) look(ctx context.Context) error {
	if !o.tip.IsZero() {
		if err := o.repository.remote.Fetch(ctx, []git.Hash{o.tip}, 1); err != nil {
			return err
		}
	}
	var err error
	if o.at, err = o.repository.view(o.branch, o.tip); err != nil {
		return err
	}
	if o.record, o.problems, err = o.at.Record(o.folder); err != nil {
		return err
	}
	if o.overwrites && !o.tip.IsZero() && !o.aside {
		if err := o.restore(ctx); err != nil {
			return err
		}
	}
	if o.record == nil || o.aside {
		return nil
	}
	// Most of what is done with a tree asks for the records of some cluster types.
	return o.repository.remote.Prefetch(ctx, clusterTypesOf(o.record))
}

// view is a branch as it is at a commit, for reading it and for making commits on it.
func (r *repository) view(branch string, tip git.Hash) (*tree.Branch, error) {
	return tree.NewRepository(r.staging, r.url).BranchAt(branch, tip)
}

// has returns what a ring of the environment was compiled from; the zero Source for
// nothing.
func (o *output) has(ring string) tree.Source { return o.sourceIn(o.record, ring) }

// sourceIn returns what a ring was compiled from by a record, which may be nil.
func (o *output) sourceIn(record *tree.Record, ring string) tree.Source {
	return o.ringIn(record, ring).Source
}

// holdIn returns the ring's own hold by a record, or the environment's; nil for none.
func (o *output) holdIn(record *tree.Record, ring string) *tree.Hold {
	if hold := o.ringIn(record, ring).Hold; hold != nil || record == nil {
		return hold
	}
	return record.Hold
}

// hold returns the hold that a ring has now; nil for none.
func (o *output) hold(ring string) *tree.Hold { return o.holdIn(o.record, ring) }

// ringIn returns what a record says of a ring. Where policies have changed since, the
// record does not have it: then it is what the environment was as a whole, or the rings
// that are not in the policy any more. Where those were different, it is nothing, but
// stays held if one of them was.
func (o *output) ringIn(record *tree.Record, ring string) tree.Ring {
	switch known := record.Ring(ring); {
	case record == nil:
		return tree.Ring{Name: ring}
	case known != nil:
		return *known
	case len(record.Rings) == 0:
		return tree.Ring{Name: ring, Source: record.Source}
	}
	out, first := tree.Ring{Name: ring}, true
	for _, gone := range record.Rings {
		if o.stage.Promotion.Ring(gone.Name) != nil {
			continue
		}
		switch {
		case first:
			out.Source, first = gone.Source, false
		case out.Source != gone.Source:
			out.Source = tree.Source{}
		}
		if out.Hold == nil {
			out.Hold = gone.Hold
		}
	}
	return out
}

// ringsIn returns what a record says of the policy's rings that have something, sorted by
// name. A hold of the environment, from when it had no rings, is one of each of them.
func (o *output) ringsIn(record *tree.Record) []tree.Ring {
	var out []tree.Ring
	for _, ring := range o.stage.Promotion.Rings {
		r := o.ringIn(record, ring.Name)
		if r.Name = ring.Name; r.Hold == nil {
			r.Hold = o.holdIn(record, ring.Name)
		}
		if r.Source != (tree.Source{}) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b tree.Ring) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// covers says whether a cluster type is of the stop: it was built for the ring, or for
// none that the policy has.
func (st *stop) covers(clusterType string) bool {
	of := st.out.record.RingOf(clusterType)
	return st.ring == nil || of == st.ring.Name || st.stage.Promotion.Ring(of) == nil
}

// coversFile says it of a path in the environment's folder.
func (st *stop) coversFile(path string) bool {
	clusterType, _, _ := strings.Cut(path, "/")
	return st.covers(clusterType)
}

// ownHold returns the hold of the stop alone: the environment's where it has no rings.
func (st *stop) ownHold() *tree.Hold {
	if hold := st.out.ringIn(st.out.record, st.ringName()).Hold; hold != nil || st.ring != nil || st.out.record == nil {
		return hold
	}
	return st.out.record.Hold
}

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
	record *tree.Record // nil where it could not be read, or was not there
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
		for i >= len(h.states) {
			if h.whole || h.out.tip.IsZero() {
				return nil
			}
			if err := h.more(ctx); err != nil {
				return err
			}
		}
		if !f(h.states[i]) {
			return nil
		}
	}
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
		p := past{Link: l}
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
	err := h.each(ctx, func(past) bool { return true })
	return h.distinct(h.states, ring), err
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
	if err := h.each(ctx, func(past) bool { return true }); err != nil {
		return nil, err
	}
	has, first := h.out.has(ring).Base, 0
	for i, p := range h.states {
		if h.out.sourceIn(p.record, ring).Base == has {
			first = i
		}
	}
	return h.distinct(h.states[min(first+1, len(h.states)):], ring), nil
}
