package cache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func key(n int) Key { return NewHash("test").Int(n).Sum() }

func open(t testing.TB, o Options) *Cache {
	t.Helper()
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func closeCache(t testing.TB, c *Cache) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantEntry checks a single entry: "" is a miss.
func wantEntry(t *testing.T, c *Cache, l Level, k Key, want string) {
	t.Helper()
	got, ok := c.Get(l, k)
	if string(got) != want || ok != (want != "") {
		t.Errorf("%s %s is %q, %t; want %q", l, k, got, ok, want)
	}
}

func TestEntries(t *testing.T) {
	dir := t.TempDir()
	c := open(t, Options{Dir: dir})
	wantEntry(t, c, Model, key(1), "")
	c.Put(Model, key(1), []byte("one"))
	c.Put(Tuple, key(1), []byte("another level"))
	c.Put(Model, key(2), []byte("two"))
	c.Put(Model, key(2), []byte("two again"))
	for range 2 {
		wantEntry(t, c, Model, key(1), "one")
		wantEntry(t, c, Tuple, key(1), "another level")
		wantEntry(t, c, Assignment, key(1), "")
		wantEntry(t, c, Model, key(2), "two again")
		wantEntry(t, c, Model, key(3), "")
		closeCache(t, c)
		c = open(t, Options{Dir: dir})
	}
	c.Put(Model, key(4), nil)
	if data, ok := c.Get(Model, key(4)); !ok || len(data) != 0 {
		t.Errorf("an empty result is %q, %t", data, ok)
	}
	closeCache(t, c)
}

func TestStats(t *testing.T) {
	dir := t.TempDir()
	use := func() map[Level]Stats {
		c := open(t, Options{Dir: dir})
		table := c.Table(Assignment, "t")
		for n := range 10 {
			if _, ok := c.Get(Model, key(n)); !ok {
				c.Put(Model, key(n), []byte("m"))
			}
			if _, ok := table.Get(key(n)); !ok {
				table.Put(key(n), []byte("r"))
				table.Put(key(n), []byte("r"))
			}
			table.Get(key(n))
			c.Get(Model, key(n)) // stored by the same Cache: not reused
		}
		closeCache(t, c)
		return c.Stats()
	}
	counts := func(s map[Level]Stats) [4]int {
		return [4]int{s[Model].Computed, s[Model].Reused, s[Assignment].Computed, s[Assignment].Reused}
	}
	first, second := use(), use()
	if got, want := counts(first), [4]int{10, 0, 10, 0}; got != want {
		t.Errorf("the first time: %v, want %v", got, want)
	}
	if got, want := counts(second), [4]int{0, 20, 0, 10}; got != want {
		t.Errorf("the second time: %v, want %v", got, want)
	}
	for _, l := range []Level{Model, Assignment} {
		if first[l].WrittenBytes == 0 || second[l].WrittenBytes != 0 || second[l].ReadBytes == 0 {
			t.Errorf("%s: bytes %+v, then %+v", l, first[l], second[l])
		}
	}
}

func TestOff(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	on := open(t, Options{Dir: dir})
	on.Put(Model, key(1), []byte("on"))
	on.Table(Tuple, "t").Put(key(1), []byte("on"))
	closeCache(t, on)

	off := open(t, Options{Dir: dir, Mode: Off, Remote: newMemory()})
	wantEntry(t, off, Model, key(1), "")
	wantTable(t, off.Table(Tuple, "t"), key(1), "")
	off.Put(Model, key(1), []byte("off"))
	wantEntry(t, off, Model, key(1), "off")
	off.Table(Tuple, "t").Put(key(1), []byte("off"))
	wantTable(t, off.Table(Tuple, "t"), key(1), "off")
	if err := off.Table(Tuple, "t").Flush(); err != nil {
		t.Fatal(err)
	}
	wantTable(t, off.Table(Tuple, "t"), key(1), "off")
	closeCache(t, off)
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}

	on = open(t, Options{Dir: dir})
	wantEntry(t, on, Model, key(1), "on")
	closeCache(t, on)
}

// TestFlush: other processes find flushed results while this Cache is open, and later.
func TestFlush(t *testing.T) {
	dir := t.TempDir()
	long := open(t, Options{Dir: dir})
	for i := range 2 {
		for _, name := range []string{"a", "b"} {
			long.Table(Tuple, name).Put(key(i), []byte(name))
		}
		long.Flush()
		other := open(t, Options{Dir: dir})
		for _, name := range []string{"a", "b"} {
			wantTable(t, other.Table(Tuple, name), key(i), name)
			wantTable(t, long.Table(Tuple, name), key(i), name)
		}
		closeCache(t, other)
	}
	closeCache(t, long)
	long.Flush()
}

