package tree

import (
	"cmp"
	"errors"
	"iter"
	"path"
	"slices"

	"github.com/kalypso-io/kalypso/internal/git"
)

// The limits of a search for trees: folders below the root, and folders that are read in a branch.
const (
	maxDepth    = 6
	maxSearched = 5000
)

// Find returns the branch, the folder and the record of an environment's tree in a repository; nil
// if there is no tree. It searches one branch first, then the others in the order of their names,
// and in each branch the folders nearest to the root first. In the other branches, it accepts a
// tree only if its record names that branch, because a branch may be a copy of another one.
func (r *Repository) Find(platform, environment, first string) (branch, folder string,
	record *Record, err error) {
	names, err := r.git.ShortNames()
	if err != nil {
		return "", "", nil, err
	}
	for _, name := range append([]string{first}, names...) {
		b, err := r.Branch(name)
		if err != nil || b.root.IsZero() { // a tag, or a branch of a remote
			continue
		}
		err = b.trees(func(at string, _ git.Hash) (bool, error) {
			r, _, err := b.Record(at)
			if err == nil && r != nil && r.Platform == platform && r.Environment == environment &&
				(name == first || r.Git != nil && r.Git.Branch == name) {
				folder, record = at, r
			}
			return record == nil, err
		})
		if err != nil || record != nil {
			return name, folder, record, err
		}
	}
	return "", "", nil, nil
}

// Newer returns the folder and the record of a newer tree of an environment in the branch. Newer
// means written after the tree in the folder than, and the record must name its own folder. Newer
// returns nil if there is no such tree. history has the branch's commits, newest first. ready is
// called with the ids of records before they are read. Both may be nil.
func (b *Branch) Newer(environment, than string, history iter.Seq2[git.Link, error],
	ready func(records []git.Hash) error) (folder string, newer *Record, err error) {
	if history == nil {
		history = b.repository.git.Mainline(b.tip)
	}
	var folders []string
	var files []git.Hash
	if err := b.trees(func(at string, file git.Hash) (bool, error) {
		if at != than {
			folders, files = append(folders, at), append(files, file)
		}
		return true, nil
	}); err != nil || len(folders) == 0 {
		return "", nil, err
	}
	if ready != nil {
		if err := ready(files); err != nil {
			return "", nil, err
		}
	}
	for _, at := range folders {
		record, _, err := b.Record(at)
		if err != nil {
			return "", nil, err
		}
		if record == nil || record.Environment != environment || record.Git == nil ||
			path.Clean(record.Git.Path) != path.Clean(cmp.Or(at, ".")) {
			continue
		}
		if last, err := b.lastWritten(history, than, at); err != nil || last == at {
			return at, record, err
		}
	}
	return "", nil, nil
}

// lastWritten returns the folder, out of two, whose record was written last. It returns "" if one
// commit wrote both, or if the history here does not show it.
func (b *Branch) lastWritten(history iter.Seq2[git.Link, error], folders ...string) (string,
	error) {
	var is [2]git.Hash
	for c, err := range history {
		if errors.As(err, new(*git.MissingError)) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		var was [2]git.Hash
		for i, folder := range folders {
			entry, _, err := b.repository.git.Find(c.Tree, path.Join(folder, RecordPath))
			if err != nil {
				return "", err
			}
			was[i] = entry.ID
		}
		switch {
		case is == [2]git.Hash{}:
			is = was
		case is[0] != was[0] && is[1] != was[1]:
			return "", nil
		case is[0] != was[0]:
			return folders[0], nil
		case is[1] != was[1]:
			return folders[1], nil
		}
	}
	return "", nil
}

// trees calls f with the folders of the branch that have a tree, nearest to the root first, and
// with the ids of their records, until f returns false. A tree cannot be inside another tree.
func (b *Branch) trees(f func(folder string, record git.Hash) (bool, error)) error {
	type candidate struct {
		folder string
		depth  int
		id     git.Hash
	}
	next := []candidate{{"", 0, b.root}}
	for read := 0; read < len(next) && read < maxSearched; read++ {
		at := next[read]
		entries, err := b.repository.git.Tree(at.id)
		if err != nil {
			return err
		}
		own := slices.IndexFunc(entries,
			func(e git.Entry) bool { return e.Name == path.Dir(RecordPath) && e.Mode == git.FolderMode })
		if own >= 0 {
			record, _, err := b.repository.git.Find(entries[own].ID, path.Base(RecordPath))
			if err != nil {
				return err
			}
			if more, err := f(at.folder, record.ID); err != nil || !more {
				return err
			}
			if at.folder != "" {
				continue
			}
			at.depth = maxDepth - 1
		}
		for _, e := range entries {
			if e.Mode == git.FolderMode && at.depth < maxDepth {
				next = append(next, candidate{path.Join(at.folder, e.Name), at.depth + 1, e.ID})
			}
		}
	}
	return nil
}
