package source

import (
	"path"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Marker lists the files that identify a folder of a commit.
type Marker struct {
	What  string   // in messages
	Files []string // paths in the folder, with slashes; one of them is enough
}

// Markers of the folders that kalypso writes trees of.
var (
	PlatformMarker    = Marker{"platform", []string{moduleFile}}
	ApplicationMarker = Marker{"application", []string{"kalypso.yaml", "kalypso.cue"}}
)

// Marks reports whether a folder of a commit has one of the files; where is "." for the
// commit's root.
func (m Marker) Marks(repo *git.Repository, commit git.Hash, where string) (bool, error) {
	root, err := repo.CommitTree(commit)
	if err != nil {
		return false, err
	}
	for _, file := range m.Files {
		e, found, err := repo.Find(root, path.Join(where, file))
		if err != nil {
			return false, err
		}
		if found && e.Mode != git.FolderMode {
			return true, nil
		}
	}
	return false, nil
}
