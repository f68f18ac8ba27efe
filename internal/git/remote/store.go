package remote

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/gofrs/flock"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// store is a bare repository with what was fetched: a partial clone, which git
// itself can read and check, and which several processes may add to at once.
//
// All that adds to it is one rename: of a pack, of its index, of the shallow file.
// The shallow file names a commit before the commit can be read, so that nobody
// takes a history that was cut for one that is damaged.
//
// What others are adding has other names, and each process holds a lock that all may hold
// together: who has it alone knows that such a file is of a process that was killed.
type store struct {
	dir     string
	remove  func() error    // removes a temporary store; nil for one that stays
	held    *flock.Flock    // by all who use the store
	objects *git.Repository // brings what is missing
	local   *git.Repository // does not
}

// marks are refs that name the commits which were fetched: git keeps what they refer
// to, and servers are told of them.
const marks = "refs/kalypso/"

// The folders of marks: commits that may lack those before them, and those that lack
// none.
const (
	cut      = "cut/"
	complete = "complete/"
)

// mostMarks is how many marks of a kind are kept: servers are told of all of them.
const mostMarks = 64

// openStore opens the store of a repository in a folder, "" for a temporary one.
func openStore(folder, url string, whole bool) (s *store, err error) {
	s = &store{}
	if folder == "" {
		if folder, s.remove, err = scratch.Dir("fetch"); err != nil {
			return nil, err
		}
	}
	s.dir = filepath.Join(folder, storeName(url, whole))
	if err := s.create(url); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.hold()
	if s.objects, err = git.Open(s.dir); err == nil {
		s.local, err = git.Open(s.dir)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// storeName tells a person which repository a store is of, and the machine that it
// is of no other.
func storeName(url string, whole bool) string {
	last := url[strings.LastIndexAny(strings.TrimRight(url, "/"), "/:")+1:]
	last = strings.TrimSuffix(strings.TrimRight(last, "/"), ".git")
	last = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, last)
	sum := sha256.Sum256(fmt.Append(nil, url, whole))
	return fmt.Sprintf("%s-%x.git", last[:min(len(last), 40)], sum[:8])
}

// create makes the repository under another name and then gives it its own, so that
// it is whole from the beginning for all who look.
func (s *store) create(url string) error {
	if _, err := os.Stat(filepath.Join(s.dir, "HEAD")); err == nil {
		return nil
	}
	folder := filepath.Dir(s.dir)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	return locked(filepath.Join(folder, "kalypso.lock"), func() error {
		if _, err := os.Stat(filepath.Join(s.dir, "HEAD")); err == nil {
			return nil // another process was faster
		}
		made := s.dir + ".new"
		err := os.RemoveAll(made) // that of one which was killed
		if err == nil {
			err = initialize(made, url)
		}
		if err == nil {
			err = os.Rename(made, s.dir)
		}
		if err != nil {
			return errors.Join(err, os.RemoveAll(made))
		}
		return nil
	})
}

// initialize makes a bare repository that may leave objects with a server.
func initialize(dir, url string) error {
	for _, folder := range []string{"objects/pack", "objects/info", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(folder)), 0o777); err != nil {
			return err
		}
	}
	config := "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tpartialClone = origin\n" +
		"[gc]\n\tauto = 0\n[remote \"origin\"]\n\turl = " + quote(url) + "\n\tpromisor = true\n\tpartialclonefilter = blob:none\n"
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// quote writes a value as git's configuration has it.
func quote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value) + `"`
}

// borrow makes a bare repository that also has the objects of another.
func borrow(dir, objects, url string) (*git.Repository, error) {
	if err := initialize(dir, url); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(objects+"\n"), 0o666); err != nil {
		return nil, err
	}
	return git.Open(dir)
}

// hold keeps others from taking what this process writes for what a killed one left, and
// removes that where nobody else uses the store. Where files cannot be locked, nobody
// removes anything.
func (s *store) hold() {
	s.held = flock.New(filepath.Join(s.dir, "kalypso.use"), flock.SetPermissions(0o666))
	if alone, err := s.held.TryLock(); err == nil && alone {
		s.sweep()
		_ = s.held.Unlock()
	}
	_ = s.held.RLock()
}

// sweep removes what processes left that were killed: files on their way to their names,
// and a lock of git.
func (s *store) sweep() {
	for _, pattern := range []string{"objects/pack/tmp_*", "shallow.tmp-*", "shallow.lock", marks + "*/*.tmp-*"} {
		names, _ := filepath.Glob(filepath.Join(s.dir, filepath.FromSlash(pattern)))
		for _, name := range names {
			_ = os.Remove(name)
		}
	}
}

