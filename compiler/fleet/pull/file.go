package pull

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kalypso-io/kalypso/compiler/fleet"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/regular"
)

// File is the file of an inventory, as it was read.
type File struct {
	Name   string // from the platform's root
	Before []byte // nil if there was no file

	path string // its path after links are followed
	mode fs.FileMode
}

// Open reads the file of an inventory of an environment. The file need not exist. If it is,
// or would be, outside the platform, Open returns an error.
func Open(files *source.Files, env *model.Environment, inv *model.Inventory) (*File, error) {
	name, err := fleet.Locate(files, env, inv)
	if err != nil {
		return nil, err
	}
	f := &File{Name: name, mode: 0o644}
	if f.path, err = resolve(files.Path(name)); err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", name, err)
	}
	if _, within := files.Name(f.path); !within {
		return nil, fmt.Errorf("%s leads out of the platform: copy what it leads to into the platform",
			name)
	}
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil && info.Size() > maxBytes {
		err = fmt.Errorf("it has more than %d MiB", maxBytes>>20)
	}
	if err == nil {
		f.mode = info.Mode().Perm()
		f.Before, err = regular.ReadFile(f.path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	return f, nil
}

// resolve follows the links of a path, whose last parts need not exist.
func resolve(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return resolved, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", errors.New("it is a link to nothing")
	}
	parent, err := resolve(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// Write replaces the file at once. It also returns an error if others have changed the file
// since it was read.
func (f *File) Write(after []byte) error {
	now, err := regular.ReadFile(f.path)
	if err != nil && (f.Before != nil || !errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	if !bytes.Equal(now, f.Before) {
		return fmt.Errorf("%s has changed since it was read: pull again", f.Name)
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	return regular.Replace(f.path, after, f.mode)
}
