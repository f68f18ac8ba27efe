// Package hub keeps what is wanted of clusters, from git, and what was observed of them, from
// every reconciler, and answers what really runs where.
//
// A Hub has both in memory, as a state.Fleet, and writes each change to a store.Store before it
// acknowledges the report that made it. One goroutine changes it: reports wait in a queue, and
// are written many at once.
package hub

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// Options configure a Hub.
type Options struct {
	Store *store.Store
	// StaleAfter is how old the news of a cluster may be, where the platform does not say.
	StaleAfter time.Duration
	Now        func() time.Time // the clock
	// Problem is called with what goes wrong beside requests; it is called by one goroutine.
	Problem func(error)
}

// Hub is a running hub. Its methods may be called by several goroutines.
type Hub struct {
	options Options
	fleet   atomic.Pointer[state.Fleet]
	queue   chan *request
	done    chan struct{}

	// Those below are of the goroutine that changes the fleet.
	number  int64 // of the last change that the fleet has
	flushed time.Time
	tallied time.Time
	parts   map[state.Part]state.Tally
	broken  bool // the fleet may have what the store has not

	mu      sync.Mutex
	version uint64
	changed chan struct{} // closed when there is another version
}

// request is a report, or a function, that waits to be done.
type request struct {
	report  *state.Report
	do      func(ctx context.Context, tx *store.Tx) (*state.Changes, error)
	outcome state.Outcome
	err     error
	done    chan struct{}
}

// The bounds of a batch, and of the queue.
const (
	mostInBatch = 2000
	mostInQueue = 8000
)

// ErrBusy is the error where reports come faster than they can be written. It is to be tried
// again later.
var ErrBusy = errors.New("there are too many reports at once")

// Open reads what the store has. Run must be called, too.
func Open(ctx context.Context, o Options) (*Hub, error) {
	h := &Hub{options: o, queue: make(chan *request, mostInQueue), done: make(chan struct{}), changed: make(chan struct{}), parts: map[state.Part]state.Tally{}}
	return h, h.load(ctx)
}

// load makes the fleet of what the store has.
func (h *Hub) load(ctx context.Context) error {
	now := h.options.Now()
	fleet := state.New(h.options.StaleAfter, now)
	number, err := h.options.Store.Load(ctx, 0, &loader{fleet, now})
	if err != nil {
		return err
	}
	fleet.Restored(now) // what changes by it is written by the next Expire
	h.number, h.broken = number, false
	h.fleet.Store(fleet)
	return h.loadParts(ctx)
}

// loader gives a fleet what a store has.
type loader struct {
	fleet *state.Fleet
	now   time.Time
}

func (l *loader) Wanted(w *state.Wanted) { l.fleet.Want(l.now, w) }

func (l *loader) Cluster(c store.Cluster) {
	l.fleet.RestoreCluster(state.Heard(c))
}

func (l *loader) Assignment(environment, cluster, target string, s state.Stored) {
	l.fleet.Restore(environment, cluster, target, s)
}

// Fleet returns the state of all clusters. It may be another one later.
func (h *Hub) Fleet() *state.Fleet { return h.fleet.Load() }

// Store returns the hub's database.
func (h *Hub) Store() *store.Store { return h.options.Store }

// Now returns the time by the hub's clock.
func (h *Hub) Now() time.Time { return h.options.Now() }

// Version returns a number that is another one after each change, and a channel that is closed
// when there is one.
func (h *Hub) Version() (uint64, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version, h.changed
}

func (h *Hub) bump() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	close(h.changed)
	h.changed = make(chan struct{})
}

// Report takes a report. Once it returns without an error, what it changed is stored.
func (h *Hub) Report(ctx context.Context, r *state.Report) (state.Outcome, error) {
	q := &request{report: r}
	err := h.ask(ctx, q)
	return q.outcome, err
}

// Do calls f, which may write, between two batches of reports. What it changes of the fleet is
// written as well.
func (h *Hub) Do(ctx context.Context, f func(ctx context.Context, tx *store.Tx) (*state.Changes, error)) error {
	return h.ask(ctx, &request{do: f})
}

