package github

import (
	"container/list"
	"sync"
)

// How much is kept of answers that may be asked for again.
const (
	mostKept      = 512
	mostKeptBytes = 16 << 20
)

// kept holds the answers that have an ETag, by address; those that were not used for
// longest go first. The zero value is empty. Any number of goroutines may use it.
type kept struct {
	mu    sync.Mutex
	by    map[string]*list.Element
	order list.List // of *keptAnswer, newest first
	bytes int
}

type keptAnswer struct {
	address string
	answer  *answer
}

func (k *kept) get(address string) (*answer, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	element, ok := k.by[address]
	if !ok {
		return nil, false
	}
	k.order.MoveToFront(element)
	return element.Value.(*keptAnswer).answer, true
}

func (k *kept) put(address string, a *answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[string]*list.Element{}
	}
	if old, ok := k.by[address]; ok {
		k.drop(old)
	}
	k.by[address] = k.order.PushFront(&keptAnswer{address: address, answer: a})
	k.bytes += len(a.body)
	for k.order.Len() > mostKept || k.bytes > mostKeptBytes {
		k.drop(k.order.Back())
	}
}

func (k *kept) drop(element *list.Element) {
	gone := k.order.Remove(element).(*keptAnswer)
	delete(k.by, gone.address)
	k.bytes -= len(gone.answer.body)
}
