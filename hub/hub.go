// Package hub keeps the wanted state of clusters, from git, and their observed state, from every
// reconciler. It answers which version really runs where.
//
// A Hub has both in memory, as a state.Fleet, and writes each change to a store.Store before it
// acknowledges the report that made it. One goroutine changes it: reports wait in a queue, and
// are written many at once.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// CollectorPercent is the GOGC for a process with a Hub. Most of its memory is the fleet, which
// stays. With 100, the default, the process would need twice the memory in use.
const CollectorPercent = 50

// Options configure a Hub.
type Options struct {
	Store *store.Store
	// StaleAfter is the time without a report after which a cluster is stale, if the platform sets
	// none.
	StaleAfter time.Duration
	// Grace is how long clusters may report a commit that the hub has not read, before it counts as
	// drift.
	Grace time.Duration
	// Keep is how long transitions and tallies are kept after others have replaced them; 0 means
	// forever.
	Keep time.Duration
	Now  func() time.Time // the clock
	// Patience is how long the database may take to store reports; 0 means half a minute.
	Patience time.Duration
	// Any goroutine may call Problem, with an error that no request returns.
	Problem func(error)
}

// Hub is a running hub. Its methods may be called by several goroutines.
type Hub struct {
	options Options
	fleet   atomic.Pointer[state.Fleet]
	queue   chan *request
	weight  atomic.Int64 // the weight of the requests in the queue
	done    chan struct{}

	// Only the goroutine that changes the fleet uses the fields below.
	number  int64           // of the last change that the fleet has
	now     time.Time       // of the write in progress
	broken  bool            // the fleet must be read again, once the database can be written
	judged  bool            // the states of the loaded fleet are computed again
	unsaved map[string]bool // clusters whose last contact is not written
	saving  map[string]bool // clusters of unsaved that are being written, so many at once
	portion int
	// The last time of each work.
	expired, released, flushed, saved, tallied, swept time.Time

	sweeping sync.Mutex

	mu         sync.Mutex
	version    uint64
	changed    chan struct{} // closed when the version changes
	unwritable error         // why the last write failed, nil if it succeeded
}

func (h *Hub) patience() time.Duration { return cmp.Or(h.options.Patience, 30*time.Second) }

// request is a report, or a function, that waits for the next batch.
type request struct {
	report  *state.Report
	weight  int64
	do      func(ctx context.Context, tx *store.Tx) (*state.Changes, error)
	cluster string // the cluster that it observes or forgets, or ""
	outcome state.Outcome
	err     error
	done    chan struct{}
}

// The limits of a batch and of the queue: the number of requests, and of items in them, which need
// memory.
const (
	maxInBatch = 2000
	maxInQueue = 8000
	maxItems   = 300_000
)

// ErrBusy is the error if reports arrive faster than they can be written. The client should try
// again later.
var ErrBusy = errors.New("there are too many reports at once")

// Open reads the state from the store. The caller must also call Run.
func Open(ctx context.Context, o Options) (*Hub, error) {
	h := &Hub{options: o, queue: make(chan *request, maxInQueue), done: make(chan struct{}),
		changed: make(chan struct{})}
	h.version = rand.Uint64() // a client may have seen the versions of another process
	return h, h.load(ctx)
}

// load creates the fleet from the store.
func (h *Hub) load(ctx context.Context) error {
	now := h.options.Now()
	fleet := state.New(h.options.StaleAfter, h.options.Grace, now)
	number, err := h.options.Store.Load(ctx, 0, &loader{fleet, now})
	if err != nil {
		return err
	}
	fleet.Restored()
	h.number, h.broken, h.judged, h.unsaved, h.saving = number, false, false, map[string]bool{},
		map[string]bool{}
	h.fleet.Store(fleet)
	h.Changed()
	return nil
}

// loader fills a fleet from a store.
type loader struct {
	fleet *state.Fleet
	now   time.Time
}

// Wanted sets the wanted state of an environment, as a loader of the store.
func (l *loader) Wanted(w *state.DesiredState) { l.fleet.RestoreDesiredState(l.now, w) }

// Environments restores the order of the environments.
func (l *loader) Environments(names []string) { l.fleet.Order(names) }

// Cluster restores the last report of a cluster.
func (l *loader) Cluster(c state.Contact) { l.fleet.RestoreCluster(c) }

// Assignment restores the state of an assignment on a cluster.
func (l *loader) Assignment(environment, cluster, target string, s state.StoredState) {
	l.fleet.Restore(environment, cluster, target, s)
}

// Fleet returns the state of all clusters. A later call may return a different Fleet.
func (h *Hub) Fleet() *state.Fleet { return h.fleet.Load() }

// Store returns the hub's database.
func (h *Hub) Store() *store.Store { return h.options.Store }

// Waiting returns how many requests wait to be written.
func (h *Hub) Waiting() int { return len(h.queue) }

// Now returns the time by the hub's clock.
func (h *Hub) Now() time.Time { return h.options.Now() }

// Version returns a number that differs after each change, and a channel that is closed at the next
// change.
func (h *Hub) Version() (uint64, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version, h.changed
}

// Changed increases the version after a change that answers show and that is not part of the fleet.
func (h *Hub) Changed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	close(h.changed)
	h.changed = make(chan struct{})
}

// Unwritable returns the error of the last write, or nil if it succeeded. While the hub cannot
// write, it refuses every report, and tries again every few seconds.
func (h *Hub) Unwritable() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unwritable
}

