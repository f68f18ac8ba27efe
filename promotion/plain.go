package promotion

import (
	"context"
	"errors"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
)

// notes is a GitOps repository as package plain wants it, which keeps statuses and
// approvals in it.
type notes struct {
	of *gitRepository
	// refs are as the session saw them, with what it pushed since; nil after somebody
	// else was faster.
	refs map[string]git.Hash
}

const (
	notesRefs    = "refs/notes/kalypso"
	approvalTags = "refs/tags/kalypso/"
)

// Refs returns the refs as the session sees them, once the notes and the tags are here.
// It asks anew only after somebody else was faster: a session decides
// by one state, and another one sees what was said meanwhile.
func (n *notes) Refs(ctx context.Context) (map[string]git.Hash, error) {
	if n.refs == nil {
		var err error
		if n.refs, err = n.of.remote.Refs(ctx); err != nil {
			return nil, err
		}
	}
	var said, others []git.Hash
	for ref, id := range n.refs {
		switch {
		case n.of.staging.Has(id):
		case strings.HasPrefix(ref, notesRefs):
			said = append(said, id)
		case strings.HasPrefix(ref, approvalTags) || ref == hydratorNotes:
			others = append(others, id)
		}
	}
	// All of the history says who said what, and all of its files are read.
	if len(said) > 0 {
		if err := n.of.remote.FetchFiles(ctx, said, mostDepth); err != nil {
			if errors.Is(err, git.ErrLostRace) {
				n.refs = nil
			}
			return nil, err
		}
	}
	if len(others) == 0 {
		return n.refs, nil
	}
	return n.refs, n.of.remote.Fetch(ctx, others, 1)
}

func (n *notes) Object(id git.Hash) (git.Object, error) { return n.of.staging.Object(id) }

func (n *notes) Push(ctx context.Context, ref string, old, new git.Hash, objects func(*git.PackWriter) error) error {
	pack := n.of.staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	if err := objects(pack); err != nil {
		return err
	}
	if err := pack.Finish(); err != nil {
		return err
	}
	err := n.of.remote.Push(ctx, []remote.Update{{Ref: ref, Old: old, New: new}}, packsOf(pack), false)
	if err != nil {
		n.refs = nil
		return err
	}
	n.refs[ref] = new
	return nil
}

// allowedSignersFile is where the platform says whose signatures count, in the format of
// ssh-keygen(1).
const allowedSignersFile = ".kalypso/allowed_signers"

// plainApprovals returns the signed tags that approve of a commit.
func plainApprovals(ctx context.Context, r *repository, environment string, commit git.Hash) ([]forge.Review, error) {
	f, ok := r.forge.(*plain.Forge)
	if !ok {
		return nil, nil
	}
	return f.Approvals(ctx, environment, commit.String())
}
