package cache

import (
	"bytes"
	"crypto/sha256"
	"testing"
)

// FuzzRows reads a table of any bytes; what it takes, it writes alike, and finds.
func FuzzRows(f *testing.F) {
	rows := []row{{key: Key{1}, data: []byte("one")}, {key: Key{2}, age: 7}, {key: Key{2, 1}, data: []byte("three")}}
	f.Add(packRows(nil))
	f.Add(packRows(rows))
	f.Add(packRows(rows)[1:])
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, ok := decodeRows(data)
		if !ok {
			return
		}
		for i := range rows {
			if find(rows, rows[i].key) != &rows[i] {
				t.Errorf("row %d is not found", i)
			}
		}
		if !bytes.Equal(packRows(rows), data) {
			t.Errorf("%x is read as %v", data, rows)
		}
	})
}

// FuzzHeader opens sealed bytes of any kind.
func FuzzHeader(f *testing.F) {
	f.Add(entryHeader(Model, key(1)).seal([]byte("payload")), true)
	f.Add(header{kindTable, Tuple, "name"}.append(nil), false)
	f.Fuzz(func(t *testing.T, data []byte, resum bool) {
		if resum { // past the hash
			sum := sha256.Sum256(data)
			data = append(data, sum[:]...)
		}
		h, payload, ok := unseal(data)
		if ok && !bytes.Equal(h.seal(payload), data) {
			t.Errorf("%x is read as %+v", data, h)
		}
	})
}
