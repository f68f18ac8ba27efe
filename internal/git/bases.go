package git

import "github.com/golang/groupcache/lru"

// mostBases is how many bytes of bases are cached (git's core.deltaBaseCacheLimit is 96
// MiB).
const mostBases = 64 << 20

// baseCost is roughly what caching a base costs in addition to its content, so that many
// small ones count.
const baseCost = 256

// bases caches the bases of deltas, up to mostBases: without it, each of many versions of a
// file would be computed from all earlier ones. The least recently used are dropped first.
type bases struct {
	size  int
	cache lru.Cache // of Object, by place
}

// place is where an object is.
type place struct {
	pack   *pack
	offset int64
}

// get returns an object, whose content must not be changed.
func (b *bases) get(at place) (Object, bool) {
	o, found := b.cache.Get(at)
	if !found {
		return Object{}, false
	}
	return o.(Object), true
}

// add caches an object, unless it is cached.
func (b *bases) add(at place, o Object) {
	if _, known := b.cache.Get(at); known || len(o.Data) > mostBases/2 {
		return
	}
	b.cache.OnEvicted = func(_ lru.Key, o any) { b.size -= len(o.(Object).Data) + baseCost }
	b.cache.Add(at, o)
	for b.size += len(o.Data) + baseCost; b.size > mostBases; {
		b.cache.RemoveOldest()
	}
}
