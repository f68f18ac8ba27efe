package git

import (
	"fmt"
	"os"
	"path/filepath"
)

// MissingError is the error for an object that is not in the repository.
type MissingError struct {
	ID     Hash
	Dir    string // the repository's
	Reason Reason
}

// Reason is why an object is not in a repository.
type Reason uint8

// The reasons: damage, or what a shallow or a partial clone left out.
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

// Of says that something is missing, which the object is or is a part of.
func (e *MissingError) Of(what string) string {
	switch e.Reason {
	case Shallow:
		return what + " is not in the shallow clone; run git fetch --unshallow, or let CI clone the whole history"
	case Partial:
		return what + " is not in the partial clone; let git fetch it (git worktree add --detach DIR REVISION does)"
	}
	return "an object of " + what + " is missing in the git repository; git fsck says more"
}

// missing returns the error for an object that is nowhere.
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

// isShallow says whether the repository lacks history, which fetching changes.
func (r *Repository) isShallow() bool {
	info, err := os.Stat(filepath.Join(r.dir, "shallow"))
	return err == nil && info.Size() > 0
}
