package cache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Remote is a cache that machines share. Implementations verify content; errors
// are never fatal. Any number of goroutines may call the methods at once.
//
// Damage of any kind is noticed, and leads to a miss. A result that was forged
// with care is not, except in the mode Verify: who may write to a remote cache is
// trusted as much as who runs builds.
//
// The keys are of lower-case letters, digits and slashes. What a key names can be
// replaced. This package verifies again whatever it gets.
type Remote interface {
	// Get returns what key names, or an error that is [ErrNotFound].
	Get(ctx context.Context, key string) ([]byte, error)
	// Put stores or replaces what key names. It keeps nothing of data.
	Put(ctx context.Context, key string, data []byte) error
	// ReadOnly says that Put must not be called. It always says the same.
	ReadOnly() bool
}

// ErrNotFound is what Remote.Get returns for a key that names nothing.
var ErrNotFound = errors.New("not in the remote cache")

const (
	remoteFailures = 3 // then the remote is left alone
	remoteWriters  = 4 // uploads at once
	remoteTimeout  = 30 * time.Second
)

func entryName(id Key) string { return "entry/" + hex.EncodeToString(id[:]) }
func tableName(id Key) string { return "table/" + hex.EncodeToString(id[:]) }

// A remote asks a Remote as long as it is worth it. A nil *remote has nothing.
type remote struct {
	remote Remote

	mu       sync.Mutex
	failures int
	err      error
	queue    []func() // uploads that wait
	running  int      // goroutines that work on the queue
	idle     *sync.Cond
}

func newRemote(r Remote) *remote {
	if r == nil {
		return nil
	}
	out := &remote{remote: r}
	out.idle = sync.NewCond(&out.mu)
	return out
}

// usable says whether it is worth asking.
func (r *remote) usable() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures < remoteFailures
}

func (r *remote) writable() bool { return r.usable() && !r.remote.ReadOnly() }

// fail counts a failure. Bytes that are not what they should be count as well.
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

// get returns what a key names if accept takes it; where it does not, the error
// is errForeign.
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

// put stores what a key names, now.
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

// later runs an upload in the background. An upload should keep names, and read
// the bytes when it runs: the queue has no bound.
func (r *remote) later(upload func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, upload)
	if r.running < remoteWriters {
		r.running++
		go r.work()
	}
}

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

// failure is the last failure.
func (r *remote) failure() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
