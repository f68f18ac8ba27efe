package archive

import (
	"io/fs"
	"os"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// FolderError reports that a folder of this machine exceeds a limit or has an entry that no tree
// can have.
type FolderError struct{ error }

// Unwrap returns the reason.
func (e *FolderError) Unwrap() error { return e.error }

// ReadFolder returns the files in and below a folder of this machine. It looks only into the
// folders for which enter returns true; their names are relative to root. A link that leads out of
// root is refused, as in an archive. Errors are *FolderError, or of the file system.
func ReadFolder(root *os.Root, enter func(folder string) bool) (*Tree, error) {
	var failed error
	tree, err := Build(func(yield func(Entry, error) bool) {
		failed = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir():
				if name != "." && !enter(name) {
					return fs.SkipDir
				}
				return nil
			}
			entry, ok, err := fileEntry(root, name, d)
			if err != nil {
				return err
			}
			if ok && !yield(entry, nil) {
				return fs.SkipAll
			}
			return nil
		})
	})
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, &FolderError{err}
	}
	return tree, nil
}

func fileEntry(root *os.Root, name string, d fs.DirEntry) (e Entry, ok bool, err error) {
	e.Path = name
	if d.Type()&fs.ModeSymlink != 0 {
		e.Link, err = root.Readlink(name)
		return e, err == nil, err
	}
	info, err := d.Info()
	if err != nil {
		return e, false, err
	}
	if !info.Mode().IsRegular() {
		e.Refused = regular.ErrNotRegular.Error()
		return e, true, nil
	}
	if info.Size() > DefaultLimits.File {
		e.Refused = TooLarge
		return e, true, nil
	}
	e.Data, err = root.ReadFile(name)
	e.Executable = info.Mode()&0o100 != 0
	return e, true, err
}
