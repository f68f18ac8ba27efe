package tree

import (
	"context"
	"errors"
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

	"github.com/kalypso-io/kalypso/backends"
)

// carryOut makes the changes of a plan, in the order that lets the next run go
// on from any of them.
func (d *Dir) carryOut(ctx context.Context, p *writePlan) error {
	w := &writer{disk: d.disk(), writePlan: p, workers: d.workers}
	if err := w.tidy(); err != nil {
		return err
	}
	if p.before.journal != nil || slices.ContainsFunc(p.parts, (*typePlan).differs) {
		if err := w.writeTree(ctx); err != nil {
			return err
		}
	}
	if p.header {
		if err := w.replace(recordPath, bytesOf(p.nextBytes)); err != nil {
			return err
		}
	}
	if err := w.remove(append(w.obsoleteRecords(), journalPath)...); err != nil {
		return err
	}
	return (&indexing{disk: w.disk, writePlan: p, staged: w.staged}).write()
}

// differs says whether a write does something in the cluster type's folder, or
// with its record.
func (p *typePlan) differs() bool {
	return p.record || len(p.missing) > 0 || len(p.removed) > 0 || p.next == nil && p.before != nil
}

type writer struct {
	disk
	*writePlan
	workers int
	staged  time.Time // when all files were written
}

// obsoleteRecords returns the paths of the records of cluster types that the tree does not have
// any more, sorted.
func (w *writer) obsoleteRecords() []string {
	names := map[string]bool{}
	for _, p := range w.parts {
		names[p.name] = p.next == nil && p.before != nil
	}
	if j := w.before.journal; j != nil {
		for name := range j.Records {
			names[name] = names[name] || w.next.entry(name) == nil
		}
	}
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] {
			paths = append(paths, ClusterTypeRecordPath(name))
		}
	}
	return paths
}

// tidy removes what a killed write left: what it staged, and folders that are empty. It also
// keeps the lock and the journal out of git, if the folder has no .gitignore of its own.
func (w *writer) tidy() error {
	paths := w.before.journal.paths()
	err := w.remove(w.before.litter...)
	if err == nil {
		err = w.unstage(paths)
	}
	if err == nil {
		err = w.prune(folders(paths))
	}
	if err != nil {
		return err
	}
	there, err := newSurvey(w.root).look(gitignorePath)
	if err != nil || there.kind != nothing {
		return err
	}
	return w.replace(gitignorePath, bytesOf([]byte(gitignore)))
}

// writeTree makes the files those of the tree. All are written before the first
// is put into its place, and all are in place before others are removed. The records
// of the cluster types come last: one that is new describes what is there.
func (w *writer) writeTree(ctx context.Context) error {
	j := journalOf(w.writePlan)
	if err := w.replace(journalPath, func(out io.Writer) error { return w.writeJournal(out, j) }); err != nil {
		return err
	}
	if err := w.stageAll(ctx); err != nil {
		// Nothing is in its place yet, so that the tree is as it was. If an earlier write is still
		// unfinished, the journal stays.
		undo := w.step("remove", stagingFolder)
		if undo == nil {
			undo = w.root.RemoveAll(stagingFolder)
		}
		if undo == nil && w.before.journal == nil {
			undo = w.remove(journalPath)
		}
		return errors.Join(err, undo)
	}
	w.staged = time.Now()
	if err := w.place(); err != nil {
		return err
	}
	var removed []string
	records := false
	for _, p := range w.parts {
		removed = append(removed, p.removed...)
		if !p.record {
			continue
		}
		if !records {
			if err := w.mkdir(recordsFolder); err != nil {
				return err
			}
		}
		records = true
		if err := w.put(ClusterTypeRecordPath(p.name)); err != nil {
			return err
		}
	}
	if records { // they are on the disk before the environment's record says so
		err := w.in(recordsFolder, func(in *os.Root) error { return w.syncFolder(in, recordsFolder) })
		if err != nil {
			return err
		}
	}
	return w.unstage(removed)
}

// syncAtOnce is from how many files on the file system is asked once to write
// all that it holds, instead of file by file. Fewer files would wait too long
// for what others have written.
const syncAtOnce = 256

