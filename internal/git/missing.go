package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// MissingError is the error for an object that is not in the repository.
type MissingError struct {
	ID     Hash
	Dir    string // the repository's
	Reason Reason
}

// Reason is the reason why an object is not in a repository.
type Reason uint8

// The reasons: damage, or a shallow or partial clone.
const (
	Damaged Reason = iota
	Shallow
	Partial
)

func (e *MissingError) Error() string {
	if e.Reason == Damaged {
		return fmt.Sprintf("object %s is missing in the git repository %s; git fsck says more", e.ID,
			e.Dir)
	}
	return e.Message(fmt.Sprintf("object %s of %s", e.ID, e.Dir))
}

// Message returns the message that an object is missing, for the object with the name what, or for
// one that needs it.
func (e *MissingError) Message(what string) string {
	switch e.Reason {
	case Shallow:
		return what + " is not in the shallow clone; run git fetch --unshallow, or let CI clone the " +
			"whole history"
	case Partial:
		return what + " is not in the partial clone; let git fetch it (git worktree add --detach DIR " +
			"REVISION does)"
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
	data, err := regular.ReadFile(filepath.Join(r.dir, "shallow"))
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

// Absent returns the given objects that are not in the repository, each once and in the
// same order. It reads no object, and does not call Missing.
func (r *Repository) Absent(ids []Hash) ([]Hash, error) {
	var once []Hash
	seen := map[Hash]bool{}
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			once = append(once, id)
		}
	}
	return r.objects.absent(once)
}
