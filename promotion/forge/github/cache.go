package github

import (
	"container/list"
	"sync"
)

// The bounds of the cache of answers.
const (
	mostCached      = 512
	mostCachedBytes = 16 << 20
)

// cache has the answers with an ETag, by URL; the least recently used are dropped first.
// The zero value is empty. Any number of goroutines may use it.
type cache struct {
	mu    sync.Mutex
	by    map[string]*list.Element
	order list.List // of *keptAnswer, newest first
	bytes int
}

type cacheEntry struct {
	address string
	answer  *answer
}

func (k *cache) get(address string) (*answer, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	element, ok := k.by[address]
	if !ok {
		return nil, false
	}
	k.order.MoveToFront(element)
	return element.Value.(*cacheEntry).answer, true
}

func (k *cache) put(address string, a *answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[string]*list.Element{}
	}
	if old, ok := k.by[address]; ok {
		k.drop(old)
	}
	k.by[address] = k.order.PushFront(&cacheEntry{address: address, answer: a})
	k.bytes += len(a.body)
	for k.order.Len() > mostCached || k.bytes > mostCachedBytes {
		k.drop(k.order.Back())
	}
}

func (k *cache) drop(element *list.Element) {
	gone := k.order.Remove(element).(*cacheEntry)
	delete(k.by, gone.address)
	k.bytes -= len(gone.answer.body)
}
