package tree

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
)

// gitSurvey looks at what is in a git tree, as survey does in a folder: every
// folder that is asked for is read once.
type gitSurvey struct {
	trees
	root    git.Hash // zero where the environment's folder does not exist
	folders map[string]map[string]git.Entry
}

func newGitSurvey(r *git.Repository, root git.Hash) *gitSurvey {
	return &gitSurvey{trees: trees{r, map[git.Hash][]git.Entry{}}, root: root, folders: map[string]map[string]git.Entry{}}
}

// trees reads each tree of a repository once. It is for one goroutine.
type trees struct {
	repository *git.Repository
	known      map[git.Hash][]git.Entry
}

// Tree returns the entries of a tree, which must not be changed.
func (t trees) Tree(id git.Hash) ([]git.Entry, error) {
	list, known := t.known[id]
	if known {
		return list, nil
	}
	list, err := t.repository.Tree(id)
	if err == nil {
		t.known[id] = list
	}
	return list, err
}

// look returns what stands at p.
func (s *gitSurvey) look(p string) (found, error) {
	e, blocker, err := s.entry(p)
	if err != nil || e == nil {
		return found{blocker: blocker}, err
	}
	return found{kind: kindOf(*e), info: gitFile{*e}}, nil
}

// kindOf returns what an entry stands for. A submodule is none of this
// repository's files, and nothing can be written into it.
func kindOf(e git.Entry) kind {
	switch e.Mode {
	case git.FolderMode:
		return folder
	case git.LinkMode, git.SubmoduleMode:
		return other
	}
	return regular
}

// gitFile is an entry as a file: as the comparison sees it, which only a file
// system's index needs to know more of.
type gitFile struct{ git.Entry }

func (f gitFile) Name() string     { return f.Entry.Name }
func (gitFile) Size() int64        { return -1 }
func (gitFile) ModTime() time.Time { return time.Time{} }
func (f gitFile) IsDir() bool      { return kindOf(f.Entry) == folder }
func (gitFile) Sys() any           { return nil }

func (f gitFile) Mode() fs.FileMode {
	switch kindOf(f.Entry) {
	case folder:
		return fs.ModeDir | 0o755
	case other:
		return fs.ModeSymlink
	}
	if f.Entry.Mode == git.ExecutableMode {
		return 0o755
	}
	return 0o644
}

// entry returns the entry at p; nil where there is none, with what stands where a
// folder of p should be.
func (s *gitSurvey) entry(p string) (e *git.Entry, blocker string, err error) {
	if s.root.IsZero() {
		return nil, "", nil
	}
	dir := path.Dir(p)
	if dir != "." {
		around, blocker, err := s.entry(dir)
		switch {
		case err != nil || around == nil:
			return nil, blocker, err
		case kindOf(*around) != folder:
			return nil, dir, nil
		}
	}
	entries, err := s.read(dir)
	if err != nil {
		return nil, "", err
	}
	if e, there := entries[path.Base(p)]; there {
		return &e, "", nil
	}
	return nil, "", nil
}

// read returns the entries of a folder that is there, by name.
func (s *gitSurvey) read(dir string) (map[string]git.Entry, error) {
	if entries, known := s.folders[dir]; known {
		return entries, nil
	}
	id := s.root
	if dir != "." {
		id = s.folders[path.Dir(dir)][path.Base(dir)].ID
	}
	list, err := s.Tree(id)
	if err != nil {
		return nil, err
	}
	entries := make(map[string]git.Entry, len(list))
	for _, e := range list {
		entries[e.Name] = e
	}
	s.folders[dir] = entries
	return entries, nil
}

// id returns the id of what stands at p; "" for nothing.
func (s *gitSurvey) id(p string) (ID, error) {
	e, _, err := s.entry(p)
	if err != nil || e == nil {
		return "", err
	}
	return ID(e.ID.String()), nil
}

// holds says whether the file at p is the blob.
func (s *gitSurvey) holds(p string, _ fs.FileInfo, b Blob, _ int64) (bool, error) {
	e, _, err := s.entry(p)
	if err != nil || e == nil {
		return false, err
	}
	return e.Mode == b.mode() && e.ID == hash(b.ID), nil
}

// holdsTree says whether the folder at dir is the tree with the id.
func (s *gitSurvey) holdsTree(dir string, id ID) (bool, error) {
	e, _, err := s.entry(dir)
	if err != nil || e == nil {
		return false, err
	}
	return e.Mode == git.FolderMode && e.ID == hash(id), nil
}

// file returns the content of the file at p, of which there must not be more than
// MaxRecord.
func (s *gitSurvey) file(p string) ([]byte, error) {
	e, _, err := s.entry(p)
	if err != nil || e == nil {
		return nil, err
	}
	data, err := s.repository.BlobWithin(e.ID, MaxRecord)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	return data, nil
}

// within returns everything in the folder at dir, at any depth, that is no
// folder.
func (s *gitSurvey) within(dir string) ([]string, error) {
	entries, err := s.read(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for name, e := range entries {
		p := path.Join(dir, name)
		if kindOf(e) != folder {
			paths = append(paths, p)
			continue
		}
		below, err := s.within(p)
		if err != nil {
			return nil, err
		}
		paths = append(paths, below...)
	}
	slices.Sort(paths)
	return paths, nil
}

// close does nothing: a survey of a folder holds files open.
func (s *gitSurvey) close() error { return nil }
