package promotion

import (
	"context"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/git"
	"github.com/kalypso-io/kalypso/compiler/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
)

// notes is a GitOps repository as package plain wants it, which keeps statuses and
// approvals in it.
type notes struct{ of *repository }

// Refs asks anew, and brings the notes and the tags.
func (n notes) Refs(ctx context.Context) (map[string]git.Hash, error) {
	refs, err := n.of.remote.Refs(ctx)
	if err != nil {
		return nil, err
	}
	var ids []git.Hash
	for ref, id := range refs {
		if (strings.HasPrefix(ref, "refs/notes/") || strings.HasPrefix(ref, "refs/tags/kalypso/")) && !n.of.staging.Has(id) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return refs, nil
	}
	return refs, n.of.remote.Fetch(ctx, ids, 1)
}

func (n notes) Object(id git.Hash) (git.Object, error) { return n.of.staging.Object(id) }

func (n notes) Push(ctx context.Context, ref string, old, new git.Hash, objects func(*git.PackWriter) error) error {
	pack := n.of.staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	if err := objects(pack); err != nil {
		return err
	}
	if err := pack.Finish(); err != nil {
		return err
	}
	return n.of.remote.Push(ctx, []remote.Update{{Ref: ref, Old: old, New: new}}, packsOf(pack), false)
}

// allowedSignersFile is where the platform says whose signatures count, in the format of
// ssh-keygen(1).
const allowedSignersFile = ".kalypso/allowed_signers"

// plainForge keeps what forges keep in the repository itself.
func (s *Session) plainForge(r *repository) (*plain.Forge, error) {
	o := plain.Options{By: s.committer(s.now), Now: s.request.Now}
	if s.request.Signer != nil {
		o.Signer = s.request.Signer.SSH
	}
	if s.platform != nil {
		o.AllowedSigners = s.platform.allowedSigners
	}
	return plain.New(notes{r}, o)
}

// plainApprovals returns the signed tags that approve of a commit.
func plainApprovals(ctx context.Context, r *repository, environment string, commit git.Hash) ([]forge.Review, error) {
	f, ok := r.forge.(*plain.Forge)
	if !ok {
		return nil, nil
	}
	return f.Approvals(ctx, environment, commit.String())
}
