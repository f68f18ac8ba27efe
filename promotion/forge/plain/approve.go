package plain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// short is how many digits of a digest are in a tag's name.
const short = 12

var hexadecimal = lazyregexp.New(`^[0-9a-f]{12,}$`)

// ApprovalTag returns the name of the tag that approves a digest for an environment: `git
// tag -s NAME COMMIT` makes it, with gpg.format=ssh. A tag is of one person, so further
// ones need names of their own: NAME-SUFFIX counts as well.
func ApprovalTag(environment, digest string) (string, error) {
	_, hex, ok := strings.Cut(digest, ":")
	if !ok {
		hex = digest
	}
	if !hexadecimal.MatchString(hex) {
		return "", fmt.Errorf("%q is not a digest", digest)
	}
	name := "kalypso/approve/" + environment + "/" + hex[:short]
	if _, err := git.BranchRef(name); err != nil {
		return "", fmt.Errorf("the environment %q: %w", environment, err)
	}
	return name, nil
}

// Approvals returns who approves a digest for an environment: the newest approval of each,
// sorted by name. A tag counts if it is annotated, is of a commit, contains its own name,
// so that one for another environment cannot be used, and has an SSH signature for the
// namespace git by a key that was allowed at the time of the tag, as git verify-tag checks
// it. Others are left out.
//
// The name has only a part of the digest: Commit is the tagged commit, and callers must
// compare it with the one to promote.
func (f *Forge) Approvals(ctx context.Context, environment, digest string) ([]forge.Review, error) {
	name, err := ApprovalTag(environment, digest)
	if err != nil {
		return nil, err
	}
	refs, err := f.repository.Refs(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for approvals of %s: %w", environment, err)
	}
	by := map[string]forge.Review{}
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		tag, ok := strings.CutPrefix(ref, "refs/tags/")
		if !ok || tag != name && !strings.HasPrefix(tag, name+"-") {
			continue
		}
		o, err := f.repository.Object(refs[ref])
		if err != nil {
			return nil, fmt.Errorf("read the approval %s: %w", tag, err)
		}
		if review, ok := f.approval(o, tag); ok && !by[review.By].At.After(review.At) {
			by[review.By] = review
		}
	}
	return forge.ByReviewer(by), nil
}

// approval returns the approval of a tag, if it counts.
func (f *Forge) approval(o git.Object, name string) (forge.Review, bool) {
	if o.Kind != git.TagKind {
		return forge.Review{}, false
	}
	tag := parseTag(o.Data)
	commit := tag.header("object")
	if tag.header("tag") != name || tag.header("type") != "commit" || !plumbing.IsHash(commit) {
		return forge.Review{}, false
	}
	_, at, err := tag.by("tagger")
	if err != nil {
		return forge.Review{}, false
	}
	key, err := tag.key()
	if err != nil {
		return forge.Review{}, false
	}
	by, ok := f.signers.of(key, at)
	return forge.Review{By: by, Approved: true, Commit: plumbing.NewHash(commit), At: at}, ok
}
