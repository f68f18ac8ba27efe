package tree

import (
	"errors"
	"path"
)

// loadIndex reads the index; nil where it says nothing.
func (d *Dir) loadIndex(s *survey, st *state) (*index, error) {
	if st.record == nil {
		return nil, nil
	}
	record, err := s.look(recordPath)
	if err != nil || record.kind != regular {
		return nil, err
	}
	there, err := s.look(indexPath)
	if err != nil || there.kind != regular || there.info.Size() > maxOwnFile {
		return nil, err
	}
	data, err := d.root.ReadFile(indexPath)
	if err != nil {
		return nil, nil // it is a cache
	}
	return parseIndex(data, BlobID(st.recordBytes), statOf(record.info)), nil
}

// statResult has the entries of a cluster type's files in the index after a look at each
// of them.
type statResult struct {
	section *section
	files   int
	// unsure are the files that have to be read, by path in the environment.
	unsure []unsure
}

type unsure struct {
	path string
	entry
}

// statAll looks at the files of a section of the index; nil where there is none.
// The entries of those that do not look as they did become doubtful.
func (pl *planner) statAll(name string) (*statResult, error) {
	section := pl.index.section(name)
	if section == nil {
		return nil, nil
	}
	s, err := openScanner(pl.dir.root)
	if err != nil {
		return nil, err
	}
	seen := &statResult{section: section}
	inside, last, there := false, "", false
	wellFormed := seen.section.each(func(dir, file string, e entry) {
		if !inside || dir != last {
			inside, last = true, dir
			there = s.enter(path.Join(name, dir))
		}
		seen.files++
		if e.trust() == trusted && there {
			if is, ok := s.stat(file, e.executable()); ok && is == e.stat() {
				return
			}
		}
		e.setTrust(doubtful)
		seen.unsure = append(seen.unsure, unsure{path.Join(name, dir, file), e})
	})
	if err := s.close(); err != nil {
		return nil, err
	}
	if !wellFormed {
		return nil, nil
	}
	return seen, nil
}

// resolve reads the files that are unsure. It returns false if one is not what
// the index says.
func (pl *planner) resolve(s surveyor, seen *statResult) (bool, error) {
	for _, f := range seen.unsure {
		if checkPath(f.path) != nil {
			return false, nil // nothing that kalypso wrote: the index lies
		}
		there, err := s.look(f.path)
		if err != nil || there.kind != regular {
			return false, err
		}
		if same, err := s.holds(f.path, there.info, f.blob(), -1); err != nil || !same {
			return false, err
		}
		is := statOf(there.info)
		f.setStat(is)
		f.setTrust(compared)
		pl.compared(is)
	}
	return true, nil
}

// known returns the entries of the files that are as the index says, by path in
// the environment; none of a nil statResult.
func (seen *statResult) known(name string) map[string]entry {
	known := map[string]entry{}
	if seen == nil {
		return known
	}
	seen.section.each(func(dir, file string, e entry) {
		if e.trust() != doubtful {
			known[path.Join(name, dir, file)] = e
		}
	})
	return known
}

// compared notes that a file was read, so that the next write may not have to.
func (pl *planner) compared(is stat) {
	if is.before(pl.began.Add(-tick)) {
		pl.learnt.Store(true)
	}
}

// intactRecords returns the cluster types whose own records are, by the index, as
// the environment's record says.
func (pl *planner) intactRecords() (map[string]bool, error) {
	intact := map[string]bool{}
	seen, err := pl.statAll(ownFolder)
	if err != nil || seen == nil {
		return intact, err
	}
	ids := seen.known(ownFolder)
	for _, e := range pl.before.record.ClusterTypes {
		if known, there := ids[ClusterTypeRecordPath(e.Name)]; there && known.blob() == (Blob{ID: e.Record}) {
			intact[e.Name] = true
		}
	}
	return intact, nil
}

// checkRecord returns a RecordError if the cluster type's own record is not as
// the environment's record says.
func (pl *planner) checkRecord(e *ClusterTypeEntry) error {
	if pl.intact[e.Name] {
		return nil
	}
	data, err := pl.dir.clusterTypeBytes(e)
	if err != nil {
		return err
	}
	_, err = e.parse(data)
	pl.learnt.Store(true)
	return pl.dir.placed(err)
}

// adoptable says whether an error is a record that --adopt goes on without.
func (pl *planner) adoptable(err error) bool {
	var bad *RecordError
	return pl.o.Adopt && errors.As(err, &bad) && bad.adoptable()
}
