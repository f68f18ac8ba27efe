package source

import (
	"path/filepath"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// Outside returns the folders, as absolute paths, that replace modules for the platform's
// developers. cue.mod/local-module.cue names them. Their files are a part of the platform,
// and they can be anywhere. Loading reports errors of that file.
func Outside(root string) []string {
	data, err := regular.ReadFile(filepath.Join(root, filepath.FromSlash(localModuleFile)))
	if err != nil {
		return nil
	}
	return replacements(root, data)
}

// IsEnvironmentFolder reports whether a path may be a link to a folder: the folder of all
// environments, or of one. The path is relative to the root, with slashes.
func IsEnvironmentFolder(rel string) bool {
	environment, deeper := environmentOf(rel)
	return rel == Environments || environment != "" && deeper == ""
}
