package cache

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

const benchEntries = 100_000

func benchTable(b *testing.B, dir string) {
	c := open(b, Options{Dir: dir})
	t := c.Table(Assignment, "bench")
	head := make([]byte, 200)
	r := rand.NewChaCha8([32]byte{1})
	for n := range benchEntries {
		r.Read(head)
		t.Put(key(n), bytes.Clone(head))
	}
	closeCache(b, c)
}

// BenchmarkLoad loads a table of 100,000 results of 200 bytes.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	benchTable(b, dir)
	b.ReportAllocs()
	for b.Loop() {
		c := open(b, Options{Dir: dir})
		if _, ok := c.Table(Assignment, "bench").Get(key(7)); !ok {
			b.Fatal("not there")
		}
		closeCache(b, c)
	}
}

// BenchmarkHead reads results from a loaded table of 100,000 results.
func BenchmarkHead(b *testing.B) {
	dir := b.TempDir()
	benchTable(b, dir)
	c := open(b, Options{Dir: dir})
	t := c.Table(Assignment, "bench")
	keys := make([]Key, benchEntries)
	for n := range keys {
		keys[n] = key(n)
	}
	t.Get(keys[0])
	n := 0
	for b.Loop() {
		if _, ok := t.Get(keys[n%benchEntries]); !ok {
			b.Fatal("not there")
		}
		n += 7919
	}
	closeCache(b, c)
}

// BenchmarkPut puts 100,000 results of 200 bytes and flushes them.
func BenchmarkPut(b *testing.B) {
	data := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		c := open(b, Options{Dir: b.TempDir()})
		t := c.Table(Assignment, "bench")
		for n := range benchEntries {
			t.Put(key(n), data)
		}
		closeCache(b, c)
		b.ReportMetric(float64(c.Stats()[Assignment].WrittenBytes)/1e6, "MB-written/op")
	}
}

// BenchmarkSmallBuild flushes 100 entries beside a table of 100,000.
func BenchmarkSmallBuild(b *testing.B) {
	dir := b.TempDir()
	benchTable(b, dir)
	next := benchEntries
	for b.Loop() {
		c := open(b, Options{Dir: dir})
		t := c.Table(Assignment, "bench")
		for range 100 {
			t.Put(key(next), make([]byte, 200))
			next++
		}
		closeCache(b, c)
	}
}

// BenchmarkHash makes keys of 1 KB.
func BenchmarkHash(b *testing.B) {
	part := make([]byte, 500)
	h := NewHash("bench")
	b.ReportAllocs()
	for b.Loop() {
		h.Reset("bench").Bytes(part).String("name").Bytes(part).Int(7).Sum()
	}
}