// ErrText is the error if a report has a text that no database can store.
var ErrText = errors.New("a text has a NUL, is not UTF-8 or is longer than 2,000 bytes, or the " +
	"cluster's name has what cannot be printed")

// Report applies a report. Once it returns without an error, its changes are stored.
func (h *Hub) Report(ctx context.Context, r *state.Report) (state.Outcome, error) {
	if !r.Valid() {
		return state.Outcome{}, ErrText
	}
	ctx, cancel := context.WithTimeout(ctx, 2*h.patience()) // of the batch before, and of its own
	defer cancel()
	q := &request{report: r, cluster: r.Cluster, weight: int64(len(r.Items))}
	if err := h.ask(ctx, q); err != nil {
		return state.Outcome{}, err
	}
	return q.outcome, nil
}

// Do calls f between two batches of reports. f may write to the store. It may change the wanted
// state of the fleet, and Do writes that change as well.
func (h *Hub) Do(ctx context.Context,
	f func(ctx context.Context, tx *store.Tx) (*state.Changes, error)) error {
	return h.ask(ctx, &request{do: f})
}

func (h *Hub) ask(ctx context.Context, q *request) error {
	q.done = make(chan struct{})
	if weight := h.weight.Add(q.weight); weight > maxItems && weight > q.weight {
		h.weight.Add(-q.weight)
		return ErrBusy
	}
	select {
	case h.queue <- q:
	default:
		h.weight.Add(-q.weight)
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

// The intervals of the hub's own work.
const (
	lookEvery    = time.Second
	expireEvery  = 5 * time.Second
	releaseEvery = 5 * time.Second
	seenEvery    = time.Minute // at most
	tallyEvery   = 5 * time.Second
	sweepEvery   = time.Hour
	grace        = 5 * time.Second
)

// due reports whether work is due again. Clocks may be set back.
func due(last, now time.Time, every time.Duration) bool {
	since := now.Sub(last)
	return since >= every || since < 0
}

// Run changes the fleet until the context ends.
func (h *Hub) Run(ctx context.Context) {
	defer close(h.done)
	look, expire := time.NewTicker(lookEvery), time.NewTicker(expireEvery)
	defer look.Stop()
	defer expire.Stop()
	h.swept = h.options.Now() // not at once
	// A write in progress has a little time when the context ends.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	// This batch may have nothing to write, so that only the first report would find an error.
	h.wrote(work, h.probe(work))
	h.batch(work, nil)
	for {
		select {
		case <-ctx.Done():
			h.last(work)
			h.sweeping.Lock() // it ends with the context
			return
		case <-look.C:
			h.look(work)
			if len(h.saving) > 0 {
				h.batch(work, nil)
			}
		case <-expire.C:
			h.batch(work, nil)
			h.sweep(ctx)
		case q := <-h.queue:
			h.batch(work, h.gather(q))
		}
	}
}

// look reads the changes of other hubs.
func (h *Hub) look(ctx context.Context) {
	if h.broken {
		return // the next batch that can write reads everything
	}
	number, err := h.options.Store.Number(ctx)
	switch {
	case err != nil || number == h.number:
		return // the store reports the error
	case number < h.number:
		h.broken = true // an older database was restored
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*h.patience())
	defer cancel()
	if number, err = h.options.Store.Load(ctx, h.number,
		&loader{h.fleet.Load(), h.options.Now()}); err != nil {
		h.broken = true
		return
	}
	h.number = number
	h.Changed()
}

// last writes the state that is otherwise written at intervals.
func (h *Hub) last(ctx context.Context) {
	if h.broken {
		return // the fleet has no unwritten state
	}
	h.flushed, h.tallied = time.Time{}, time.Time{}
	for h.batch(ctx, nil); len(h.saving) > 0 && !h.broken; h.batch(ctx, nil) {
		h.saved = time.Time{}
	}
}

// seenEvery returns how often the last contact of clusters is written. Another hub does not receive
// their reports. It must read the contact several times before it would take a cluster for stale.
func (h *Hub) seenEvery(fleet *state.Fleet) time.Duration {
	bound := h.options.StaleAfter
	for _, w := range fleet.Environments() {
		if w.StaleAfter > 0 {
			bound = min(bound, w.StaleAfter)
		}
	}
	return min(max(bound/4, expireEvery), seenEvery)
}

// ListedError is the error if a cluster cannot be forgotten, because the platform lists it.
type ListedError struct {
	Cluster      string
	Environments []string
}

// Error lists the environments, and suggests what to do.
func (e *ListedError) Error() string {
	return fmt.Sprintf("the platform lists cluster %s, in %s: take it out of the platform",
		terminal.Line(e.Cluster), strings.Join(e.Environments, ", "))
}

// Forget forgets a cluster that the platform does not list, until it reports again. It returns
// false if the hub does not have the cluster.
func (h *Hub) Forget(ctx context.Context, cluster string) (there bool, err error) {
	var listed []string
	forget := func(ctx context.Context, tx *store.Tx) (changes *state.Changes, err error) {
		if changes, listed = h.fleet.Load().Forget(cluster); changes == nil {
			return nil, nil
		}
		there = true
		// for other hubs: without a time it is forgotten
		return changes, tx.Clusters(ctx, []state.Contact{{Cluster: cluster}})
	}
	err = h.ask(ctx, &request{cluster: cluster, do: forget})
	if len(listed) > 0 {
		return false, &ListedError{cluster, listed}
	}
	return there, err
}
