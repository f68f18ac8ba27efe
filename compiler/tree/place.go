package tree

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// change is what a write does in one folder: in that of an assignment, or in that of
// the cluster type, without those of the assignments.
type change struct {
	dir     string
	missing []missing
	// first are the paths of files to be removed that block others, last
	// those of the others. empty are the folders that stand where a file has to be.
	first, last []string
	empty       []string
	// whole says that the folder is replaced at once, by one that has all that it has to
	// have: more than one file of an assignment changes.
	whole bool
	// new says that there is no such folder yet.
	new bool
	// within says that the folder is in that of the cluster type.
	within bool
}

// changesOf returns the changes of a part, by folder. assigned says whether a cluster
// type's folder is that of an assignment, now or before.
func changesOf(part *typePlan, assigned func(target string) bool) []*change {
	var all []*change
	folders := map[string]*change{}
	in := func(dir string) *change {
		if folders[dir] == nil {
			folders[dir] = &change{dir: dir, within: dir != part.name}
			all = append(all, folders[dir])
		}
		return folders[dir]
	}
	dirOf := func(p string) string {
		rest := strings.TrimPrefix(p, part.name+"/")
		if target, _, within := strings.Cut(rest, "/"); within && assigned(target) {
			return part.name + "/" + target
		}
		return part.name
	}
	shared := map[string]bool{} // folders that get files of the cluster type's own as well
	for _, m := range part.missing {
		c := in(m.dir)
		c.missing = append(c.missing, m)
		for _, name := range m.names {
			if dir := dirOf(m.dir + "/" + name); dir != m.dir {
				shared[dir] = true
			}
		}
	}
	for _, dir := range part.empty {
		c := in(dirOf(dir))
		c.empty = append(c.empty, dir)
	}
	inTheWay := obstacles(part)
	for _, name := range part.removed {
		c := in(dirOf(name))
		if inTheWay(name) {
			c.first = append(c.first, name)
		} else {
			c.last = append(c.last, name)
		}
	}
	for _, c := range all {
		files := len(c.first) + len(c.last)
		for _, m := range c.missing {
			files += len(m.names)
		}
		// Where a file takes the place of the folder, that has to go before.
		c.whole = files > 1 && c.dir != part.name && !slices.Contains(part.empty, c.dir) && !shared[c.dir]
	}
	return all
}

// obstacles returns a function that says whether a file to be removed blocks another: where a
// folder has to be, or in a folder that stands where a file has to be.
func obstacles(p *typePlan) func(string) bool {
	if len(p.removed) == 0 {
		return nil
	}
	around := map[string]bool{}
	for _, dir := range folders(slices.Collect(p.written)) {
		around[dir] = true
	}
	return func(name string) bool {
		if around[name] {
			return true
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if slices.Contains(p.empty, dir) {
				return true
			}
		}
		return false
	}
}

// Several files of an assignment change in one step, so that whoever reads its folder,
// also after the process was killed, finds all of them old or all of them new: the
// staged folder gets links of everything that stays, and the two folders change places.
// Where the file system cannot do that, the files are replaced one by one.

// each calls a function for the changes that it is for, several at once.
func (w *writer) each(is func(*change) bool, do func(*change) error) error {
	var g errgroup.Group
	g.SetLimit(min(w.workers, runtime.GOMAXPROCS(0)))
	for _, p := range w.parts {
		for _, c := range p.changes {
			if is(c) {
				g.Go(func() error { return do(c) })
			}
		}
	}
	return g.Wait()
}

// completeAll gives the staged folders what stays in those that they replace.
func (w *writer) completeAll() error {
	return w.each(func(c *change) bool { return c.whole }, func(c *change) error {
		changed := map[string]bool{}
		for _, p := range slices.Concat(c.first, c.last) {
			changed[p] = true
		}
		for _, m := range c.missing {
			for _, name := range m.names {
				changed[m.dir+"/"+name] = true
			}
		}
		switch err := w.complete(c.dir, changed); {
		case errors.Is(err, errNoLink) || errors.Is(err, fs.ErrPermission):
			c.whole = false
		case errors.Is(err, fs.ErrNotExist):
			c.new = true
		case err != nil:
			return err
		}
		return nil
	})
}

// errNoLink is an error of a file system without hard links, or of one that does not
// allow any to another user's file.
var errNoLink = errors.New("it cannot be linked")

// complete links what is in a folder into the staged one, but for what changes.
func (w *writer) complete(dir string, changed map[string]bool) error {
	info, err := w.root.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir(): // a file that goes
		return fs.ErrNotExist
	}
	entries, err := fs.ReadDir(w.root.FS(), dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := dir + "/" + e.Name()
		switch {
		case changed[p]:
		case e.IsDir():
			err = w.complete(p, changed)
		default:
			if err = w.mkdir(stagedPath(dir)); err == nil {
				err = w.step("link", p)
			}
			if err != nil {
				return err
			}
			if err := w.root.Link(p, stagedPath(p)); err != nil {
				return errors.Join(errNoLink, err)
			}
		}
		if err != nil {
			return err
		}
	}
	staged, err := w.root.Lstat(stagedPath(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if len(entries) > 0 { // there were only files that go
			return nil
		}
		if err := w.mkdir(stagedPath(dir)); err != nil {
			return err
		}
	case err != nil:
		return err
	case staged.Mode() == info.Mode():
		return nil
	}
	return w.root.Chmod(stagedPath(dir), info.Mode()&(fs.ModePerm|fs.ModeSetgid|fs.ModeSticky))
}

