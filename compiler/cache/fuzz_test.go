package cache

import (
	"bytes"
	"crypto/sha256"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// sampleIndex is the index of a small table, and its data file.
func sampleIndex(t testing.TB, dir string) []byte {
	c := open(t, Options{Dir: dir})
	table := c.Table(Tuple, "fuzz")
	for n := range 20 {
		table.Put(key(n), bytes.Repeat([]byte{byte(n)}, n), bytes.Repeat([]byte{byte(n)}, n*n))
	}
	closeCache(t, c)
	c = open(t, Options{Dir: dir})
	segments, _ := c.Table(Tuple, "fuzz").manifest()
	text, ok := c.store.blob(segments[0].id, segments[0].indexSize)
	if !ok {
		t.Fatal("no index")
	}
	return text
}

// FuzzIndex reads an index of any bytes and asks it for everything.
func FuzzIndex(f *testing.F) {
	text := sampleIndex(f, f.TempDir())
	f.Add(text)
	f.Add(text[:len(text)-1])
	f.Add(encodeIndex(Tuple, "fuzz", digest{}, 0, nil, nil, nil))
	f.Add(encodeIndex(Assignment, "fuzz", digest{}, 0, nil, nil, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, ok := decodeIndex(data, Tuple, "fuzz")
		if !ok {
			return
		}
		for i := range x.n {
			k := Key(x.keyBytes(i))
			if found, ok := x.find(k); !ok || found != i {
				t.Errorf("entry %d is found as %d, %t", i, found, ok)
			}
			x.head(i)
			r := x.row(i)
			if r.length > 0 {
				b := x.blocks[r.block]
				if int64(r.offset)+int64(r.length) > int64(b.raw) || b.offset+int64(b.size) > x.dataSize {
					t.Errorf("entry %d points outside: %+v, %+v", i, r, b)
				}
			}
		}
		x.find(Key{})
	})
}

// FuzzManifest reads a manifest of any bytes; what it takes, it writes alike.
func FuzzManifest(f *testing.F) {
	f.Add(encodeManifest(nil))
	f.Add(encodeManifest([]segment{{id: digest{1}, indexSize: 5, data: digest{2}, dataSize: 6, entries: 7}, {}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		segments, ok := decodeManifest(data)
		if !ok {
			return
		}
		if len(segments) > maxSegments || !bytes.Equal(encodeManifest(segments), data) {
			t.Errorf("%x is read as %v", data, segments)
		}
		for _, s := range segments {
			if s.indexSize < 0 || s.dataSize < 0 || s.size() < 0 || s.entries < 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}

// FuzzHeader opens sealed bytes of any kind.
func FuzzHeader(f *testing.F) {
	f.Add(entryHeader(Model, key(1)).seal([]byte("payload")), true)
	f.Add(header{kindManifest, Tuple, "name"}.append(nil), false)
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

// FuzzBlock decompresses any bytes; the result is as long as promised.
func FuzzBlock(f *testing.F) {
	f.Add(encoder().EncodeAll([]byte("text"), nil), uint32(4))
	f.Add(encoder().EncodeAll(make([]byte, blockSize), nil), uint32(blockSize))
	f.Fuzz(func(t *testing.T, data []byte, raw uint32) {
		raw %= 4 * blockSize
		got, err := block{raw: raw}.decompress(data)
		if err == nil && len(got) != int(raw) {
			t.Errorf("%d bytes, and not %d", len(got), raw)
		}
	})
}

// What becomes larger than its index says is refused, without the memory.
func TestBomb(t *testing.T) {
	const huge = 1 << 30
	streamed, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	var unsized bytes.Buffer
	streamed.Reset(&unsized)
	for range huge >> 20 { // a MiB each
		if _, err := streamed.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := streamed.Close(); err != nil {
		t.Fatal(err)
	}
	small := encoder().EncodeAll(make([]byte, 1000), nil)
	for name, data := range map[string][]byte{
		"says nothing of its size": unsized.Bytes(),
		"more than promised":       encoder().EncodeAll(make([]byte, 64<<20), nil),
		"a second frame":           append(bytes.Clone(small), unsized.Bytes()...),
		"twice":                    append(bytes.Clone(small), small...),
		"less than promised":       encoder().EncodeAll(make([]byte, 999), nil),
		"nothing":                  nil,
		"no frame":                 []byte("no frame"),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := block{raw: 1000}.decompress(data)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: %d bytes", name, len(got))
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 32<<20 {
			t.Errorf("%s: %d bytes allocated", name, allocated)
		}
	}
	if got, err := (block{raw: 1000}).decompress(small); err != nil || len(got) != 1000 {
		t.Errorf("the honest one: %d bytes, %v", len(got), err)
	}
}
