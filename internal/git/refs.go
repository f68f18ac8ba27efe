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

	"github.com/kalypso-io/kalypso/internal/regular"
)

// BranchRef returns the full name of a branch, or an error by the rules of git
// check-ref-format --branch.
func BranchRef(branch string) (string, error) {
	ref := "refs/heads/" + branch
	if branch == "" || branch == "HEAD" ||
		strings.ContainsFunc(branch, func(r rune) bool { return r < ' ' || r == 0x7f }) ||
		plumbing.ReferenceName(ref).Validate() != nil {
		return "", fmt.Errorf("%q is not a name that git allows for a branch", branch)
	}
	return ref, nil
}

// refStore reads the refs of a repository, as its opened work tree sees them.
type refStore struct {
	dir string // shared by all work trees
	own string // of the opened work tree, with HEAD; dir if it has no folder of its own
}

// Ref returns the id of a ref; the zero Hash if there is no such ref. It fails for a
// symbolic ref.
func (r *Repository) Ref(ref string) (Hash, error) { return r.refs.id(ref) }

func (r *refStore) id(ref string) (Hash, error) {
	value, err := r.loose(r.dir, ref)
	if err != nil {
		return Hash{}, err
	}
	if value == "" {
		return r.packed(ref)
	}
	id, ok := leadingID(value)
	if !ok {
		return Hash{}, fmt.Errorf("ref %s of %s is not an id, but %q", ref, r.dir, value)
	}
	return id, nil
}

// maxSymbolic is git's limit for chains of symbolic refs.
const maxSymbolic = 5

// target returns the id of a ref, as seen by the opened work tree, with symbolic refs
// followed, or the zero Hash.
func (r *refStore) target(ref string) (Hash, error) {
	for range maxSymbolic {
		value, err := r.loose(r.dirOf(ref), ref)
		if err != nil {
			return Hash{}, err
		}
		if value == "" {
			return r.packed(ref)
		}
		next, isSymbolic := symbolic(value)
		if !isSymbolic || !isRef(next) {
			id, ok := leadingID(value)
			if !ok {
				return Hash{}, fmt.Errorf("ref %s is not an id, but %q", ref, value)
			}
			return id, nil
		}
		ref = next
	}
	return Hash{}, fmt.Errorf("ref %s stands for too many others", ref)
}

// dirOf returns the folder with a ref's own file: some refs belong to the work tree
// (https://git-scm.com/docs/git-worktree#_refs).
func (r *refStore) dirOf(ref string) string {
	for _, folder := range []string{"refs/bisect/", "refs/worktree/", "refs/rewritten/"} {
		if strings.HasPrefix(ref, folder) {
			return r.own
		}
	}
	if strings.HasPrefix(ref, "refs/") {
		return r.dir
	}
	return r.own
}

// loose reads a ref's own file below dir, or "".
func (r *refStore) loose(dir, ref string) (string, error) {
	file := filepath.Join(dir, filepath.FromSlash(ref))
	// Old versions of git made HEAD a symbolic link.
	if target, err := os.Readlink(file); err == nil &&
		strings.HasPrefix(filepath.ToSlash(target), "refs/") {
		return symbolicPrefix + filepath.ToSlash(target), nil
	}
	data, err := regular.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.EISDIR):
		return "", nil
	case err != nil:
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}

const symbolicPrefix = "ref:"

// symbolic returns the target of a symbolic ref's value.
func symbolic(value string) (string, bool) {
	ref, found := strings.CutPrefix(value, symbolicPrefix)
	return strings.TrimSpace(ref), found
}

// leadingID returns the id at the beginning of a value: FETCH_HEAD has more after it.
func leadingID(value string) (Hash, bool) {
	fields := strings.Fields(value)
	if len(fields) == 0 || !plumbing.IsHash(fields[0]) {
		return Hash{}, false
	}
	return plumbing.NewHash(fields[0]), true
}

// packed looks a ref up in packed-refs.
func (r *refStore) packed(ref string) (Hash, error) {
	var found Hash
	err := r.eachPacked(func(id, name string) {
		if name == ref {
			found = plumbing.NewHash(id)
		}
	})
	return found, err
}

// eachPacked calls a function for each ref in packed-refs.
func (r *refStore) eachPacked(f func(id, ref string)) error {
	file, err := regular.Open(filepath.Join(r.dir, "packed-refs"))
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
