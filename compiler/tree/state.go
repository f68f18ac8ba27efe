package tree

import (
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// state is what a folder's own files say of it.
type state struct {
	record      *Record // settled with the journal; nil for none
	recordBytes []byte  // as it is on disk; nil for none
	journal     *journal
	// litter are files in ownFolder that a finished write left.
	litter []string
}

// problem is a diagnostic about a folder.
type problem struct {
	diag.Diagnostic
	// adoptable says that --adopt goes on all the same.
	adoptable bool
}

// owned returns the paths that kalypso wrote.
func (st *state) owned() map[string]bool {
	owned := map[string]bool{}
	for p := range st.record.each {
		owned[p] = true
	}
	for _, p := range st.journal.paths() {
		owned[p] = true
	}
	return owned
}

// load reads the state. What cannot be read is a problem, and absent from the
// state.
func (d *Dir) load(s *survey) (*state, []problem, error) {
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
	if st.record != nil && st.journal != nil {
		if err := s.settle(st.record, st.journal); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range []string{recordPath, journalPath, gitignorePath} {
		if there, err := s.look(tempPath(p)); err != nil {
			return nil, nil, err
		} else if there.kind != nothing {
			st.litter = append(st.litter, tempPath(p))
		}
	}
	return st, append(problems, more...), nil
}

func (d *Dir) loadRecord(s *survey, st *state) ([]problem, error) {
	data, problems, err := d.read(s, recordPath)
	if err != nil || data == nil {
		return problems, err
	}
	st.recordBytes = data
	st.record, err = ParseRecord(data)
	return d.unreadable(recordPath, err), nil
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
		st.litter = append(st.litter, journalPath)
	default:
		st.journal = j
	}
	return nil, nil
}

// maxOwnFile bounds what is read of a record, which may come from anywhere. That
// of 100,000 assignments has about 100 MB.
const maxOwnFile = 1 << 30

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

// unreadable reports that a file of ownFolder cannot be used; nothing for a nil
// error. One of another version of kalypso is not there to be overwritten.
func (d *Dir) unreadable(p string, err error) []problem {
	if err == nil {
		return nil
	}
	report := d.at(diag.New(diag.BadRecord, fmt.Sprintf("%s cannot be read: %s", p, err)), p)
	if errors.Is(err, errVersion) {
		return []problem{{report.Hinting("use the version of kalypso that wrote it, or a newer one"), false}}
	}
	return []problem{{report.Hinting("restore the file from git, or take over the files that are there with --adopt"), true}}
}

// belongs reports a record or journal of another platform or environment.
func (d *Dir) belongs(st *state, o Options) []problem {
	check := func(p, platform, environment string) []problem {
		if platform == o.Platform && environment == o.Environment {
			return nil
		}
		message := fmt.Sprintf("the folder belongs to environment %s of platform %s, not to %s of %s",
			environment, platform, o.Environment, o.Platform)
		return []problem{{d.at(diag.New(diag.ForeignRecord, message), p), false}}
	}
	if r := st.record; r != nil {
		return check(recordPath, r.Platform, r.Environment)
	}
	if j := st.journal; j != nil {
		return check(journalPath, j.Platform, j.Environment)
	}
	return nil
}

// foreign reports that what stands at p is not kalypso's.
func (d *Dir) foreign(p, what string) diag.Diagnostic {
	return d.at(diag.New(diag.ForeignFile, p+" "+what), p)
}

// at points a diagnostic to a path in the folder, as the user would open it.
func (d *Dir) at(report diag.Diagnostic, p string) diag.Diagnostic {
	return report.In(model.Position{File: d.display(p), Line: 1, Column: 1}, "")
}