// stageAll writes all files into the staging folder, down to the disk.
//
// A file is in its place, after a crash of the machine too, old or new and whole,
// because its content is on the disk before the rename is asked for. It does not
// matter how: a sync of the file system says as much as one of each file
// (sync(2), since Linux 5.8 with its errors), and takes far less time for
// thousands of files, each of which would wait for the file system's journal.
func (w *writer) stageAll(ctx context.Context) error {
	n := 0
	for _, p := range w.parts {
		for _, m := range p.missing {
			n += len(m.names)
		}
	}
	syncAll := canSyncAll && n >= syncAtOnce
	if err := w.mkdir(stagedPath(recordsFolder)); err != nil {
		return err
	}
	var files, makers errgroup.Group
	files.SetLimit(w.workers)
	makers.SetLimit(runtime.GOMAXPROCS(0))
	var failed atomic.Bool
	in := func(g *errgroup.Group, f func() error) {
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
		out, err := p.remake(ctx, w.before.record)
		if err != nil {
			return errors.Join(err, makers.Wait(), files.Wait())
		}
		if p.record {
			in(&files, func() error {
				return w.in(stagedPath(recordsFolder), func(in *os.Root) error {
					return w.write(in, stagedPath(ClusterTypeRecordPath(p.name)), permissions(false), bytesOf(out.encoded), !syncAll)
				})
			})
		}
		in(&makers, func() error {
			return out.read(ctx, p.missing, func(m missing, made []backends.File) error {
				if failed.Load() {
					return nil
				}
				in(&files, func() error { return w.stageInto(m, made, !syncAll) })
				return nil
			})
		})
	}
	if err := errors.Join(makers.Wait(), files.Wait()); err != nil {
		return err
	}
	if err := w.completeAll(); err != nil || !syncAll {
		return err
	}
	return w.syncAll()
}

// stageInto writes files of a group into the staging folder.
func (w *writer) stageInto(m missing, made []backends.File, sync bool) error {
	for dir, names := range m.byFolder {
		if err := w.mkdir(stagedPath(dir)); err != nil {
			return err
		}
		err := w.in(stagedPath(dir), func(in *os.Root) error {
			for _, f := range made[:len(names)] {
				if err := w.write(in, stagedPath(m.dir+"/"+f.Path), permissions(f.Executable), bytesOf(f.Data), sync); err != nil {
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

// disk makes the changes to a folder: there are no others, so that tests can
// fail each of them.
type disk struct {
	root *os.Root
	step func(op, path string) error
	// exchange lets two folders change places, in one step. It fails where the file
	// system cannot do that.
	exchange func(root *os.Root, a, b string) error
}

func (d *Dir) disk() disk { return disk{d.root, d.step, d.exchange} }

// mkdir makes a folder and those around it.
func (k disk) mkdir(dir string) error {
	if err := k.step("mkdir", dir); err != nil {
		return err
	}
	return k.root.MkdirAll(dir, 0o755)
}

// writing writes a file's content, once.
type writing func(io.Writer) error

// bytesOf writes content that is in memory.
func bytesOf(data []byte) writing {
	return func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	}
}

// write makes the file at p, down to the disk if it is to be synced. in is its folder.
func (k disk) write(in *os.Root, p string, perm fs.FileMode, content writing, sync bool) error {
	f, err := k.create(in, p, perm)
	if err != nil {
		return err
	}
	defer f.Close() // a second time, unless there is an error
	if err := k.step("write", p); err != nil {
		return err
	}
	if err := content(f); err != nil {
		return err
	}
	if sync {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return f.Close()
}

// create makes a file that is not in its place yet. in is its folder. The umask takes
// from perm.
func (k disk) create(in *os.Root, p string, perm fs.FileMode) (*os.File, error) {
	if err := k.step("create", p); err != nil {
		return nil, err
	}
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := in.OpenFile(path.Base(p), flags, perm)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	// Something of a write that was killed, which nobody else has found.
	if err := k.remove(p); err != nil {
		return nil, err
	}
	return in.OpenFile(path.Base(p), flags, perm)
}

// swap puts a file with a temporary name into its place. in is the file's folder.
func (k disk) swap(in *os.Root, p string) error {
	if err := k.step("rename", p); err != nil {
		return err
	}
	return in.Rename(path.Base(tempPath(p)), path.Base(p))
}

// put puts a staged file or folder into its place.
func (k disk) put(p string) error {
	if err := k.step("rename", p); err != nil {
		return err
	}
	return k.root.Rename(stagedPath(p), p)
}

// in calls a function with a folder. A path is looked up from the root in every
// operation, folder by folder, which costs more than most operations: for
// several files of a folder it is done once.
func (k disk) in(dir string, f func(*os.Root) error) error {
	in, err := k.root.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(f(in), in.Close())
}

// replace writes a file of kalypso's own atomically.
func (k disk) replace(p string, content writing) error {
	return k.in(path.Dir(p), func(in *os.Root) error {
		if err := k.write(in, tempPath(p), permissions(false), content, true); err != nil {
			return err
		}
		return k.swap(in, p)
	})
}

// syncFolder writes the names in a folder to the disk, where the system can. in
// is the folder.
func (k disk) syncFolder(in *os.Root, dir string) error {
	if err := k.step("sync", dir); err != nil {
		return err
	}
	f, err := in.Open(".")
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// remove removes the files, in this order, that are there.
func (k disk) remove(paths ...string) error {
	for _, p := range paths {
		if err := k.step("remove", p); err != nil {
			return err
		}
		if err := k.root.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
