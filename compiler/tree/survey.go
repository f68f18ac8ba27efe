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

// surveyor looks at what is in an environment's folder before it is changed. A
// surveyor is for one goroutine, and for as long as nothing changes.
type surveyor interface {
	// look returns what stands at p. It follows no symbolic link.
	look(p string) (found, error)
	// holds says whether the file at p, of which look has returned info, is the
	// blob, of which the size is known or -1.
	holds(p string, info fs.FileInfo, b Blob, size int64) (bool, error)
	// holdsTree says whether it is known, without a look at them, that the folder
	// at dir has the files of the tree with the id, and nothing else.
	holdsTree(dir string, id ID) (bool, error)
	// within returns everything in the folder at dir, at any depth, that is no
	// folder.
	within(dir string) ([]string, error)
	close() error
}

// survey looks at what is in a folder before it is changed. It follows no
// symbolic link, not even one that stays in the folder: what is behind a link
// is not at the path that was asked for. It is for one goroutine, and holds the
// folder of the last path open until close.
type survey struct {
	root    *os.Root         // nil where the folder does not exist
	folders map[string]found // what stands where folders are looked for
	dir     string           // the folder that is open
	in      *os.Root         // nil for none
	buffer  []byte
}

func newSurvey(root *os.Root) *survey {
	return &survey{root: root, folders: map[string]found{}}
}

func (s *survey) close() error {
	if s.in == nil {
		return nil
	}
	err := s.in.Close()
	s.in = nil
	return err
}

// found is what stands at a path.
type found struct {
	kind kind
	info fs.FileInfo // nil for nothing
	// blocker is the path of what stands where a folder of the path should be;
	// "" for none. Then kind is nothing.
	blocker string
}

type kind uint8

const (
	nothing kind = iota
	regular      // a file
	folder
	other // a symbolic link, a socket, a device
)

// look returns what stands at p.
func (s *survey) look(p string) (found, error) {
	if s.root == nil {
		return found{}, nil
	}
	dir := path.Dir(p)
	if dir != "." {
		around, err := s.folder(dir)
		switch {
		case err != nil:
			return found{}, err
		case around.kind == nothing:
			return found{blocker: around.blocker}, nil
		case around.kind != folder:
			return found{blocker: dir}, nil
		}
	}
	in, err := s.open(dir)
	if err != nil {
		return found{}, err
	}
	info, err := in.Lstat(path.Base(p))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found{}, nil
	case err != nil:
		return found{}, err
	case info.IsDir():
		return found{kind: folder, info: info}, nil
	case info.Mode().IsRegular():
		return found{kind: regular, info: info}, nil
	}
	return found{kind: other, info: info}, nil
}

// folder is look, remembered: many files are in one folder.
func (s *survey) folder(dir string) (found, error) {
	if f, ok := s.folders[dir]; ok {
		return f, nil
	}
	f, err := s.look(dir)
	if err == nil {
		s.folders[dir] = f
	}
	return f, err
}

// open returns a folder that is there. It is closed when another one is opened:
// looking up a path from the root costs more than most of what is done with it.
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

// holds says whether the regular file at p is the blob, of which the size may be
// known.
func (s *survey) holds(p string, info fs.FileInfo, b Blob, size int64) (bool, error) {
	if size >= 0 && info.Size() != size || !isFile(info, b.Executable) {
		return false, nil
	}
	is, err := s.hash(p)
	return is == b.ID, err
}

// holdsTree is never known: a folder has no id.
func (s *survey) holdsTree(string, ID) (bool, error) { return false, nil }

// hash returns the blob id of the regular file at p. That of a file that changes
// while it is read is the id of nothing that it was.
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
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, io.LimitReader(f, info.Size()+1), s.buffer); err != nil {
		return "", err
	}
	return ID(hex.EncodeToString(h.Sum(nil))), nil
}

// within returns everything in the folder at dir, at any depth, that is no
// folder.
func (s *survey) within(dir string) ([]string, error) {
	var paths []string
	err := fs.WalkDir(s.root.FS(), dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, p)
		}
		return err
	})
	return paths, err
}
