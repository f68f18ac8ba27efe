package git

import "container/list"

// mostBases is how many bytes of bases are cached (git's core.deltaBaseCacheLimit is 96
// MiB).
const mostBases = 64 << 20

// baseCost is roughly what caching a base costs in addition to its content, so that many
// small ones count.
const baseCost = 256

// bases caches the bases of deltas, up to mostBases: without it, each of many versions of a
// file would be computed from all earlier ones.
type bases struct {
	size  int
	known map[place]*list.Element
	order list.List // of base, the last one used first
}

// place is where an object is.
type place struct {
	pack   *pack
	offset int64
}

type base struct {
	at     place
	object Object
}

func (b base) size() int { return len(b.object.Data) + baseCost }

// get returns an object, whose content must not be changed.
func (b *bases) get(at place) (Object, bool) {
	e, found := b.known[at]
	if !found {
		return Object{}, false
	}
	b.order.MoveToFront(e)
	return e.Value.(base).object, true
}

// add caches an object, unless it is cached.
func (b *bases) add(at place, o Object) {
	if _, known := b.known[at]; known || len(o.Data) > mostBases/2 {
		return
	}
	if b.known == nil {
		b.known = map[place]*list.Element{}
	}
	held := base{at, o}
	b.known[at] = b.order.PushFront(held)
	b.size += held.size()
	for b.size > mostBases {
		last := b.order.Remove(b.order.Back()).(base)
		delete(b.known, last.at)
		b.size -= last.size()
	}
}
