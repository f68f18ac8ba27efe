package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// headOf returns the target of the HEAD in a git folder; "" for a detached one.
func (r *refStore) headOf(dir string) (string, error) {
	value, err := r.loose(dir, "HEAD")
	if ref, found := symbolic(value); found {
		return ref, nil
	}
	return "", err
}

// CheckedOut returns the folder in whose work tree a ref is checked out, or
// "".
func (r *Repository) CheckedOut(ref string) (string, error) {
	if !r.bare {
		head, err := r.refs.headOf(r.dir)
		if err != nil {
			return "", err
		}
		if head == ref {
			return strings.TrimSuffix(r.dir, string(filepath.Separator)+".git"), nil
		}
	}
	linked := filepath.Join(r.dir, "worktrees")
	entries, err := os.ReadDir(linked)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		own := filepath.Join(linked, e.Name())
		head, err := r.refs.headOf(own)
		if err != nil {
			return "", err
		}
		if head != ref {
			continue
		}
		if dot, err := pointer(filepath.Join(own, "gitdir"), ""); err == nil {
			own = filepath.Dir(dot)
		}
		return own, nil
	}
	return "", nil
}