func (h *Hub) ask(ctx context.Context, q *request) error {
	q.done = make(chan struct{})
	select {
	case h.queue <- q:
	default:
		return ErrBusy
	}
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	case <-h.done:
		return context.Canceled
	}
}

// The times between what a hub does by itself.
const (
	expireEvery = 5 * time.Second
	seenEvery   = time.Minute
	tallyEvery  = time.Minute
)

// Run changes the fleet until the context ends.
func (h *Hub) Run(ctx context.Context) {
	defer close(h.done)
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			h.last()
			return
		case <-tick.C:
			h.batch(ctx, nil)
		case q := <-h.queue:
			h.batch(ctx, h.gather(q))
		}
	}
}

// last writes what is only written now and then.
func (h *Hub) last() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	h.flushed, h.tallied = time.Time{}, time.Time{}
	h.batch(ctx, nil)
}

// gather takes what else waits.
func (h *Hub) gather(first *request) []*request {
	out := []*request{first}
	for len(out) < mostInBatch {
		select {
		case q := <-h.queue:
			out = append(out, q)
		default:
			return out
		}
	}
	return out
}

// batch does what was asked for, in one write, and what is due. Where the store fails, nothing
// of it is acknowledged, and the fleet is read anew.
func (h *Hub) batch(ctx context.Context, requests []*request) {
	err := h.write(ctx, requests)
	if err != nil {
		h.broken = true
		for _, q := range requests {
			q.err = err
		}
		if ctx.Err() == nil {
			h.options.Problem(err)
		}
	}
	for _, q := range requests {
		close(q.done)
	}
}

func (h *Hub) write(ctx context.Context, requests []*request) error {
	if h.broken {
		if err := h.load(ctx); err != nil {
			return err
		}
	}
	fleet, now := h.fleet.Load(), h.options.Now()
	count := 0
	number, err := h.options.Store.Write(ctx, func(tx *store.Tx) error {
		if err := tx.Load(ctx, h.number, &loader{fleet, now}); err != nil {
			return err
		}
		changes := fleet.Expire(now)
		heard := map[string]bool{}
		for _, q := range requests {
			if q.report != nil {
				var more *state.Changes
				if more, q.outcome = fleet.Observe(q.report); more.Len() > 0 || q.report.Snapshot && !q.report.Same {
					heard[q.report.Cluster] = true
				}
				changes.Append(more)
				continue
			}
			if err := tx.Changes(ctx, now, changes); err != nil { // before what they are of changes
				return err
			}
			count += changes.Len()
			more, err := q.do(ctx, tx)
			if err != nil {
				return err
			}
			changes = &state.Changes{}
			if more != nil {
				changes = more
			}
		}
		count += changes.Len()
		if err := tx.Changes(ctx, now, changes); err != nil {
			return err
		}
		return h.due(ctx, tx, fleet, now, heard)
	})
	if err != nil {
		return err
	}
	if h.number != number || count > 0 {
		h.bump()
	}
	h.number = number
	return nil
}

// due writes the last news of clusters, at once where a snapshot came, and tallies.
func (h *Hub) due(ctx context.Context, tx *store.Tx, fleet *state.Fleet, now time.Time, heard map[string]bool) error {
	all := now.Sub(h.flushed) >= seenEvery
	var clusters []store.Cluster
	if all {
		fleet.EachNews(func(n state.Heard) {
			if n.Last.After(h.flushed) {
				clusters = append(clusters, store.Cluster(n))
			}
		})
	} else {
		for name := range heard {
			clusters = append(clusters, store.Cluster(fleet.Heard(name)))
		}
	}
	if err := tx.Clusters(ctx, clusters); err != nil {
		return err
	}
	if all {
		h.flushed = now
	}
	if now.Sub(h.tallied) < tallyEvery {
		return nil
	}
	h.tallied = now
	return h.tally(ctx, tx, fleet, now)
}
