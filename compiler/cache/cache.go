// Package cache keeps what was computed, named by everything that can change it.
// What comes in are keys, which are hashes of all inputs of a computation, and
// results as bytes; what goes out is a result that was put under the same key
// before, by this process or another one, or nothing.
//
// A cache can never change a result:
//
//   - Everything is verified when it is read. An entry that is damaged, cut off,
//     or another one's is not there, and so is computed again.
//   - Errors of the cache fail nobody. They are remembered; Err returns them.
//   - [Verify] computes everything again and compares.
//
// Any number of processes on one machine may use a cache folder at once; on
// network file systems it holds as far as those implement flock. The size of the
// folder is bounded: what was not used for longest is removed first.
//
// Results that are few and large are single entries (Get, Put). Results that are
// many and small, and that are used together, belong in a [Table]: it keeps
// thousands of them in one file.
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

// Mode says what a cache is used for.
type Mode string

const (
	// On reads and writes.
	On Mode = "on"
	// Off uses a private folder, which Close removes: nothing is found that this
	// Cache did not put itself.
	Off Mode = "off"
	// Verify answers only with what this Cache itself put, so that everything is
	// computed again, and compares what is put with what the cache held before. A
	// difference is a lie (Lies); the entry is then replaced.
	Verify Mode = "verify"
)

// Level is what is counted apart in the statistics, and a part of what an entry
// is stored under: equal keys of two levels are two entries.
type Level string

// The levels of a build.
const (
	Model      Level = "model"      // package digest -> evaluated model
	Tuple      Level = "tuple"      // tuple digest -> composed values
	Projection Level = "projection" // digest of a source and what it is rendered with -> objects
	Assignment Level = "assignment" // assignment digest -> files
)

// DefaultMaxBytes is how large a cache folder is after a trim, at most: 4 GiB.
const DefaultMaxBytes int64 = 4 << 30

// Options say which cache to open.
type Options struct {
	Dir      string // "" for that of DefaultDir
	MaxBytes int64  // 0 for DefaultMaxBytes
	Mode     Mode   // "" for On
	Remote   Remote // nil for none
}

// DefaultDir is $KALYPSO_CACHE_DIR, else the folder "kalypso" in
// [os.UserCacheDir], whose error it returns.
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

// UnusableError says that a cache folder cannot be created or written, or holds
// something else.
type UnusableError struct {
	Dir string // "" if there is no place for one
	Err error
}

func (e *UnusableError) Error() string {
	if e.Dir == "" {
		return fmt.Sprintf("no folder for the cache (set KALYPSO_CACHE_DIR): %v", e.Err)
	}
	return fmt.Sprintf("the cache folder %s cannot be used (KALYPSO_CACHE_DIR names another): %v", e.Dir, e.Err)
}

func (e *UnusableError) Unwrap() error { return e.Err }

// Cache is an open cache. Any number of goroutines may call all methods, except
// that nothing may be called during and after Close but Lies, Stats, Err and
// RemoteErr; what is, finds and stores nothing.
type Cache struct {
	mode     Mode
	maxBytes int64
	store    *store       // nil where nothing can be written at all: everything is a miss
	remove   func() error // removes a temporary folder; nil where it is to stay
	remote   *remote

	mu      sync.Mutex
	closed  bool
	own     map[Key]bool // single entries that this Cache put
	tables  map[tableKey]*Table
	stats   map[Level]*Stats
	written int64 // bytes, since Open
	lies    map[string]bool
	errs    []error
}

type tableKey struct {
	level Level
	name  string
}

// Open opens a cache; the folder is created if it is not there.
//
// It always returns a Cache that can be used. Where the folder cannot be created
// or written, that is one in the mode Off, and the error is an *UnusableError:
// worth a warning, and no reason to stop. An unknown mode is an error too, with
// a Cache in the mode Off.
func Open(o Options) (*Cache, error) {
	c := &Cache{
		mode: o.Mode, maxBytes: o.MaxBytes, remote: newRemote(o.Remote),
		own: map[Key]bool{}, tables: map[tableKey]*Table{}, stats: map[Level]*Stats{}, lies: map[string]bool{},
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
		return c.private(), fmt.Errorf("the cache has no mode %q: there are %s, %s and %s", o.Mode, On, Off, Verify)
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

// private turns a cache off.
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

// entryID is the action that a single result is stored under.
func entryID(l Level, k Key) Key {
	return NewHash("kalypso cache entry v1").String(string(l)).Key(k).Sum()
}

func entryHeader(l Level, k Key) header { return header{kindEntry, l, string(k[:])} }

// Get returns the result that was put under a key. The bytes are the caller's.
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

// Put stores a result, of which it keeps nothing in memory. It does what it can:
// errors are remembered (Err). A second result of a key replaces the first.
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

func (c *Cache) write(l Level, id Key, data []byte, file digest) bool {
	if err := c.store.put(id, data, file); err != nil {
		c.remember(err)
		return false
	}
	c.wrote(l, int64(len(data)))
	return true
}

// computed notes that this Cache put a single result.
func (c *Cache) computed(l Level, id Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.own[id] {
		c.own[id] = true
		c.of(l).Computed++
	}
}

func (c *Cache) isOwn(id Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.own[id]
}

// open says whether there is anything to read and write.
func (c *Cache) open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store != nil && !c.closed
}

// Table returns the table of that level and name: the same one for every call.
// It reads nothing yet.
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

// tableID is the action that a table is stored under.
func tableID(l Level, name string) Key {
	return NewHash("kalypso cache table v2").String(string(l)).String(name).Sum()
}

// Flush writes what the tables hold, so that other processes find it, and the end
// of this one does not lose it. It is for those that live long; Close does it too.
// Errors are remembered (Err).
func (c *Cache) Flush() {
	if !c.open() || c.remove != nil {
		return
	}
	for _, t := range c.allTables() {
		_ = t.Flush() // remembered
	}
}

// Close writes what the tables still hold, waits for uploads, trims the folder
// if that is due, and removes the folder of a Cache that is Off. It returns what
// Err returns, including what Close itself met; nothing of it concerns results.
// A second Close does nothing.
//
// A trim is due once an hour, and after a tenth of MaxBytes was put.
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

// allTables are the tables, sorted by level and name.
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

// maxErrors is how many errors are remembered.
const maxErrors = 8

func (c *Cache) remember(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && len(c.errs) < maxErrors {
		c.errs = append(c.errs, err)
	}
}

// Err returns the first errors of the cache folder since Open, joined; nil if
// there were none. They say why a later build may compute again what this one
// did. Entries that are damaged are no errors.
func (c *Cache) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

// RemoteErr returns the last error of the remote cache; nil if there was none.
// After three errors the remote cache is not asked again by this Cache.
func (c *Cache) RemoteErr() error { return c.remote.failure() }
