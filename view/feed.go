package view

import (
	"context"
	"sync"
)

// A Feed has the source that a handler shows, which takes the place of others as data
// changes. Its methods may be called by several goroutines. The zero Feed has none.
type Feed struct {
	mu         sync.Mutex
	current    *fed
	failure    string // why the current source is older than the platform
	generation int
	changed    chan struct{} // closed by the next generation
}

// fed is a source in use.
type fed struct {
	Source
	users int
	old   bool
	close func()
}

// Set gives the feed another source. close, if not nil, is called when the source is no
// longer used, by a page that is being made or as the current one.
func (f *Feed) Set(s Source, close func()) {
	f.mu.Lock()
	before := f.current
	f.current, f.failure = &fed{Source: s, close: close}, ""
	f.advance()
	f.mu.Unlock()
	if before != nil {
		f.release(before, true)
	}
}

// Moved says that the current source shows something other than before.
func (f *Feed) Moved() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance()
}

// Fail says why there is no newer source than the current one. Pages show it.
func (f *Feed) Fail(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failure = why
	f.advance()
}

func (f *Feed) advance() {
	f.generation++
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// Close gives up the current source.
func (f *Feed) Close() {
	f.mu.Lock()
	before := f.current
	f.current = nil
	f.mu.Unlock()
	if before != nil {
		f.release(before, true)
	}
}

// use returns the current source, which is there until done is called, with its generation
// and why it is not newer, or nil.
func (f *Feed) use() (s Source, generation int, failure string, done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		return nil, 0, "", func() {}
	}
	one := f.current
	one.users++
	return one.Source, f.generation, f.failure, func() { f.release(one, false) }
}

// release takes away a user of a source, or makes it old.
func (f *Feed) release(one *fed, old bool) {
	f.mu.Lock()
	if old {
		one.old = true
	} else {
		one.users--
	}
	unused := one.old && one.users == 0 && one.close != nil
	f.mu.Unlock()
	if unused {
		one.close()
	}
}

// next waits until there is a different generation from one, or the context ends, and
// returns the generation that exists.
func (f *Feed) next(ctx context.Context, generation int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.generation == generation && ctx.Err() == nil {
		if f.changed == nil {
			f.changed = make(chan struct{})
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		f.mu.Lock()
	}
	return f.generation
}
