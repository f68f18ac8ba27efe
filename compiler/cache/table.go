package cache

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Table is a map from keys to small results that belong together, such as all assignments of one
// cluster type, or all tuples of one environment. Any number of goroutines may use it.
//
// A table is one file. The first access reads the whole file, and a Flush replaces the whole
// file. A table does not see results that another process flushes later. They stay in the file
// as long as there is room.
type Table struct {
	c     *Cache
	level Level
	name  string
	id    Key

	// mu guards the fields below.
	mu     sync.RWMutex
	loaded bool   // rows contain the rows of the folder
	asked  bool   // rows contain the rows of the remote cache
	file   digest // the file with the rows of the folder
	rows   []row  // sorted by key
	puts   map[Key][]byte
	dirty  bool // rows have content that is missing in the folder

	uploading sync.Mutex // held by one upload of the table
}

// A row is a result in a table. Unused rows age, and are removed some time.
type row struct {
	key  Key
	data []byte
	age  uint8  // how often the table was written since the last use of the row
	used uint32 // 1 if this process used or stored it; atomic
}

// isUsed reports whether this process used or stored the row.
func (r *row) isUsed() bool { return atomic.LoadUint32(&r.used) != 0 }

// use marks a row, and reports whether it was unmarked before.
func (r *row) use() bool { return atomic.CompareAndSwapUint32(&r.used, 0, 1) }

// find returns the row with a key; nil if there is no such row.
func find(rows []row, k Key) *row {
	i, found := slices.BinarySearchFunc(rows, k,
		func(r row, k Key) int { return bytes.Compare(r.key[:], k[:]) })
	if !found {
		return nil
	}
	return &rows[i]
}

// header returns the header of the table's file.
func (t *Table) header() header { return header{kindTable, t.level, t.name} }

// Get returns the result under a key. The bytes belong to the table: the
// caller must not change them.
func (t *Table) Get(k Key) ([]byte, bool) {
	if !t.c.open() {
		return nil, false
	}
	t.load()
	t.mu.RLock()
	defer t.mu.RUnlock()
	if data, ok := t.puts[k]; ok {
		return data, true
	}
	r := t.find(k)
	if r == nil && t.c.mode == On && !t.asked && t.c.remote.usable() {
		t.mu.RUnlock()
		t.ask()
		t.mu.RLock()
		r = t.find(k)
	}
	if r == nil {
		return nil, false
	}
	if r.use() {
		t.c.count(t.level, Stats{Reused: 1})
	}
	return r.data, true
}

// find returns a row that Get may return: in the mode Verify only a row that this process stored.
func (t *Table) find(k Key) *row {
	r := find(t.rows, k)
	if r != nil && t.c.mode == Verify && !r.isUsed() {
		return nil
	}
	return r
}

// Put stores a result, which the caller must not change afterwards. This process finds it at once.
// Put ignores a second result for a key until the next Flush, and a result that equals the stored
// one. In the mode Verify, a difference from the stored result is a lie.
//
// The Cache remembers errors, and Put otherwise ignores them. It does not store a
// result of more than 16 MiB.
func (t *Table) Put(k Key, data []byte) {
	if !t.c.open() {
		return
	}
	if len(data) > maxResult {
		_ = t.fail(errFull)
		return
	}
	t.load()
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, again := t.puts[k]; again {
		if t.c.mode == Verify && !bytes.Equal(before, data) {
			t.c.lie(tableLie(t.level, t.name, k))
		}
		return
	}
	if r := find(t.rows, k); r != nil && bytes.Equal(r.data, data) {
		if r.use() && t.c.mode == Verify {
			t.c.count(t.level, Stats{Computed: 1})
		}
		return
	} else if r != nil && t.c.mode == Verify {
		t.c.lie(tableLie(t.level, t.name, k))
	}
	if t.puts == nil {
		t.puts = map[Key][]byte{}
	}
	t.puts[k] = data
	t.c.count(t.level, Stats{Computed: 1})
}

// fail remembers an error, and returns it with the table's name.
func (t *Table) fail(err error) error {
	err = fmt.Errorf("cache table %s %s: %w", t.level, t.name, err)
	t.c.remember(err)
	return err
}

// errFull is the error for a result that is larger than maxResult.
var errFull = errors.New("too large for the cache")

