package source

import (
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
)

// History is a branch of a platform's repository, at one of its commits. Only the main line
// counts: the commit, its first parent, the first parent of that commit, and so on.
type History struct {
	Repository *git.Repository
	Head       git.Hash
	Path       string // the platform's folder in the repository; "." for its root
}

// Base is a base commit: it changed something of the platform outside of environments/.
type Base struct {
	Commit  git.Hash
	When    time.Time // of the committer
	Author  string    // from outside
	Message string    // from outside
}

// Bases returns the base commits, newest first. It returns none if the head has no
// platform. An error ends the sequence.
func (h History) Bases() iter.Seq2[Base, error] {
	return func(yield func(Base, error) bool) {
		var oldest Base // with the state
		var state string
		for c, err := range h.Repository.Mainline(h.Head) {
			if err != nil {
				yield(Base{}, err)
				return
			}
			id, err := h.base(c.Tree)
			if err != nil {
				yield(Base{}, err)
				return
			}
			if state != "" && id != state && !yield(oldest, nil) || id == "" {
				return
			}
			oldest, state = Base{Commit: c.ID, When: c.Committer.When, Author: c.Author.Name,
				Message: c.Message}, id
		}
		if state != "" {
			yield(oldest, nil)
		}
	}
}

// Base returns the newest base commit of the head. It returns the zero Base if the head has
// no platform.
func (h History) Base() (Base, error) {
	for b, err := range h.Bases() {
		return b, err
	}
	return Base{}, nil
}

// base identifies the platform's files in a tree outside of environments/; "" if there
// is no platform.
func (h History) base(root git.Hash) (string, error) {
	e, found, err := h.Repository.Find(root, h.Path)
	if err != nil || !found || e.Mode != git.FolderMode {
		return "", err
	}
	entries, err := h.Repository.Tree(e.ID)
	if err != nil {
		return "", err
	}
	entries = slices.DeleteFunc(slices.Clone(entries),
		func(e git.Entry) bool { return e.Name == Environments })
	return git.ID(git.TreeKind, git.EncodeTree(entries)).String(), nil
}

// Edit is a file that a commit changed, with its blobs before and after, or the zero
// Hash.
type Edit struct {
	Path    string
	Was, Is git.Hash
}

// Edits returns a commit's changes of the platform outside of environments/ since its first parent,
// sorted by path; nil for the first commit of a history.
func (h History) Edits(commit git.Hash) (edits []Edit, err error) {
	c, err := h.Repository.Commit(commit)
	if err != nil || len(c.Parents) == 0 {
		return nil, err
	}
	var roots [2]git.Entry
	for i, id := range []git.Hash{c.Parents[0], commit} {
		tree, err := h.Repository.CommitTree(id)
		if err != nil {
			return nil, err
		}
		e, found, err := h.Repository.Find(tree, h.Path)
		if err != nil {
			return nil, err
		}
		if found {
			roots[i] = e
		}
	}
	err = h.compare(".", roots[0], roots[1], &edits)
	slices.SortFunc(edits, func(a, b Edit) int { return strings.Compare(a.Path, b.Path) })
	return edits, err
}

// compare adds the changed files below a path to edits. was is zero for an added entry, is for a
// removed one.
func (h History) compare(at string, was, is git.Entry, edits *[]Edit) error {
	if was.ID == is.ID {
		return nil
	}
	names := map[string][2]git.Entry{}
	for i, of := range []git.Entry{was, is} {
		if of.Mode != git.FolderMode || of.ID.IsZero() {
			continue
		}
		entries, err := h.Repository.Tree(of.ID)
		if err != nil {
			return err
		}
		for _, e := range entries {
			both := names[e.Name]
			both[i] = e
			names[e.Name] = both
		}
	}
	for name, both := range names {
		if at == "." && name == Environments {
			continue
		}
		if err := h.compare(path.Join(at, name), both[0], both[1], edits); err != nil {
			return err
		}
	}
	file := func(e git.Entry) git.Hash {
		if e.Mode == git.FolderMode {
			return git.Hash{}
		}
		return e.ID
	}
	if a, b := file(was), file(is); a != b {
		*edits = append(*edits, Edit{at, a, b})
	}
	return nil
}

// Changes returns the commits that changed the content of a path, newest first. An error
// ends the sequence.
func (h History) Changes(at string) iter.Seq2[Base, error] {
	return func(yield func(Base, error) bool) {
		var newer Base // the oldest commit so far with the same content at the path
		var id git.Hash
		for c, err := range h.Repository.Mainline(h.Head) {
			if err != nil {
				yield(Base{}, err)
				return
			}
			e, _, err := h.Repository.Find(c.Tree, at)
			if err != nil {
				yield(Base{}, err)
				return
			}
			if !newer.Commit.IsZero() && e.ID != id && !yield(newer, nil) {
				return
			}
			newer, id = Base{Commit: c.ID, When: c.Committer.When, Author: c.Author.Name,
				Message: c.Message}, e.ID
		}
		if !id.IsZero() {
			yield(newer, nil)
		}
	}
}

// Newest returns the newest commit that changed the content of a path. It returns the zero
// hash if nothing ever existed there.
func (h History) Newest(at string) (git.Hash, error) {
	for c, err := range h.Changes(at) {
		return c.Commit, err
	}
	return git.Hash{}, nil
}

// OwnPath returns the path of an environment's own files if they are not in a branch of
// their own.
func (h History) OwnPath(environment string) string {
	return path.Join(h.Path, Environments, environment)
}
