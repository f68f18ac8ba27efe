package git

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// shortRef returns the id of the first ref that a name can abbreviate, in the order of
// gitrevisions(7). As git does, it skips refs that cannot be read, such as folders of
// others.
func (r *refStore) shortRef(name string) (Hash, bool) {
	for _, rule := range plumbing.RefRevParseRules {
		ref := fmt.Sprintf(rule, name)
		if !isRef(ref) {
			continue
		}
		if id, err := r.target(ref); err == nil && !id.IsZero() {
			return id, true
		}
	}
	return Hash{}, false
}

var rootRef = lazyregexp.New(`^[A-Z_]*HEAD$`)

// isRef reports whether a full name can be a ref's: not every file of the repository is
// one.
func isRef(name string) bool {
	return rootRef.MatchString(name) || strings.HasPrefix(name, "refs/") &&
		plumbing.ReferenceName(name).Validate() == nil
}

// ShortNames returns the names of branches, tags and remotes' branches without refs/heads and so
// on, sorted.
func (r *Repository) ShortNames() ([]string, error) { return r.refs.shortNames() }

// shortNames returns the names of branches, tags and remotes' branches without
// refs/heads and so on, sorted.
func (r *refStore) shortNames() ([]string, error) {
	names := map[string]bool{}
	add := func(ref string) {
		if n := plumbing.ReferenceName(ref); (n.IsBranch() || n.IsTag() || n.IsRemote()) && isRef(ref) {
			names[n.Short()] = true
		}
	}
	if err := r.eachPacked(func(_, ref string) { add(ref) }); err != nil {
		return nil, err
	}
	err := filepath.WalkDir(filepath.Join(r.dir, "refs"),
		func(file string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // git removes empty folders of refs
			}
			if err != nil || e.IsDir() {
				return err
			}
			ref, err := filepath.Rel(r.dir, file)
			add(filepath.ToSlash(ref))
			return err
		})
	return slices.Sorted(maps.Keys(names)), err
}
