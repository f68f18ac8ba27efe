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

// short is the number of digits of a digest in a tag's name.
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

// Approvals returns the approvals of a digest for an environment: the newest approval of each
// person, sorted by name. It ignores a tag unless the tag meets all conditions:
//
//   - It is annotated, and is a tag of a commit.
//   - It contains its own name, so that a tag for another environment cannot be used.
//   - It has an SSH signature for the namespace git, as git verify-tag checks it, by a key that was
//     allowed at the time of the tag.
//
// The name has only a part of the digest: Commit is the tagged commit, and callers must compare
// it with the one to promote.
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
	_, at, err := tag.person("tagger")
	if err != nil {
		return forge.Review{}, false
	}
	key, err := tag.key()
	if err != nil {
		return forge.Review{}, false
	}
	by, ok := f.signers.principal(key, at)
	return forge.Review{By: by, Approved: true, Commit: plumbing.NewHash(commit), At: at}, ok
}

// pendingStatuses has the statuses that wait for a push: the commits of the notes that add them, on
// top of the commit of the ref.
type pendingStatuses struct {
	statuses []heldStatus // in their order, to add them again
	objects  map[git.Hash]git.Object
	old, tip git.Hash
}

type heldStatus struct {
	commit git.Hash
	status forge.Status
}

// Hold makes SetStatus collect statuses, until Flush pushes all of them at once.
func (f *Forge) Hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held = newHeld()
	}
}

func newHeld() *pendingStatuses { return &pendingStatuses{objects: map[git.Hash]git.Object{}} }

// Flush pushes the held statuses, and ends Hold. After a lost race, it adds the statuses again to
// the new notes. After five lost races it returns git.ErrLostRace, and has pushed nothing.
func (f *Forge) Flush(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.held = nil }()
	if f.held == nil || len(f.held.statuses) == 0 {
		return nil
	}
	statuses, late := f.held.statuses, false
	err := f.retry(ctx, func() error {
		if late {
			f.held = newHeld()
			for _, s := range statuses {
				if err := f.setStatus(ctx, s.commit, s.status); err != nil {
					return err
				}
			}
		}
		late = true
		if f.held.tip == f.held.old {
			return nil
		}
		return f.send(ctx, notesRef, f.held.old, f.held.tip, f.held.objects)
	})
	if err != nil {
		return fmt.Errorf("set the status %s of %s: %w", statuses[0].status.Name,
			git.Short(statuses[0].commit), err)
	}
	return nil
}

// tip returns the commit of the notes: the commit of the held notes, or the commit of the ref.
func (f *Forge) tip(ctx context.Context, ref string) (git.Hash, error) {
	refs, err := f.repository.Refs(ctx)
	if err != nil || f.held == nil || f.held.tip.IsZero() || ref != notesRef {
		return refs[ref], err
	}
	return f.held.tip, nil
}

// Object implements objects.
func (f *Forge) Object(id git.Hash) (git.Object, error) {
	if f.held != nil {
		if o, ok := f.held.objects[id]; ok {
			return o, nil
		}
	}
	return f.repository.Object(id)
}
