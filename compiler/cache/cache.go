// Package cache stores results of computations under everything that can change
// them. A key is a hash of all inputs of a computation, and a result is bytes. The
// cache returns a result that this process or another one stored under the same
// key before, or nothing.
//
// A cache can never change a result:
//
//   - Every read verifies the entry. An entry that is damaged, truncated or at another's place
//     counts as missing, and is computed again.
//   - Errors of the cache make nothing else fail. They are remembered; Err returns them.
//   - [Verify] computes everything again and compares.
//
// Any number of processes on one machine may use a cache folder at once. On network file systems
// this works only if they implement flock. The size of the folder is limited: the entries that were
// not used for the longest time are removed first.
//
// Few large results are single entries (Get, Put). Many small results that are
// used together belong in a [Table]: it keeps thousands of them in one file.
//
// For example, package engine caches a summary of the values of an assignment,
// dev/drone/hello-world-functional-test of examples/hello-world. The [Key] is the hash of the kind
// "tuple", the compiler's identity and the digest of the assignment's tuple. In the first build,
// [Table.Get] returns false for the key, so the engine composes the values and calls Put with the
// encoded summary. A later Get for this key returns the same bytes. An edit of GREETING changes the
// key.
package cache

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kalypso-io/kalypso/internal/scratch"
)

// Mode is the way in which a cache is used.
type Mode string

const (
	// On reads and writes.
	On Mode = "on"
	// Off uses a private folder, which Close removes: only results that this Cache
	// stored itself are found.
	Off Mode = "off"
	// Verify returns only results that this Cache stored itself, so that everything is computed
	// again. It compares each new result with the stored one. A difference is a lie (Lies); the new
	// result then replaces the entry.
	Verify Mode = "verify"
)

// Level is a kind of result with its own statistics. It is part of the name of an entry: equal keys
// of two levels are two entries.
type Level string

// The levels of a build.
const (
	Model      Level = "model"      // package digest -> evaluated model
	Tuple      Level = "tuple"      // tuple digest -> composed values
	Projection Level = "projection" // digest of a source and of its rendering inputs -> objects
	Assignment Level = "assignment" // assignment digest -> files
)

// DefaultMaxBytes is the maximum size of a cache folder after a trim: 4 GiB.
const DefaultMaxBytes int64 = 4 << 30

// Options select the cache to open, and its limits.
type Options struct {
	Dir      string // "" for DefaultDir
	MaxBytes int64  // 0 for DefaultMaxBytes
	Mode     Mode   // "" for On
	Remote   Remote // nil if there is no remote cache
}

// DefaultDir returns $KALYPSO_CACHE_DIR, or else the folder "kalypso" in [os.UserCacheDir], whose
// error it returns.
func DefaultDir() (string, error) {
	if dir := os.Getenv("KALYPSO_CACHE_DIR"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "kalypso"), nil
}

// UnusableError means that a cache folder cannot be created or written, or has other content.
type UnusableError struct {
	Dir string // "" if there is no place for a folder
	Err error
}

func (e *UnusableError) Error() string {
	if e.Dir == "" {
		return fmt.Sprintf("no folder for the cache (set KALYPSO_CACHE_DIR): %v", e.Err)
	}
	return fmt.Sprintf("the cache folder %s cannot be used (KALYPSO_CACHE_DIR names another): %v",
		e.Dir, e.Err)
}

func (e *UnusableError) Unwrap() error { return e.Err }

// Cache is an open cache. Any number of goroutines may call all methods. During and after Close,
// call only Lies, Stats, Err and RemoteErr. Other methods then find and store nothing.
type Cache struct {
	mode     Mode
	maxBytes int64
	store    *store       // nil if nothing can be written at all: everything is a miss
	remove   func() error // removes a temporary folder; nil if the folder stays
	remote   *remote

	// mu guards the fields below.
	mu      sync.Mutex
	closed  bool
	own     map[Key]bool // single entries that this Cache put
	tables  map[tableKey]*Table
	stats   map[Level]*Stats
	written int64 // bytes, since Open
	lies    map[string]bool
	errs    []error
}

// tableKey identifies a table of a Cache.
type tableKey struct {
	level Level
	name  string
}

// Open opens a cache, and creates the folder if it does not exist.
//
// It always returns a usable Cache. If the folder cannot be created or written,
// the Cache is in the mode Off, and the error is an *UnusableError. That is
// worth a warning, and no reason to stop. An unknown mode is also an error, with
// a Cache in the mode Off.
func Open(o Options) (*Cache, error) {
	c := &Cache{
		mode: o.Mode, maxBytes: o.MaxBytes, remote: newRemote(o.Remote),
		own: map[Key]bool{}, tables: map[tableKey]*Table{}, stats: map[Level]*Stats{},
		lies: map[string]bool{},
	}
	if c.maxBytes == 0 {
		c.maxBytes = DefaultMaxBytes
	}
	switch o.Mode {
	case "":
		c.mode = On
	case On, Verify:
	case Off:
		return c.private(), nil
	default:
		return c.private(),
			fmt.Errorf("the cache has no mode %q: there are %s, %s and %s", o.Mode, On, Off, Verify)
	}
	dir := o.Dir
	if dir == "" {
		var err error
		if dir, err = DefaultDir(); err != nil {
			return c.private(), &UnusableError{Err: err}
		}
	}
	s, err := openStore(dir)
	if err != nil {
		return c.private(), &UnusableError{Dir: dir, Err: err}
	}
	c.store = s
	return c, nil
}

// private turns a cache off, and gives it a private folder.
func (c *Cache) private() *Cache {
	c.mode, c.remote = Off, nil
	dir, remove, err := scratch.Dir("cache")
	if err != nil {
		c.remember(err)
		return c
	}
	s, err := openStore(dir)
	if err != nil {
		_ = remove()
		c.remember(err)
		return c
	}
	c.store, c.remove = s, remove
	return c
}

