package view

import (
	"context"
	"sync"
)

// A Feed provides the source that a handler shows. When data changes, another source
// replaces it. Several goroutines may call its methods. The zero Feed has no source.
type Feed struct {
	mu         sync.Mutex
	current    *feedSource
	failure    string // why the current source is older than the platform
	generation int
	changed    chan struct{} // closed by the next generation
}

// feedSource is a source in use.
type feedSource struct {
	Source
	users int
	old   bool
	close func()
}

// Set replaces the feed's source. If close is not nil, the feed calls it when the source is
// no longer in use. A source is in use while it is current, or while a page is made of it.
func (f *Feed) Set(s Source, close func()) {
	f.mu.Lock()
	before := f.current
	f.current, f.failure = &feedSource{Source: s, close: close}, ""
	f.advance()
	f.mu.Unlock()
	if before != nil {
		f.release(before, true)
	}
}

// Moved reports that the current source has new data.
func (f *Feed) Moved() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance()
}

// Fail records why there is no newer source than the current one. Pages show the reason.
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

// Close releases the current source. Afterwards the feed has no source.
func (f *Feed) Close() {
	f.mu.Lock()
	before := f.current
	f.current = nil
	f.mu.Unlock()
	if before != nil {
		f.release(before, true)
	}
}

// use returns the current source, its generation, and the reason why it is not newer. The
// source stays open until done is called. It is nil if the feed has no source.
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

// release removes a user of a source, or marks the source as old.
func (f *Feed) release(one *feedSource, old bool) {
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
