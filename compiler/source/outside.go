package source

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
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

// NamedFrom returns the name, from the root, of a file or folder that CUE files name from their own
// folder. at are the positions of the name; without any, it is named from the root. ok is false if
// CUE files in several folders name it.
func NamedFrom(at []model.Position, name string) (fromRoot string, ok bool) {
	folder := "."
	for i, p := range at {
		if in := path.Dir(p.File); i == 0 {
			folder = in
		} else if in != folder {
			return name, false
		}
	}
	return path.Join(folder, name), true
}

// Refuse returns why a name does not lead to a file or folder of the platform, as the end of a
// sentence, and a way out. It returns "" if it does, or if nothing is there.
func (f *Files) Refuse(name string) (problem, hint string) {
	if !filepath.IsLocal(filepath.FromSlash(name)) ||
		slices.Contains(strings.Split(name, "/"), ".git") {
		return "is not in the platform", "copy it into the platform"
	}
	if target, err := filepath.EvalSymlinks(f.Path(name)); err == nil {
		if _, within := f.Name(target); !within {
			return "leads out of the platform", "copy what it leads to into the platform"
		}
	}
	return "", ""
}

// Reason returns an error without the path that it repeats.
func Reason(err error) error {
	if in := (*fs.PathError)(nil); errors.As(err, &in) {
		return in.Err
	}
	return err
}

// IsEnvironmentFolder reports whether a path may be a link to a folder: the folder of all
// environments, or of one. The path is relative to the root, with slashes.
func IsEnvironmentFolder(rel string) bool {
	environment, deeper := environmentOf(rel)
	return rel == Environments || environment != "" && deeper == ""
}
