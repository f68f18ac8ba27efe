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

// carryOut makes the changes of a plan, in an order that lets the next run
// continue after any of them.
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

// differs reports whether a write changes the cluster type's folder, or adds, changes or
// removes its record.
func (p *typePlan) differs() bool {
	return p.record || len(p.missing) > 0 || len(p.removed) > 0 || p.next == nil && p.before != nil
}

// writer carries out a plan.
type writer struct {
	disk
	*writePlan
	workers int
	staged  time.Time // when all files were written
}

// obsoleteRecords returns the paths of the records of cluster types that the
// tree no longer has, sorted.
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

// tidy removes the remains of a killed write: staged files, and empty folders. It also keeps the
// lock and the journal out of git, if the folder has no .gitignore of its own.
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

// writeTree makes the files match the tree. It writes all files before it moves the first into its
// place, and moves all before it removes others. The records of the cluster types come last: a new
// record always describes the actual files.
func (w *writer) writeTree(ctx context.Context) error {
	j := journalOf(w.writePlan)
	if err := w.replace(journalPath,
		func(out io.Writer) error { return w.writeJournal(out, j) }); err != nil {
		return err
	}
	if err := w.stageAll(ctx); err != nil {
		// Nothing is in its place yet, so the tree is unchanged. If an earlier write is still
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
		err := w.inFolder(recordsFolder,
			func(in *os.Root) error { return w.syncFolder(in, recordsFolder) })
		if err != nil {
			return err
		}
	}
	return w.unstage(removed)
}

// syncAtOnce is the number of files from which one sync of the whole file system replaces
// a sync of each file. With fewer files, a sync of everything would wait too long for
// other programs' changes.
const syncAtOnce = 256

// stageAll writes all files into the staging folder, and syncs them to the disk.
//
// After a crash of the machine, each file is old or new, and complete, because its
// content is on the disk before the rename. The method does not matter. A sync of the
// file system is as good as one of each file (sync(2); it reports errors since Linux
// 5.8). It takes far less time for thousands of files, because each single sync would
// wait for the file system's journal.
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
				return w.inFolder(stagedPath(recordsFolder), func(in *os.Root) error {
					return w.write(in, stagedPath(ClusterTypeRecordPath(p.name)), permissions(false),
						bytesOf(out.encoded), !syncAll)
				})
			})
		}
		in(&makers, func() error {
			return out.read(ctx, p.missing, func(m missingFile, made []backends.File) error {
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
func (w *writer) stageInto(m missingFile, made []backends.File, sync bool) error {
	for dir, names := range m.byFolder {
		if err := w.mkdir(stagedPath(dir)); err != nil {
			return err
		}
		err := w.inFolder(stagedPath(dir), func(in *os.Root) error {
			for _, f := range made[:len(names)] {
				if err := w.write(in, stagedPath(m.dir+"/"+f.Path), permissions(f.Executable), bytesOf(f.Data),
					sync); err != nil {
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

// byFolder yields the files that are next to each other and in one folder, with the folder.
func (m missingFile) byFolder(yield func(string, []string) bool) {
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

// prune removes the folders that are empty. The caller must list inner folders first.
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

// disk makes the changes to a folder. No other code changes it, so that tests
// can make each change fail.
type disk struct {
	root *os.Root
	step func(op, path string) error
	// exchange exchanges two folders in one step. It fails if the file system cannot do that.
	exchange func(root *os.Root, a, b string) error
}

func (d *Dir) disk() disk { return disk{d.root, d.step, d.exchange} }

// mkdir makes a folder and its parent folders.
func (k disk) mkdir(dir string) error {
	if err := k.step("mkdir", dir); err != nil {
		return err
	}
	return k.root.MkdirAll(dir, 0o755)
}

// writing is a function that writes a file's content, once.
type writing func(io.Writer) error

// bytesOf writes content that is in memory.
func bytesOf(data []byte) writing {
	return func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	}
}

// write makes the file at p, and syncs it to the disk if sync is true. in is its folder.
func (k disk) write(in *os.Root, p string, perm fs.FileMode, content writing, sync bool) error {
	f, err := k.create(in, p, perm)
	if err != nil {
		return err
	}
	defer f.Close() // a second time, except after an error
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

// create makes a file that is not in its place yet. in is its folder. The umask restricts perm.
func (k disk) create(in *os.Root, p string, perm fs.FileMode) (*os.File, error) {
	if err := k.step("create", p); err != nil {
		return nil, err
	}
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := in.OpenFile(path.Base(p), flags, perm)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	// A killed write left this file, and nothing else has found it.
	if err := k.remove(p); err != nil {
		return nil, err
	}
	return in.OpenFile(path.Base(p), flags, perm)
}

// swap moves a file from its temporary name into its place. in is the file's folder.
func (k disk) swap(in *os.Root, p string) error {
	if err := k.step("rename", p); err != nil {
		return err
	}
	return in.Rename(path.Base(tempPath(p)), path.Base(p))
}

// put moves a staged file or folder into its place.
func (k disk) put(p string) error {
	if err := k.step("rename", p); err != nil {
		return err
	}
	return k.root.Rename(stagedPath(p), p)
}

// inFolder calls a function with a folder. Every operation on a path looks it up from the
// root, folder by folder, which costs more than most operations. inFolder does that once for
// several files of a folder.
func (k disk) inFolder(dir string, f func(*os.Root) error) error {
	in, err := k.root.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(f(in), in.Close())
}

// replace writes one of kalypso's own files atomically.
func (k disk) replace(p string, content writing) error {
	return k.inFolder(path.Dir(p), func(in *os.Root) error {
		if err := k.write(in, tempPath(p), permissions(false), content, true); err != nil {
			return err
		}
		return k.swap(in, p)
	})
}

// syncFolder writes the names in a folder to the disk, if the system can. in is the folder.
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

// remove removes the files that exist, in this order.
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
