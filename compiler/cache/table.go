package cache

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
)

// Table is a map from keys to results that belong together: all assignments of
// one cluster type, all tuples of one environment. An entry has a small part, the
// head, and a large one, the body. Any number of goroutines may use a Table.
//
// A table is a log of segments: each Flush appends one, and merges small ones.
// Entries that go unused while their segment is merged again and again are
// dropped. What another process flushes after this one first used the table is
// not seen.
type Table struct {
	c     *Cache
	level Level
	name  string
	id    Key

	mu       sync.RWMutex
	loaded   bool       // segments are those of the manifest
	asked    bool       // those of the remote manifest too
	adopted  []segment  // those that came from it since the last Flush
	segments []*section // oldest first
	pending  *writer    // what was put since the last Flush; nil if nothing
	at       map[Key]int
	released map[digest]*section // what is known of segments that are no longer in memory

	broken sync.Map // Key -> true: a body was asked for in vain

	uploading sync.Mutex
	replaced  map[digest]bool // indexes of segments that compaction replaced
}

// A section is a segment in memory.
type section struct {
	segment
	owner uint64 // of its blocks
	index *index
	used  []atomic.Uint32 // a bit for each entry that this process used or put
	old   bool            // it was there before, so this process could have used all that it needs
}

func (t *Table) newSection(s segment, x *index) *section {
	return &section{segment: s, owner: t.c.kept.newOwner(), index: x, used: make([]atomic.Uint32, (x.n+31)/32)}
}

func (s *section) isUsed(i int) bool { return s.used[i/32].Load()&(1<<(i%32)) != 0 }

// use marks an entry, and says whether it was not marked before.
func (s *section) use(i int) bool {
	bit := uint32(1) << (i % 32)
	return s.used[i/32].Or(bit)&bit == 0
}

func (s *section) useAll() {
	for i := range s.used {
		s.used[i].Store(^uint32(0))
	}
}

func (t *Table) newWriter() *writer {
	return &writer{store: t.c.store, owner: t.c.kept.newOwner(), level: t.level, table: t.name}
}

func (t *Table) header() header { return header{kindManifest, t.level, t.name} }

// Head returns the small part of an entry, from memory: the first call of a table
// reads all of them. The bytes belong to the table and must not be changed.
func (t *Table) Head(k Key) (head []byte, ok bool) {
	t.find(k,
		func(i int) { head, ok = t.pending.head(i), true },
		func(s *section, i int) bool { head, ok = s.index.head(i), true; return true })
	return head, ok
}

// Body returns the large part of an entry, which it reads from disk, together
// with its neighbours. The bytes are the caller's. It can fail where Head
// succeeds, if the file is damaged or was removed.
func (t *Table) Body(k Key) (body []byte, ok bool) {
	t.find(k,
		func(i int) {
			got, err := t.pending.body(i, &t.c.kept)
			body, ok = bytes.Clone(got), err == nil
		},
		func(s *section, i int) bool {
			var got []byte
			if got, ok = t.read(s, i); !ok {
				t.broken.Store(k, true)
			}
			body = bytes.Clone(got)
			return ok
		})
	return body, ok
}

// find calls one of the functions with where a key's entry is, or none. The
// table is locked for reading meanwhile. The second one says whether the entry
// was of use.
func (t *Table) find(k Key, pending func(int), stored func(*section, int) bool) {
	if !t.c.open() {
		return
	}
	t.load()
	t.mu.RLock()
	defer t.mu.RUnlock()
	if i, ok := t.at[k]; ok {
		pending(i)
		return
	}
	s, i := t.lookup(k, t.c.mode == Verify)
	if s == nil && t.wantsRemote() {
		t.mu.RUnlock()
		t.ask()
		t.mu.RLock()
		s, i = t.lookup(k, false)
	}
	if s != nil && stored(s, i) && s.use(i) {
		t.c.count(t.level, Stats{Reused: 1})
	}
}

