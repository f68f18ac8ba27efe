package cache

import (
	"crypto/sha256"
	"errors"
	"hash"
	"os"
)

// A writer makes a segment. Bodies go to a temporary file as their block fills,
// so it keeps little more than keys and heads in memory. One goroutine at a time
// may add; any number may read in between.
type writer struct {
	store   *store
	owner   uint64 // of its blocks
	level   Level
	table   string
	entries []entry
	heads   []byte
	open    []byte // the block that is being filled
	packed  []byte // the block before, compressed: memory for the next one
	blocks  []block
	file    string // the temporary file; "" as long as no block is full
	size    int64  // of the file
	sum     hash.Hash
}

// An entry is a row under construction: its head is heads[headBegin:headEnd].
type entry struct {
	key       Key
	headBegin uint32
	age       uint8
	row
}

var errFull = errors.New("too large for the cache")

// add adds an entry whose key was not added yet. Its body is no larger than a
// block can be.
func (w *writer) add(k Key, head, body []byte, sum bodySum, age uint8) error {
	if len(w.heads)+len(head) > maxHeads {
		return errFull
	}
	if len(w.open) > 0 && len(w.open)+len(body) > blockSize {
		if err := w.close(); err != nil {
			return err
		}
	}
	r := row{block: noBlock, sum: sum}
	if len(body) > 0 {
		r.block, r.offset, r.length = uint32(len(w.blocks)), uint32(len(w.open)), uint32(len(body))
		w.open = append(w.open, body...)
	}
	w.append(k, head, r, age)
	return nil
}

// append adds an entry whose body is in a block already.
func (w *writer) append(k Key, head []byte, r row, age uint8) {
	begin := uint32(len(w.heads))
	w.heads = append(w.heads, head...)
	r.headEnd = uint32(len(w.heads))
	w.entries = append(w.entries, entry{k, begin, age, r})
}

// close compresses the open block and writes it to the file.
func (w *writer) close() error {
	if len(w.open) == 0 {
		return nil
	}
	w.packed = encoder().EncodeAll(w.open, w.packed[:0])
	data := w.packed
	err := w.addBlock(block{size: uint32(len(data)), raw: uint32(len(w.open)), sum: sha256.Sum256(data)}, data)
	if err == nil {
		w.open = w.open[:0]
	}
	return err
}

// addBlock writes a compressed block to the file. No block must be open, except
// the one that data is of.
func (w *writer) addBlock(b block, data []byte) error {
	if w.file == "" {
		name, err := w.store.temporary()
		if err != nil {
			return err
		}
		w.file, w.sum = name, sha256.New()
		if err := w.write(header{kindData, w.level, w.table}.append(nil)); err != nil {
			return err
		}
	}
	b.offset = w.size
	if err := w.write(data); err != nil {
		return err
	}
	w.blocks = append(w.blocks, b)
	return nil
}

// write appends to the file.
func (w *writer) write(data []byte) error {
	// The file is not kept open: there may be more tables than open files.
	f, err := os.OpenFile(w.file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, w.size)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	w.sum.Write(data)
	w.size += int64(len(data))
	return nil
}

func (w *writer) head(i int) []byte {
	e := &w.entries[i]
	return w.heads[e.headBegin:e.headEnd:e.headEnd]
}

// body returns an entry's body, which the caller must copy.
func (w *writer) body(i int, kept *blocks) ([]byte, error) {
	e := &w.entries[i]
	if e.length == 0 {
		return nil, nil
	}
	in := w.open
	if int(e.block) < len(w.blocks) {
		var err error
		b := w.blocks[e.block]
		in, err = kept.get(blockKey{w.owner, e.block}, b, func() ([]byte, error) { return b.read(w.file) })
		if err != nil {
			return nil, err
		}
	}
	return in[e.offset : e.offset+e.length], nil
}

// finish stores the segment, and returns it with its index. The writer must not
// be used afterwards.
func (w *writer) finish() (segment, *index, error) {
	if err := w.close(); err != nil {
		w.discard()
		return segment{}, nil, err
	}
	var s segment
	if w.file != "" {
		s.data, s.dataSize = digest(w.sum.Sum(nil)), w.size
		if err := w.store.adopt(w.file, s.data); err != nil {
			return segment{}, nil, err
		}
	}
	text := encodeIndex(w.level, w.table, s.data, s.dataSize, w.blocks, w.entries, w.heads)
	id, err := w.store.writeBlob(text)
	if err != nil {
		return segment{}, nil, err
	}
	s.id, s.indexSize, s.entries = id, int64(len(text)), len(w.entries)
	x, ok := decodeIndex(text, w.level, w.table)
	if !ok {
		return segment{}, nil, errors.New("the index of a table cannot be read back")
	}
	return s, x, nil
}

// discard removes the temporary file.
func (w *writer) discard() {
	if w.file != "" {
		os.Remove(w.file)
	}
}
