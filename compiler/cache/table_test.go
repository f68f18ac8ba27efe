package cache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// wantTable checks a result in a table; "" is a miss.
func wantTable(t *testing.T, table *Table, k Key, want string) {
	t.Helper()
	got, ok := table.Get(k)
	if string(got) != want || ok != (want != "") {
		t.Fatalf("%s is %.40q, %t; want %.40q", k, got, ok, want)
	}
}

// randomResult makes a result that depends only on its number.
func randomResult(n int) string {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	sizes := []int{1, 100, 255, 256, 257, 4096, 20_000}
	size := sizes[r.IntN(len(sizes))]
	line := fmt.Sprintf("line of %d: %x\n", n, r.Uint64())
	return strings.Repeat(line, 1+size/len(line))[:size]
}

// A table over many processes works like a map. Results that are requested in every
// round are never removed.
func TestTableIsAMap(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := rand.New(rand.NewPCG(seed, 1))
			want := map[int]string{}
			for range 15 {
				c := open(t, Options{Dir: dir})
				table := c.Table(Tuple, "a map")
				for n, p := range want {
					wantTable(t, table, key(n), p)
				}
				for range r.IntN(200) + 1 {
					switch n := r.IntN(600); r.IntN(10) {
					case 0:
						if err := table.Flush(); err != nil {
							t.Fatal(err)
						}
					case 1, 2, 3, 4:
						p := randomResult(n)
						table.Put(key(n), []byte(p))
						want[n] = p
					default:
						if p, ok := want[n]; ok {
							wantTable(t, table, key(n), p)
						} else {
							wantTable(t, table, key(n), "")
						}
					}
				}
				closeCache(t, c)
				if files, _ := storedFiles(dir); len(files) != 2 {
					t.Fatalf("%d files, and not an action and its output", len(files))
				}
			}
			if bad, _, err := VerifyAll(dir); len(bad) > 0 || err != nil {
				t.Error(bad, err)
			}
		})
	}
}

// Unused results stay as long as there is room for them, and the youngest stay longest.
func TestUnusedResultsGo(t *testing.T) {
	dir := t.TempDir()
	const size = fewUnused / 4
	of := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, size) }
	write := func(n int) {
		c := open(t, Options{Dir: dir})
		c.Table(Tuple, "t").Put(key(n), of(n))
		closeCache(t, c)
	}
	for n := range 12 {
		write(n)
	}
	rows, _ := open(t, Options{Dir: dir}).Table(Tuple, "t").read()
	if len(rows) != 1+timesUsed {
		t.Errorf("%d results stay", len(rows))
	}
	for n := 12 - len(rows); n < 12; n++ {
		if find(rows, key(n)) == nil {
			t.Errorf("%d of 12 is gone, which was put last", n)
		}
	}
	// With more used results, more unused results may stay.
	c := open(t, Options{Dir: dir})
	for n := 100; n < 120; n++ {
		c.Table(Tuple, "t").Put(key(n), of(n))
	}
	closeCache(t, c)
	write(200)
	rows, _ = open(t, Options{Dir: dir}).Table(Tuple, "t").read()
	if len(rows) != 1+timesUsed {
		t.Errorf("%d results stay beside one", len(rows))
	}
	c = open(t, Options{Dir: dir})
	for n := 300; n < 303; n++ {
		c.Table(Tuple, "t").Put(key(n), of(n))
	}
	closeCache(t, c)
	if rows, _ = open(t, Options{Dir: dir}).Table(Tuple, "t").read(); len(rows) != 8 {
		t.Errorf("%d results stay, three of which were put now", len(rows))
	}
}

// The size of a table is limited for any content.
func TestTableIsBounded(t *testing.T) {
	data := make([]byte, maxResult)
	rows := make([]row, maxTable/maxResult+5)
	for n := range rows {
		rows[n] = row{key: Key{byte(n)}, data: data, used: 1}
	}
	if left := age(rows); len(left) != maxTable/(maxResult+rowSize) {
		t.Errorf("%d of %d results are left", len(left), len(rows))
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
		c.Table(n.level, n.name).Put(key(0), fmt.Append(nil, "result ", i))
		if first, second := c.Table(n.level, n.name), c.Table(n.level, n.name); first != second {
			t.Error("two tables of one name")
		}
	}
	closeCache(t, c)
	c = open(t, Options{Dir: dir})
	for i, n := range names {
		wantTable(t, c.Table(n.level, n.name), key(0), fmt.Sprint("result ", i))
		wantTable(t, c.Table(n.level, n.name), key(1), "")
	}
	closeCache(t, c)
}

// A second Put before a Flush is ignored; after the Flush, an equal result adds nothing.
func TestSecondPut(t *testing.T) {
	dir := t.TempDir()
	c := open(t, Options{Dir: dir})
	table := c.Table(Tuple, "t")
	table.Put(key(1), []byte("first"))
	table.Put(key(1), []byte("second"))
	wantTable(t, table, key(1), "first")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	table.Put(key(1), []byte("first"))
	if table.puts != nil {
		t.Error("an equal entry is stored again")
	}
	table.Put(key(1), []byte("third"))
	wantTable(t, table, key(1), "third")
	closeCache(t, c)
	c = open(t, Options{Dir: dir})
	wantTable(t, c.Table(Tuple, "t"), key(1), "third")
	closeCache(t, c)
}

func TestTooLarge(t *testing.T) {
	c := open(t, Options{Dir: t.TempDir()})
	table := c.Table(Tuple, "t")
	table.Put(key(1), make([]byte, maxResult+1))
	wantTable(t, table, key(1), "")
	table.Put(key(2), []byte("r"))
	wantTable(t, table, key(2), "r")
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
					p := randomResult(n)
					got, ok := table.Get(key(n))
					if ok && string(got) != p {
						t.Errorf("%d is %.40q", n, got)
					}
					if round > 0 && !ok {
						t.Errorf("%d is gone in round %d", n, round)
					}
					if !ok {
						table.Put(key(n), []byte(p))
					}
					c.Put(Model, key(n), []byte(p))
					if got, ok := c.Get(Model, key(n)); ok && !bytes.Equal(got, []byte(p)) {
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
