package source

import (
	"path"
	"strings"
)

// Overlap reports whether one of two folders of a branch is the other, or within it. ""
// and "." are the root.
func Overlap(a, b string) bool {
	clean := func(folder string) string {
		return strings.TrimSuffix(path.Clean("/"+folder), "/") +
			"/"
	}
	a, b = clean(a), clean(b)
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}
