package source

import (
	"path"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/git"
)

// History is a branch of a platform's repository, at one of its commits. What counts
// is the main line: the commit, its first parent, the first parent of that, and so on.
type History struct {
	Repository *git.Repository
	Head       git.Hash
	Path       string // the platform's folder in the repository; "." for its root
}

// Base is a base commit: one that changed something of the platform outside of
// environments/.
type Base struct {
	Commit git.Hash
	// Until is the newest commit of the main line that has the same base.
	Until   git.Hash
	When    time.Time // of the committer
	Author  string    // from outside
	Message string    // from outside
}

// Bases returns the base commits, newest first: as many as there are among the newest
// most commits. There are none where the head has no platform.
func (h History) Bases(most int) ([]Base, error) {
	var out []Base
	var pending *Base
	var state string
	seen := 0
	for c, err := range h.Repository.Mainline(h.Head) {
		if err != nil {
			return nil, err
		}
		id, err := h.base(c.Tree)
		if err != nil {
			return nil, err
		}
		if pending != nil && id != state {
			out, pending = append(out, *pending), nil
		}
		if seen++; id == "" || seen > most {
			return out, nil
		}
		until := c.ID
		if pending != nil {
			until = pending.Until
		}
		pending = &Base{Commit: c.ID, Until: until, When: c.Committer.When, Author: c.Author.Name, Message: c.Message}
		state = id
	}
	if pending != nil {
		out = append(out, *pending)
	}
	return out, nil
}

// base identifies what a tree has of the platform outside of environments/; "" where
// there is no platform.
func (h History) base(root git.Hash) (string, error) {
	e, found, err := h.Repository.Find(root, h.Path)
	if err != nil || !found || e.Mode != git.FolderMode {
		return "", err
	}
	entries, err := h.Repository.Tree(e.ID)
	if err != nil {
		return "", err
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e git.Entry) bool { return e.Name == Environments })
	return git.ID(git.TreeKind, git.EncodeTree(entries)).String(), nil
}

// Newest returns the newest commit that changed what is at a path; zero where nothing
// ever was there.
func (h History) Newest(at string) (git.Hash, error) {
	var last, lastID git.Hash
	for c, err := range h.Repository.Mainline(h.Head) {
		if err != nil {
			return git.Hash{}, err
		}
		e, _, err := h.Repository.Find(c.Tree, at)
		if err != nil {
			return git.Hash{}, err
		}
		if !last.IsZero() && e.ID != lastID {
			return last, nil
		}
		last, lastID = c.ID, e.ID
	}
	if lastID.IsZero() {
		return git.Hash{}, nil
	}
	return last, nil
}

// OwnPath is where an environment's own files are, where they are not in a branch of
// their own.
func (h History) OwnPath(environment string) string {
	return path.Join(h.Path, Environments, environment)
}
