package cache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Remote is a cache that machines share. Implementations verify content; errors are never fatal.
// Any number of goroutines may call the methods at once.
//
// The cache detects damage of any kind, and treats it as a miss. It does not detect a forged
// result, except in the mode Verify: users who may write to a remote cache need the same trust as
// users who run builds.
//
// Keys consist of lower-case letters, digits and slashes. A Put may replace the data of a key. This
// package verifies everything that it gets again.
type Remote interface {
	// Get returns the data of a key, or an error that is [ErrNotFound].
	Get(ctx context.Context, key string) ([]byte, error)
	// Put stores or replaces the data of a key. It must not keep data.
	Put(ctx context.Context, key string, data []byte) error
	// ReadOnly reports whether Put must not be called. The result never changes.
	ReadOnly() bool
}

// ErrNotFound is the error of Remote.Get for a key without data.
var ErrNotFound = errors.New("not in the remote cache")

const (
	remoteFailures = 3 // then the remote is not used any more
	remoteWriters  = 4 // uploads at once
	remoteTimeout  = 30 * time.Second
)

// entryName and tableName return the keys of a single result and of a table in a Remote.
func entryName(id Key) string { return "entry/" + hex.EncodeToString(id[:]) }
func tableName(id Key) string { return "table/" + hex.EncodeToString(id[:]) }

// A remote uses a Remote until it has failed too often. A nil *remote has no data.
type remote struct {
	remote Remote

	// mu guards the fields below.
	mu       sync.Mutex
	failures int
	err      error
	queue    []func() // uploads that wait
	running  int      // goroutines that work on the queue
	idle     *sync.Cond
}

// newRemote returns nil if r is nil.
func newRemote(r Remote) *remote {
	if r == nil {
		return nil
	}
	out := &remote{remote: r}
	out.idle = sync.NewCond(&out.mu)
	return out
}

// usable reports whether the remote has not failed too often.
func (r *remote) usable() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures < remoteFailures
}

// writable reports whether uploads are useful and allowed.
func (r *remote) writable() bool { return r.usable() && !r.remote.ReadOnly() }

// fail counts a failure. Unexpected bytes count as well.
func (r *remote) fail(key string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures++
	r.err = fmt.Errorf("remote cache: %s: %w", key, err)
}

var (
	errForeign  = errors.New("it gives something else than was stored")
	errUnusable = errors.New("not asked")
)

// get returns the data of a key if accept returns true; otherwise the error is errForeign.
func (r *remote) get(key string, accept func([]byte) bool) ([]byte, error) {
	if !r.usable() {
		return nil, errUnusable
	}
	ctx, cancel := context.WithTimeout(context.Background(), remoteTimeout)
	defer cancel()
	data, err := r.remote.Get(ctx, key)
	if err == nil && !accept(data) {
		err = errForeign
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		r.fail(key, err)
	}
	return data, err
}

// put stores the data of a key, now.
func (r *remote) put(key string, data []byte) bool {
	if !r.writable() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), remoteTimeout)
	defer cancel()
	err := r.remote.Put(ctx, key, data)
	if err != nil {
		r.fail(key, err)
	}
	return err == nil
}

// later runs an upload in the background. An upload should keep only names, and read the bytes when
// it runs: the queue has no limit.
func (r *remote) later(upload func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, upload)
	if r.running < remoteWriters {
		r.running++
		go r.work()
	}
}

// work runs the uploads in the queue until it is empty.
func (r *remote) work() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) > 0 {
		upload := r.queue[0]
		r.queue = r.queue[1:]
		r.mu.Unlock()
		upload()
		r.mu.Lock()
	}
	r.running--
	r.idle.Broadcast()
}

// wait waits for all uploads.
func (r *remote) wait() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.running > 0 {
		r.idle.Wait()
	}
}

// failure returns the last failure; nil if there was no failure.
func (r *remote) failure() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
