package tree

import (
	"encoding/hex"

	"github.com/kalypso-io/kalypso/internal/git"
)

// RevisionOf returns a commit as a revision; "" for the zero Hash.
func RevisionOf(commit git.Hash) Revision {
	if commit.IsZero() {
		return ""
	}
	return Revision(commit.String())
}

// IsCommit reports whether the revision is the full id of a commit.
func (r Revision) IsCommit() bool {
	if len(r) != 40 {
		return false
	}
	_, err := hex.DecodeString(string(r))
	return err == nil
}

// Hash returns the commit; the zero Hash for a revision that is none.
func (r Revision) Hash() git.Hash {
	var h git.Hash
	if r.IsCommit() {
		hex.Decode(h[:], []byte(r)) //nolint:errcheck // IsCommit has looked
	}
	return h
}

// Short returns the revision for messages: the beginning of the id of a commit.
func (r Revision) Short() string {
	if h := r.Hash(); !h.IsZero() {
		return git.Short(h)
	}
	return string(r)
}

// Describe returns the source for messages: its base and, where it is another commit,
// that of the environment's own files.
func (s Source) Describe() string {
	if s.Environment == "" || s.Environment == s.Base {
		return s.Base.Short()
	}
	return s.Base.Short() + " with own files of " + s.Environment.Short()
}
