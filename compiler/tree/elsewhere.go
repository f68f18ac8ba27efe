package tree

import (
	"path"

	"github.com/kalypso-io/kalypso/internal/git"
)

// The bounds of a search for trees: folders below the root, and folders that are read.
const (
	mostDeep     = 6
	mostSearched = 5000
)

// Find returns the branch and the folder of a repository that have the tree of an environment, and its
// record; nil where none is found. It looks at the branches in the order of their names, and in each at
// the folders nearest to the root first.
func (r *Repository) Find(platform, environment string) (branch, folder string, record *Record, err error) {
	names, err := r.git.ShortNames()
	if err != nil {
		return "", "", nil, err
	}
	left := mostSearched
	for _, name := range names {
		b, err := r.Branch(name)
		if err != nil || b.root.IsZero() { // a tag, or a branch of a remote
			continue
		}
		if folder, record, err = b.find(platform, environment, &left); err != nil || record != nil {
			return name, folder, record, err
		}
	}
	return "", "", nil, nil
}

// find looks for the tree of an environment in a branch, in so many folders at most.
func (b *Branch) find(platform, environment string, left *int) (string, *Record, error) {
	type place struct {
		folder string
		deep   int
		id     git.Hash
	}
	for next := []place{{"", 0, b.root}}; len(next) > 0 && *left > 0; next = next[1:] {
		*left--
		at := next[0]
		entries, err := b.repository.git.Tree(at.id)
		if err != nil {
			return "", nil, err
		}
		for _, e := range entries {
			switch {
			case e.Mode != git.FolderMode || at.deep == mostDeep:
			case e.Name == path.Dir(RecordPath):
				record, _, err := b.Record(at.folder)
				if err != nil || record != nil && record.Platform == platform && record.Environment == environment {
					return at.folder, record, err
				}
			default:
				next = append(next, place{path.Join(at.folder, e.Name), at.deep + 1, e.ID})
			}
		}
	}
	return "", nil, nil
}
