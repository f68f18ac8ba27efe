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

// change describes the changes of a write in one folder: the folder of an assignment, or the folder
// of the cluster type without its assignments.
type change struct {
	dir     string
	missing []missingFile
	// first are the paths of removed files that block others, and last the other removed files.
	// empty are the folders in the places of new files.
	first, last []string
	empty       []string
	// whole means that a complete new folder replaces this one at once, because more than one file
	// of an assignment changes.
	whole bool
	// new means that the folder does not exist yet.
	new bool
	// within means that the folder is inside the cluster type's folder.
	within bool
}

// changesOf returns the changes of a part, by folder. assigned reports whether a folder belongs to
// an assignment, now or before.
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
	shared := map[string]bool{} // folders that also get files of the cluster type itself
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
		// If a file replaces the folder, the folder must be removed first.
		c.whole = files > 1 && c.dir != part.name && !slices.Contains(part.empty, c.dir) && !shared[c.dir]
	}
	return all
}

// obstacles returns a function that reports whether a removed file blocks a new one. Such a file is
// in the place of a new folder, or in a folder in the place of a new file.
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

// Several files of an assignment change in one step. A reader of the folder therefore finds all of
// them old or all of them new, even if the process was killed. The staged folder gets links to the
// unchanged files, and the two folders are exchanged. If the file system cannot do that, the files
// are replaced one by one.

// each calls do for the changes that is selects, several at once.
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

// completeAll adds the unchanged files to the staged folders.
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

// errNoLink is an error of a file system without hard links, or of one that does not allow hard
// links to another user's file.
var errNoLink = errors.New("it cannot be linked")

// complete links the files of a folder into the staged one, except the changed files.
func (w *writer) complete(dir string, changed map[string]bool) error {
	info, err := w.root.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir(): // a file that is removed
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
		if len(entries) > 0 { // there were only removed files
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

// place moves every staged file into its place, and removes the obsolete files. The folders of
// assignments come first, and then the cluster types' own files, which name them. So these files
// always name existing folders.
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
	if err := w.each(func(c *change) bool { return c.within && len(c.missing) > 0 },
		w.replaceFolder); err != nil {
		return err
	}
	if err := w.each(func(c *change) bool { return !c.within }, w.putFiles); err != nil {
		return err
	}
	if err := w.each(func(c *change) bool { return c.whole && len(c.missing) == 0 },
		w.replaceFolder); err != nil {
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

// replaceFolder moves a staged folder into its place, and the old folder into the staging folder.
func (w *writer) replaceFolder(c *change) error {
	if !c.whole {
		return w.putFiles(c)
	}
	if c.new {
		return w.put(c.dir)
	}
	_, err := w.root.Lstat(stagedPath(c.dir))
	replace := w.exchange
	if errors.Is(err, fs.ErrNotExist) { // nothing of the folder stays
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

// putFiles moves the staged files of a change into their places, one by one.
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

// removeFirst removes the files in the places of new folders, and the files in folders that are in
// the places of new files.
func (w *writer) removeFirst(c *change) error { return w.remove(c.first...) }

// removeEmpties removes the folders in the places of new files.
func (w *writer) removeEmpties(c *change) error {
	for _, dir := range c.empty {
		if err := w.removeEmpty(dir); err != nil {
			return err
		}
	}
	return nil
}

// removeEmpty removes a folder that contains only folders and temporary files. Any other
// file is an error.
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

// unstage removes the staging folder. After a write it contains the replaced and the removed
// files. mine are the paths of files that must not be in their places any more, or not yet. If
// any other file is missing from its place, someone added it to a folder during the exchange,
// and unstage moves it back.
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

// unstageIn removes the staged files at p. A file moves back to its place unless it is in goes,
// belongs to kalypso itself, or is already in its place.
func (w *writer) unstageIn(p string, isFolder bool, goes map[string]bool) error {
	if !isFolder {
		if goes[p] || strings.HasPrefix(p, ownFolder) {
			return w.remove(stagedPath(p))
		}
		if there, err := w.root.Lstat(p); err == nil {
			is, err := w.root.Lstat(stagedPath(p))
			// If a file is new since the write began, and not a link, someone else wrote it.
			if err != nil || os.SameFile(there, is) || !w.began.Before(is.ModTime()) || w.staged.IsZero() {
				return w.remove(stagedPath(p))
			}
		}
		if err := w.mkdir(path.Dir(p)); err != nil {
			return err
		}
		return w.put(p)
	}
	// Folders without write permission have kept their modes.
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
