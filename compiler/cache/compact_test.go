package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestCompactFrom(t *testing.T) {
	for _, c := range []struct {
		sizes []int64
		want  int // the first that is merged
	}{
		{nil, 0},
		{[]int64{100}, 1},
		{[]int64{100_000, 100}, 2},
		{[]int64{100_000, 100, 100}, 1},
		{[]int64{100_000, 300, 100}, 3},
		{[]int64{100_000, 300, 100, 100}, 1},
		{[]int64{200, 100}, 0},
		{[]int64{201, 100}, 2},
		{[]int64{1, 100}, 0},
		{[]int64{1000, 1, 100}, 1},
		{[]int64{1 << 40, 1 << 36, 1 << 32, 1 << 28, 1 << 24, 1 << 20, 1 << 16, 1 << 12, 1 << 8, 1 << 4}, 10},
		{[]int64{1 << 44, 1 << 40, 1 << 36, 1 << 32, 1 << 28, 1 << 24, 1 << 20, 1 << 16, 1 << 12, 1 << 8, 1 << 4}, 9},
	} {
		if got := compactFrom(c.sizes); got != c.want {
			t.Errorf("%v: from %d, want %d", c.sizes, got, c.want)
		}
	}
}

// A long series of builds of any size keeps few segments, and rewrites every
// byte a logarithmic number of times.
func TestCompactIsCheap(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var sizes []int64
		var put, written int64
		for range 2000 {
			size := int64(1 + r.IntN(1000))
			if seed%2 == 1 && r.IntN(100) == 0 {
				size *= 10_000
			}
			put += size
			sizes = append(sizes, size)
			if from := compactFrom(sizes); from < len(sizes) {
				merged := int64(0)
				for _, s := range sizes[from:] {
					merged += s
				}
				written += merged
				sizes = append(sizes[:from], merged)
			}
			if len(sizes) > fewSegments {
				t.Fatalf("%d segments", len(sizes))
			}
		}
		if factor := float64(written) / float64(put); factor > 15 {
			t.Errorf("seed %d: every byte is rewritten %.1f times", seed, factor)
		}
	}
}

// A small build beside a large table does not rewrite the large one.
func TestSmallBuildIsCheap(t *testing.T) {
	dir := t.TempDir()
	body := []byte(strings.Repeat("a body that is long enough ", 20))
	build := func(from, n int) int64 {
		c := open(t, Options{Dir: dir})
		for i := range n {
			c.Table(Tuple, "t").Put(key(from+i), []byte("head"), body)
		}
		closeCache(t, c)
		return c.Stats()[Tuple].WrittenBytes
	}
	large := build(0, 5000)
	for i := range 20 {
		if small := build(10_000+10*i, 10); small > large/10 {
			t.Errorf("build %d writes %d bytes, the large one wrote %d", i, small, large)
		}
	}
}

// Entries that go unused through several compactions are dropped; those in use
// and those of recent builds are not.
func TestUnusedEntriesGo(t *testing.T) {
	dir := t.TempDir()
	const n = 50
	wide := func(i int) []byte { return []byte(strings.Repeat(fmt.Sprint(i, " "), 100)) }
	build := func(round int, ask ...int) (found []int) {
		c := open(t, Options{Dir: dir})
		table := c.Table(Tuple, "t")
		for _, i := range ask {
			if got, ok := table.Body(key(i)); ok {
				found = append(found, i)
				if string(got) != string(wide(i)) {
					t.Errorf("%d is %q", i, got)
				}
			}
		}
		for i := range n { // as many as there were, so that all are merged
			table.Put(key(1000*(round+1)+i), nil, wide(1000*(round+1)+i))
		}
		closeCache(t, c)
		return found
	}
	build(0)
	used, unused := 1001, 1002
	for round := range maxAge + 8 {
		if len(build(round+1, used)) != 1 {
			t.Fatalf("round %d: an entry in use is gone", round)
		}
	}
	last := 1000*(maxAge+9) + 1
	if got := build(100, used, unused, last); !slices.Equal(got, []int{used, last}) {
		t.Errorf("found %v of %v", got, []int{used, unused, last})
	}
}

// Large blocks that live are copied, without their compression being done again.
func TestCompactionCopiesBlocks(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 1))
	bodies := make([][]byte, 300)
	for i := range bodies {
		bodies[i] = make([]byte, 10_000)
		for j := range bodies[i] {
			bodies[i][j] = byte(r.IntN(4))
		}
	}
	for half := range 2 {
		c := open(t, Options{Dir: dir})
		for i := range 150 {
			c.Table(Tuple, "t").Put(key(150*half+i), fmt.Append(nil, i), bodies[150*half+i])
		}
		closeCache(t, c)
	}
	c := open(t, Options{Dir: dir})
	table := c.Table(Tuple, "t")
	for i, body := range bodies {
		if got, ok := table.Body(key(i)); !ok || string(got) != string(body) {
			t.Fatalf("%d is lost", i)
		}
	}
	if len(table.segments) != 1 {
		t.Fatalf("%d segments", len(table.segments))
	}
	closeCache(t, c)
	if bad, _, err := VerifyAll(dir); len(bad) > 0 || err != nil {
		t.Error(bad, err)
	}
}

// A block that is damaged when it would be copied or decompressed loses its
// entries, and only those.
func TestCompactionOfDamage(t *testing.T) {
	dir := t.TempDir()
	want := map[int]pair{}
	for half := range 2 {
		c := open(t, Options{Dir: dir})
		for i := range 100 {
			n := 100*half + i
			want[n] = pair{fmt.Sprint(n), strings.Repeat(fmt.Sprint(n, " "), 2000)}
			c.Table(Tuple, "t").Put(key(n), []byte(want[n].head), []byte(want[n].body))
		}
		if half == 1 {
			flipInData(t, dir)
		}
		closeCache(t, c)
	}
	c := open(t, Options{Dir: dir})
	lost := 0
	for n, p := range want {
		if _, ok := c.Table(Tuple, "t").Head(key(n)); !ok {
			lost++
			continue
		}
		wantTable(t, c.Table(Tuple, "t"), key(n), &p)
	}
	if lost == 0 || lost > 60 {
		t.Errorf("%d of 200 entries are lost", lost)
	}
	closeCache(t, c)
}
