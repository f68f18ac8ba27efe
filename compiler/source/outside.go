package source

import (
	"path/filepath"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// Outside returns the folders, as absolute paths, that replace modules for the
// platform's developers: cue.mod/local-module.cue names them. The platform is made
// of their files too, and they can lie anywhere. Loading reports errors of the
// file.
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
