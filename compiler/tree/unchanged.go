package tree

import (
	"errors"
	"os"
	"path"
)

// Unchanged tells which files of an environment's folder look as they did when they had the
// content that the record says. It is for one goroutine at a time.
type Unchanged struct {
	root  *os.Root
	index *index // nil where nothing is known
}

// OpenUnchanged opens the environment's folder at dir. If its index says nothing, as in a copied
// folder, no file is known to be unchanged.
func OpenUnchanged(dir string) (*Unchanged, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d, s, u := &Dir{dir: dir, root: root}, newSurvey(root), &Unchanged{root: root}
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
func (u *Unchanged) Close() error { return u.root.Close() }

// Files yields the unchanged files in the folder of a cluster type, or of entries, in the order
// of the index: the folder of each in that folder, its name, and its blob. It looks at each file,
// and reads none.
func (u *Unchanged) Files(name string, yield func(dir, file string, b Blob)) error {
	section := u.index.section(name)
	if section == nil {
		return nil
	}
	s, err := openScanner(u.root)
	if err != nil {
		return err
	}
	s.each(name, section, func(dir, file string, e entry, same bool) {
		if same {
			yield(dir, file, e.blob())
		}
	})
	return s.close()
}

// each looks at the files of a section of the index, which is that of a folder with a name. It
// returns false where the section is not well formed.
func (s *scanner) each(name string, section *section, look func(dir, file string, e entry, same bool)) bool {
	inside, last, there := false, "", false
	return section.each(func(dir, file string, e entry) {
		if !inside || dir != last {
			inside, last = true, dir
			there = s.enter(path.Join(name, dir))
		}
		same := false
		if e.trust() == trusted && there {
			is, ok := s.stat(file, e.executable())
			same = ok && is == e.stat()
		}
		look(dir, file, e, same)
	})
}
