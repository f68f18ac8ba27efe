package tree

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/git"
)

// Record returns what the record of an environment says that is in a folder of the
// branch, "" for its root; nil where there is none, or none that can be read: then
// there are diagnostics. Of the branch nothing is read but the way to the record,
// and of the record no cluster type.
func (b *Branch) Record(dir string) (*Record, []diag.Diagnostic, error) {
	st, problems, err := b.load(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the record of branch %s of %s: %w", b.name, b.repository.dir, err)
	}
	return st.record, unsolved(problems, false), nil
}

// location returns paths of an environment as git shows them, and takes them in
// `git show`.
func (b *Branch) location(dir string) location {
	return func(p string) string { return b.name + ":" + path.Join(dir, p) }
}

// environment returns the tree at a folder; zero where there is none. Where
// something else is there, it returns its path.
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

// gitState is the state of an environment in a branch. There is never a journal.
type gitState struct {
	state
	root    git.Hash             // the environment's tree; zero for none
	records map[string]git.Entry // what is in recordsFolder
	ignored bool                 // there is a .gitignore
	around  *gitSurvey           // of the trees around what is of a cluster type, which it has read
}

// loadedState is what load returned of an environment.
type loadedState struct {
	state    *gitState
	problems []problem
}

// load returns the state of an environment, which is read once: what is made of
// the branch's records for the caller is there when the branch is written. What
// cannot be read is a problem, and absent from the state.
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
	problems, err := st.own(s, at)
	if err != nil || len(problems) > 0 {
		return st, problems, err
	}
	problems, err = st.parse(s, at)
	return st, problems, err
}

// own reports what is no file where kalypso's own files have to be.
func (st *gitState) own(s *gitSurvey, at location) ([]problem, error) {
	record, err := s.look(recordPath)
	if err != nil {
		return nil, err
	}
	if record.kind == folder || record.kind == other {
		return []problem{{at.foreign(recordPath, "is not a file").Hinting(moveHint), false}}, nil
	}
	ignore, err := s.look(gitignorePath)
	st.ignored = ignore.kind != nothing
	return nil, err
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
	r.from(func(name string) ([]byte, ID, error) {
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
	}, at.placed)
	return nil, nil
}
