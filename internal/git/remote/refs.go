package remote

import (
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// isRef says whether git allows a name for a ref. That of a server may be anything.
func isRef(name string) bool {
	return strings.HasPrefix(name, "refs/") && plumbing.ReferenceName(name).Validate() == nil && !strings.ContainsFunc(name, unprintable)
}

// unprintable says whether git has no such character in names of refs.
func unprintable(r rune) bool { return r <= ' ' || r == 0x7f }

// isBranchOrTag says what most servers give to all who may read.
func isBranchOrTag(ref string) bool {
	return strings.HasPrefix(ref, branches) || strings.HasPrefix(ref, tags)
}
