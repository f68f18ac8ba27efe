package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	gocache "github.com/rogpeppe/go-internal/cache"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// The layout of a cache folder. go-internal/cache names files by hash: XX/<hash>-a records the
// output of an action, and XX/<hash>-d is an output, named by its own SHA-256. A single result is
// an action with its output, and so is a table.
const (
	readmeFile  = "README"
	tmpFolder   = "tmp"     // files that are being written
	trimmedFile = "trimmed" // its time is the time of the last trim
	trimLock    = "trim.lock"
	lockFile    = "lock" // in XX: locked while a table of XX is written
)

const readme = `This folder is a cache of kalypso, a compiler for GitOps platforms.
"kalypso cache size" tells how large it is, "kalypso cache clean" removes it.
It holds nothing that kalypso cannot compute again.
`

// A store is a cache folder. Any number of processes and goroutines may use it.
type store struct {
	dir   string
	files *gocache.Cache
}

// openStore makes dir a cache folder, if it is not a cache folder yet, and
// checks that it is writable.
func openStore(dir string) (*store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if err := claim(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, tmpFolder), 0o777); err != nil {
		return nil, err
	}
	probe, err := os.CreateTemp(filepath.Join(dir, tmpFolder), "probe-")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, err
	}
	files, err := gocache.Open(dir)
	if err != nil {
		return nil, err
	}
	return &store{dir: dir, files: files}, nil
}

// claim writes the README into a new or unfinished folder. It refuses a folder with any other
// content: a mistake in a path must not create 256 folders among a user's files.
func claim(dir string) error {
	name := filepath.Join(dir, readmeFile)
	text, err := regular.ReadFile(name)
	if err == nil && string(text) == readme {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !strings.HasPrefix(readme, string(text)) {
		return errNotOurs
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !ourName(f.Name()) {
			return errNotOurs
		}
	}
	return os.WriteFile(name, []byte(readme), 0o666)
}

// errNotOurs is the error for a folder with other content.
var errNotOurs = errors.New("it is not empty, and not a cache of kalypso")

// ourName reports whether a file or folder with this name belongs to a cache folder.
func ourName(name string) bool {
	switch name {
	case readmeFile, tmpFolder, trimmedFile, trimLock:
		return true
	}
	return len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
}

// output returns the hash of an action's output, if the output exists in full length.
func (s *store) output(id Key) (digest, bool) {
	// The library opens any file, and a pipe or device has no end.
	if info, err := os.Lstat(s.action(id)); err != nil || !info.Mode().IsRegular() {
		return digest{}, false
	}
	found, err := s.files.Get(gocache.ActionID(id))
	if err != nil || !s.has(digest(found.OutputID), found.Size) {
		return digest{}, false
	}
	return digest(found.OutputID), true
}

// getTries is the maximum number of attempts to read an action's output, which
// another process may replace.
const getTries = 3

// get returns an action's output, which may be damaged, and the hash that it should have. A sealed
// output contains its own checksum, so get does not hash it.
func (s *store) get(id Key) ([]byte, digest, bool) {
	for range getTries {
		file, ok := s.output(id)
		if !ok {
			continue
		}
		if data, err := regular.ReadFile(s.path(file)); err == nil {
			return data, file, true
		}
	}
	return nil, digest{}, false
}

// put stores an action's output, whose hash is file. The library's own function reads an output
// back, and hashes it twice.
func (s *store) put(id Key, data []byte, file digest) error {
	if err := s.write(s.path(file), data); err != nil {
		return err
	}
	return s.write(s.action(id),
		fmt.Appendf(nil, "v1 %x %x %20d %20d\n", id[:], file, len(data), time.Now().UnixNano()))
}

// action returns the path of the file in which the library records the output of an action.
func (s *store) action(id Key) string {
	name := fmt.Sprintf("%x-a", id[:])
	return filepath.Join(s.dir, name[:2], name)
}

// path returns the path of an output. Each call counts as a use of the output.
func (s *store) path(id digest) string { return s.files.OutputFile(gocache.OutputID(id)) }

// has reports whether an output exists in full length.
func (s *store) has(id digest, size int64) bool {
	info, err := os.Lstat(s.path(id))
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

// write writes a file, which appears only when it is complete.
func (s *store) write(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Join(s.dir, tmpFolder), "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	// CreateTemp makes files that only their owner can read
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// remove removes a replaced output. Another process that is about to read it
// looks up its action again.
func (s *store) remove(id digest) { os.Remove(s.path(id)) }

// lockWait is the time for which a process waits for another one that writes a table, and lockRetry
// is the time between two attempts.
const (
	lockWait  = 30 * time.Second
	lockRetry = 5 * time.Millisecond
)

// lock lets one process at a time write a table.
func (s *store) lock(table Key) (unlock func(), err error) {
	l := regular.Lock(filepath.Join(s.dir, fmt.Sprintf("%02x", table[0]), lockFile), 0o666)
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("locking a table of the cache %s: %w", s.dir, err)
	}
	return func() { _ = l.Close() }, nil
}
