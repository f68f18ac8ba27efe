package cache

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	damageEntries = 8
	damageKeys    = 120
)

func damaged(n int) string { return strings.Repeat(fmt.Sprintf("result %d ", n), 1+n*4) }

// fillDamaged stores missing results, and fails if an existing result is wrong. It returns the
// number of results that existed.
func fillDamaged(t *testing.T, dir string) (found int) {
	t.Helper()
	c := open(t, Options{Dir: dir})
	for n := range damageEntries {
		want := fmt.Sprintf("entry %d", n)
		if got, ok := c.Get(Model, key(n)); ok {
			found++
			if string(got) != want {
				t.Fatalf("entry %d is %q", n, got)
			}
			continue
		}
		c.Put(Model, key(n), []byte(want))
	}
	for n := range damageKeys {
		table := c.Table(Tuple, fmt.Sprint("table ", n%2))
		got, ok := table.Get(key(n))
		if ok && string(got) != damaged(n) {
			t.Fatalf("%d of a table is %.40q", n, got)
		}
		if ok {
			found++
			continue
		}
		table.Put(key(n), []byte(damaged(n)))
	}
	closeCache(t, c)
	return found
}

// Any damage to any file gives a miss or no effect at all, and heals.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	fillDamaged(t, dir)
	const all = damageEntries + damageKeys
	if found := fillDamaged(t, dir); found != all {
		t.Fatalf("%d of %d found", found, all)
	}
	stored, err := storedFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	original := map[string][]byte{}
	var names []string
	for _, f := range stored {
		text, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		original[f.path] = text
		names = append(names, f.path)
	}
	r := rand.New(rand.NewPCG(1, 2))
	misses := 0
	for n := range 600 {
		name := names[n%len(names)]
		text, how := damage(r, original, names, name)
		if err := os.WriteFile(name, text, 0o666); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%d %s %s", n, how, filepath.Base(name)), func(t *testing.T) {
			found := fillDamaged(t, dir)
			if found < all {
				misses++
			}
			if again := fillDamaged(t, dir); again != all {
				t.Errorf("%d of %d found after %d were, and the others were put", again, all, found)
			}
		})
		restore(t, dir, original)
	}
	if misses < 300 {
		t.Errorf("only %d of 600 damages had an effect", misses)
	}
}

func damage(r *rand.Rand, original map[string][]byte, names []string, name string) ([]byte, string) {
	text := slices.Clone(original[name])
	switch r.IntN(6) {
	case 0:
		return text[:r.IntN(len(text))], "cut"
	case 1:
		return append(text, byte(r.IntN(256))), "longer"
	case 2:
		return nil, "empty"
	case 3:
		return original[names[r.IntN(len(names))]], "another's"
	case 4:
		from := r.IntN(len(text))
		clear(text[from:min(len(text), from+64)])
		return text, "zeros"
	}
	text[r.IntN(len(text))] ^= 1 << r.IntN(8)
	return text, "bit"
}

// restore writes the original content of the stored files.
func restore(t *testing.T, dir string, original map[string][]byte) {
	t.Helper()
	stored, err := storedFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range stored {
		if _, ok := original[f.path]; !ok {
			if err := os.Remove(f.path); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range original {
		if now, err := os.ReadFile(name); err == nil && bytes.Equal(now, text) {
			continue
		}
		if err := os.WriteFile(name, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// A folder in the place of a file, and a missing file, are misses too.
func TestDamagedTree(t *testing.T) {
	for _, how := range []string{"missing", "folder"} {
		dir := t.TempDir()
		fillDamaged(t, dir)
		stored, err := storedFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range stored {
			t.Run(how+" "+filepath.Base(f.path), func(t *testing.T) {
				text, err := os.ReadFile(f.path)
				if err != nil {
					return // an earlier round wrote a new table
				}
				if err := os.Remove(f.path); err != nil {
					t.Fatal(err)
				}
				if how == "folder" {
					if err := os.Mkdir(f.path, 0o777); err != nil {
						t.Fatal(err)
					}
				}
				wantNoLie(t, dir)
				os.Remove(f.path)
				if err := os.WriteFile(f.path, text, 0o666); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// wantNoLie reads everything without storing anything.
func wantNoLie(t *testing.T, dir string) {
	t.Helper()
	c := open(t, Options{Dir: dir})
	for n := range damageEntries {
		if got, ok := c.Get(Model, key(n)); ok && string(got) != fmt.Sprintf("entry %d", n) {
			t.Errorf("entry %d is %q", n, got)
		}
	}
	for n := range damageKeys {
		table := c.Table(Tuple, fmt.Sprint("table ", n%2))
		if got, ok := table.Get(key(n)); ok && string(got) != damaged(n) {
			t.Errorf("%d is %.40q", n, got)
		}
	}
	closeCache(t, c)
}

// An entry or a table at another one's place is foreign, even if the actions of both
// are valid.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	c := open(t, Options{Dir: dir})
	c.Put(Model, key(1), []byte("one"))
	c.Table(Tuple, "a").Put(key(1), []byte("result"))
	closeCache(t, c)

	c = open(t, Options{Dir: dir})
	entry, _, _ := c.store.get(entryID(Model, key(1)))
	whole, _, _ := c.store.get(tableID(Tuple, "a"))
	plant := func(id Key, data []byte) {
		if err := c.store.put(id, data, sha256.Sum256(data)); err != nil {
			t.Fatal(err)
		}
	}
	plant(entryID(Model, key(2)), entry)
	plant(entryID(Tuple, key(1)), entry)
	plant(entryID(Model, key(3)), whole)
	plant(tableID(Tuple, "b"), whole)
	plant(tableID(Assignment, "a"), whole)
	plant(tableID(Tuple, "c"), entry)
	plant(tableID(Tuple, "d"), sealed(c.Table(Tuple, "d").header(), "no rows"))

	wantEntry(t, c, Model, key(2), "")
	wantEntry(t, c, Tuple, key(1), "")
	wantEntry(t, c, Model, key(3), "")
	for _, name := range []string{"b", "c", "d"} {
		wantTable(t, c.Table(Tuple, name), key(1), "")
	}
	wantTable(t, c.Table(Assignment, "a"), key(1), "")
	wantEntry(t, c, Model, key(1), "one")
	wantTable(t, c.Table(Tuple, "a"), key(1), "result")
	closeCache(t, c)
}

// flipInTables damages every existing table.
func flipInTables(t *testing.T, dir string) {
	t.Helper()
	stored, err := storedFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	flipped := 0
	for _, f := range stored {
		text, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if h, _, ok := parseHeader(text); !ok || h.kind != kindTable {
			continue
		}
		text[len(text)-1] ^= 1
		if err := os.WriteFile(f.path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		flipped++
	}
	if flipped == 0 {
		t.Fatal("no table")
	}
}
