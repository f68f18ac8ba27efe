package git

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// FormatError is the error for a repository in a format that is not supported.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "its format is not supported: " + e.Reason }

// ErrSHA256 is the error for a repository with ids by SHA-256.
var ErrSHA256 = &FormatError{"it is a SHA-256 repository, and kalypso reads SHA-1 ones; `git " +
	"init --object-format=sha1` makes such a one"}

// extensions are the extensions that do not affect this package, with the values for
// which that holds; nil for all (https://git-scm.com/docs/git-config under
// extensions.*).
var extensions = map[string][]string{
	"noop":              nil,
	"noop-v1":           nil,
	"partialclone":      nil, // missing objects are reported when they are read
	"preciousobjects":   nil, // this package never removes anything
	"worktreeconfig":    nil,
	"relativeworktrees": nil,
	"objectformat":      {"sha1"},
	"refstorage":        {"files"},
}

// checkFormat returns an error for a repository in an unknown format. As for git, unknown
// extensions matter from version 1 of the format on.
func checkFormat(c *config.Config) error {
	version, set := option(c, "core", "repositoryformatversion")
	if set && version != "0" && version != "1" {
		return &FormatError{"it is version " + version}
	}
	for _, s := range c.Sections {
		if !strings.EqualFold(s.Name, "extensions") {
			continue
		}
		for _, o := range s.Options {
			if strings.EqualFold(o.Key, "objectFormat") && strings.EqualFold(o.Value, "sha256") {
				return ErrSHA256
			}
			allowed, known := extensions[strings.ToLower(o.Key)]
			if !known && version == "1" || allowed != nil &&
				!slices.Contains(allowed, strings.ToLower(o.Value)) {
				return &FormatError{fmt.Sprintf("extensions.%s is %s, and kalypso needs a repository with "+
					"SHA-1 ids and refs in files", o.Key, o.Value)}
			}
		}
	}
	return nil
}
