package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/backends"
)

// carryOut makes the changes of a plan, in the order that lets the next run go
// on from any of them.
func (d *Dir) carryOut(p *plan) error {
	w := &writer{disk: d.disk(), plan: p, workers: d.workers}
	if err := w.tidy(); err != nil {
		return err
	}
	if err := w.ignore(); err != nil {
		return err
	}
	if len(p.files) > 0 || len(p.removed) > 0 || p.before.journal != nil {
		if err := w.writeTree(); err != nil {
			return err
		}
	}
	if p.recorded {
		if err := w.replace(recordPath, p.nextBytes); err != nil {
			return err
		}
	}
	return w.remove(journalPath)
}

type writer struct {
	disk
	*plan
	workers int
}

// tidy removes what a killed write left under temporary names, and the folders
// that it left empty.
func (w *writer) tidy() error {
	for _, p := range w.before.litter {
		if err := w.remove(p); err != nil {
			return err
		}
	}
	j := w.before.journal
	if j == nil {
		return nil
	}
	if err := w.unstage(j.Write); err != nil {
		return err
	}
	return w.prune(folders(j.paths()))
}

// unstage removes staged files.
func (w *writer) unstage(paths []string) error {
	s := newSurvey(w.root)
	for _, p := range paths {
		there, err := s.look(tempPath(p))
		if err != nil {
			return err
		}
		if there.kind == nothing {
			continue
		}
		if err := w.remove(tempPath(p)); err != nil {
			return err
		}
	}
	return nil
}

// ignore keeps the lock and the journal out of git.
func (w *writer) ignore() error {
	there, err := newSurvey(w.root).look(gitignorePath)
	if err != nil || there.kind != nothing {
		return err
	}
	return w.replace(gitignorePath, []byte(gitignore))
}

// writeTree makes the files those of the tree. All are written before the first
// is put into its place, and all are in place before others are removed, so that
// a folder is half new only for as long as the renames take.
func (w *writer) writeTree() error {
	journal, err := encode(journalOf(w.plan, w.before))
	if err != nil {
		return err
	}
	if err := w.replace(journalPath, journal); err != nil {
		return err
	}
	if err := w.makeWay(); err != nil {
		return err
	}
	if err := w.stageAll(); err != nil {
		return errors.Join(err, w.withdraw())
	}
	for dir, files := range byFolder(w.files) {
		err := w.in(dir, func(in *os.Root) error {
			for _, f := range files {
				if err := w.swap(in, f.Path); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, p := range w.last {
		if err := w.remove(p); err != nil {
			return err
		}
	}
	return w.prune(folders(w.removed))
}

// makeWay removes what stands where a folder has to be, and the folders that
// stand where a file has to be.
func (w *writer) makeWay() error {
	for _, p := range w.first {
		if err := w.remove(p); err != nil {
			return err
		}
	}
	for _, dir := range w.empty {
		if err := w.removeEmpty(dir); err != nil {
			return err
		}
	}
	return nil
}

// removeEmpty removes a folder in which there are only folders and temporary
// files, if tidy did not.
func (w *writer) removeEmpty(dir string) error {
	entries, err := fs.ReadDir(w.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := dir + "/" + e.Name()
		switch {
		case e.IsDir():
			err = w.removeEmpty(p)
		case isTemp(p):
			err = w.remove(p)
		default:
			err = fmt.Errorf("%s was not there a moment ago", p)
		}
		if err != nil {
			return err
		}
	}
	return w.remove(dir)
}

// syncAtOnce is from how many files on the file system is asked once to write
// all that it holds, instead of file by file. Fewer files would wait too long
// for what others have written.
const syncAtOnce = 256

// stageAll writes all files under their temporary names, down to the disk.
//
// A file is in its place, after a crash of the machine too, old or new and whole,
// because its content is on the disk before the rename is asked for. It does not
// matter how: a sync of the file system says as much as one of each file
// (sync(2), since Linux 5.8 with its errors), and takes far less time for
// thousands of files, each of which would wait for the file system's journal.
func (w *writer) stageAll() error {
	for _, dir := range folders(w.written()) {
		if err := w.mkdir(dir); err != nil {
			return err
		}
	}
	atOnce := canSyncAll && len(w.files) >= syncAtOnce
	var g errgroup.Group
	g.SetLimit(w.workers)
	for dir, files := range byFolder(w.files) {
		g.Go(func() error {
			return w.in(dir, func(in *os.Root) error {
				for _, f := range files {
					if err := w.stage(in, f.Path, f.Data, !atOnce); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	if err := g.Wait(); err != nil || !atOnce {
		return err
	}
	return w.syncAll()
}

// byFolder yields files that are next to each other and in one folder.
func byFolder(files []backends.File) iter.Seq2[string, []backends.File] {
	return func(yield func(string, []backends.File) bool) {
		for len(files) > 0 {
			dir := path.Dir(files[0].Path)
			n := slices.IndexFunc(files, func(f backends.File) bool { return path.Dir(f.Path) != dir })
			if n < 0 {
				n = len(files)
			}
			if !yield(dir, files[:n]) {
				return
			}
			files = files[n:]
		}
	}
}

// withdraw leaves the tree as it was, after an error before the first rename.
// What made way is gone, and an earlier write is still unfinished: then the
// journal stays.
func (w *writer) withdraw() error {
	if err := w.unstage(w.written()); err != nil {
		return err
	}
	if err := w.prune(folders(w.written())); err != nil {
		return err
	}
	if w.before.journal != nil || len(w.first) > 0 {
		return nil
	}
	return w.remove(journalPath)
}

// prune removes those of the folders that are empty. They are given inner ones
// first.
func (w *writer) prune(dirs []string) error {
	s := newSurvey(w.root)
	for _, dir := range dirs {
		there, err := s.look(dir)
		if err != nil {
			return err
		}
		if there.kind != folder {
			continue
		}
		entries, err := fs.ReadDir(w.root.FS(), dir)
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			continue
		}
		if err := w.remove(dir); err != nil {
			return err
		}
	}
	return nil
}
