package source

import (
	"path/filepath"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// Outside returns the folders, as absolute paths, that stand in place of modules
// for whoever works on a platform: what cue.mod/local-module.cue names. The
// platform is made of their files too, and they can lie anywhere. What is wrong
// with the file, loading reports.
func Outside(root string) []string {
	data, err := regular.ReadFile(filepath.Join(root, filepath.FromSlash(localModuleFile)))
	if err != nil {
		return nil
	}
	return replacements(root, data)
}

// IsEnvironmentFolder reports whether a path, relative to the root and with slashes, is
// one that may be a link to a folder: that of the environments, or of one.
func IsEnvironmentFolder(rel string) bool {
	environment, deeper := environmentOf(rel)
	return rel == Environments || environment != "" && deeper == ""
}
