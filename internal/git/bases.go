package git

import "github.com/hashicorp/golang-lru/v2/simplelru"

// maxBases is the largest number of bytes of cached bases (git's core.deltaBaseCacheLimit is 96
// MiB).
const maxBases = 64 << 20

// baseCost is the approximate cost of caching a base in addition to its content, so that many
// small bases count.
const baseCost = 256

// bases caches the bases of deltas, up to maxBases: without it, each of many versions of a
// file would be computed from all earlier ones. The least recently used are dropped first.
// The zero value is empty.
type bases struct {
	size  int
	cache *simplelru.LRU[place, Object] // nil until an object is added
}

// place is the place of an object in a pack.
type place struct {
	pack   *pack
	offset int64
}

// get returns an object, whose content must not be changed.
func (b *bases) get(at place) (Object, bool) {
	if b.cache == nil {
		return Object{}, false
	}
	return b.cache.Get(at)
}

// add caches an object, unless it is cached.
func (b *bases) add(at place, o Object) {
	if _, known := b.get(at); known || len(o.Data) > maxBases/2 {
		return
	}
	if b.cache == nil {
		// The only error is a size that is not positive. This size is never exceeded: each base has its
		// cost.
		b.cache, _ = simplelru.NewLRU(maxBases/baseCost, func(_ place, o Object) {
			b.size -= len(o.Data) + baseCost
		})
	}
	b.size += len(o.Data) + baseCost
	b.cache.Add(at, o)
	for b.size > maxBases {
		b.cache.RemoveOldest()
	}
}