func (s *store) close() error {
	var errs []error
	for _, r := range []*git.Repository{s.objects, s.local} {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	if s.held != nil {
		errs = append(errs, s.held.Close())
	}
	if s.remove != nil {
		errs = append(errs, s.remove())
	}
	return errors.Join(errs...)
}

// has says whether a commit, or the one of a tag, is there with so many commits of
// its history; 0 for all. There is no more before those at which the server's own history
// ends. A commit that is there has all its trees: nothing else is ever added.
func (s *store) has(id git.Hash, depth int, ends []git.Hash) (bool, error) {
	shallow, err := s.shallow()
	if err != nil {
		return false, err
	}
	whole, err := s.marked(complete)
	if err != nil {
		return false, err
	}
	whole = append(whole, ends...)
	if absent, err := s.local.Absent([]git.Hash{id}); err != nil || len(absent) > 0 {
		return false, err
	}
	commit, err := s.local.Peel(id)
	if err != nil {
		return false, nil
	}
	return s.reaches(commit, depth, func(id git.Hash) (end, cut bool) { return slices.Contains(whole, id), slices.Contains(shallow, id) })
}

// reaches says whether so many commits of a history are there; 0 for all. at says of
// a commit that all before it is there, or that nothing is.
func (s *store) reaches(commit git.Hash, depth int, at func(git.Hash) (end, cut bool)) (bool, error) {
	seen := map[git.Hash]bool{}
	level := []git.Hash{commit}
	for n := 1; len(level) > 0; n++ {
		if absent, err := s.local.Absent(level); err != nil || len(absent) > 0 {
			return false, err
		}
		if n == depth {
			return true, nil
		}
		var next []git.Hash
		for _, id := range level {
			end, cut := at(id)
			if seen[id] || end {
				continue
			}
			if cut {
				return false, nil
			}
			seen[id] = true
			parents, err := s.local.Parents(id)
			if err != nil {
				return false, err
			}
			next = append(next, parents...)
		}
		level = next
	}
	return true, nil
}

// shallow returns the commits that are there without those before them.
func (s *store) shallow() ([]git.Hash, error) {
	named, err := s.local.Shallow()
	if err != nil {
		return nil, err
	}
	absent, err := s.local.Absent(named)
	return slices.DeleteFunc(named, func(id git.Hash) bool { return slices.Contains(absent, id) }), err
}

// cutAt changes which commits are there without those before them.
func (s *store) cutAt(add, drop []git.Hash) error {
	if len(add)+len(drop) == 0 {
		return nil
	}
	return s.locked(func() error {
		named, err := s.local.Shallow()
		if err != nil {
			return err
		}
		all := map[string]bool{}
		for _, id := range append(named, add...) {
			all[id.String()+"\n"] = true
		}
		for _, id := range drop {
			delete(all, id.String()+"\n")
		}
		file := filepath.Join(s.dir, "shallow")
		if len(all) == 0 {
			return os.RemoveAll(file)
		}
		text := strings.Join(slices.Sorted(maps.Keys(all)), "")
		return replace(file, text)
	})
}

// locked does something while no other process changes the shallow file.
func (s *store) locked(do func() error) error {
	return locked(filepath.Join(s.dir, "kalypso.lock"), do)
}

// locked does something while no other process that locks the same file does. One that is
// killed lets the lock go.
func locked(file string, do func() error) error {
	lock := flock.New(file, flock.SetPermissions(0o666))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("locking %s: %w", filepath.Dir(file), err)
	}
	return errors.Join(do(), lock.Close())
}

// replace writes a file that others may read at the time.
func replace(file, text string) error {
	temporary := file + ".tmp-" + rand.Text()
	if err := os.WriteFile(temporary, []byte(text), 0o666); err != nil {
		return err
	}
	if err := os.Rename(temporary, file); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

// mark notes that a commit was fetched. The oldest marks are dropped.
func (s *store) mark(folder string, ids []git.Hash) error {
	dir := filepath.Join(s.dir, filepath.FromSlash(marks+folder))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, id := range ids {
		if err := replace(filepath.Join(dir, id.String()), id.String()+"\n"); err != nil {
			return err
		}
	}
	names, err := s.markNames(folder)
	if err != nil {
		return err
	}
	for _, name := range names[min(len(names), mostMarks):] {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// markAfter marks a commit that came on top of another, in the place of that one's mark.
func (s *store) markAfter(old, new git.Hash) error {
	if err := s.mark(cut, []git.Hash{new}); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(s.dir, filepath.FromSlash(marks+cut), old.String()))
}

// take puts the objects of a pack of this machine into the store.
func (s *store) take(ctx context.Context, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	pack, err := s.local.ReceivePack(ctx, f, maxPack)
	if err != nil {
		return err
	}
	return pack.Finish(true)
}

// markNames returns the names of marks, the newest first.
func (s *store) markNames(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, filepath.FromSlash(marks+folder)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	times := map[string]time.Time{}
	var names []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil && len(e.Name()) == len(git.Hash{})*2 {
			times[e.Name()] = info.ModTime()
			names = append(names, e.Name())
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return times[b].Compare(times[a]) })
	return names, nil
}

// marked returns the commits that were fetched and are there, the newest first.
func (s *store) marked(folder string) ([]git.Hash, error) {
	names, err := s.markNames(folder)
	if err != nil {
		return nil, err
	}
	var ids []git.Hash
	for _, name := range names {
		if plumbing.IsHash(name) {
			ids = append(ids, plumbing.NewHash(name))
		}
	}
	absent, err := s.local.Absent(ids)
	return slices.DeleteFunc(ids, func(id git.Hash) bool { return slices.Contains(absent, id) }), err
}
