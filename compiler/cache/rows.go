package cache

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

const (
	// maxResult limits the size of a result in a table, and maxTable the total size
	// of its results, in bytes.
	maxResult = 16 << 20
	maxTable  = 256 << 20
	// fewUnused is the number of bytes that unused results may always occupy. More of them stay, up
	// to timesUsed as many bytes as the used results. So a table remembers the results of another
	// branch, shards share a table, and reading it stays cheap.
	fewUnused = 1 << 20
	timesUsed = 4
)

// rowSize is the size of a row in a file without its data. It has the key, the end of the data in 4
// bytes, counted from the first data, and the age in one byte.
const rowSize = len(Key{}) + 4 + 1

// sealRows returns a header with rows as its payload, sealed, and its hash. The payload is the
// number of rows in 4 bytes, the fixed parts of all rows, and their data. From then on the rows
// share their data with it.
func (h header) sealRows(rows []row) ([]byte, digest) {
	size := 4 + rowSize*len(rows)
	for i := range rows {
		size += len(rows[i].data)
	}
	b := binary.BigEndian.AppendUint32(h.begin(size), uint32(len(rows)))
	end := uint32(0)
	for i := range rows {
		end += uint32(len(rows[i].data))
		b = append(b, rows[i].key[:]...)
		b = append(binary.BigEndian.AppendUint32(b, end), rows[i].age)
	}
	for i := range rows {
		begin := len(b)
		b = append(b, rows[i].data...)
		rows[i].data = b[begin:len(b):len(b)]
	}
	return seal(b)
}

// decodeRows reads the rows of a payload, which need not be trusted. The rows
// share their data with b.
func decodeRows(b []byte) ([]row, bool) {
	if len(b) < 4 {
		return nil, false
	}
	count := int64(binary.BigEndian.Uint32(b))
	if b = b[4:]; count > int64(len(b)/rowSize) {
		return nil, false
	}
	n := int(count)
	fixed, data := b[:n*rowSize], b[n*rowSize:]
	rows := make([]row, n)
	begin := 0
	for i := range rows {
		r := &rows[i]
		part := fixed[i*rowSize:]
		copy(r.key[:], part)
		end := int(binary.BigEndian.Uint32(part[len(r.key):]))
		if end < begin || end > len(data) || i > 0 && bytes.Compare(rows[i-1].key[:], r.key[:]) >= 0 {
			return nil, false
		}
		r.data, r.age = data[begin:end:end], part[rowSize-1]
		begin = end
	}
	return rows, begin == len(data)
}

// rowsOf returns stored results as rows, sorted by key.
func rowsOf(puts map[Key][]byte) []row {
	rows := make([]row, 0, len(puts))
	for k, data := range puts {
		rows = append(rows, row{key: k, data: data, used: 1})
	}
	slices.SortFunc(rows, func(a, b row) int { return bytes.Compare(a.key[:], b.key[:]) })
	return rows
}

// merge returns the rows of both lists; if keys are equal, it returns the row of the first list.
func merge(first, second []row) []row {
	out := make([]row, 0, len(first)+len(second))
	for len(first) > 0 && len(second) > 0 {
		order := bytes.Compare(first[0].key[:], second[0].key[:])
		if order <= 0 {
			out, first = append(out, first[0]), first[1:]
		} else {
			out = append(out, second[0])
		}
		if order >= 0 {
			second = second[1:]
		}
	}
	return append(append(out, first...), second...)
}

// age returns the rows for a new file of the table: the used rows, and the youngest of the others,
// each a write older. It changes rows.
func age(rows []row) []row {
	size := func(r *row) int { return rowSize + len(r.data) }
	used := 0
	var old []*row
	for i := range rows {
		if r := &rows[i]; r.isUsed() {
			used += size(r)
			r.age = 0
		} else {
			old = append(old, r)
			r.age = min(r.age, math.MaxUint8-1) + 1
		}
	}
	slices.SortStableFunc(old, func(a, b *row) int { return cmp.Compare(a.age, b.age) })
	room := min(max(timesUsed*used, fewUnused), maxTable-used)
	dropped := map[*row]bool{}
	for _, r := range old {
		if room -= size(r); room < 0 {
			dropped[r] = true
		}
	}
	room = maxTable
	out := rows[:0]
	for i := range rows {
		r := &rows[i]
		if dropped[r] || room < size(r) {
			continue
		}
		room -= size(r)
		out = append(out, *r)
	}
	return out
}
