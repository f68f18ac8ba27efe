package ledger

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
)

// Repository is a git repository at the time of its opening. Its refs are the refs of that time,
// with later pushes by this process. It is for one goroutine.
type Repository struct {
	URL     string // without credentials
	Remote  *remote.Remote
	Refs    map[string]git.Hash
	Staging *git.Repository
	Names   Names
	ordered []*Order // the orders; nil before they are read
}

// Names maps earlier names of environments to their present names. Records about an earlier name
// apply to the environment with the present name.
type Names map[string]string

// currentName returns the name that something with the name of an environment, or of a stage, has
// now.
func (n Names) currentName(name, separators string) string {
	end := len(name)
	if i := strings.IndexAny(name, separators); i >= 0 {
		end = i
	}
	if now, renamed := n[name[:end]]; renamed {
		return now + name[end:]
	}
	return name
}

// Author makes commits, and signs them.
type Author struct {
	git.Signature
	Sign func([]byte) (string, error) // may be nil
}

// MaxDepth is the largest number of commits of a history to read.
const MaxDepth = 20_000

// WithoutFiles makes a commit that has no files, with after as its parent. If after is the zero
// Hash, the commit has no parent. The caller has to push packs with it.
func (r *Repository) WithoutFiles(by Author, text string, after git.Hash) (id git.Hash,
	packs []string, err error) {
	pack := r.Staging.NewPack()
	defer pack.Abort() //nolint:errcheck // nothing but a temporary file is left
	empty, err := pack.Add(git.TreeKind, nil)
	if err != nil {
		return id, nil, err
	}
	c := git.Commit{Tree: empty, Author: by.Signature, Committer: by.Signature, Message: text}
	if !after.IsZero() {
		c.Parents = []git.Hash{after}
	}
	content, err := c.Signed(by.Sign)
	if err != nil {
		return id, nil, err
	}
	if id, err = pack.Add(git.CommitKind, content); err != nil {
		return id, nil, err
	}
	err = pack.Finish()
	return id, Packs(pack), err
}

// Packs returns the files of a finished pack. A pack without objects has no files.
func Packs(pack *git.PackWriter) []string {
	if pack.Path() == "" {
		return nil
	}
	return []string{pack.Path()}
}

// Notes is a repository in the form for package plain, which keeps statuses and approvals in git
// notes and tags. It is for one goroutine.
type Notes struct {
	of *Repository
	// refs are the refs at the time of opening, with later pushes by this process; nil after a
	// push has failed.
	refs map[string]git.Hash
}

// NewNotes returns the notes of a repository.
func NewNotes(r *Repository) *Notes { return &Notes{of: r, refs: maps.Clone(r.Refs)} }

// HydratorNotes are the notes in which GitOps Promoter finds the source of a tree.
const HydratorNotes = "refs/notes/hydrator.metadata"

const (
	notesRefs    = "refs/notes/kalypso"
	approvalTags = "refs/tags/kalypso/"
)

// Refs returns the refs at the time when the repository was opened, with later pushes by this
// process. It first fetches the objects of notes and tags. It asks the server again only after a
// push has failed, because a session decides by one state.
func (n *Notes) Refs(ctx context.Context) (map[string]git.Hash, error) {
	if n.refs == nil {
		var err error
		if n.refs, err = n.of.Remote.Refs(ctx); err != nil {
			return nil, err
		}
	}
	var statuses, others []git.Hash
	for ref, id := range n.refs {
		switch {
		case n.of.Staging.Has(id):
		case strings.HasPrefix(ref, notesRefs):
			statuses = append(statuses, id)
		case strings.HasPrefix(ref, approvalTags) || ref == HydratorNotes:
			others = append(others, id)
		}
	}
	// All of the history is needed, as it has the author of each line.
	if len(statuses) > 0 {
		if err := n.of.Remote.FetchFiles(ctx, statuses, MaxDepth); err != nil {
			if errors.Is(err, git.ErrLostRace) {
				n.refs = nil
			}
			return nil, err
		}
	}
	if len(others) == 0 {
		return n.refs, nil
	}
	return n.refs, n.of.Remote.Fetch(ctx, others, 1)
}

// Object returns an object of the repository.
func (n *Notes) Object(id git.Hash) (git.Object, error) { return n.of.Staging.Object(id) }

// Push moves a ref to a new commit, with objects that a function adds to the pack.
func (n *Notes) Push(ctx context.Context, ref string, old, new git.Hash,
	objects func(*git.PackWriter) error) error {
	pack := n.of.Staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	if err := objects(pack); err != nil {
		return err
	}
	if err := pack.Finish(); err != nil {
		return err
	}
	err := n.of.Remote.Push(ctx, []remote.Update{{Ref: ref, Old: old, New: new}}, Packs(pack), false)
	if err != nil {
		n.refs = nil
		return err
	}
	n.refs[ref] = new
	return nil
}
