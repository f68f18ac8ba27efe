package cache

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if size, entries, err := Size(dir); size != 0 || entries != 0 || err != nil {
		t.Errorf("%d, %d, %v where nothing is", size, entries, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("asking for the size creates it")
	}
	fillDamaged(t, dir)
	size, entries, err := Size(dir)
	if least := storedBytes(t, dir); size < least || size > least+1000 || entries != damageEntries+damageKeys || err != nil {
		t.Errorf("%d bytes of at least %d, %d entries, %v", size, least, entries, err)
	}
}

func TestClean(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if err := Clean(dir); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
	fillDamaged(t, dir)
	if err := Clean(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it is still there")
	}
	fillDamaged(t, dir)
	other := filepath.Join(dir, "letter.txt")
	if err := os.WriteFile(other, []byte("Dear all"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Clean(dir); err != nil {
		t.Error(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 || files[0].Name() != "letter.txt" {
		t.Errorf("left are %v", files)
	}
	for name, f := range map[string]func() error{
		"clean":  func() error { return Clean(dir) },
		"size":   func() error { _, _, err := Size(dir); return err },
		"verify": func() error { _, _, err := VerifyAll(dir); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "is not a cache of kalypso") {
			t.Errorf("%s of another folder: %v", name, err)
		}
	}
}

// VerifyAll names all damage, removes it, and does not change other files.
func TestVerifyAll(t *testing.T) {
	dir := t.TempDir()
	fillDamaged(t, dir)
	old := time.Now().Add(-50 * time.Hour).Truncate(time.Second)
	setUsed(t, dir, func(storedFile) time.Time { return old })
	files, err := storedFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	if bad, checked, err := VerifyAll(dir); len(bad) > 0 || checked != len(files) || err != nil {
		t.Fatalf("%v, %d of %d, %v", bad, checked, len(files), err)
	}
	setUsed(t, dir, func(f storedFile) time.Time {
		if !f.used.Equal(old) {
			t.Error("verifying counts as a use")
		}
		return old
	})
	for _, f := range files {
		text, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := filepath.Rel(dir, f.path)
		name = filepath.ToSlash(name)
		damaged := append(text[:len(text)-1:len(text)-1], text[len(text)-1]^1)
		if err := os.WriteFile(f.path, damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		if bad, _, err := VerifyAll(dir); !slices.Equal(bad, []string{name}) || err != nil {
			t.Errorf("%v, %v; want %s", bad, err, name)
		}
		if _, err := os.Stat(f.path); err == nil {
			t.Errorf("%s is still there", name)
		}
		if bad, _, err := VerifyAll(dir); len(bad) > 0 || err != nil {
			t.Errorf("%v, %v after it was removed", bad, err)
		}
		if err := os.WriteFile(f.path, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// A valid file at the wrong place is bad.
func TestVerifyAllForeign(t *testing.T) {
	dir := t.TempDir()
	c := open(t, Options{Dir: dir})
	c.Put(Model, key(1), []byte("one"))
	c.Table(Tuple, "a").Put(key(1), []byte("result"))
	closeCache(t, c)
	c = open(t, Options{Dir: dir})
	one, _, _ := c.store.get(entryID(Model, key(1)))
	whole, _, _ := c.store.get(tableID(Tuple, "a"))

	var want []string
	plant := func(id Key, data []byte) {
		if err := c.store.put(id, data, sha256.Sum256(data)); err != nil {
			t.Fatal(err)
		}
		want = append(want, id.String()[:2]+"/"+id.String()+"-a")
	}
	plant(entryID(Model, key(2)), one)
	plant(tableID(Tuple, "b"), whole)
	plant(entryID(Model, key(3)), []byte("no header"))
	plant(tableID(Tuple, "c"), sealed(header{kindTable, Tuple, "c"}, "no rows"))
	// A file whose name is not a hash.
	odd := filepath.Join(dir, "00", "odd-d")
	if err := os.WriteFile(odd, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	want = append(want, "00/odd-d")

	slices.Sort(want)
	if bad, _, err := VerifyAll(dir); !slices.Equal(bad, want) || err != nil {
		t.Errorf("bad are\n%s\nwant\n%s\n%v", strings.Join(bad, "\n"), strings.Join(want, "\n"), err)
	}
	if bad, _, err := VerifyAll(dir); len(bad) > 0 || err != nil {
		t.Error(bad, err)
	}
	closeCache(t, c)
}
