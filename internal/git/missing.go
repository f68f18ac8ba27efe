package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// MissingError is the error for an object that is not in the repository.
type MissingError struct {
	ID     Hash
	Dir    string // the repository's
	Reason Reason
}

// Reason is why an object is not in a repository.
type Reason uint8

// The reasons: damage, or a shallow or partial clone.
const (
	Damaged Reason = iota
	Shallow
	Partial
)

func (e *MissingError) Error() string {
	if e.Reason == Damaged {
		return fmt.Sprintf("object %s is missing in the git repository %s; git fsck says more", e.ID, e.Dir)
	}
	return e.Of(fmt.Sprintf("object %s of %s", e.ID, e.Dir))
}

// Of returns the message that what is missing, given that it is the object or needs it.
func (e *MissingError) Of(what string) string {
	switch e.Reason {
	case Shallow:
		return what + " is not in the shallow clone; run git fetch --unshallow, or let CI clone the whole history"
	case Partial:
		return what + " is not in the partial clone; let git fetch it (git worktree add --detach DIR REVISION does)"
	}
	return "an object of " + what + " is missing in the git repository; git fsck says more"
}

// missing returns the error for an object that is not found.
func (r *Repository) missing(id Hash) error {
	e := &MissingError{ID: id, Dir: r.dir}
	switch {
	case r.isShallow():
		e.Reason = Shallow
	case r.partial:
		e.Reason = Partial
	}
	return e
}

// isShallow reports whether the history is cut. Fetches change that.
func (r *Repository) isShallow() bool {
	info, err := os.Stat(filepath.Join(r.dir, "shallow"))
	return err == nil && info.Size() > 0
}

// Shallow returns the commits at which history is cut: their parents are missing.
func (r *Repository) Shallow() ([]Hash, error) {
	data, err := os.ReadFile(filepath.Join(r.dir, "shallow"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []Hash
	for _, id := range strings.Fields(string(data)) {
		if !plumbing.IsHash(id) {
			return nil, fmt.Errorf("the shallow file of %s has %q, which is no id", r.dir, id)
		}
		ids = append(ids, plumbing.NewHash(id))
	}
	return ids, nil
}

// Absent returns those of some objects that are not in the repository, each once and in the
// same order. It reads no object, and does not call Missing.
func (r *Repository) Absent(ids []Hash) ([]Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var absent []Hash
	seen := map[Hash]bool{}
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			absent = append(absent, id)
		}
	}
	for look := 0; look < mostLooks && len(absent) > 0; look++ {
		if look > 0 || r.dirs == nil {
			if err := r.list(); err != nil {
				return nil, err
			}
		}
		left, err := r.absent(absent)
		if err == nil && (look > 0 || len(left) == 0) {
			return left, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking for objects of %s: %w", r.dir, err)
		}
	}
	return absent, nil
}

// absent returns those of some objects that are not in the listed packs and folders.
func (r *Repository) absent(ids []Hash) ([]Hash, error) {
	var left []Hash
	for _, id := range ids {
		found, err := r.holds(id)
		if err != nil {
			return nil, err
		}
		if !found {
			left = append(left, id)
		}
	}
	return left, nil
}

// holds reports whether an object is in the listed packs and folders.
func (r *Repository) holds(id Hash) (bool, error) {
	for _, p := range r.packs {
		if _, found, err := p.find(id); err != nil || found {
			return found, err
		}
	}
	name := id.String()
	for _, dir := range r.dirs {
		if _, err := os.Stat(filepath.Join(dir, name[:2], name[2:])); err == nil {
			return true, nil
		}
	}
	return false, nil
}
