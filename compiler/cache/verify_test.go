package cache

import (
	"slices"
	"testing"
)

// In the mode Verify everything is computed again, and Lies returns the differences.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	c := open(t, Options{Dir: dir})
	for n := range 4 {
		c.Put(Model, key(n), []byte("right"))
		c.Table(Tuple, "t").Put(key(n), []byte("result"))
	}
	c.Table(Tuple, "t").Put(key(9), []byte("another"))
	closeCache(t, c)

	verify := func(lies ...string) {
		t.Helper()
		c := open(t, Options{Dir: dir, Mode: Verify})
		table := c.Table(Tuple, "t")
		for n := range 4 {
			wantEntry(t, c, Model, key(n), "")
			wantTable(t, table, key(n), "")
			c.Put(Model, key(n), []byte("right"))
			table.Put(key(n), []byte("result"))
			wantEntry(t, c, Model, key(n), "right")
			wantTable(t, table, key(n), "result")
		}
		wantTable(t, table, key(9), "")
		table.Put(key(9), []byte("another"))
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		wantTable(t, table, key(9), "another")
		wantTable(t, table, key(1), "result")
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

	// Lies with consistent hashes, which the cache itself cannot detect.
	c = open(t, Options{Dir: dir})
	wrong, file := entryHeader(Model, key(1)).seal([]byte("wrong"))
	if err := c.store.put(entryID(Model, key(1)), wrong, file); err != nil {
		t.Fatal(err)
	}
	table := c.Table(Tuple, "t")
	table.Put(key(2), []byte("resalt"))
	table.Put(key(3), []byte("results"))
	closeCache(t, c)
	c = open(t, Options{Dir: dir})
	wantEntry(t, c, Model, key(1), "wrong")
	wantTable(t, c.Table(Tuple, "t"), key(3), "results")
	closeCache(t, c)

	verify("model "+key(1).String(), "tuple t "+key(2).String(), "tuple t "+key(3).String())
	verify() // it replaced them
	c = open(t, Options{Dir: dir})
	wantEntry(t, c, Model, key(1), "right")
	wantTable(t, c.Table(Tuple, "t"), key(3), "result")
	closeCache(t, c)
}

// It is also a lie if a computation has two results in one process.
func TestVerifyTwice(t *testing.T) {
	c := open(t, Options{Dir: t.TempDir(), Mode: Verify})
	table := c.Table(Tuple, "t")
	for _, text := range []string{"one", "one", "two"} {
		c.Put(Model, key(1), []byte(text))
		table.Put(key(1), []byte(text))
	}
	closeCache(t, c)
	want := []string{"model " + key(1).String(), "tuple t " + key(1).String()}
	slices.Sort(want)
	if got := c.Lies(); !slices.Equal(got, want) {
		t.Errorf("lies are %q, want %q", got, want)
	}
}

// Results that Verify confirms are not written again.
func TestVerifyWritesNothing(t *testing.T) {
	dir := t.TempDir()
	for i, mode := range []Mode{On, Verify} {
		c := open(t, Options{Dir: dir, Mode: mode})
		c.Put(Model, key(1), []byte("one"))
		c.Table(Tuple, "t").Put(key(1), []byte("result"))
		closeCache(t, c)
		for l, s := range c.Stats() {
			if (s.WrittenBytes == 0) != (i == 1) {
				t.Errorf("%s, %s: %+v", mode, l, s)
			}
		}
	}
}

// A damaged entry is not a lie.
func TestVerifyDamaged(t *testing.T) {
	dir := t.TempDir()
	c := open(t, Options{Dir: dir})
	c.Table(Tuple, "t").Put(key(1), []byte("result"))
	closeCache(t, c)
	flipInTables(t, dir)
	c = open(t, Options{Dir: dir, Mode: Verify})
	c.Table(Tuple, "t").Put(key(1), []byte("result"))
	wantTable(t, c.Table(Tuple, "t"), key(1), "result")
	closeCache(t, c)
	if lies := c.Lies(); len(lies) > 0 {
		t.Error(lies)
	}
	c = open(t, Options{Dir: dir})
	wantTable(t, c.Table(Tuple, "t"), key(1), "result")
	closeCache(t, c)
}
