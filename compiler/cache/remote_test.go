package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// memory is a Remote in memory. change, if set, changes the result of Get.
type memory struct {
	mu       sync.Mutex
	data     map[string][]byte
	readOnly bool
	gets     int
	change   func(key string, data []byte) ([]byte, error)
	refuse   error // of Put
}

func newMemory() *memory { return &memory{data: map[string][]byte{}} }

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gets++
	data, ok := m.data[key]
	if m.change != nil {
		return m.change(key, bytes.Clone(data))
	}
	if !ok {
		return nil, ErrNotFound
	}
	return bytes.Clone(data), nil
}

func (m *memory) Put(_ context.Context, key string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse != nil {
		return m.refuse
	}
	m.data[key] = bytes.Clone(data)
	return nil
}

func (m *memory) ReadOnly() bool { return m.readOnly }

// fill stores entries and two tables through a cache of their own.
func (m *memory) fill(t *testing.T, entries int) {
	t.Helper()
	c := open(t, Options{Dir: t.TempDir(), Remote: m})
	for n := range entries {
		c.Put(Model, key(n), fmt.Append(nil, "entry ", n))
		c.Table(Tuple, fmt.Sprint("table ", n%2)).Put(key(n), []byte(damaged(n)))
	}
	closeCache(t, c)
	if err := c.RemoteErr(); err != nil {
		t.Fatal(err)
	}
}

// found counts the results that a cache finds, and fails if one is wrong.
func found(t *testing.T, c *Cache, entries int) (n int) {
	t.Helper()
	for i := range entries {
		if got, ok := c.Get(Model, key(i)); ok {
			n++
			if string(got) != fmt.Sprint("entry ", i) {
				t.Errorf("entry %d is %q", i, got)
			}
		}
		if got, ok := c.Table(Tuple, fmt.Sprint("table ", i%2)).Get(key(i)); ok {
			n++
			if string(got) != damaged(i) {
				t.Errorf("%d of a table is %.40q", i, got)
			}
		}
	}
	return n
}

func TestRemote(t *testing.T) {
	const entries = 30
	m := newMemory()
	m.fill(t, entries)
	m.readOnly = true
	before := maps.Clone(m.data)
	dir := t.TempDir()
	c := open(t, Options{Dir: dir, Remote: m})
	if n := found(t, c, entries); n != 2*entries {
		t.Errorf("%d results come from the remote cache", n)
	}
	wantEntry(t, c, Model, key(1000), "")
	c.Put(Model, key(1000), []byte("more"))
	c.Table(Tuple, "table 0").Put(key(1000), []byte("more"))
	closeCache(t, c)
	if err := c.RemoteErr(); err != nil {
		t.Error(err)
	}
	if !maps.EqualFunc(before, m.data, bytes.Equal) {
		t.Error("a remote cache was written that is only for reading")
	}
	// The results are in the folder now.
	c = open(t, Options{Dir: dir})
	if n := found(t, c, entries); n != 2*entries {
		t.Errorf("%d results are in the folder", n)
	}
	wantTable(t, c.Table(Tuple, "table 0"), key(1000), "more")
	closeCache(t, c)
	// Results in the folder are not requested.
	m.gets = 0
	c = open(t, Options{Dir: dir, Remote: m})
	if n := found(t, c, entries); n != 2*entries || m.gets != 0 {
		t.Errorf("%d results found, the remote cache was asked %d times", n, m.gets)
	}
	for range 5 {
		wantTable(t, c.Table(Tuple, "table 0"), key(2000), "")
	}
	if m.gets != 1 {
		t.Errorf("the table was asked for %d times", m.gets)
	}
	closeCache(t, c)
}

// A damaged or removed table is restored from the remote cache.
func TestRemoteHeals(t *testing.T) {
	m := newMemory()
	m.fill(t, 10)
	dir := t.TempDir()
	for range 2 {
		c := open(t, Options{Dir: dir, Remote: m})
		if n := found(t, c, 10); n != 20 {
			t.Fatalf("%d results", n)
		}
		closeCache(t, c)
		flipInTables(t, dir)
	}
}

