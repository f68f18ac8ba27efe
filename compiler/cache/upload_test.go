package cache

import (
	"context"
	"fmt"
	"testing"
)

// hooked is a Remote that lets a test run code before and after a Put.
type hooked struct {
	*memory
	before, after func(key string)
}

func (h *hooked) Put(ctx context.Context, key string, data []byte) error {
	if h.before != nil {
		h.before(key)
	}
	err := h.memory.Put(ctx, key, data)
	if h.after != nil {
		h.after(key)
	}
	return err
}

// If another machine writes the remote table at any moment, the table has the
// results of both in the end.
func TestUploadBesideAnother(t *testing.T) {
	name := tableName(tableID(Tuple, "dev"))
	key := func(i int) Key { return NewHash("of this test").String(fmt.Sprint(i)).Sum() }
	machine := func(r Remote, i int) {
		t.Helper()
		c, err := Open(Options{Dir: t.TempDir(), Remote: r})
		if err != nil {
			t.Fatal(err)
		}
		c.Table(Tuple, "dev").Put(key(i), fmt.Append(nil, "result ", i))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for when, hook := range map[string]func(*hooked){
		"between reading and writing": func(h *hooked) {
			// The other one has read before this one writes, and writes after it.
			h.after = func(key string) {
				if key == name {
					h.after = nil
					ours := h.data[name]
					delete(h.data, name)
					machine(h.memory, 2)
					if string(h.data[name]) == string(ours) {
						t.Error("the other machine writes the same")
					}
				}
			}
		},
	} {
		t.Run(when, func(t *testing.T) {
			h := &hooked{memory: newMemory()}
			hook(h)
			machine(h, 1)
			reader, err := Open(Options{Dir: t.TempDir(), Remote: h.memory})
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			for i := 1; i <= 2; i++ {
				if got, ok := reader.Table(Tuple, "dev").Get(key(i)); !ok || string(got) != fmt.Sprint("result ", i) {
					t.Errorf("what machine %d stored: %q, %t", i, got, ok)
				}
			}
		})
	}
}

// If a remote cache loses tables, the uploads still end.
func TestUploadEnds(t *testing.T) {
	h := &hooked{memory: newMemory()}
	name := tableName(tableID(Tuple, "dev"))
	puts := 0
	h.after = func(key string) {
		if key == name {
			puts++
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.data, name)
		}
	}
	c, err := Open(Options{Dir: t.TempDir(), Remote: h})
	if err != nil {
		t.Fatal(err)
	}
	c.Table(Tuple, "dev").Put(NewHash("of this test").Sum(), []byte("result"))
	if err := c.Close(); err != nil || puts != uploadTries {
		t.Errorf("written %d times, %v", puts, err)
	}
}
