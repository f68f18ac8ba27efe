package github

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
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
	answers *simplelru.LRU[string, *answer] // nil until an answer is put
	bytes   int
}

func (c *cache) get(address string) (*answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil {
		return nil, false
	}
	return c.answers.Get(address)
}

func (c *cache) put(address string, a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil {
		// The only error is a size that is not positive.
		c.answers, _ = simplelru.NewLRU(mostCached, func(_ string, a *answer) {
			c.bytes -= len(a.body)
		})
	}
	c.answers.Remove(address)
	c.bytes += len(a.body)
	c.answers.Add(address, a)
	for c.bytes > mostCachedBytes {
		c.answers.RemoveOldest()
	}
}
