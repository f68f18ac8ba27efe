package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
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
	if p.before.journal != nil || slices.ContainsFunc(p.parts, (*part).changes) {
		if err := w.writeTree(); err != nil {
			return err
		}
	}
	if p.header {
		if err := w.replace(recordPath, p.nextBytes); err != nil {
			return err
		}
	}
	if err := w.forget(); err != nil {
		return err
	}
	if err := w.remove(journalPath); err != nil {
		return err
	}
	return (&indexing{disk: w.disk, plan: p, staged: w.staged}).write()
}

// changes says whether a write does something in the cluster type's folder, or
// with its record.
func (p *part) changes() bool {
	return p.record || len(p.missing) > 0 || len(p.removed) > 0 || p.next == nil && p.before != nil
}

type writer struct {
	disk
	*plan
	workers int
	staged  time.Time // when all files were written
}

// forget removes the records of cluster types that went.
func (w *writer) forget() error {
	gone := map[string]bool{}
	for _, p := range w.parts {
		gone[p.name] = p.next == nil && p.before != nil
	}
	if j := w.before.journal; j != nil {
		for name := range j.Records {
			gone[name] = gone[name] || w.next.entry(name) == nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		if gone[name] {
			if err := w.remove(ClusterTypeRecordPath(name)); err != nil {
				return err
			}
		}
	}
	return nil
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
	if err := w.unstage(slices.Concat(j.Write, j.recordPaths())); err != nil {
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
// a folder is half new only for as long as the renames take. The records of the
// cluster types come last: one that is new describes what is there.
func (w *writer) writeTree() error {
	j := journalOf(w.plan)
	if err := w.replaceWith(journalPath, func(out io.Writer) error { return w.writeJournal(out, j) }); err != nil {
		return err
	}
	if err := w.makeWay(); err != nil {
		return err
	}
	if err := w.stageAll(); err != nil {
		return errors.Join(err, w.withdraw(j))
	}
	w.staged = time.Now()
	if err := w.swapAll(); err != nil {
		return err
	}
	var removed []string
	for _, p := range w.parts {
		for _, path := range p.last {
			if err := w.remove(path); err != nil {
				return err
			}
		}
		removed = append(removed, p.removed...)
	}
	if err := w.prune(folders(removed)); err != nil {
		return err
	}
	return w.swapRecords()
}

// swapRecords puts the staged records of cluster types into their places, where
// they are on the disk before the environment's record says so.
func (w *writer) swapRecords() error {
	if !slices.ContainsFunc(w.parts, func(p *part) bool { return p.record }) {
		return nil
	}
	return w.in(recordsFolder, func(in *os.Root) error {
		for _, p := range w.parts {
			if !p.record {
				continue
			}
			if err := w.swap(in, ClusterTypeRecordPath(p.name)); err != nil {
				return err
			}
		}
		return w.syncFolder(in, recordsFolder)
	})
}

// swapAll puts all staged files of the tree into their places.
func (w *writer) swapAll() error {
	var g errgroup.Group
	g.SetLimit(min(w.workers, runtime.GOMAXPROCS(0)))
	for _, p := range w.parts {
		for _, m := range p.missing {
			g.Go(func() error { return w.swapInto(m) })
		}
	}
	return g.Wait()
}

func (w *writer) swapInto(m missing) error {
	for dir, names := range m.byFolder {
		err := w.in(dir, func(in *os.Root) error {
			for _, name := range names {
				if err := w.swap(in, m.dir+"/"+name); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// makeWay removes what stands where a folder has to be, and the folders that
// stand where a file has to be.
func (w *writer) makeWay() error {
	for _, p := range w.parts {
		for _, path := range p.first {
			if err := w.remove(path); err != nil {
				return err
			}
		}
		for _, dir := range p.empty {
			if err := w.removeEmpty(dir); err != nil {
				return err
			}
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
	n := 0
	for _, p := range w.parts {
		for _, m := range p.missing {
			n += len(m.names)
		}
	}
	atOnce := canSyncAll && n >= syncAtOnce
	if err := w.mkdir(recordsFolder); err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(w.workers)
	var failed atomic.Bool
	stage := func(f func() error) {
		g.Go(func() error {
			if failed.Load() {
				return nil
			}
			err := f()
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	for _, p := range w.parts {
		if !p.record && len(p.missing) == 0 {
			continue
		}
		out, err := p.remake(w.before.record)
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		if p.record {
			stage(func() error {
				return w.in(recordsFolder, func(in *os.Root) error {
					return w.stage(in, ClusterTypeRecordPath(p.name), out.encoded, permissions(false), !atOnce)
				})
			})
		}
		for _, m := range p.missing {
			stage(func() error { return w.stageInto(out, m, !atOnce) })
		}
	}
	if err := g.Wait(); err != nil || !atOnce {
		return err
	}
	return w.syncAll()
}

// stageInto writes files of a group under their temporary names. Their folders
// are made.
func (w *writer) stageInto(out *outcome, m missing, sync bool) error {
	made, err := out.read(m)
	if err != nil {
		return err
	}
	for dir, names := range m.byFolder {
		if err := w.mkdir(dir); err != nil {
			return err
		}
		err := w.in(dir, func(in *os.Root) error {
			for _, f := range made[:len(names)] {
				if err := w.stage(in, m.dir+"/"+f.Path, f.Data, permissions(f.Executable), sync); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		made = made[len(names):]
	}
	return nil
}

// byFolder yields the files that are next to each other and in one folder, with
// the folder.
func (m missing) byFolder(yield func(string, []string) bool) {
	for names := m.names; len(names) > 0; {
		dir := path.Dir(names[0])
		n := slices.IndexFunc(names, func(name string) bool { return path.Dir(name) != dir })
		if n < 0 {
			n = len(names)
		}
		if !yield(path.Join(m.dir, dir), names[:n]) {
			return
		}
		names = names[n:]
	}
}

// withdraw leaves the tree as it was, after an error before the first rename.
// What made way is gone, and an earlier write is still unfinished: then the
// journal stays.
func (w *writer) withdraw(j *journal) error {
	var written []string
	madeWay := false
	for _, p := range w.parts {
		written = slices.AppendSeq(written, p.written)
		madeWay = madeWay || len(p.first) > 0
	}
	if err := w.unstage(slices.Concat(written, j.recordPaths())); err != nil {
		return err
	}
	if err := w.prune(folders(written)); err != nil {
		return err
	}
	if w.before.journal != nil || madeWay {
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
