package tree

import (
	"errors"
	"os"
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
// of the index, by path in it. It looks at each file, and reads none. Unlike a build it follows
// folders that are symbolic links: who needs to know looks at the folders.
func (u *Unchanged) Files(name string, yield func(path string, b Blob)) error {
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
