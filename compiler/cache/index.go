package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"sort"
)

// An index finds the entries of a segment. It is one piece of memory, as it was
// read: a header, then
//
//	blocks     4 bytes
//	entries    4 bytes
//	heads      4 bytes: how many bytes all heads have
//	data       32 bytes hash and 8 bytes length of the data file
//	blocks     48 bytes each: offset and length in the data file, length without compression, hash
//	keys       32 bytes each, ascending
//	rows       32 bytes each, in the order of the keys
//	ages       1 byte each
//	heads      one after another, in the order of the keys
//
// It is immutable, so any number of goroutines may read it.
type index struct {
	data     digest
	dataSize int64
	blocks   []block
	n        int
	keys     []byte
	rows     []byte
	ages     []byte
	heads    []byte
}

// A block holds bodies, one after another, compressed together.
type block struct {
	offset int64
	size   uint32 // in the data file
	raw    uint32 // without compression
	sum    digest // of what the data file holds
}

// A row says where an entry's head ends and where its body is.
type row struct {
	headEnd uint32 // in all heads; it begins where the row before ends
	block   uint32
	offset  uint32 // in the block without compression
	length  uint32
	sum     bodySum
}

// bodySum is the first half of a body's SHA-256. The block's hash is what guards
// against damage; this one tells bodies apart.
type bodySum [16]byte

func sumOf(body []byte) bodySum {
	sum := sha256.Sum256(body)
	return bodySum(sum[:])
}

const (
	blockBytes = 8 + 4 + 4 + len(digest{})
	rowBytes   = 4*4 + len(bodySum{})
	// noBlock is the block of an empty body.
	noBlock = math.MaxUint32
	// maxBlock bounds a block without compression, and so a body.
	maxBlock = 256 << 20
	// maxHeads bounds all heads of a segment together.
	maxHeads = 1 << 30
)

// find returns the number of a key's entry.
func (x *index) find(k Key) (int, bool) {
	i := sort.Search(x.n, func(i int) bool { return bytes.Compare(x.keyBytes(i), k[:]) >= 0 })
	return i, i < x.n && bytes.Equal(x.keyBytes(i), k[:])
}

func (x *index) keyBytes(i int) []byte { return x.keys[i*sha256.Size : (i+1)*sha256.Size] }

func (x *index) row(i int) row {
	b := x.rows[i*rowBytes : (i+1)*rowBytes]
	return row{
		headEnd: binary.BigEndian.Uint32(b), block: binary.BigEndian.Uint32(b[4:]),
		offset: binary.BigEndian.Uint32(b[8:]), length: binary.BigEndian.Uint32(b[12:]),
		sum: bodySum(b[16:]),
	}
}

// head returns an entry's head, which belongs to the index.
func (x *index) head(i int) []byte {
	begin, end := uint32(0), binary.BigEndian.Uint32(x.rows[i*rowBytes:])
	if i > 0 {
		begin = binary.BigEndian.Uint32(x.rows[(i-1)*rowBytes:])
	}
	return x.heads[begin:end:end]
}

// decodeIndex reads the index of a table's segment, and shares its bytes. It
// trusts nothing: an index that it returns has no row that points outside.
func decodeIndex(data []byte, l Level, name string) (*index, bool) {
	h, rest, ok := parseHeader(data)
	if !ok || h != (header{kindIndex, l, name}) {
		return nil, false
	}
	r := reader{data: rest}
	blocks, entries, heads := int64(r.uint32()), int64(r.uint32()), int64(r.uint32())
	x := &index{data: r.digest()}
	dataSize := r.uint64()
	want := blocks*int64(blockBytes) + entries*int64(sha256.Size+rowBytes+1) + heads
	if r.failed || dataSize > math.MaxInt64/2 || int64(len(r.data)) != want {
		return nil, false
	}
	x.dataSize, x.n = int64(dataSize), int(entries)
	x.blocks = make([]block, blocks)
	for i := range x.blocks {
		offset := r.uint64()
		b := block{offset: int64(offset), size: r.uint32(), raw: r.uint32(), sum: r.digest()}
		if offset > dataSize || int64(b.size) > x.dataSize-b.offset || b.raw > maxBlock {
			return nil, false
		}
		x.blocks[i] = b
	}
	x.keys = r.bytes(x.n * sha256.Size)
	x.rows = r.bytes(x.n * rowBytes)
	x.ages = r.bytes(x.n)
	x.heads = r.data
	return x, x.sound()
}

// sound says whether the keys ascend and every row points into the heads and
// into a block.
func (x *index) sound() bool {
	end := uint32(0)
	for i := range x.n {
		r := x.row(i)
		switch {
		case i > 0 && bytes.Compare(x.keyBytes(i-1), x.keyBytes(i)) >= 0,
			r.headEnd < end,
			r.length == 0 && r.block != noBlock,
			r.length > 0 && int64(r.block) >= int64(len(x.blocks)):
			return false
		}
		if r.length > 0 && int64(r.offset)+int64(r.length) > int64(x.blocks[r.block].raw) {
			return false
		}
		end = r.headEnd
	}
	return int(end) == len(x.heads)
}

// encodeIndex writes the index of entries in any order. The rows of the entries
// say where their heads end in heads as it is.
func encodeIndex(l Level, name string, data digest, dataSize int64, blocks []block, entries []entry, heads []byte) []byte {
	order := make([]int32, len(entries))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(entries[a].key[:], entries[b].key[:]) })

	size := len(magic) + 8 + len(l) + len(name) + 3*4 + len(data) + 8 +
		len(blocks)*blockBytes + len(entries)*(sha256.Size+rowBytes+1) + len(heads)
	out := header{kindIndex, l, name}.append(make([]byte, 0, size))
	out = binary.BigEndian.AppendUint32(out, uint32(len(blocks)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(entries)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(heads)))
	out = append(out, data[:]...)
	out = binary.BigEndian.AppendUint64(out, uint64(dataSize))
	for _, b := range blocks {
		out = binary.BigEndian.AppendUint64(out, uint64(b.offset))
		out = binary.BigEndian.AppendUint32(out, b.size)
		out = binary.BigEndian.AppendUint32(out, b.raw)
		out = append(out, b.sum[:]...)
	}
	for _, i := range order {
		out = append(out, entries[i].key[:]...)
	}
	end := uint32(0)
	for _, i := range order {
		e := &entries[i]
		end += e.headEnd - e.headBegin
		out = binary.BigEndian.AppendUint32(out, end)
		out = binary.BigEndian.AppendUint32(out, e.block)
		out = binary.BigEndian.AppendUint32(out, e.offset)
		out = binary.BigEndian.AppendUint32(out, e.length)
		out = append(out, e.sum[:]...)
	}
	for _, i := range order {
		out = append(out, entries[i].age)
	}
	for _, i := range order {
		e := &entries[i]
		out = append(out, heads[e.headBegin:e.headEnd]...)
	}
	return out
}
