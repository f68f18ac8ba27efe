package tree

import (
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
)

// treeEdit is a change to a git tree: what is at a path from then on. The name in its
// entry is not used. A nil entry removes the file that is there, but no folder. A
// folder is given whole, by its id; the zero Hash removes it.
type treeEdit struct {
	path  string
	entry *git.Entry
}

// treeEditor applies changes to trees. Of the trees around the changed paths the new
// ones are written, and nothing else is read.
type treeEditor struct {
	repository interface {
		Tree(git.Hash) ([]git.Entry, error)
	}
	// add stores an object, and returns its id.
	add func(git.Kind, []byte) (git.Hash, error)
}

// apply returns the tree that a tree is after the changes, which may be in any
// order, each path once. The zero Hash is a tree without entries, which git does
// not store in others: a folder that gets empty is gone. A file makes way for a
// folder that is written into, and a folder for a file.
func (g *treeEditor) apply(base git.Hash, changes []treeEdit) (git.Hash, error) {
	if len(changes) == 0 {
		return base, nil
	}
	var entries []git.Entry
	if !base.IsZero() {
		var err error
		if entries, err = g.repository.Tree(base); err != nil {
			return git.Hash{}, err
		}
	}
	changed := byName(changes)
	next := make([]git.Entry, 0, len(entries)+len(changed))
	before := map[string]*git.Entry{}
	for i, e := range entries {
		if changed[e.Name] == nil {
			next = append(next, e)
		} else {
			before[e.Name] = &entries[i]
		}
	}
	for name, c := range changed {
		e, err := g.at(before[name], c)
		if err != nil {
			return git.Hash{}, err
		}
		if e != nil {
			next = append(next, git.Entry{Name: name, Mode: e.Mode, ID: e.ID})
		}
	}
	if len(next) == 0 {
		return git.Hash{}, nil
	}
	content := git.EncodeTree(next)
	if id := git.ID(git.TreeKind, content); id == base {
		return base, nil
	}
	return g.add(git.TreeKind, content)
}

// at returns the entry of a name after the changes; nil for none, as before may
// be.
func (g *treeEditor) at(before *git.Entry, c *nameChanges) (*git.Entry, error) {
	if c.own != nil && c.own.entry != nil {
		if c.own.entry.ID.IsZero() {
			return nil, nil
		}
		return c.own.entry, nil
	}
	isFolder := before != nil && before.Mode == git.FolderMode
	var folder git.Hash
	if isFolder {
		folder = before.ID
	}
	folder, err := g.apply(folder, c.below)
	if err != nil {
		return nil, err
	}
	switch {
	case !folder.IsZero():
		return &git.Entry{Mode: git.FolderMode, ID: folder}, nil
	case isFolder || c.own != nil:
		return nil, nil
	}
	return before, nil
}

// nameChanges are the changes to one entry of a tree.
type nameChanges struct {
	own   *treeEdit
	below []treeEdit // with paths below it
}

// byName sorts changes out by the first elements of their paths.
func byName(changes []treeEdit) map[string]*nameChanges {
	all := map[string]*nameChanges{}
	for i := range changes {
		name, rest, deeper := strings.Cut(changes[i].path, "/")
		c := all[name]
		if c == nil {
			c = &nameChanges{}
			all[name] = c
		}
		if deeper {
			c.below = append(c.below, treeEdit{rest, changes[i].entry})
		} else {
			c.own = &changes[i]
		}
	}
	return all
}