// entryID returns the action of a single result.
func entryID(l Level, k Key) Key {
	return NewHash("kalypso cache entry v1").String(string(l)).Key(k).Sum()
}

// entryHeader returns the header of a single result.
func entryHeader(l Level, k Key) header { return header{kindEntry, l, string(k[:])} }

// Get returns the result that was stored under a key. The caller may change the bytes.
func (c *Cache) Get(l Level, k Key) ([]byte, bool) {
	id := entryID(l, k)
	if !c.open() || c.mode == Verify && !c.isOwn(id) {
		return nil, false
	}
	data, ok := c.read(l, k, id)
	if !ok && c.mode == On {
		data, ok = c.fetch(l, k, id)
	}
	if ok && !c.isOwn(id) {
		c.count(l, Stats{Reused: 1})
	}
	return data, ok
}

// read reads a single result from the folder.
func (c *Cache) read(l Level, k Key, id Key) ([]byte, bool) {
	data, _, ok := c.store.get(id)
	if !ok {
		return nil, false
	}
	payload, ok := entryHeader(l, k).open(data)
	if ok {
		c.count(l, Stats{ReadBytes: int64(len(data))})
	}
	return payload, ok
}

// fetch gets a single result from the remote cache, and stores it in the folder.
func (c *Cache) fetch(l Level, k Key, id Key) (payload []byte, ok bool) {
	data, err := c.remote.get(entryName(id), func(data []byte) (ok bool) {
		payload, ok = entryHeader(l, k).open(data)
		return ok
	})
	if err != nil {
		return nil, false
	}
	c.write(l, id, data, sha256.Sum256(data))
	return payload, true
}

// Put stores a result, and keeps none of it in memory. Errors are remembered (Err), and otherwise
// ignored. A second result of a key replaces the first.
func (c *Cache) Put(l Level, k Key, data []byte) {
	id := entryID(l, k)
	if !c.open() {
		return
	}
	if c.mode == Verify {
		before, ok := c.read(l, k, id)
		if ok && slices.Equal(before, data) {
			c.computed(l, id)
			return
		}
		if ok {
			c.lie(fmt.Sprintf("%s %s", l, k))
		}
	}
	c.computed(l, id)
	sealed, file := entryHeader(l, k).seal(data)
	if c.write(l, id, sealed, file) && c.remote.writable() {
		c.remote.later(func() {
			if data, _, ok := c.store.get(id); ok {
				c.remote.put(entryName(id), data)
			}
		})
	}
}

// write stores a single result in the folder, and reports whether that succeeded.
func (c *Cache) write(l Level, id Key, data []byte, file digest) bool {
	if err := c.store.put(id, data, file); err != nil {
		c.remember(err)
		return false
	}
	c.wrote(l, int64(len(data)))
	return true
}

// computed notes that this Cache stored a single result.
func (c *Cache) computed(l Level, id Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.own[id] {
		c.own[id] = true
		c.levelStats(l).Computed++
	}
}

// isOwn reports whether this Cache stored a single result.
func (c *Cache) isOwn(id Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.own[id]
}

// open reports whether the cache is open and has a folder.
func (c *Cache) open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store != nil && !c.closed
}

// Table returns the table with a level and a name: the same one for every call. It
// does not read the table yet.
func (c *Cache) Table(l Level, name string) *Table {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := tableKey{l, name}
	t := c.tables[key]
	if t == nil {
		t = &Table{c: c, level: l, name: name, id: tableID(l, name)}
		c.tables[key] = t
	}
	return t
}

// tableID returns the action of a table.
func tableID(l Level, name string) Key {
	return NewHash("kalypso cache table v2").String(string(l)).String(name).Sum()
}

// Flush writes the tables, so that other processes find their results, and a crash of this
// process does not lose them. It is for processes that run long; Close also flushes.
// Errors are remembered (Err).
func (c *Cache) Flush() {
	if !c.open() || c.remove != nil {
		return
	}
	for _, t := range c.allTables() {
		_ = t.Flush() // fail remembers the error
	}
}

// Close writes the tables, waits for uploads, and trims the folder if a trim is due. It removes the
// folder of a Cache in the mode Off. It returns the errors of Err, including its own; they do not
// affect results. A second Close does nothing.
//
// A trim is due once an hour, and after the Cache has written a tenth of MaxBytes.
func (c *Cache) Close() error {
	if !c.open() {
		return c.Err()
	}
	c.Flush()
	if c.remove == nil {
		c.remote.wait()
	}
	c.mu.Lock()
	c.closed = true
	written := c.written
	c.mu.Unlock()
	if c.remove != nil {
		c.remember(c.remove())
	} else {
		c.remember(c.store.trim(c.maxBytes, written > c.maxBytes/10))
	}
	return c.Err()
}

// allTables returns the tables, sorted by their ids.
func (c *Cache) allTables() []*Table {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*Table
	for _, t := range c.tables {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *Table) int { return slices.Compare(a.id[:], b.id[:]) })
	return out
}

// maxErrors is the maximum number of remembered errors.
const maxErrors = 8

// remember keeps an error for Err; nil is not an error.
func (c *Cache) remember(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && len(c.errs) < maxErrors {
		c.errs = append(c.errs, err)
	}
}

// Err returns the first errors of the cache folder since Open, joined; nil if there were
// no errors. They explain why a later build may compute results of this one again. A
// damaged entry is not an error.
func (c *Cache) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

// RemoteErr returns the last error of the remote cache; nil if there was no error. After three
// errors this Cache no longer uses the remote cache.
func (c *Cache) RemoteErr() error { return c.remote.failure() }