// place puts everything that is staged into its place, and removes what goes: the
// folders of assignments first and the cluster types' own files, which name them, after
// them, so that those name what is there.
func (w *writer) place() error {
	piecemeal := func(c *change) bool { return !c.whole }
	for _, makeWay := range []func(*change) error{w.removeFirst, w.removeEmpties} {
		if err := w.each(piecemeal, makeWay); err != nil {
			return err
		}
	}
	for _, p := range w.parts {
		if len(p.missing) > 0 {
			if err := w.mkdir(p.name); err != nil {
				return err
			}
		}
	}
	if err := w.each(func(c *change) bool { return c.within && len(c.missing) > 0 }, w.replaceFolder); err != nil {
		return err
	}
	if err := w.each(func(c *change) bool { return !c.within }, w.putFiles); err != nil {
		return err
	}
	if err := w.each(func(c *change) bool { return c.whole && len(c.missing) == 0 }, w.replaceFolder); err != nil {
		return err
	}
	var removed []string
	for _, p := range w.parts {
		for _, c := range p.changes {
			if c.whole {
				continue
			}
			if err := w.remove(c.last...); err != nil {
				return err
			}
		}
		removed = append(removed, p.removed...)
	}
	return w.prune(folders(removed))
}

// replaceFolder puts a staged folder into its place, and what was there into the
// staging folder.
func (w *writer) replaceFolder(c *change) error {
	if !c.whole {
		return w.putFiles(c)
	}
	if c.new {
		return w.put(c.dir)
	}
	_, err := w.root.Lstat(stagedPath(c.dir))
	replace := w.exchange
	if errors.Is(err, fs.ErrNotExist) { // nothing stays
		replace = (*os.Root).Rename
		if err := w.mkdir(path.Dir(stagedPath(c.dir))); err != nil {
			return err
		}
	}
	if err := w.step("rename", c.dir); err != nil {
		return err
	}
	err = replace(w.root, c.dir, stagedPath(c.dir))
	if err == nil {
		return nil
	}
	c.whole = false // folders cannot be renamed here, as in a layer of an overlay
	if err := errors.Join(w.removeFirst(c), w.removeEmpties(c)); err != nil {
		return err
	}
	return w.putFiles(c)
}

// putFiles puts the staged files of a change into their places, one by one.
func (w *writer) putFiles(c *change) error {
	for _, m := range c.missing {
		for dir, names := range m.byFolder {
			if err := w.mkdir(dir); err != nil {
				return err
			}
			for _, name := range names {
				if err := w.put(m.dir + "/" + name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeFirst removes the files that stand where a folder has to be, or in a folder that
// stands where a file has to be.
func (w *writer) removeFirst(c *change) error { return w.remove(c.first...) }

// removeEmpties removes the folders that stand where a file has to be.
func (w *writer) removeEmpties(c *change) error {
	for _, dir := range c.empty {
		if err := w.removeEmpty(dir); err != nil {
			return err
		}
	}
	return nil
}

// removeEmpty removes a folder in which there are only folders and temporary
// files.
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
			err = errors.New(p + " was not there a moment ago")
		}
		if err != nil {
			return err
		}
	}
	return w.remove(dir)
}

// unstage removes the staging folder, in which there is, after a write, what was
// replaced or removed. mine are paths of files that are not to be in their places any
// more, or not yet. What else is not there was put into a folder by somebody while it was
// replaced, and goes back.
func (w *writer) unstage(mine []string) error {
	entries, err := fs.ReadDir(w.root.FS(), stagingFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	goes := map[string]bool{}
	for _, p := range mine {
		goes[p] = true
	}
	var g errgroup.Group
	g.SetLimit(min(w.workers, runtime.GOMAXPROCS(0)))
	var failed atomic.Bool
	for _, e := range entries {
		g.Go(func() error {
			if failed.Load() {
				return nil
			}
			err := w.unstageIn(e.Name(), e.IsDir(), goes)
			failed.Store(err != nil)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return w.remove(stagingFolder)
}

// unstageIn removes what is staged at p. A file goes back to its place unless it is one of goes,
// kalypso's own, or what is in its place.
func (w *writer) unstageIn(p string, isFolder bool, goes map[string]bool) error {
	if !isFolder {
		if goes[p] || strings.HasPrefix(p, ownFolder) {
			return w.remove(stagedPath(p))
		}
		if there, err := w.root.Lstat(p); err == nil {
			is, err := w.root.Lstat(stagedPath(p))
			// What was written meanwhile, and is not what was linked, is somebody else's.
			if err != nil || os.SameFile(there, is) || !w.began.Before(is.ModTime()) || w.staged.IsZero() {
				return w.remove(stagedPath(p))
			}
		}
		if err := w.mkdir(path.Dir(p)); err != nil {
			return err
		}
		return w.put(p)
	}
	// Folders in which nobody may write have kept their modes.
	if info, err := w.root.Lstat(stagedPath(p)); err == nil && info.Mode()&0o700 != 0o700 {
		if err := w.root.Chmod(stagedPath(p), 0o700); err != nil {
			return err
		}
	}
	entries, err := fs.ReadDir(w.root.FS(), stagedPath(p))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.unstageIn(p+"/"+e.Name(), e.IsDir(), goes); err != nil {
			return err
		}
	}
	return w.remove(stagedPath(p))
}
