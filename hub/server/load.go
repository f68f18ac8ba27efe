package server

import (
	"errors"
	"io"
	"sync"
)

// The bounds of what is under way at once: requests of one who asks, and bytes of bodies, of one
// and of all. What is made of a body takes several times as much memory.
const (
	mostRequests        = 1000
	mostClusterRequests = 20 // of a token for one cluster
	mostBytes           = 16 << 20
	mostBytesOfAll      = 48 << 20
	// Nobody knows who sends a webhook until all of it is read.
	mostWebhook      = 2 << 20
	mostWebhookBytes = 32 << 20
)

// load is what is under way. Any number of goroutines may use it.
type load struct {
	mu       sync.Mutex
	requests map[string]int   // by who asks
	bytes    map[string]int64 // of their bodies
	all      int64
	webhooks int64
}

func newLoad() *load { return &load{requests: map[string]int{}, bytes: map[string]int64{}} }

// begin begins a request with a body of so many bytes, which done ends; false where there are too
// many.
func (l *load) begin(who string, most int, bytes int64) (done func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests[who] >= most || bytes > 0 && (l.bytes[who]+bytes > mostBytes || l.all+bytes > mostBytesOfAll) {
		return nil, false
	}
	l.requests[who]++
	l.bytes[who] += bytes
	l.all += bytes
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all -= bytes
		if l.bytes[who] -= bytes; l.bytes[who] == 0 {
			delete(l.bytes, who)
		}
		if l.requests[who]--; l.requests[who] == 0 {
			delete(l.requests, who)
		}
	}, true
}

var errWebhooks = errors.New("too many webhooks are sent at once")

// webhook reads the body of a webhook, of which nobody knows yet who sends it. What has arrived
// counts, and not what was announced: who sends nothing keeps nobody out.
type webhook struct {
	io.ReadCloser
	load  *load
	taken int64
}

func (w *webhook) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.load.mu.Lock()
	defer w.load.mu.Unlock()
	if w.load.webhooks+int64(n) > mostWebhookBytes {
		return 0, errWebhooks
	}
	w.load.webhooks += int64(n)
	w.taken += int64(n)
	return n, err
}

func (w *webhook) done() {
	w.load.mu.Lock()
	defer w.load.mu.Unlock()
	w.load.webhooks -= w.taken
	w.taken = 0
}
