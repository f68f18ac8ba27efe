package cache

import (
	"bytes"
	"crypto/sha256"
	"testing"
)

// packed returns the payload of a table of rows.
func packed(rows []row) []byte {
	data, _ := header{}.sealRows(rows)
	_, payload, _ := unseal(data)
	return payload
}

// sealed returns a header with a payload, sealed.
func sealed(h header, payload string) []byte {
	data, _ := h.seal([]byte(payload))
	return data
}

// FuzzRows reads a table from any bytes. If it accepts them, it writes the same
// bytes, and finds all rows.
func FuzzRows(f *testing.F) {
	rows := []row{{key: Key{1}, data: []byte("one")}, {key: Key{2}, age: 7}, {key: Key{2, 1}, data: []byte("three")}}
	f.Add(packed(nil))
	f.Add(packed(rows))
	f.Add(packed(rows)[1:])
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
		if !bytes.Equal(packed(rows), data) {
			t.Errorf("%x is read as %v", data, rows)
		}
	})
}

// FuzzHeader opens sealed bytes of any kind.
func FuzzHeader(f *testing.F) {
	f.Add(sealed(entryHeader(Model, key(1)), "payload"), true)
	f.Add(header{kindTable, Tuple, "name"}.append(nil), false)
	f.Fuzz(func(t *testing.T, data []byte, resum bool) {
		if resum { // so that the check of the hash succeeds
			sum := sha256.Sum256(data)
			data = append(data, sum[:]...)
		}
		h, payload, ok := unseal(data)
		if ok && !bytes.Equal(sealed(h, string(payload)), data) {
			t.Errorf("%x is read as %+v", data, h)
		}
	})
}
