package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/git"
)

// Record returns the record of the environment in a folder of the branch, "" for its
// root. It returns nil if there is no record, and nil with diagnostics if kalypso
// cannot read the record. It reads only the folders on the way to the record, and no
// records of cluster types.
func (b *Branch) Record(dir string) (*Record, []diag.Diagnostic, error) {
	st, problems, err := b.load(dir)
	if err != nil {
		return nil, nil,
			fmt.Errorf("reading the record of branch %s of %s: %w", b.name, b.repository.dir, err)
	}
	return st.record, unsolved(problems, false), nil
}

// location returns paths of an environment as git shows them, and as `git show` accepts them.
func (b *Branch) location(dir string) location {
	return func(p string) string { return b.name + ":" + path.Join(dir, p) }
}

// environment returns the tree at a folder; zero if there is no folder. If a file is at the path or
// at a parent folder's path, it returns the path of that file.
func (b *Branch) environment(dir string) (root git.Hash, blocker string, err error) {
	if is, ok := b.instead[dir]; ok {
		return is.root, "", nil
	}
	if dir == "" {
		return b.root, "", nil
	}
	e, blocker, err := newGitSurvey(b.repository.git, b.root).entry(dir)
	switch {
	case err != nil || e == nil:
		return git.Hash{}, blocker, err
	case e.Mode != git.FolderMode:
		return git.Hash{}, dir, nil
	}
	return e.ID, "", nil
}

// gitState is the state of an environment in a branch. It never has a journal.
type gitState struct {
	state
	root    git.Hash             // the environment's tree; zero if it does not exist
	records map[string]git.Entry // the files in recordsFolder
	ignored bool                 // there is a .gitignore
	around  *gitSurvey           // the trees on the way to the cluster types, already read
}

// loadedState is a result of load for an environment.
type loadedState struct {
	state    *gitState
	problems []problem
}

// load returns the state of an environment, and reads it once. The caller's records and
// the write of the branch share this state. Files that load cannot read are problems,
// and missing in the state.
func (b *Branch) load(environment string) (*gitState, []problem, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.states[environment]; ok {
		return known.state, slices.Clone(known.problems), nil
	}
	st, problems, err := b.read(environment)
	if err != nil {
		return nil, nil, err
	}
	if b.states == nil {
		b.states = map[string]loadedState{}
	}
	b.states[environment] = loadedState{st, problems}
	return st, slices.Clone(problems), nil
}

// read reads the state of an environment; load remembers it.
func (b *Branch) read(environment string) (*gitState, []problem, error) {
	st := &gitState{}
	root, blocker, err := b.environment(environment)
	if err != nil {
		return nil, nil, err
	}
	if blocker != "" {
		whole := b.location("")
		return st, []problem{{whole.foreign(blocker,
			"is not a folder, and kalypso has to write into it").Hinting(moveHint), false}}, nil
	}
	st.root = root
	at, s := b.location(environment), newGitSurvey(b.repository.git, root)
	st.around = s
	for _, dir := range []string{ownFolder, recordsFolder} {
		there, err := s.look(dir)
		if err != nil {
			return nil, nil, err
		}
		if there.kind == regular || there.kind == other {
			return st, []problem{{at.foreign(dir,
				"is not a folder, and kalypso keeps its record in it").Hinting(moveHint), false}}, nil
		}
		if there.kind == folder && dir == recordsFolder {
			if st.records, err = s.read(dir); err != nil {
				return nil, nil, err
			}
		}
	}
	record, err := s.look(recordPath)
	if err != nil {
		return nil, nil, err
	}
	if record.kind == folder || record.kind == other {
		return st, []problem{{at.foreign(recordPath, "is not a file").Hinting(moveHint), false}}, nil
	}
	ignore, err := s.look(gitignorePath)
	if err != nil {
		return nil, nil, err
	}
	st.ignored = ignore.kind != nothing
	problems, err := st.parse(s, at)
	return st, problems, err
}

