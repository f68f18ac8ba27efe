package cache

import (
	"fmt"
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

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	for round := range 5 {
		c := open(t, Options{Dir: dir})
		tab := c.Table(Assignment, "large")
		for n := range 1000 {
			h, ok := tab.Head(key(n))
			b, ok2 := tab.Body(key(n))
			if round > 0 && (!ok || !ok2) {
				t.Fatal(round, n, ok, ok2)
			}
			if !ok {
				tab.Put(key(n), fmt.Appendf(nil, "h%d", n), fmt.Appendf(nil, "b%d%01000d", n, n))
				h, ok = tab.Head(key(n))
				b, ok2 = tab.Body(key(n))
			}
			if string(h) != fmt.Sprintf("h%d", n) || string(b) != fmt.Sprintf("b%d%01000d", n, n) {
				t.Fatal(round, n, string(h), string(b), ok, ok2)
			}
		}
		if _, ok := c.Get(Model, key(1)); ok != (round > 0) {
			t.Fatal(round, ok)
		}
		c.Put(Model, key(1), []byte("model"))
		tab.Put(key(1000+round), nil, nil)
		t.Log(c.Stats())
		closeCache(t, c)
	}
}
