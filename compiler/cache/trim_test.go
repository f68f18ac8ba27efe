package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// setUsed sets the time of the last use of all stored files.
func setUsed(t *testing.T, dir string, when func(storedFile) time.Time) {
	t.Helper()
	files, err := storedFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.Chtimes(f.path, when(f), when(f)); err != nil {
			t.Fatal(err)
		}
	}
}

func storedBytes(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := storedFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		n += f.size
	}
	return n
}

// The most recently used files stay, and the folder is not larger than allowed.
func TestTrim(t *testing.T) {
	dir := t.TempDir()
	const n, size = 20, 10_000
	for i := range n {
		c := open(t, Options{Dir: dir})
		c.Put(Model, key(i), make([]byte, size))
		closeCache(t, c)
	}
	hours := func(n int) time.Time { return time.Now().Add(-time.Duration(n) * time.Hour) }
	setUsed(t, dir, func(storedFile) time.Time { return hours(100) })
	used := []int{3, 8, 15}
	c := open(t, Options{Dir: dir})
	for _, i := range used {
		if _, ok := c.Get(Model, key(i)); !ok {
			t.Fatal("not there")
		}
	}
	// It was trimmed less than an hour ago.
	c.maxBytes = 5 * size
	closeCache(t, c)
	if storedBytes(t, dir) < n*size {
		t.Error("trimmed twice in an hour")
	}

	if err := os.Chtimes(filepath.Join(dir, trimmedFile), hours(2), hours(2)); err != nil {
		t.Fatal(err)
	}
	closeCache(t, open(t, Options{Dir: dir, MaxBytes: 5 * size}))
	if got := storedBytes(t, dir); got > 5*size || got < 3*size {
		t.Errorf("%d bytes are left", got)
	}
	c = open(t, Options{Dir: dir})
	for _, i := range used {
		if _, ok := c.Get(Model, key(i)); !ok {
			t.Errorf("%d was used last, and is gone", i)
		}
	}
	closeCache(t, c)
}

// A process that stores much trims at once, even soon after the last trim.
func TestTrimAfterMuch(t *testing.T) {
	dir := t.TempDir()
	closeCache(t, open(t, Options{Dir: dir}))
	c := open(t, Options{Dir: dir, MaxBytes: 100_000})
	for i := range 30 {
		c.Put(Model, key(i), make([]byte, 10_000))
	}
	for i := range 3000 {
		c.Table(Tuple, "t").Put(key(i), key(i).bytes())
	}
	closeCache(t, c)
	if got := storedBytes(t, dir); got > 100_000 {
		t.Errorf("%d bytes are left", got)
	}
}

func (k Key) bytes() []byte { return k[:] }

// A clock that was wrong does not stop trims forever.
func TestTrimInTheFuture(t *testing.T) {
	dir := t.TempDir()
	c := open(t, Options{Dir: dir})
	c.Put(Model, key(1), make([]byte, 1000))
	closeCache(t, c)
	later := time.Now().Add(1000 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, trimmedFile), later, later); err != nil {
		t.Fatal(err)
	}
	closeCache(t, open(t, Options{Dir: dir, MaxBytes: 1}))
	if got := storedBytes(t, dir); got > 1 {
		t.Errorf("%d bytes are left", got)
	}
}

// The file of a replaced table is removed at once, and abandoned temporary files after a day, even
// in a small folder.
func TestTrimAbandoned(t *testing.T) {
	dir := t.TempDir()
	for i := range 6 {
		c := open(t, Options{Dir: dir})
		c.Table(Tuple, "t").Put(key(i), fmt.Append(nil, i))
		closeCache(t, c)
		if files, err := storedFiles(dir); err != nil || len(files) != 2 {
			t.Errorf("%d files are there, and not an action and its output, %v", len(files), err)
		}
	}
	abandonedFile := filepath.Join(dir, tmpFolder, "new-old")
	fresh := filepath.Join(dir, tmpFolder, "new-fresh")
	for _, name := range []string{abandonedFile, fresh} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(abandonedFile, old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, trimmedFile)); err != nil {
		t.Fatal(err)
	}
	closeCache(t, open(t, Options{Dir: dir}))
	if _, err := os.Stat(abandonedFile); err == nil {
		t.Error("an abandoned file stays")
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error("a file that may be in use is gone")
	}
	c := open(t, Options{Dir: dir})
	for i := range 6 {
		wantTable(t, c.Table(Tuple, "t"), key(i), fmt.Sprint(i))
	}
	closeCache(t, c)
}