// lookup finds a key's newest entry in the segments; ofMine looks only at what
// this process put.
func (t *Table) lookup(k Key, ofMine bool) (*section, int) {
	for n := len(t.segments) - 1; n >= 0; n-- {
		s := t.segments[n]
		if i, ok := s.index.find(k); ok && (!ofMine || s.isUsed(i)) {
			return s, i
		}
	}
	return nil, 0
}

// read returns an entry's body, which the caller must copy.
func (t *Table) read(s *section, i int) ([]byte, bool) {
	r := s.index.row(i)
	if r.length == 0 {
		return nil, true
	}
	raw, err := t.c.kept.get(blockKey{s.owner, r.block}, s.index.blocks[r.block], func() ([]byte, error) {
		return t.readBlock(s, r.block)
	})
	if err != nil {
		return nil, false
	}
	body := raw[r.offset : r.offset+r.length]
	return body, sumOf(body) == r.sum
}

// readBlock reads a block from the folder, where the data file may have to come
// from the remote cache first.
func (t *Table) readBlock(s *section, number uint32) ([]byte, error) {
	b := s.index.blocks[number]
	raw, err := b.read(t.c.store.path(s.data))
	if err != nil && t.fetchBlob(s.data, s.dataSize) {
		raw, err = b.read(t.c.store.path(s.data))
	}
	if err == nil {
		t.c.count(t.level, Stats{ReadBytes: int64(b.size)})
	}
	return raw, err
}

// Put stores an entry, whose parts it copies; it is found at once, by this
// process. A second Put of a key is ignored, until the next Flush; after it, and
// if the table had the entry before, one that is equal. In the mode Verify both
// are compared with what was there.
//
// It does what it can: errors are remembered by the Cache. A body of more than
// 256 MiB is not stored.
func (t *Table) Put(k Key, head, body []byte) {
	if !t.c.open() {
		return
	}
	if len(body) > maxBlock {
		t.fail(errFull)
		return
	}
	t.load()
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, ok := t.at[k]; ok {
		if t.c.mode == Verify && !t.equalsPending(i, head, body) {
			t.c.lie(tableLie(t.level, t.name, k))
		}
		return
	}
	sum := sumOf(body)
	if t.c.mode == Verify && t.confirms(k, head, body) || t.c.mode != Verify && t.has(k, head, sum) {
		return
	}
	if t.pending == nil {
		t.pending = t.newWriter()
	}
	n := len(t.pending.entries)
	if err := t.pending.add(k, head, body, sum, 0); err != nil {
		t.fail(err)
		return
	}
	t.at[k] = n
	t.c.count(t.level, Stats{Computed: 1})
}

// fail remembers an error, and returns it with the table's name.
func (t *Table) fail(err error) error {
	err = fmt.Errorf("cache table %s %s: %w", t.level, t.name, err)
	t.c.remember(err)
	return err
}

func (t *Table) equalsPending(i int, head, body []byte) bool {
	got, err := t.pending.body(i, &t.c.kept)
	return bytes.Equal(t.pending.head(i), head) && (err != nil || bytes.Equal(got, body))
}

// has says whether a segment that is loaded has an equal entry, and nobody asked
// for its body in vain.
func (t *Table) has(k Key, head []byte, sum bodySum) bool {
	s, i := t.lookup(k, false)
	if s == nil || s.index.row(i).sum != sum || !bytes.Equal(s.index.head(i), head) {
		return false
	}
	if _, broken := t.broken.Load(k); broken {
		return false
	}
	s.use(i)
	return true
}

// confirms says whether the segments hold an equal entry, which then counts as put
// by this process. One that differs is a lie; one whose body cannot be read is
// none.
func (t *Table) confirms(k Key, head, body []byte) bool {
	s, i := t.lookup(k, false)
	if s == nil {
		return false
	}
	got, ok := t.read(s, i)
	if !ok {
		return false
	}
	if !bytes.Equal(s.index.head(i), head) || !bytes.Equal(got, body) {
		t.c.lie(tableLie(t.level, t.name, k))
		return false
	}
	if s.use(i) {
		t.c.count(t.level, Stats{Computed: 1})
	}
	return true
}
