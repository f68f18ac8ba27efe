package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/internal/testing/ocitest"
)

// anonymous makes docker's configuration empty, for any user.
func anonymous(t *testing.T) { t.Setenv("DOCKER_CONFIG", t.TempDir()) }

// quick opens a repository of a registry, with short waits between repetitions.
func quick(t *testing.T, r *ocitest.Registry, o Options) *Remote {
	t.Helper()
	o.retry = retryWait{first: time.Millisecond, most: 10 * time.Millisecond}
	c, err := Open(r.Reference("acme/cache"), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func put(t *testing.T, c *Remote, key string, data []byte) {
	t.Helper()
	if err := c.Put(t.Context(), key, data); err != nil {
		t.Fatal(err)
	}
}

func wantData(t *testing.T, c *Remote, key string, want []byte) {
	t.Helper()
	if got, err := c.Get(t.Context(), key); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s gives %d bytes, %v; want %d", key, len(got), err, len(want))
	}
}

// wantMissing checks that Get returns the error of a miss.
func wantMissing(t *testing.T, c *Remote, key string) {
	t.Helper()
	if got, err := c.Get(t.Context(), key); !errors.Is(err, cache.ErrNotFound) || got != nil {
		t.Fatalf("%s gives %d bytes, %v; want %v", key, len(got), err, cache.ErrNotFound)
	}
}

var hash = strings.Repeat("0123456789abcdef", 4)

func TestRoundTrip(t *testing.T) {
	anonymous(t)
	r := ocitest.New(t, nil)
	c := quick(t, r, Options{})
	for key, data := range map[string][]byte{
		"entry/" + hash:          []byte("a result"),
		"table/" + hash:          []byte("{}"), // the same bytes as the config
		"blob/" + hash:           bytes.Repeat([]byte{0, 1, 2, 255}, 1<<18),
		"empty":                  {},
		strings.Repeat("a", 500): []byte("a key that is no tag"),
		"/":                      []byte("nor is this"),
		"":                       []byte("nor this"),
	} {
		wantMissing(t, c, key)
		put(t, c, key, data)
		wantData(t, c, key, data)
		wantData(t, quick(t, r, Options{ReadOnly: true}), key, data)
	}
}

func TestPutReplaces(t *testing.T) {
	anonymous(t)
	c := quick(t, ocitest.New(t, nil), Options{})
	for _, text := range []string{"one", "two", "one"} {
		put(t, c, "table/"+hash, []byte(text))
		wantData(t, c, "table/"+hash, []byte(text))
	}
}

// Put does not send existing blobs again, only the small manifest.
func TestPutSendsBlobsOnce(t *testing.T) {
	anonymous(t)
	r := ocitest.New(t, nil)
	data := bytes.Repeat([]byte("x"), 1<<16)
	put(t, quick(t, r, Options{}), "entry/"+hash, data)
	uploads := r.Requests(http.MethodPost)
	if uploads != 2 { // the data and the config
		t.Fatalf("%d uploads of two blobs", uploads)
	}
	put(t, quick(t, r, Options{}), "entry/"+hash, data)
	put(t, quick(t, r, Options{}), "entry/other", data)
	if n := r.Requests(http.MethodPost); n != uploads {
		t.Errorf("%d uploads of blobs that are there", n-uploads)
	}
}

// While several machines write, there is one complete entry at any time.
func TestConcurrentWriters(t *testing.T) {
	anonymous(t)
	r := ocitest.New(t, nil)
	valid := map[string]bool{}
	var writers sync.WaitGroup
	for i := range 8 {
		text := strings.Repeat(fmt.Sprint(i), 1000+i)
		valid[text] = true
		c := quick(t, r, Options{})
		writers.Go(func() {
			for range 3 {
				if err := c.Put(t.Context(), "table/"+hash, []byte(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	reader := quick(t, r, Options{ReadOnly: true})
	for range 20 {
		got, err := reader.Get(t.Context(), "table/"+hash)
		if err != nil && !errors.Is(err, cache.ErrNotFound) || err == nil && !valid[string(got)] {
			t.Errorf("%.10q, %v", got, err)
		}
	}
	writers.Wait()
	got, err := reader.Get(t.Context(), "table/"+hash)
	if err != nil || !valid[string(got)] {
		t.Errorf("%.10q, %v", got, err)
	}
}

func TestReadOnly(t *testing.T) {
	anonymous(t)
	r := ocitest.New(t, nil)
	put(t, quick(t, r, Options{}), "entry/"+hash, []byte("data"))
	before := r.Writes()
	c := quick(t, r, Options{ReadOnly: true})
	if !c.ReadOnly() {
		t.Error("it is not read-only")
	}
	if err := c.Put(t.Context(), "entry/"+hash, []byte("other")); !errors.Is(err, errReadOnly) {
		t.Errorf("Put: %v", err)
	}
	wantData(t, c, "entry/"+hash, []byte("data"))
	if n := r.Writes() - before; n != 0 {
		t.Errorf("%d requests that write", n)
	}
}

func TestContextEnds(t *testing.T) {
	anonymous(t)
	c := quick(t, ocitest.New(t, nil), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(ctx, "entry/"+hash); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v", err)
	}
	if err := c.Put(ctx, "entry/"+hash, []byte("data")); !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v", err)
	}
}

// A forged entry is accepted, and the mode Verify finds it.
func TestVerifyFindsForged(t *testing.T) {
	anonymous(t)
	r := ocitest.New(t, nil)
	key := cache.NewHash("of this test").String("input").Sum()
	use := func(dir string, o cache.Options, use func(*cache.Cache)) *cache.Cache {
		o.Dir = dir
		c, err := cache.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		use(c)
		if err := errors.Join(c.Close(), c.RemoteErr()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	use(t.TempDir(), cache.Options{Remote: quick(t, r, Options{})}, func(c *cache.Cache) {
		c.Put(cache.Model, key, []byte("forged"))
	})
	victim := t.TempDir()
	use(victim, cache.Options{Remote: quick(t, r, Options{ReadOnly: true})}, func(c *cache.Cache) {
		if got, ok := c.Get(cache.Model, key); !ok || string(got) != "forged" {
			t.Errorf("%q, %t", got, ok)
		}
	})
	c := use(victim, cache.Options{Mode: cache.Verify}, func(c *cache.Cache) {
		c.Put(cache.Model, key, []byte("computed"))
	})
	if len(c.Lies()) != 1 {
		t.Errorf("lies: %q", c.Lies())
	}
}
