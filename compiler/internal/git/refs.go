package git

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
)

// BranchRef returns the full name of a branch, or what is wrong with its name:
// the rules are those of git check-ref-format --branch.
func BranchRef(branch string) (string, error) {
	ref := "refs/heads/" + branch
	if branch == "" || branch == "HEAD" || strings.ContainsFunc(branch, func(r rune) bool { return r < ' ' || r == 0x7f }) ||
		plumbing.ReferenceName(ref).Validate() != nil {
		return "", fmt.Errorf("%q is not a name that git allows for a branch", branch)
	}
	return ref, nil
}

// Ref returns the id that a ref has; the zero Hash where there is no such ref.
// It fails for a symbolic ref.
func (r *Repository) Ref(ref string) (Hash, error) {
	value, err := r.loose(r.dir, ref)
	if err != nil {
		return Hash{}, err
	}
	if value == "" {
		return r.packed(ref)
	}
	if !plumbing.IsHash(value) {
		return Hash{}, fmt.Errorf("ref %s of %s is not an id, but %q", ref, r.dir, value)
	}
	return plumbing.NewHash(value), nil
}

// loose reads a ref's own file below dir; "" where there is none.
func (r *Repository) loose(dir, ref string) (string, error) {
	file := filepath.Join(dir, filepath.FromSlash(ref))
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return "", nil
	case err != nil:
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}

// packed looks a ref up in packed-refs.
func (r *Repository) packed(ref string) (Hash, error) {
	var found Hash
	err := r.eachPacked(func(id, name string) {
		if name == ref {
			found = plumbing.NewHash(id)
		}
	})
	return found, err
}

// eachPacked calls a function for each ref in packed-refs.
func (r *Repository) eachPacked(f func(id, ref string)) error {
	file, err := os.Open(filepath.Join(r.dir, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// The others are a header, and the objects that tags point to.
		if id, ref, ok := strings.Cut(lines.Text(), " "); ok && plumbing.IsHash(id) {
			f(id, ref)
		}
	}
	return lines.Err()
}

// headOf returns the ref that a HEAD stands for; "" for none.
func (r *Repository) headOf(dir string) (string, error) {
	// git once made HEAD a symbolic link, and still reads it.
	if target, err := os.Readlink(filepath.Join(dir, "HEAD")); err == nil {
		return filepath.ToSlash(target), nil
	}
	value, err := r.loose(dir, "HEAD")
	ref, symbolic := strings.CutPrefix(value, "ref: ")
	if !symbolic {
		return "", err
	}
	return strings.TrimSpace(ref), err
}

// CheckedOut returns the folder in whose work tree a ref is checked out; "" for
// none.
func (r *Repository) CheckedOut(ref string) (string, error) {
	if !r.bare {
		head, err := r.headOf(r.dir)
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
		head, err := r.headOf(own)
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
