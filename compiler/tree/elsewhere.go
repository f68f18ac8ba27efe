package tree

import (
	"path"
	"slices"

	"github.com/kalypso-io/kalypso/internal/git"
)

// The bounds of a search for trees: folders below the root, and folders that are read in a branch.
const (
	mostDeep     = 6
	mostSearched = 5000
)

// Find returns the branch and the folder of a repository that have the tree of an environment, and its
// record; nil where none is found. It looks at one branch first, then at the others in the order of their
// names, and in each at the folders nearest to the root first. In the others, a tree counts that says
// that it is kept there: a branch may be a copy of another one.
func (r *Repository) Find(platform, environment, first string) (branch, folder string, record *Record, err error) {
	names, err := r.git.ShortNames()
	if err != nil {
		return "", "", nil, err
	}
	for _, name := range append([]string{first}, names...) {
		b, err := r.Branch(name)
		if err != nil || b.root.IsZero() { // a tag, or a branch of a remote
			continue
		}
		folder, record, err = b.find(platform, environment, func(record *Record) bool {
			return name == first || record.Git != nil && record.Git.Branch == name
		})
		if err != nil || record != nil {
			return name, folder, record, err
		}
	}
	return "", "", nil, nil
}

// find looks for the tree of an environment in a branch. is may refuse a record. A tree cannot be inside
// another tree.
func (b *Branch) find(platform, environment string, is func(*Record) bool) (string, *Record, error) {
	type place struct {
		folder string
		deep   int
		id     git.Hash
	}
	next := []place{{"", 0, b.root}}
	for read := 0; read < len(next) && read < mostSearched; read++ {
		at := next[read]
		entries, err := b.repository.git.Tree(at.id)
		if err != nil {
			return "", nil, err
		}
		if slices.ContainsFunc(entries, func(e git.Entry) bool { return e.Name == path.Dir(RecordPath) && e.Mode == git.FolderMode }) {
			record, _, err := b.Record(at.folder)
			if err != nil || record != nil && record.Platform == platform && record.Environment == environment && is(record) {
				return at.folder, record, err
			}
			continue
		}
		for _, e := range entries {
			if e.Mode == git.FolderMode && at.deep < mostDeep {
				next = append(next, place{path.Join(at.folder, e.Name), at.deep + 1, e.ID})
			}
		}
	}
	return "", nil, nil
}
