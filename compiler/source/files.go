package source

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// Overlay is unsaved text of a platform's files, such as the buffers of an editor. It
// replaces the text of the files in the folder. The keys are paths from the root, with
// slashes. It may have files that the folder lacks.
type Overlay map[string][]byte

// Files are the files of a folder, with an overlay. They are named by paths from the folder,
// with slashes. All methods may be called at once.
type Files struct {
	// Root is the folder.
	Root string
	// Over is the overlay; it must not be changed.
	Over Overlay

	// folder -> names in it of the overlay's files, and of folders with some
	within map[string]map[string]bool
}

// NewFiles returns the files of a folder. over may be nil.
func NewFiles(root string, over Overlay) *Files {
	f := &Files{root, over, map[string]map[string]bool{}}
	for name := range over {
		for ; name != "."; name = path.Dir(name) {
			dir := path.Dir(name)
			if f.within[dir] == nil {
				f.within[dir] = map[string]bool{}
			}
			f.within[dir][path.Base(name)] = true
		}
	}
	return f
}

// Path returns the path of a file on the disk, even if it does not exist there.
func (f *Files) Path(name string) string { return filepath.Join(f.Root, filepath.FromSlash(name)) }

// Name returns the name of the file at a path on the disk, and whether it is in the
// folder.
func (f *Files) Name(path string) (name string, within bool) {
	rel, err := filepath.Rel(f.Root, path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// ReadFile returns the content of a file, which is a regular one or a link to one.
func (f *Files) ReadFile(name string) ([]byte, error) {
	if data, over := f.overlay(name); over {
		return data, nil
	}
	return regular.ReadFile(f.Path(name))
}

func (f *Files) overlay(name string) ([]byte, bool) {
	data, over := f.Over[name]
	return data, over
}

// Stat describes a file or folder. Links are followed.
func (f *Files) Stat(name string) (fs.FileInfo, error) {
	if data, over := f.overlay(name); over {
		return overlaid{path.Base(name), int64(len(data)), 0o644}, nil
	}
	info, err := os.Stat(f.Path(name))
	if errors.Is(err, fs.ErrNotExist) && f.within[name] != nil {
		return overlaid{path.Base(name), 0, fs.ModeDir | 0o755}, nil
	}
	return info, err
}

// ReadDir lists a folder, sorted by names.
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(f.Path(name))
	if f.within[name] == nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return entries, err
	}
	there := map[string]fs.DirEntry{}
	for _, e := range entries {
		there[e.Name()] = e
	}
	for child := range f.within[name] {
		if _, over := f.overlay(path.Join(name, child)); !over && there[child] != nil {
			continue // a folder, or a link to one
		}
		info, err := f.Stat(path.Join(name, child))
		if err != nil {
			return nil, err
		}
		there[child] = fs.FileInfoToDirEntry(info)
	}
	return slices.SortedFunc(maps.Values(there),
		func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }), nil
}

// folderFiles are the files of a folder of Files, in the form in which CUE looks for embedded
// files.
type folderFiles struct {
	files *Files
	dir   string
}

func (w folderFiles) Stat(name string) (fs.FileInfo,
	error) {
	return w.files.Stat(path.Join(w.dir, name))
}

func (w folderFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	return w.files.ReadDir(path.Join(w.dir, name))
}

func (w folderFiles) Open(name string) (fs.File, error) {
	name = path.Join(w.dir, name)
	if data, over := w.files.overlay(name); over {
		info, err := w.files.Stat(name)
		return overlayFile{bytes.NewReader(data), info}, err
	}
	return regular.Open(w.files.Path(name))
}

// overlayFile is a file of an overlay that is read.
type overlayFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (o overlayFile) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o overlayFile) Close() error               { return nil }

// overlaid describes a file of an overlay, or a folder that only an overlay has.
type overlaid struct {
	name string
	size int64
	mode fs.FileMode
}

func (o overlaid) Name() string       { return o.name }
func (o overlaid) Size() int64        { return o.size }
func (o overlaid) Mode() fs.FileMode  { return o.mode }
func (o overlaid) ModTime() time.Time { return time.Time{} }
func (o overlaid) IsDir() bool        { return o.mode.IsDir() }
func (o overlaid) Sys() any           { return nil }
