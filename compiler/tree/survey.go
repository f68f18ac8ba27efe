package tree

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// survey looks at what is in a folder before it is changed. It follows no
// symbolic link, not even one that stays in the folder: what is behind a link
// is not at the path that was asked for.
type survey struct {
	root    *os.Root         // nil where the folder does not exist
	folders map[string]found // what stands where folders are looked for
}

func newSurvey(root *os.Root) *survey {
	return &survey{root: root, folders: map[string]found{}}
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
	if dir := path.Dir(p); dir != "." {
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
	info, err := s.root.Lstat(p)
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

// holds says whether the regular file at p has the content with the id and the
// size, where that is known, and is not executable, which git would record.
func (s *survey) holds(p string, info fs.FileInfo, id ID, size int64) (bool, error) {
	if size >= 0 && info.Size() != size || info.Mode()&0o111 != 0 {
		return false, nil
	}
	b, err := s.root.ReadFile(p)
	return BlobID(b) == id, err
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

func (s *survey) close() {}
