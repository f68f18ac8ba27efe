package cache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// A pair is an entry of a table.
type pair struct{ head, body string }

// wantTable checks an entry of a table; nil is a miss.
func wantTable(t *testing.T, table *Table, k Key, want *pair) {
	t.Helper()
	head, headOK := table.Head(k)
	body, bodyOK := table.Body(k)
	if headOK != (want != nil) || bodyOK != (want != nil) {
		t.Fatalf("%s: head %t, body %t; want %t", k, headOK, bodyOK, want != nil)
	}
	if want != nil && (string(head) != want.head || string(body) != want.body) {
		t.Fatalf("%s is %.40q %.40q, want %.40q %.40q", k, head, body, want.head, want.body)
	}
}

// randomPair makes an entry that only its key determines: bodies of all sizes
// around a block.
func randomPair(n int) pair {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	sizes := []int{0, 1, 100, 255, 256, 257, 4096, 20_000}
	if r.IntN(50) == 0 {
		sizes = []int{blockSize - 1, blockSize, blockSize + 1, 3 * blockSize}
	}
	size := sizes[r.IntN(len(sizes))]
	line := fmt.Sprintf("line of %d: %x\n", n, r.Uint64())
	body := strings.Repeat(line, 1+size/len(line))[:size]
	return pair{strings.Repeat(fmt.Sprint(n), r.IntN(40)), body}
}

// A table over many processes is a map. Whatever is asked for in every round is
// never dropped.
func TestTableIsAMap(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := rand.New(rand.NewPCG(seed, 1))
			want := map[int]pair{}
			for range 15 {
				c := open(t, Options{Dir: dir})
				table := c.Table(Tuple, "a map")
				for n, p := range want {
					wantTable(t, table, key(n), &p)
				}
				for range r.IntN(200) + 1 {
					switch n := r.IntN(600); r.IntN(10) {
					case 0:
						if err := table.Flush(); err != nil {
							t.Fatal(err)
						}
					case 1, 2, 3, 4:
						p := randomPair(n)
						table.Put(key(n), []byte(p.head), []byte(p.body))
						want[n] = p
					default:
						if p, ok := want[n]; ok {
							wantTable(t, table, key(n), &p)
						} else {
							wantTable(t, table, key(n), nil)
						}
					}
				}
				closeCache(t, c)
				if n := len(segmentsIn(t, dir, "a map")); n > fewSegments {
					t.Fatalf("%d segments", n)
				}
			}
			if bad, _, err := VerifyAll(dir); len(bad) > 0 || err != nil {
				t.Error(bad, err)
			}
		})
	}
}

// segmentsIn reads the manifest of a table of the level Tuple.
func segmentsIn(t *testing.T, dir, name string) []segment {
	t.Helper()
	c := open(t, Options{Dir: dir})
	segments, _ := c.Table(Tuple, name).manifest()
	return segments
}

// What a table keeps and gives does not share memory with what callers change.
func TestTableCopies(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		c := open(t, Options{Dir: dir})
		table := c.Table(Tuple, "t")
		head, body := []byte("head"), []byte("body")
		table.Put(key(1), head, body)
		clear(head)
		clear(body)
		for range 2 {
			got, _ := table.Body(key(1))
			clear(got)
		}
		wantTable(t, table, key(1), &pair{"head", "body"})
		if got, _ := table.Head(key(1)); len(got) != cap(got) {
			t.Error("appending to a head changes the next one")
		}
		closeCache(t, c)
	}
}

func TestTablesAreApart(t *testing.T) {
	dir := t.TempDir()
	names := []struct {
		level Level
		name  string
	}{{Tuple, "a"}, {Tuple, "b"}, {Assignment, "a"}, {Tuple, ""}, {"", "tuplea"}, {Tuple, "a/../b\x00"}, {Tuple, strings.Repeat("n", 5000)}}
	c := open(t, Options{Dir: dir})
	for i, n := range names {
		c.Table(n.level, n.name).Put(key(0), fmt.Append(nil, i), fmt.Append(nil, "body", i))
		if first, second := c.Table(n.level, n.name), c.Table(n.level, n.name); first != second {
			t.Error("two tables of one name")
		}
	}
	closeCache(t, c)
	c = open(t, Options{Dir: dir})
	for i, n := range names {
		wantTable(t, c.Table(n.level, n.name), key(0), &pair{fmt.Sprint(i), fmt.Sprint("body", i)})
		wantTable(t, c.Table(n.level, n.name), key(1), nil)
	}
	closeCache(t, c)
}

// A second Put before a Flush is ignored; after it, one that is equal adds nothing.
func TestSecondPut(t *testing.T) {
	dir := t.TempDir()
	c := open(t, Options{Dir: dir})
	table := c.Table(Tuple, "t")
	table.Put(key(1), []byte("first"), nil)
	table.Put(key(1), []byte("second"), nil)
	wantTable(t, table, key(1), &pair{"first", ""})
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	table.Put(key(1), []byte("first"), nil)
	if table.pending != nil {
		t.Error("an equal entry is stored again")
	}
	table.Put(key(1), []byte("third"), nil)
	wantTable(t, table, key(1), &pair{"third", ""})
	closeCache(t, c)
	c = open(t, Options{Dir: dir})
	wantTable(t, c.Table(Tuple, "t"), key(1), &pair{"third", ""})
	closeCache(t, c)
}

func TestTooLarge(t *testing.T) {
	c := open(t, Options{Dir: t.TempDir()})
	table := c.Table(Tuple, "t")
	table.Put(key(1), nil, make([]byte, maxBlock+1))
	wantTable(t, table, key(1), nil)
	table.Put(key(2), []byte("h"), []byte("b"))
	wantTable(t, table, key(2), &pair{"h", "b"})
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("the error is %v", err)
	}
}

// Goroutines read, put and flush one table at once.
func TestGoroutines(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		c := open(t, Options{Dir: dir})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				table := c.Table(Tuple, "shared")
				for i := range 300 {
					n := (i*7 + g*31) % 400
					p := randomPair(n)
					head, ok := table.Head(key(n))
					if ok && string(head) != p.head {
						t.Errorf("head of %d is %q", n, head)
					}
					if body, ok := table.Body(key(n)); ok && string(body) != p.body {
						t.Errorf("body of %d is wrong", n)
					}
					if round > 0 && !ok {
						t.Errorf("%d is gone in round %d", n, round)
					}
					if !ok {
						table.Put(key(n), []byte(p.head), []byte(p.body))
					}
					c.Put(Model, key(n), []byte(p.head))
					if got, ok := c.Get(Model, key(n)); ok && !bytes.Equal(got, []byte(p.head)) {
						t.Errorf("entry %d is wrong", n)
					}
					if i%100 == 50 {
						if err := table.Flush(); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		closeCache(t, c)
	}
}
