package tree

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"
)

// stat has the properties that change with a file. Times are in nanoseconds since 1970, or 0 if the
// system does not have them.
type stat struct {
	size, mtime, ctime int64
	ino                uint64
}

// statOf returns the properties of a file.
func statOf(info fs.FileInfo) stat {
	ctime, ino := changeOf(info)
	return stat{size: info.Size(), mtime: info.ModTime().UnixNano(), ctime: ctime, ino: ino}
}

// before reports whether the last change of the file was before the time.
func (s stat) before(t time.Time) bool { return max(s.mtime, s.ctime) < t.UnixNano() }

// loadIndex reads the index; nil if there is no usable index.
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

// statResult has the entries of a cluster type's files in the index after a check of each file.
type statResult struct {
	section *section
	files   int
	// unsure are the files that must be read, by path in the environment.
	unsure []unsure
}

// unsure is an entry of the index whose file must be read.
type unsure struct {
	path string
	entry
}

// statAll checks the files of a section of the index. It returns nil if there is no section. It
// marks the entries of files that look different as doubtful.
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

// resolve reads the files that are unsure. It returns false if a file differs from the index.
func (pl *planner) resolve(s surveyor, seen *statResult) (bool, error) {
	for _, f := range seen.unsure {
		if checkPath(f.path) != nil {
			return false, nil // kalypso did not write this: the index is wrong
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

// matching returns the entries of the files that match the index, by path in the environment. A nil
// statResult has no entries.
func (seen *statResult) matching(name string) map[string]entry {
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

// compared notes that a file was read, so that the next write may skip it.
func (pl *planner) compared(is stat) {
	if is.before(pl.began.Add(-tick)) {
		pl.learnt.Store(true)
	}
}

// intactRecords returns the cluster types whose own records, according to the index, match the
// environment's record.
func (pl *planner) intactRecords() (map[string]bool, error) {
	intact := map[string]bool{}
	seen, err := pl.statAll(ownFolder)
	if err != nil || seen == nil {
		return intact, err
	}
	ids := seen.matching(ownFolder)
	for _, e := range pl.before.record.ClusterTypes {
		if known, there := ids[ClusterTypeRecordPath(e.Name)]; there &&
			known.blob() == (Blob{ID: e.Record}) {
			intact[e.Name] = true
		}
	}
	return intact, nil
}

// checkRecord returns a RecordError if the cluster type's own record does not match the
// environment's record.
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
	return pl.dir.addLocation(err)
}

// adoptable reports whether an error is about a record, and --adopt continues without the record.
func (pl *planner) adoptable(err error) bool {
	var bad *RecordError
	return pl.o.Adopt && errors.As(err, &bad) && bad.adoptable()
}

// UnchangedFiles lists the files of an environment's folder that look as they did when they had the
// recorded content. It is for one goroutine at a time.
type UnchangedFiles struct {
	root  *os.Root
	index *index // nil if nothing is known
}

// OpenUnchangedFiles opens the environment's folder at dir. If there is no usable index, as in a
// copied folder, it treats no file as unchanged.
func OpenUnchangedFiles(dir string) (*UnchangedFiles, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d, s, u := &Dir{dir: dir, root: root}, newSurvey(root), &UnchangedFiles{root: root}
	d.location = d.display
	record, _, err := d.read(s, recordPath)
	if err == nil && record != nil {
		u.index, err = d.loadIndex(s, &state{record: &Record{}, recordBytes: record})
	}
	if err = errors.Join(err, s.close()); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return u, nil
}

// Close closes the folder.
func (u *UnchangedFiles) Close() error { return u.root.Close() }

// Files yields the unchanged files in the folder of a cluster type, or of entries, in the order of
// the index, by path in that folder. It checks each file, and reads none. Unlike a build it follows
// folders that are symbolic links. Check the folders if that matters.
func (u *UnchangedFiles) Files(name string, yield func(path string, b Blob)) error {
	section := u.index.section(name)
	if section == nil {
		return nil
	}
	s, err := openScanner(u.root)
	if err != nil {
		return err
	}
	if s.enter(name) {
		section.each(func(dir, file string, e entry) {
			p := file
			if dir != "" {
				p = dir + "/" + file
			}
			// One look at the path costs a third of entering the folder.
			if is, there := s.stat(p, e.executable()); there && e.trust() == trusted && is == e.stat() {
				yield(p, e.blob())
			}
		})
	}
	return s.close()
}
