package cache

import (
	"slices"
	"strings"
	"testing"
)

// In the mode Verify everything is computed again, and what differs is told.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	big := strings.Repeat("big ", blockSize)
	c := open(t, Options{Dir: dir})
	for n := range 4 {
		c.Put(Model, key(n), []byte("right"))
		c.Table(Tuple, "t").Put(key(n), []byte("head"), []byte("body"))
	}
	c.Table(Tuple, "t").Put(key(9), []byte("head"), []byte(big))
	closeCache(t, c)

	verify := func(lies ...string) {
		t.Helper()
		c := open(t, Options{Dir: dir, Mode: Verify})
		table := c.Table(Tuple, "t")
		for n := range 4 {
			wantEntry(t, c, Model, key(n), "")
			wantTable(t, table, key(n), nil)
			c.Put(Model, key(n), []byte("right"))
			table.Put(key(n), []byte("head"), []byte("body"))
			wantEntry(t, c, Model, key(n), "right")
			wantTable(t, table, key(n), &pair{"head", "body"})
		}
		wantTable(t, table, key(9), nil)
		table.Put(key(9), []byte("head"), []byte(big))
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		wantTable(t, table, key(9), &pair{"head", big})
		wantTable(t, table, key(1), &pair{"head", "body"})
		closeCache(t, c)
		slices.Sort(lies)
		if got := c.Lies(); !slices.Equal(got, lies) {
			t.Errorf("lies are %q, want %q", got, lies)
		}
		if s := c.Stats(); s[Model] != (Stats{4, 0, s[Model].ReadBytes, s[Model].WrittenBytes}) || s[Tuple].Computed != 5 || s[Tuple].Reused != 0 {
			t.Errorf("statistics are %+v", s)
		}
	}
	verify()

	// Lies with consistent hashes: what the cache itself cannot notice.
	c = open(t, Options{Dir: dir})
	if _, err := c.store.put(entryID(Model, key(1)), entryHeader(Model, key(1)).seal([]byte("wrong"))); err != nil {
		t.Fatal(err)
	}
	table := c.Table(Tuple, "t")
	table.Put(key(2), []byte("lead"), []byte("body"))
	table.Put(key(3), []byte("head"), []byte("bodies"))
	closeCache(t, c)
	c = open(t, Options{Dir: dir})
	wantEntry(t, c, Model, key(1), "wrong")
	wantTable(t, c.Table(Tuple, "t"), key(3), &pair{"head", "bodies"})
	closeCache(t, c)

	verify("model "+key(1).String(), "tuple t "+key(2).String(), "tuple t "+key(3).String())
	verify() // it replaced them
	c = open(t, Options{Dir: dir})
	wantEntry(t, c, Model, key(1), "right")
	wantTable(t, c.Table(Tuple, "t"), key(3), &pair{"head", "body"})
	closeCache(t, c)
}

// A computation that gives two results in one process lies as well.
func TestVerifyTwice(t *testing.T) {
	c := open(t, Options{Dir: t.TempDir(), Mode: Verify})
	table := c.Table(Tuple, "t")
	for _, text := range []string{"one", "one", "two"} {
		c.Put(Model, key(1), []byte(text))
		table.Put(key(1), []byte(text), nil)
		table.Put(key(2), nil, []byte(text))
	}
	closeCache(t, c)
	want := []string{"model " + key(1).String(), "tuple t " + key(1).String(), "tuple t " + key(2).String()}
	slices.Sort(want)
	if got := c.Lies(); !slices.Equal(got, want) {
		t.Errorf("lies are %q, want %q", got, want)
	}
}

// What verifying confirms is not written again.
func TestVerifyWritesNothing(t *testing.T) {
	dir := t.TempDir()
	for i, mode := range []Mode{On, Verify} {
		c := open(t, Options{Dir: dir, Mode: mode})
		c.Put(Model, key(1), []byte("one"))
		c.Table(Tuple, "t").Put(key(1), []byte("head"), []byte("body"))
		closeCache(t, c)
		for l, s := range c.Stats() {
			if (s.WrittenBytes == 0) != (i == 1) {
				t.Errorf("%s, %s: %+v", mode, l, s)
			}
		}
	}
}

// A damaged entry is no lie.
func TestVerifyDamaged(t *testing.T) {
	dir := t.TempDir()
	c := open(t, Options{Dir: dir})
	c.Table(Tuple, "t").Put(key(1), []byte("head"), []byte("body"))
	closeCache(t, c)
	flipInData(t, dir)
	c = open(t, Options{Dir: dir, Mode: Verify})
	c.Table(Tuple, "t").Put(key(1), []byte("head"), []byte("body"))
	wantTable(t, c.Table(Tuple, "t"), key(1), &pair{"head", "body"})
	closeCache(t, c)
	if lies := c.Lies(); len(lies) > 0 {
		t.Error(lies)
	}
	c = open(t, Options{Dir: dir})
	wantTable(t, c.Table(Tuple, "t"), key(1), &pair{"head", "body"})
	closeCache(t, c)
}
