package tree

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// state is what a folder's own files say of it.
type state struct {
	record      *Record // corrected with the journal; nil for none
	recordBytes []byte  // as it is on disk; nil for none
	journal     *journal
	// unfinished are the journal's paths by their first element.
	unfinished map[string][]string
	// litter are files in ownFolder that a finished write left.
	litter []string
	// staging says that a write was killed while there was something staged.
	staging bool
}

// problem is a diagnostic about a folder.
type problem struct {
	diag.Diagnostic
	// adoptable says that --adopt goes on with it.
	adoptable bool
}

// load reads the state. What cannot be read is a problem, and absent from the
// state.
func (d *Dir) load(s *survey, adopt bool) (*state, []problem, error) {
	st := &state{}
	own, err := s.look(ownFolder)
	if err != nil || own.kind == nothing {
		return st, nil, err
	}
	if own.kind != folder {
		return st, []problem{{d.foreign(ownFolder, "is not a folder, and kalypso keeps its record in it"), false}}, nil
	}
	problems, err := d.loadRecord(s, st)
	if err != nil {
		return nil, nil, err
	}
	more, err := d.loadJournal(s, st)
	if err != nil {
		return nil, nil, err
	}
	problems = append(problems, more...)
	if st.record != nil && st.journal != nil {
		more, err := d.recover(s, st, adopt)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, more...)
	}
	for _, p := range []string{recordPath, journalPath, gitignorePath, indexPath} {
		if err := st.leave(s, tempPath(p)); err != nil {
			return nil, nil, err
		}
	}
	there, err := s.look(stagingFolder)
	st.staging = there.kind != nothing
	return st, problems, err
}

// leave adds a file to the litter if it is there.
func (st *state) leave(s *survey, p string) error {
	there, err := s.look(p)
	if err == nil && there.kind != nothing {
		st.litter = append(st.litter, p)
	}
	return err
}

func (d *Dir) loadRecord(s *survey, st *state) ([]problem, error) {
	data, problems, err := d.read(s, recordPath)
	if err != nil || data == nil {
		return problems, err
	}
	st.recordBytes = data
	st.record, err = ParseRecord(data, nil)
	if err != nil {
		return d.unreadable(recordPath, err), nil
	}
	r := st.record
	r.from(identified(func(name string) ([]byte, error) { return d.clusterTypeBytes(r.entry(name)) }), d.placed)
	return nil, nil
}

// clusterTypeBytes reads the record of a cluster type. That it cannot be read is
// a RecordError.
func (d *Dir) clusterTypeBytes(e *ClusterTypeEntry) ([]byte, error) {
	if d.root == nil {
		return nil, fmt.Errorf("reading the record of cluster type %s: %s is closed", e.Name, d.dir)
	}
	s := newSurvey(d.root)
	defer s.close()
	p := ClusterTypeRecordPath(e.Name)
	there, err := s.look(p)
	switch {
	case err != nil:
		return nil, err
	case there.kind == nothing:
		return nil, d.placed(e.unusable(errors.New("it is not there")))
	case there.kind != regular:
		return nil, d.placed(e.unusable(errors.New("it is not a file")))
	case there.info.Size() > maxOwnFile:
		return nil, d.placed(e.unusable(errors.New("it is too large")))
	}
	return d.root.ReadFile(p)
}

func (d *Dir) loadJournal(s *survey, st *state) ([]problem, error) {
	data, problems, err := d.read(s, journalPath)
	if err != nil || data == nil {
		return problems, err
	}
	j, err := parseJournal(data)
	switch {
	case err != nil:
		st.litter = append(st.litter, journalPath)
		return d.unreadable(journalPath, err), nil
	case j.Record != "" && st.recordBytes != nil && j.Record == BlobID(st.recordBytes):
		return nil, d.finished(s, st, j)
	default:
		st.journal = j
		st.unfinished = map[string][]string{}
		for _, p := range j.paths() {
			part := PartOf(p)
			st.unfinished[part] = append(st.unfinished[part], p)
		}
	}
	return nil, nil
}

// finished finds what a journal that says nothing any more left: itself, and the
// records of cluster types that went.
func (d *Dir) finished(s *survey, st *state, j *journal) error {
	for _, name := range slices.Sorted(maps.Keys(j.Records)) {
		if st.record.entry(name) == nil && st.record != nil {
			if err := st.leave(s, ClusterTypeRecordPath(name)); err != nil {
				return err
			}
		}
	}
	st.litter = append(st.litter, journalPath) // last: it names the others
	return nil
}

// maxOwnFile bounds what is read of a record, which may come from anywhere. That
// of a cluster type with 100,000 assignments has about 70 MB.
const maxOwnFile = 1 << 30

// MaxRecord bounds what is read of a record in git, in bytes. Forges take no larger files.
const MaxRecord = 256 << 20

// read returns a file of ownFolder; nil where there is none.
func (d *Dir) read(s *survey, p string) ([]byte, []problem, error) {
	there, err := s.look(p)
	switch {
	case err != nil || there.kind == nothing:
		return nil, nil, err
	case there.kind != regular:
		return nil, []problem{{d.foreign(p, "is not a file"), false}}, nil
	case there.info.Size() > maxOwnFile:
		return nil, d.unreadable(p, errors.New("it is too large")), nil
	}
	data, err := s.root.ReadFile(p)
	return data, nil, err
}