// Two independent machines share one table.
func TestRemoteMerges(t *testing.T) {
	m := newMemory()
	dirs := []string{t.TempDir(), t.TempDir()}
	want := map[int]string{}
	for round := range 24 {
		c := open(t, Options{Dir: dirs[round%2], Remote: m})
		table := c.Table(Tuple, "t")
		for n, p := range want {
			wantTable(t, table, key(n), p)
		}
		for i := range 5 {
			n := 10*round + i
			want[n] = damaged(n)
			table.Put(key(n), []byte(want[n]))
		}
		closeCache(t, c)
		if err := c.RemoteErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// For any answer of a remote cache, no wrong result is found.
func TestLyingRemote(t *testing.T) {
	const entries = 30
	honest := newMemory()
	honest.fill(t, entries)
	keys := slices.Sorted(maps.Keys(honest.data))
	another := func(name string) []byte {
		i := slices.Index(keys, name)
		return honest.data[keys[(i+1)%len(keys)]]
	}
	for name, change := range map[string]func(string, []byte) ([]byte, error){
		"cut":       func(_ string, data []byte) ([]byte, error) { return data[:len(data)*2/3], nil },
		"empty":     func(string, []byte) ([]byte, error) { return nil, nil },
		"longer":    func(_ string, data []byte) ([]byte, error) { return append(data, 0), nil },
		"wrong":     func(_ string, data []byte) ([]byte, error) { data[len(data)/2] ^= 4; return data, nil },
		"header":    func(_ string, data []byte) ([]byte, error) { data[12] ^= 1; return data, nil },
		"another's": func(name string, _ []byte) ([]byte, error) { return another(name), nil },
		"fails":     func(string, []byte) ([]byte, error) { return nil, errors.New("no network") },
		"both":      func(_ string, data []byte) ([]byte, error) { return data, errors.New("half an answer") },
	} {
		for _, kind := range []string{"entry/", "table/"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				m := newMemory()
				m.data = maps.Clone(honest.data)
				m.change = func(key string, data []byte) ([]byte, error) {
					if data == nil {
						return nil, ErrNotFound
					}
					if strings.HasPrefix(key, kind) {
						return change(key, data)
					}
					return data, nil
				}
				dir := t.TempDir()
				c := open(t, Options{Dir: dir, Remote: m})
				if n := found(t, c, entries); n == 2*entries {
					t.Error("everything is found")
				}
				closeCache(t, c)
				if err := c.RemoteErr(); err == nil || !strings.Contains(err.Error(), kind) {
					t.Errorf("the error is %v", err)
				}
				c = open(t, Options{Dir: dir})
				found(t, c, entries)
				closeCache(t, c)
				if bad, _, err := VerifyAll(dir); len(bad) > 0 || err != nil {
					t.Error(bad, err)
				}
			})
		}
	}
}

// A remote cache that fails three times is not used any more; a miss is not a failure.
func TestRemoteGivesUp(t *testing.T) {
	m := newMemory()
	c := open(t, Options{Dir: t.TempDir(), Remote: m})
	for n := range 10 {
		wantEntry(t, c, Model, key(n), "")
	}
	if m.gets != 10 || c.RemoteErr() != nil {
		t.Errorf("asked %d times, %v", m.gets, c.RemoteErr())
	}
	noNetwork := errors.New("no network")
	m.change = func(string, []byte) ([]byte, error) { return nil, noNetwork }
	m.refuse = noNetwork
	for n := range 10 {
		wantEntry(t, c, Model, key(n), "")
		c.Put(Model, key(n), []byte("x"))
		c.Table(Tuple, "t").Get(key(n))
	}
	closeCache(t, c)
	if m.gets > 10+remoteFailures {
		t.Errorf("asked %d times", m.gets-10)
	}
	if !errors.Is(c.RemoteErr(), noNetwork) {
		t.Error(c.RemoteErr())
	}
}

// Many goroutines and a remote cache: every result is uploaded before Close ends.
func TestRemoteGoroutines(t *testing.T) {
	m := newMemory()
	c := open(t, Options{Dir: t.TempDir(), Remote: m})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 30 {
				n := g*30 + i
				c.Put(Model, key(n), fmt.Append(nil, "entry ", n))
				table := c.Table(Tuple, fmt.Sprint("table ", n%2))
				table.Put(key(n), []byte(damaged(n)))
				table.Get(key(240 - n))
				if i%10 == 5 {
					if err := table.Flush(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	closeCache(t, c)
	c = open(t, Options{Dir: t.TempDir(), Remote: m})
	if n := found(t, c, 240); n != 480 {
		t.Errorf("%d results", n)
	}
	closeCache(t, c)
}
