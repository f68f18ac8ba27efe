package cache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	gocache "github.com/rogpeppe/go-internal/cache"
)

// The layout of a cache folder. go-internal/cache names files by hash:
// XX/<hash>-a says which output an action has, and XX/<hash>-d is an output, named by
// its own SHA-256. A single result and a table's manifest are an action with its
// output; indexes and data files of segments are outputs that a manifest names.
const (
	readmeFile  = "README"
	tmpFolder   = "tmp"     // files that are being written
	trimmedFile = "trimmed" // its time is that of the last trim
	trimLock    = "trim.lock"
	lockFile    = "lock" // in XX: locked while the manifest of a table of XX is written
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

// openStore makes dir a cache folder, if it is none, and sees that it can be
// written.
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

// claim writes the README into a folder that is new or was left unfinished, and
// refuses one that holds anything else: a mistake in a path must not strew 256
// folders among a user's files.
func claim(dir string) error {
	name := filepath.Join(dir, readmeFile)
	text, err := os.ReadFile(name)
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

var errNotOurs = errors.New("it is not empty, and not a cache of kalypso")

// ourName says whether a cache folder has a file or folder of this name.
func ourName(name string) bool {
	switch name {
	case readmeFile, tmpFolder, trimmedFile, trimLock:
		return true
	}
	return len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
}

// get returns an action's output, and its hash.
func (s *store) get(id Key) ([]byte, digest, bool) {
	// The library opens what is there, and a pipe or device has no end.
	if info, err := os.Lstat(s.action(id)); err != nil || !info.Mode().IsRegular() {
		return nil, digest{}, false
	}
	found, err := s.files.Get(gocache.ActionID(id))
	if err != nil || !s.has(digest(found.OutputID), found.Size) {
		return nil, digest{}, false
	}
	data, e, err := s.files.GetBytes(gocache.ActionID(id))
	return data, digest(e.OutputID), err == nil
}

// put stores an action's output, and returns its hash.
func (s *store) put(id Key, data []byte) (digest, error) {
	// The library writes an output in place. One that is there already, it only
	// reads; so nobody ever sees half of one.
	if file, err := s.writeBlob(data); err != nil {
		return file, err
	}
	if info, err := os.Lstat(s.action(id)); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		if err := os.Remove(s.action(id)); err != nil {
			return digest{}, err
		}
	}
	// Its own verify mode, a debugging setting in the environment, would panic.
	file, _, err := s.files.PutNoVerify(gocache.ActionID(id), bytes.NewReader(data))
	return digest(file), err
}

// action is where the library keeps which output an action has.
func (s *store) action(id Key) string {
	name := fmt.Sprintf("%x-a", id[:])
	return filepath.Join(s.dir, name[:2], name)
}

// path is where an output is. Asking for it counts as a use.
func (s *store) path(id digest) string { return s.files.OutputFile(gocache.OutputID(id)) }

// has says whether an output is there in full length.
func (s *store) has(id digest, size int64) bool {
	info, err := os.Lstat(s.path(id))
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

// blob returns an output of that length and hash.
func (s *store) blob(id digest, size int64) ([]byte, bool) {
	if !s.has(id, size) {
		return nil, false
	}
	data, err := os.ReadFile(s.path(id))
	return data, err == nil && sha256.Sum256(data) == id
}

// writeBlob stores an output, which appears whole.
func (s *store) writeBlob(data []byte) (digest, error) {
	id := digest(sha256.Sum256(data))
	name, err := s.temporary()
	if err != nil {
		return id, err
	}
	if err := os.WriteFile(name, data, 0o666); err != nil {
		os.Remove(name)
		return id, err
	}
	return id, s.adopt(name, id)
}

// temporary makes an empty file in the folder for files that are being written.
func (s *store) temporary() (string, error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, tmpFolder), "new-")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// adopt makes a temporary file the output of that hash, or removes it.
func (s *store) adopt(name string, id digest) error {
	to := s.path(id)
	os.Chmod(name, 0o644) // CreateTemp makes files that only their owner can read
	err := os.Rename(name, to)
	if err != nil {
		os.Remove(name)
	}
	return err
}

// retiredBy is how far back the time of a retired file is set.
const retiredBy = 10 * 365 * 24 * time.Hour

// retire marks an output that no manifest names any more, so that a trim removes
// it ahead of anything else: its time of use is set ten years back. It is not
// removed at once, because another process may still read it.
func (s *store) retire(id digest) {
	past := time.Now().Add(-retiredBy)
	os.Chtimes(s.files.OutputFile(gocache.OutputID(id)), past, past)
}

// lockWait is how long a process waits for another that writes a manifest, and
// lockRetry how often it looks.
const (
	lockWait  = 30 * time.Second
	lockRetry = 5 * time.Millisecond
)

// lock lets one process at a time write the manifest of a table.
func (s *store) lock(table Key) (unlock func(), err error) {
	l := flock.New(filepath.Join(s.dir, fmt.Sprintf("%02x", table[0]), lockFile), flock.SetPermissions(0o666))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("locking a table of the cache %s: %w", s.dir, err)
	}
	return func() { _ = l.Close() }, nil
}
