// Package scratch makes temporary folders that do not outlive their process for long.
// If a process is killed, the next one that makes a folder removes its leftovers.
//
// Beside each folder is a file that its process has locked. The system lets go of the
// lock with the process, whatever ends it.
package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"
)

// The prefix of the names of folders, and the suffix of their locks.
const (
	prefix = "kalypso-"
	suffix = ".lock"
)

// Dir makes a temporary folder whose name contains its purpose, and returns its path without
// links. remove removes it.
func Dir(what string) (dir string, remove func() error, err error) {
	Sweep()
	parent := os.TempDir()
	if real, err := filepath.EvalSymlinks(parent); err == nil {
		parent = real
	}
	lock, err := hold(parent, what)
	if err != nil {
		return "", nil, err
	}
	dir = strings.TrimSuffix(lock.Path(), suffix)
	locks.Store(lock, nil)
	remove = sync.OnceValue(func() error {
		locks.Delete(lock)
		err := os.RemoveAll(dir)
		_ = lock.Close()
		if err == nil {
			_ = os.Remove(lock.Path()) // if it stays, the next process removes it
		}
		return err
	})
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}

// locks are the locks that the process holds: one without a reference would be
// released.
var locks sync.Map

// hold makes a file that no other process has, and locks it. If files cannot be locked, no
// process removes it as a leftover.
func hold(parent, what string) (*flock.Flock, error) {
	for {
		f, err := os.CreateTemp(parent, prefix+what+"-*"+suffix)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return nil, err
		}
		lock := flock.New(f.Name())
		locked, err := lock.TryLock()
		if err != nil {
			return lock, nil
		}
		held, err := lock.Stat()
		if is, gone := os.Stat(f.Name()); locked && err == nil && gone == nil && os.SameFile(held, is) {
			return lock, nil
		}
		_ = lock.Close() // somebody else was about to remove it
	}
}

// Sweep removes the folders that processes have left that are gone, also this one, before
// it ran this program. Only the first call counts.
func Sweep() { swept.Do(func() { sweep(os.TempDir()) }) }

// swept is true once this process has looked for leftovers of others.
var swept sync.Once

// sweep removes the folders of processes that are gone. Folders that it may not remove
// are somebody else's.
func sweep(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), suffix)
		if !isLock || !strings.HasPrefix(name, prefix) || !e.Type().IsRegular() {
			continue
		}
		lock := flock.New(filepath.Join(parent, e.Name()), flock.SetFlag(os.O_RDONLY))
		locked, err := lock.TryLock()
		if err != nil || !locked {
			continue
		}
		err = os.RemoveAll(filepath.Join(parent, name))
		_ = lock.Close()
		if err == nil {
			_ = os.Remove(lock.Path())
		}
	}
}
