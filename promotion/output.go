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
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
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
	// restored is the newest commit in which the tree was as kalypso left it, where what
	// somebody did to it since is written over.
	restored git.Hash
}

// noRings is the error of an environment whose own files have rings that are not known.
func noRings(stage *evaluate.Stage) error {
	return fmt.Errorf("which rings it has is not known, because its own files have errors; see `kalypso vet %s`", stage.Name)
}

// openOutput reads where an environment's tree is.
func (s *sessionState) openOutput(ctx context.Context, stage *evaluate.Stage) (*output, error) {
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
	if out.repository, err = s.opener.repository(ctx, g.Repo); err != nil {
		return nil, err
	}
	if s.platform.repository.plain && !out.repository.plain && out.repository.elsewhere == nil {
		notes, err := s.opener.plainForge(out.repository)
		if err != nil {
			return nil, err
		}
		out.repository.elsewhere = newLedger(notes)
	}
	out.branch, out.folder = g.Branch, strings.TrimPrefix(path.Clean("/"+g.Path), "/")
	if p := s.platform; out.repository == p.repository && out.branch == p.branch && source.Overlap(p.path, out.folder) {
		return nil, fmt.Errorf("its tree would be kept in branch %s, which it is promoted from: name a branch of its own in gitops", out.branch)
	}
	out.tip = out.repository.refs[branchRef(out.branch)]
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

// moved takes note of the branch being at another commit.
func (o *output) moved(ctx context.Context, to git.Hash) error {
	o.tip, o.history, o.restored = to, &history{out: o}, git.Hash{}
	return o.look(ctx)
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
	if o.record == nil || o.aside {
		return nil
	}
	// Most of what is done with a tree asks for the records of some cluster types.
	err = o.repository.remote.Prefetch(ctx, clusterTypesOf(o.record))
	if errors.As(err, new(*remote.NotFoundError)) { // which is drift
		return nil
	}
	return err
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

// driftIn is the drift of the environment in a commit with a record, which may be nil.
func (o *output) driftIn(ctx context.Context, at *tree.Branch, record *tree.Record) ([]tree.Drift, error) {
	if record == nil {
		return nil, nil
	}
	err := o.repository.remote.Prefetch(ctx, clusterTypesOf(record))
	if err != nil && !errors.As(err, new(*remote.NotFoundError)) { // somebody may have written an id of nothing
		return nil, err
	}
	return at.Drift(o.folder)
}

// atHead returns the output as it is at another head; "" for its branch.
func (o *output) atHead(ctx context.Context, head string) (*output, error) {
	if head == "" || o.repository == nil {
		return o, nil
	}
	id := git.Hash{}
	for _, ref := range []string{branchRef(head), "refs/tags/" + head, head} {
		if known, ok := o.repository.refs[ref]; ok {
			id = known
		}
	}
	if id.IsZero() {
		id = tree.Revision(head).Hash()
	}
	if id.IsZero() {
		return nil, fmt.Errorf("%s has no branch, tag or commit %s", o.repository.url, head)
	}
	return o.atCommit(ctx, id)
}

// atCommit returns the environment as it is at a commit.
func (o *output) atCommit(ctx context.Context, id git.Hash) (*output, error) {
	return o.in(ctx, o.branch, id)
}

// in returns the environment as it is at a commit of another branch.
func (o *output) in(ctx context.Context, branch string, tip git.Hash) (*output, error) {
	other := &output{stage: o.stage, repository: o.repository, branch: branch, folder: o.folder, own: o.own, orders: o.orders}
	return other, other.moved(ctx, tip)
}
