package files

import (
	"errors"
	"io/fs"
	"strings"
	"unicode"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// ManifestsFolder is where the files of what was rendered are, in an assignment's
// folder.
const ManifestsFolder = "manifests"

// Projected adds the files of what was rendered, those of a playbook, in a folder
// of their own.
func (fs *Files) Projected(a *backends.Assignment) []diag.Diagnostic {
	if !a.Render || a.Projection == nil || len(a.Projection.Files) == 0 {
		return nil
	}
	var ds []diag.Diagnostic
	all := newPaths()
	for _, f := range a.Projection.Files {
		err := checkForeignPath(f.Path)
		if err == nil {
			err = all.add(f.Path)
		}
		if err != nil {
			ds = append(ds, Bad(a.Ref.At("manifests"), "the rendered file "+f.Path+" "+err.Error()).
				Hinting("rename it in its repository").For(a.ID()))
			continue
		}
		fs.Files = append(fs.Files,
			backends.File{Path: ManifestsFolder + "/" + f.Path, Data: f.Data, Executable: f.Executable})
	}
	fs.sort()
	return ds
}

// checkForeignPath is CheckPath for files of a repository, which are named as its
// owners like: any name that every file system and git can hold.
func checkForeignPath(p string) error {
	if !fs.ValidPath(p) || p == "." {
		return errors.New("has a path that leaves its folder")
	}
	for e := range strings.SplitSeq(p, "/") {
		name := strings.ToLower(strings.TrimRight(e, ". "))
		switch {
		case name == ".git" || name == "git~1":
			return errors.New("lies in git's own folder")
		case model.IsDevice(e), name != strings.ToLower(e):
			return errors.New("has a name that Windows cannot hold")
		case strings.ContainsFunc(e, func(r rune) bool {
			return strings.ContainsRune(`\:*?"<>|`, r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
		}):
			return errors.New("has a character that no name can have everywhere")
		}
	}
	return nil
}
