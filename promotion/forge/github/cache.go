package github

import (
	"sync"

	"github.com/golang/groupcache/lru"
)

// The bounds of the cache of answers.
const (
	mostCached      = 512
	mostCachedBytes = 16 << 20
)

// cache has the answers with an ETag, by URL; the least recently used are dropped first.
// The zero value is empty. Any number of goroutines may use it.
type cache struct {
	mu      sync.Mutex
	answers lru.Cache
	bytes   int
}

func (c *cache) get(address string) (*answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.answers.Get(address)
	if !ok {
		return nil, false
	}
	return a.(*answer), true
}

func (c *cache) put(address string, a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers.OnEvicted = func(_ lru.Key, a any) { c.bytes -= len(a.(*answer).body) }
	c.answers.Remove(address)
	c.answers.Add(address, a)
	for c.bytes += len(a.body); c.answers.Len() > mostCached || c.bytes > mostCachedBytes; {
		c.answers.RemoveOldest()
	}
}
