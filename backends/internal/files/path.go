package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

const (
	// longestPath leaves room for the folders around it, within the limits of file systems
	// and archives (260 bytes for a whole path on Windows).
	longestPath = 150
	// longestName is the maximum number of bytes in a name for file systems and archives.
	longestName = 255
	// longestOnLinux leaves room for the folders around it, below 4,096 bytes (PATH_MAX
	// in limits.h).
	longestOnLinux = 3 << 10
)

// Fits returns an error if a path is too long for the file systems of Linux. It is for the
// paths of a machine, for which CheckPath is too strict.
func Fits(p string) error {
	if len(p) > longestOnLinux {
		return fmt.Errorf("has a path of %d bytes, and %d is the most", len(p), longestOnLinux)
	}
	for e := range strings.SplitSeq(p, "/") {
		if len(e) > longestName {
			return fmt.Errorf("has a name of %d bytes, and %d is the most", len(e), longestName)
		}
	}
	return nil
}

// element is one element of a path, as in the schema. It does not begin with a dot, as .git
// and .. do, or with a dash, which programs read as an option.
var element = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// CheckPath returns an error if a path is not valid for a file in a folder.
func CheckPath(p string) error {
	if len(p) > longestPath {
		return fmt.Errorf("has a path of %d bytes, and %d is the most", len(p), longestPath)
	}
	for e := range strings.SplitSeq(p, "/") {
		switch {
		case !element.MatchString(e):
			return errors.New("has a path that is none: elements of letters, digits, '_', '-' and '.', " +
				"which begin with a letter, a digit or '_', and slashes between them")
		case strings.HasSuffix(e, "."):
			return errors.New("has an element that ends in a dot, which Windows leaves out")
		case model.IsDevice(e):
			return fmt.Errorf("has the element %s, which is a device on Windows", e)
		}
	}
	return nil
}

// paths are the paths of a folder's files. Two paths that differ only in case are the same file on
// the file systems of Windows and macOS.
type paths struct {
	files, folders map[string]string // in lower case -> as they are
}

func newPaths() *paths { return &paths{map[string]string{}, map[string]string{}} }

// add adds a path. It returns an error if the path collides with another one.
func (ps *paths) add(p string) error {
	key := strings.ToLower(p)
	if other, taken := ps.files[key]; taken && other == p {
		return errors.New("is there twice")
	} else if taken {
		return fmt.Errorf("differs from %s in case alone", other)
	}
	if _, taken := ps.folders[key]; taken {
		return errors.New("is the folder of another file")
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if other, taken := ps.files[strings.ToLower(dir)]; taken {
			return fmt.Errorf("lies in %s, which is a file", other)
		}
		if other, taken := ps.folders[strings.ToLower(dir)]; taken && other != dir {
			return fmt.Errorf("lies in %s, which differs from the folder %s in case alone", dir, other)
		}
	}
	ps.files[key] = p
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		ps.folders[strings.ToLower(dir)] = dir
	}
	return nil
}

// checkPaths checks the paths of a struct of files.
func checkPaths(described model.Value, ref model.Ref) []diag.Diagnostic {
	if n := len(described.Fields()); n > maxFiles {
		return []diag.Diagnostic{Bad(ref,
			fmt.Sprintf("there are %d files, and a folder may have %d", n, maxFiles)).
			Hinting("write one file where there are many that are read together")}
	}
	var ds []diag.Diagnostic
	all := newPaths()
	for _, f := range described.Fields() {
		err := CheckPath(f.Name)
		if err == nil {
			err = all.add(f.Name)
		}
		if err != nil {
			ds = append(ds, Bad(ref.At(model.Label(f.Name)),
				fmt.Sprintf("%q %v", f.Name, err)).Hinting("give the file another path"))
		}
	}
	return ds
}

// ManifestsFolder is the folder of the rendered files, in an assignment's folder.
const ManifestsFolder = "manifests"

// Projected adds the rendered files, which are the files of a playbook, in a folder of their own.
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

// checkForeignPath is CheckPath for files of a repository, whose owners choose the names. It
// accepts every name that is valid on all file systems and in git.
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
