package git

import "container/list"

// mostBases is how many bytes of bases are held (git's core.deltaBaseCacheLimit
// is 96 MiB).
const mostBases = 64 << 20

// baseCost is roughly what holding a base takes beside its content, so that many
// small ones count.
const baseCost = 256

// bases holds objects that others were read as differences to, up to mostBases:
// without them, each of many versions of a file is made of all before it.
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

// add holds an object that is not held.
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