func TestUnusable(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	write := func(name, text string) string {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("file", "text")
	for name, dir := range map[string]string{
		"a file":                 file,
		"below a file":           filepath.Join(file, "cache"),
		"somebody's folder":      filepath.Dir(write("home/letter.txt", "Dear all")),
		"another README":         filepath.Dir(write("project/README", "A project")),
		"a NUL":                  "a\x00b",
		"another cache's README": filepath.Dir(write("go/README", "This directory holds cached build artifacts")),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Open(Options{Dir: dir})
			var unusable *UnusableError
			if !errors.As(err, &unusable) || unusable.Dir != dir || !strings.Contains(err.Error(), dir) {
				t.Errorf("the error is %v", err)
			}
			c.Put(Model, key(1), []byte("one"))
			wantEntry(t, c, Model, key(1), "one")
			closeCache(t, c)
		})
	}
	if files, _ := os.ReadDir(filepath.Join(base, "home")); len(files) != 1 {
		t.Errorf("somebody's folder has %v now", files)
	}
	t.Run("nowhere to write at all", func(t *testing.T) {
		t.Setenv("TMPDIR", file)
		c, err := Open(Options{Dir: file})
		var unusable *UnusableError
		if !errors.As(err, &unusable) {
			t.Errorf("the error is %v", err)
		}
		c.Put(Model, key(1), []byte("one"))
		wantEntry(t, c, Model, key(1), "")
		table := c.Table(Tuple, "t")
		table.Put(key(1), []byte("r"))
		wantTable(t, table, key(1), "")
		if table.Flush() != nil || c.Close() == nil {
			t.Error("Close must say why nothing was kept, and Flush has nothing to say")
		}
	})
	t.Run("an unknown mode", func(t *testing.T) {
		c, err := Open(Options{Dir: filepath.Join(base, "new"), Mode: "of"})
		if err == nil || !strings.Contains(err.Error(), `"of"`) {
			t.Errorf("the error is %v", err)
		}
		closeCache(t, c)
	})
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("KALYPSO_CACHE_DIR", "/elsewhere")
	if dir, err := DefaultDir(); dir != "/elsewhere" || err != nil {
		t.Errorf("%s, %v", dir, err)
	}
	t.Setenv("KALYPSO_CACHE_DIR", "")
	home, homeErr := os.UserCacheDir()
	if dir, err := DefaultDir(); homeErr == nil && dir != filepath.Join(home, "kalypso") || !errors.Is(err, homeErr) {
		t.Errorf("%s, %v", dir, err)
	}
}

// A debugging setting of the library makes it panic on differences.
func TestLibraryVerify(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		runChild(t, "TestLibraryVerify", "GODEBUG=gocacheverify=1", childEnv+"=library")
		return
	}
	c := open(t, Options{Dir: t.TempDir()})
	c.Put(Model, key(1), []byte("one"))
	c.Put(Model, key(1), []byte("two"))
	closeCache(t, c)
}

// The first errors are remembered, and nothing fails.
func TestErr(t *testing.T) {
	dir := t.TempDir()
	c := open(t, Options{Dir: dir})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for n := range 2 * maxErrors {
		c.Put(Model, key(n), []byte("one"))
	}
	table := c.Table(Tuple, "t")
	table.Put(key(1), []byte("result"))
	wantTable(t, table, key(1), "result")
	if table.Flush() == nil {
		t.Error("Flush says nothing")
	}
	if c.Err() == nil || c.Close() == nil {
		t.Error("nothing is remembered")
	}
	if n := len(strings.Split(c.Err().Error(), "\n")); n > maxErrors {
		t.Errorf("%d errors", n)
	}
}

func TestClosed(t *testing.T) {
	c := open(t, Options{Dir: t.TempDir()})
	table := c.Table(Tuple, "t")
	c.Put(Model, key(1), []byte("one"))
	table.Put(key(1), []byte("one"))
	closeCache(t, c)
	closeCache(t, c)
	wantEntry(t, c, Model, key(1), "")
	wantTable(t, table, key(1), "")
	c.Put(Model, key(2), []byte("two"))
	table.Put(key(2), nil)
	if err := errors.Join(table.Flush(), c.Err()); err != nil {
		t.Error(err)
	}
}

// The same calls make the same files, except for the times in actions.
func TestDeterministic(t *testing.T) {
	var files [2]map[string]string
	for i := range files {
		dir := t.TempDir()
		c := open(t, Options{Dir: dir})
		for n := range 500 {
			c.Table(Tuple, fmt.Sprint(n%3)).Put(key(n), []byte(strings.Repeat(fmt.Sprint(n), n)))
		}
		c.Put(Model, key(1), []byte("one"))
		closeCache(t, c)
		files[i] = map[string]string{}
		stored, err := storedFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range stored {
			name, _ := filepath.Rel(dir, f.path)
			text, err := os.ReadFile(f.path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "-a") {
				text = text[:3+2*64+1]
			}
			files[i][name] = string(text)
		}
	}
	if len(files[0]) < 8 || !reflect.DeepEqual(files[0], files[1]) {
		t.Errorf("%d and %d files differ", len(files[0]), len(files[1]))
	}
}
