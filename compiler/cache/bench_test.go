package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

const benchEntries = 100_000

// benchBody makes a body of 4 KB that resembles others, as manifests do.
func benchBody(n int) []byte {
	body := make([]byte, 0, 4200)
	for line := 0; len(body) < 4096; line++ {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n*40+line)))
		body = fmt.Appendf(body, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nname: target-%d-%x\n", n, sum[:6])
	}
	return body
}

func benchTable(b *testing.B, dir string) {
	c := open(b, Options{Dir: dir})
	t := c.Table(Assignment, "bench")
	head := make([]byte, 200)
	r := rand.NewChaCha8([32]byte{1})
	for n := range benchEntries {
		r.Read(head)
		t.Put(key(n), head, nil)
	}
	closeCache(b, c)
}

// BenchmarkLoad loads a table of 100,000 heads of 200 bytes.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	benchTable(b, dir)
	b.ReportAllocs()
	for b.Loop() {
		c := open(b, Options{Dir: dir})
		if _, ok := c.Table(Assignment, "bench").Head(key(7)); !ok {
			b.Fatal("not there")
		}
		closeCache(b, c)
	}
}

// BenchmarkHead asks a loaded table of 100,000.
func BenchmarkHead(b *testing.B) {
	dir := b.TempDir()
	benchTable(b, dir)
	c := open(b, Options{Dir: dir})
	t := c.Table(Assignment, "bench")
	keys := make([]Key, benchEntries)
	for n := range keys {
		keys[n] = key(n)
	}
	t.Head(keys[0])
	n := 0
	for b.Loop() {
		if _, ok := t.Head(keys[n%benchEntries]); !ok {
			b.Fatal("not there")
		}
		n += 7919
	}
	closeCache(b, c)
}

// BenchmarkPut puts 100,000 entries with bodies of 4 KB and flushes them.
func BenchmarkPut(b *testing.B) {
	bodies := make([][]byte, 1000)
	for n := range bodies {
		bodies[n] = benchBody(n)
	}
	head := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		c := open(b, Options{Dir: b.TempDir()})
		t := c.Table(Assignment, "bench")
		for n := range benchEntries {
			t.Put(key(n), head, bodies[n%len(bodies)])
		}
		closeCache(b, c)
		b.ReportMetric(float64(c.Stats()[Assignment].WrittenBytes)/1e6, "MB-written/op")
	}
}

// BenchmarkBody reads all bodies of a table of 100,000 in the order of Put.
func BenchmarkBody(b *testing.B) {
	dir := b.TempDir()
	c := open(b, Options{Dir: dir})
	t := c.Table(Assignment, "bench")
	for n := range benchEntries {
		t.Put(key(n), nil, benchBody(n))
	}
	closeCache(b, c)
	for b.Loop() {
		c := open(b, Options{Dir: dir})
		t := c.Table(Assignment, "bench")
		for n := range benchEntries {
			if _, ok := t.Body(key(n)); !ok {
				b.Fatal("not there")
			}
		}
		closeCache(b, c)
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
			t.Put(key(next), make([]byte, 200), benchBody(next))
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