// load reads the table from the folder, once.
func (t *Table) load() {
	t.mu.RLock()
	loaded := t.loaded
	t.mu.RUnlock()
	if loaded {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.loaded {
		t.rows, t.file = t.read()
		t.loaded = true
	}
}

// read returns the rows in the folder, and the hash of their file. It returns no
// rows for a damaged file.
func (t *Table) read() ([]row, digest) {
	data, file, ok := t.c.store.get(t.id)
	if !ok {
		return nil, digest{}
	}
	t.c.count(t.level, Stats{ReadBytes: int64(len(data))})
	rows, _ := t.parse(data)
	return rows, file
}

// parse returns the rows of a file of this table.
func (t *Table) parse(data []byte) ([]row, bool) {
	payload, ok := t.header().open(data)
	if !ok {
		return nil, false
	}
	return decodeRows(payload)
}

// Release frees the table's memory: the next access reads the file again. It frees nothing while
// there are results to flush, or in the mode Verify.
func (t *Table) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.puts) == 0 && !t.dirty && t.c.mode != Verify {
		t.rows, t.loaded = nil, false
	}
}

// Flush makes stored results visible to other processes. Any number of processes may flush a table
// at once: the table keeps the results of all. After an error the results are lost. The Cache also
// remembers the error.
func (t *Table) Flush() error {
	if !t.c.open() {
		return nil
	}
	t.mu.RLock()
	clean := len(t.puts) == 0 && !t.dirty
	t.mu.RUnlock()
	if clean {
		return nil
	}
	t.load()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.puts) == 0 && !t.dirty {
		return nil // another goroutine has flushed it
	}
	t.rows = merge(rowsOf(t.puts), t.rows)
	t.puts, t.dirty = nil, false
	if err := t.publish(); err != nil {
		return t.fail(err)
	}
	t.upload()
	return nil
}

// publish replaces the file of the table. The rows are the rows of the file as it was read, and new
// ones. publish limits the rows to the maximum size of a table.
func (t *Table) publish() error {
	unlock, err := t.c.store.lock(t.id)
	if err != nil {
		return err // this process can still use the rows
	}
	defer unlock()
	before, there := t.c.store.output(t.id)
	if there && before != t.file {
		others, _ := t.read()
		for i := range others {
			others[i].age -= min(others[i].age, 1) // this process could not use them, so they do not age
		}
		t.rows = merge(t.rows, others)
	}
	t.rows = age(t.rows)
	data, file := t.header().sealRows(t.rows)
	if err := t.c.store.put(t.id, data, file); err != nil {
		return err
	}
	t.file = file
	t.c.wrote(t.level, int64(len(data)))
	if there && t.file != before {
		t.c.store.remove(before)
	}
	return nil
}

// ask merges the remote table into this one.
func (t *Table) ask() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked {
		return
	}
	t.asked = true
	if there, _ := t.remote(); len(there) > 0 {
		n := len(t.rows)
		t.rows = merge(t.rows, there)
		t.dirty = len(t.rows) > n
	}
}

// remote returns the rows of the remote table.
func (t *Table) remote() (rows []row, err error) {
	_, err = t.c.remote.get(tableName(t.id), func(data []byte) (ok bool) {
		t.c.count(t.level, Stats{ReadBytes: int64(len(data))})
		rows, ok = t.parse(data)
		return ok
	})
	return rows, err
}

// uploadTries is the maximum number of attempts to write a remote table.
const uploadTries = 5

// upload adds the results that this process used to the remote table, in the background. Several
// machines may write the table at the same time without a lock, and the last one wins. So upload
// reads the table just before it writes it, and again afterwards. It adds results again if another
// machine removed them.
func (t *Table) upload() {
	if !t.c.remote.writable() {
		return
	}
	used := map[Key]bool{}
	for i := range t.rows {
		if r := &t.rows[i]; r.isUsed() {
			used[r.key] = true
		}
	}
	t.c.remote.later(func() {
		// One after the other: an upload that began earlier could remove the results of a later
		// one, which has already checked the table.
		t.uploading.Lock()
		defer t.uploading.Unlock()
		mine, _ := t.read()
		mine = slices.DeleteFunc(mine, func(r row) bool { return !used[r.key] })
		for i := range mine {
			mine[i].used = 1
		}
		for range uploadTries {
			there, err := t.remote()
			if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, errForeign) {
				return // a write could remove other machines' results
			}
			if !slices.ContainsFunc(mine, func(r row) bool { return find(there, r.key) == nil }) {
				return
			}
			all, _ := t.header().sealRows(age(merge(mine, there)))
			if !t.c.remote.put(tableName(t.id), all) {
				return
			}
		}
	})
}
