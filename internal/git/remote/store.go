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
	"github.com/kalypso-io/kalypso/internal/regular"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// store is a bare repository with the fetched objects: a partial clone, which git itself can read
// and check, and which several processes may add to at once.
//
// Everything is added by a rename: a pack, its index, the shallow file. The shallow file names a
// commit before the commit can be read, so that no process takes a cut history for a damaged one.
//
// Incomplete files have other names, and each process holds a shared lock. A process that gets
// the lock exclusively therefore knows that a killed process has left such files.
type store struct {
	dir     string
	remove  func() error    // removes a temporary store; nil for one that stays
	held    *flock.Flock    // shared by all processes that use the store
	objects *git.Repository // fetches missing objects
	local   *git.Repository // does not
}

// marks are refs that name the fetched commits. git keeps the objects behind them, and they are
// sent to servers as present.
const marks = "refs/kalypso/"

// The folders of marks: one for commits whose history may be cut, and one for commits with all of
// it.
const (
	cut      = "cut/"
	complete = "complete/"
)

// maxMarks is the largest number of marks of a kind, because all of them are sent to servers.
const maxMarks = 64

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

// storeName names a store for people by its repository, and uniquely for machines.
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

// create makes the repository under a temporary name and then renames it, so that other
// processes see it complete.
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
			return nil // another process has made it
		}
		made := s.dir + ".new"
		err := os.RemoveAll(made) // left over from a killed process
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

// initialize makes a bare repository that may lack objects.
func initialize(dir, url string) error {
	for _, folder := range []string{"objects/pack", "objects/info", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(folder)), 0o777); err != nil {
			return err
		}
	}
	config := "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tpartialClone = " +
		"origin\n[gc]\n\tauto = 0\n[remote \"origin\"]\n\turl = " + quote(url) +
		"\n\tpromisor = true\n\tpartialclonefilter = blob:none\n"
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
	if err := os.WriteFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(objects+"\n"),
		0o666); err != nil {
		return nil, err
	}
	return git.Open(dir)
}

// hold takes the shared lock. If no other process uses the store, it removes leftovers of killed
// processes. If files cannot be locked, no process removes anything.
func (s *store) hold() {
	s.held = regular.Lock(filepath.Join(s.dir, "kalypso.use"), 0o666)
	if alone, err := s.held.TryLock(); err == nil && alone {
		// Remove leftovers of killed processes: files under temporary names, and a lock of git.
		for _, pattern := range []string{"objects/pack/tmp_*", "shallow.tmp-*", "shallow.lock",
			marks + "*/*.tmp-*"} {
			names, _ := filepath.Glob(filepath.Join(s.dir, filepath.FromSlash(pattern)))
			for _, name := range names {
				_ = os.Remove(name)
			}
		}
		_ = s.held.Unlock()
	}
	_ = s.held.RLock()
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

// has reports whether a commit, or the one of a tag, is present with depth commits of its
// history; 0 for all. A history that the server itself has cut ends there. A commit that is
// present has all its trees: nothing else is ever added.
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
	return s.reaches(commit, depth, func(id git.Hash) (end, cut bool) {
		return slices.Contains(whole, id), slices.Contains(shallow, id)
	})
}

// reaches reports whether depth commits of a history are present; 0 for all. at reports whether all
// commits before a commit are present (end), or whether no commit before it is (cut).
func (s *store) reaches(commit git.Hash, depth int, at func(git.Hash) (end, cut bool)) (bool,
	error) {
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

// shallow returns the commits at which history is cut.
func (s *store) shallow() ([]git.Hash, error) {
	named, err := s.local.Shallow()
	if err != nil {
		return nil, err
	}
	absent, err := s.local.Absent(named)
	return slices.DeleteFunc(named, func(id git.Hash) bool { return slices.Contains(absent, id) }), err
}

// cutAt changes at which commits history is cut.
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

// locked calls do while no other process changes the shallow file.
func (s *store) locked(do func() error) error {
	return locked(filepath.Join(s.dir, "kalypso.lock"), do)
}

// locked calls do while no other process locks the same file. The lock of a killed process
// is released.
func locked(file string, do func() error) error {
	lock := regular.Lock(file, 0o666)
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("locking %s: %w", filepath.Dir(file), err)
	}
	return errors.Join(do(), lock.Close())
}

// replace writes a file that others may be reading.
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
	for _, name := range names[min(len(names), maxMarks):] {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// markAfter marks a commit on top of another, and removes the mark of that one.
func (s *store) markAfter(old, new git.Hash) error {
	if err := s.mark(cut, []git.Hash{new}); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(s.dir, filepath.FromSlash(marks+cut), old.String()))
}

// take adds the objects of a local pack to the store.
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

// marked returns the commits that were fetched and are present, the newest first.
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
