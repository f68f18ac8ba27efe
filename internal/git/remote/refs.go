package remote

import (
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// isRef reports whether git allows a name for a ref. Names from servers may be anything.
func isRef(name string) bool {
	return strings.HasPrefix(name, "refs/") && plumbing.ReferenceName(name).Validate() == nil &&
		!strings.ContainsFunc(name, unprintable)
}

// unprintable reports whether git forbids a character in names of refs.
func unprintable(r rune) bool { return r <= ' ' || r == 0x7f }
