package tree

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
)

// surveyor describes the content of an environment's folder before a write. A surveyor is for one
// goroutine, and is valid only while nothing changes.
type surveyor interface {
	// look describes the file or folder at p. It does not follow symbolic links.
	look(p string) (pathState, error)
	// holds reports whether the file at p is the blob. info is the result of look. size is the size
	// of the blob, or -1 if it is not known.
	holds(p string, info fs.FileInfo, b Blob, size int64) (bool, error)
	// holdsTree reports whether the folder at dir has exactly the files of the tree with the id. It
	// returns false if it would have to read the files.
	holdsTree(dir string, id ID) (bool, error)
	// pathsIn returns everything in the folder at dir, at any depth, except folders, in a
	// fixed order.
	pathsIn(dir string) ([]string, error)
	close() error
}

// survey describes the content of a folder before a write. It does not follow
// symbolic links, even to a target in the same folder: the target of a link is not a
// file at the requested path. It is for one goroutine, and keeps the folder of the
// last path open until close.
type survey struct {
	root    *os.Root             // nil if the folder does not exist
	folders map[string]pathState // results for the paths of folders
	dir     string               // the folder that is open
	in      *os.Root             // nil if no folder is open
	buffer  []byte
}

// newSurvey returns a survey of a folder; root is nil if the folder does not exist.
func newSurvey(root *os.Root) *survey {
	return &survey{root: root,
		folders: map[string]pathState{}}
}

func (s *survey) close() error {
	if s.in == nil {
		return nil
	}
	err := s.in.Close()
	s.in = nil
	return err
}

// pathState describes a file, a folder or nothing at a path.
type pathState struct {
	kind kind
	info fs.FileInfo // nil if nothing is at the path
	// blocker is the path of a file in the place of a parent folder; "" if there is no such file.
	// If blocker is set, kind is nothing.
	blocker string
}

// kind is the kind of an object at a path.
type kind uint8

const (
	nothing kind = iota
	regular      // a file
	folder
	other // a symbolic link, a socket, a device
)

// look describes the file or folder at p.
func (s *survey) look(p string) (pathState, error) {
	if s.root == nil {
		return pathState{}, nil
	}
	dir := path.Dir(p)
	if dir != "." {
		around, err := s.folder(dir)
		switch {
		case err != nil:
			return pathState{}, err
		case around.kind == nothing:
			return pathState{blocker: around.blocker}, nil
		case around.kind != folder:
			return pathState{blocker: dir}, nil
		}
	}
	in, err := s.open(dir)
	if err != nil {
		return pathState{}, err
	}
	info, err := in.Lstat(path.Base(p))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return pathState{}, nil
	case err != nil:
		return pathState{}, err
	case info.IsDir():
		return pathState{kind: folder, info: info}, nil
	case info.Mode().IsRegular():
		return pathState{kind: regular, info: info}, nil
	}
	return pathState{kind: other, info: info}, nil
}

// folder is look with a memory: many files are in one folder.
func (s *survey) folder(dir string) (pathState, error) {
	if f, ok := s.folders[dir]; ok {
		return f, nil
	}
	f, err := s.look(dir)
	if err == nil {
		s.folders[dir] = f
	}
	return f, err
}

// open returns an existing folder, and closes the previous one. The lookup of a path from the root
// costs more than most operations on it.
func (s *survey) open(dir string) (*os.Root, error) {
	if dir == "." {
		return s.root, nil
	}
	if s.in != nil && s.dir == dir {
		return s.in, nil
	}
	if err := s.close(); err != nil {
		return nil, err
	}
	in, err := s.root.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s.dir, s.in = dir, in
	return in, nil
}

// holds reports whether the regular file at p is the blob. If size is not -1, it
// is the size of the blob.
func (s *survey) holds(p string, info fs.FileInfo, b Blob, size int64) (bool, error) {
	if size >= 0 && info.Size() != size || !isFile(info, b.Executable) {
		return false, nil
	}
	is, err := s.hash(p)
	return is == b.ID, err
}

// holdsTree returns false: a folder on the disk has no id.
func (s *survey) holdsTree(string, ID) (bool, error) { return false, nil }

// hash returns the blob id of the regular file at p. If the file changes during the read, the id
// matches no version of the file.
func (s *survey) hash(p string) (ID, error) {
	in, err := s.open(path.Dir(p))
	if err != nil {
		return "", err
	}
	f, err := in.Open(path.Base(p))
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if s.buffer == nil {
		s.buffer = make([]byte, 64<<10)
	}
	h := sha1.New()
	h.Write(append(strconv.AppendInt([]byte("blob "), info.Size(), 10), 0))
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, io.LimitReader(f, info.Size()+1),
		s.buffer); err != nil {
		return "", err
	}
	return ID(hex.EncodeToString(h.Sum(nil))), nil
}

// pathsIn returns everything in the folder at dir, at any depth, except folders, in a
// fixed order.
func (s *survey) pathsIn(dir string) ([]string, error) {
	var paths []string
	err := fs.WalkDir(s.root.FS(), dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, p)
		}
		return err
	})
	return paths, err
}