// parse reads the environment's record.
func (st *gitState) parse(s *gitSurvey, at location) ([]problem, error) {
	var err error
	if st.recordBytes, err = s.file(recordPath); err != nil || st.recordBytes == nil {
		return nil, err
	}
	st.record, err = ParseRecord(st.recordBytes, nil)
	if err != nil {
		return at.unreadable(recordPath, err), nil
	}
	r := st.record
	r.setSource(func(name string) ([]byte, ID, error) {
		e := r.entry(name)
		file, there := st.records[path.Base(ClusterTypeRecordPath(name))]
		switch {
		case !there:
			return nil, "", e.unusable(errors.New("it is not there"))
		case kindOf(file) != regular:
			return nil, "", e.unusable(errors.New("it is not a file"))
		}
		data, err := s.repository.BlobWithin(file.ID, MaxRecord)
		return data, ID(file.ID.String()), err
	}, at.addLocation)
	return nil, nil
}

// gitSurvey describes the content of a git tree, as survey does for a folder. It reads every
// requested folder once.
type gitSurvey struct {
	trees
	root    git.Hash // zero if the environment's folder does not exist
	folders map[string]map[string]git.Entry
}

func newGitSurvey(r *git.Repository, root git.Hash) *gitSurvey {
	return &gitSurvey{trees: trees{r, map[git.Hash][]git.Entry{}}, root: root,
		folders: map[string]map[string]git.Entry{}}
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

// look describes the file or folder at p.
func (s *gitSurvey) look(p string) (pathState, error) {
	e, blocker, err := s.entry(p)
	if err != nil || e == nil {
		return pathState{blocker: blocker}, err
	}
	return pathState{kind: kindOf(*e), info: gitFile{*e}}, nil
}

// kindOf returns the kind of an entry. A submodule is of kind other: its files are not in this
// repository, and kalypso cannot write into it.
func kindOf(e git.Entry) kind {
	switch e.Mode {
	case git.FolderMode:
		return folder
	case git.LinkMode, git.SubmoduleMode:
		return other
	}
	return regular
}

// gitFile is an entry as a file, with the properties that the comparison uses. Only the index of a
// folder on disk needs others.
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

// entry returns the entry at p; nil if there is no entry. If a file is in the place of a parent
// folder of p, blocker is its path.
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

// read returns the entries of an existing folder, by name.
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

// id returns the id of the file or folder at p; "" if nothing is there.
func (s *gitSurvey) id(p string) (ID, error) {
	e, _, err := s.entry(p)
	if err != nil || e == nil {
		return "", err
	}
	return ID(e.ID.String()), nil
}

// holds reports whether the file at p is the blob.
func (s *gitSurvey) holds(p string, _ fs.FileInfo, b Blob, _ int64) (bool, error) {
	e, _, err := s.entry(p)
	if err != nil || e == nil {
		return false, err
	}
	return e.Mode == b.mode() && e.ID == hash(b.ID), nil
}

// holdsTree reports whether the folder at dir is the tree with the id.
func (s *gitSurvey) holdsTree(dir string, id ID) (bool, error) {
	e, _, err := s.entry(dir)
	if err != nil || e == nil {
		return false, err
	}
	return e.Mode == git.FolderMode && e.ID == hash(id), nil
}

// file returns the content of the file at p. It returns an error if the file
// is larger than MaxRecord.
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

// pathsIn returns everything in the folder at dir, at any depth, except
// folders. The paths are sorted.
func (s *gitSurvey) pathsIn(dir string) ([]string, error) {
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
		below, err := s.pathsIn(p)
		if err != nil {
			return nil, err
		}
		paths = append(paths, below...)
	}
	slices.Sort(paths)
	return paths, nil
}

// close does nothing: only a survey of a folder keeps files open.
func (s *gitSurvey) close() error { return nil }
