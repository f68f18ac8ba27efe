// Package hub keeps what is wanted of clusters, from git, and what was observed of them, from
// every reconciler, and answers what really runs where.
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

// CollectorPercent is the GOGC for a process that has a Hub. Most of its memory is the fleet, which
// stays: with 100, the default, the process takes twice what is in use.
const CollectorPercent = 50

// Options configure a Hub.
type Options struct {
	Store *store.Store
	// StaleAfter is how old the news of a cluster may be, where the platform does not say.
	StaleAfter time.Duration
	// Grace is for how long a commit may be reported before the hub has read it.
	Grace time.Duration
	// Keep is how long transitions and tallies are kept after something else has replaced them;
	// 0 for always.
	Keep time.Duration
	Now  func() time.Time // the clock
	// Patience is how long the database may take for reports; 0 for half a minute.
	Patience time.Duration
	// Problem is called with what goes wrong beside requests, by any goroutine.
	Problem func(error)
}

// Hub is a running hub. Its methods may be called by several goroutines.
type Hub struct {
	options Options
	fleet   atomic.Pointer[state.Fleet]
	queue   chan *request
	weight  atomic.Int64 // of what is in the queue
	done    chan struct{}

	// Those below are of the goroutine that changes the fleet.
	number  int64           // of the last change that the fleet has
	now     time.Time       // of the write that is under way
	broken  bool            // the fleet is to be read anew, once something can be written
	judged  bool            // the states of what was read were computed anew
	unsaved map[string]bool // clusters of which the last news are not written
	saving  map[string]bool // those of them that are being written, so many at once
	portion int
	// When something was last done.
	expired, released, flushed, saved, tallied, swept time.Time

	sweeping sync.Mutex

	mu         sync.Mutex
	version    uint64
	changed    chan struct{} // closed when there is another version
	unwritable error         // why the last write failed; nil where it did not
}

func (h *Hub) patience() time.Duration { return cmp.Or(h.options.Patience, 30*time.Second) }

// request is a report, or a function, that waits to be done.
type request struct {
	report  *state.Report
	weight  int64
	do      func(ctx context.Context, tx *store.Tx) (*state.Changes, error)
	cluster string // what it observes, or forgets; "" for none
	outcome state.Outcome
	err     error
	done    chan struct{}
}

// The bounds of a batch, and of the queue: of requests, and of items in them, which are memory.
const (
	maxInBatch = 2000
	maxInQueue = 8000
	maxItems   = 300_000
)

// ErrBusy is the error where reports come faster than they can be written. It is to be tried
// again later.
var ErrBusy = errors.New("there are too many reports at once")

// Open reads what the store has. Run must be called, too.
func Open(ctx context.Context, o Options) (*Hub, error) {
	h := &Hub{options: o, queue: make(chan *request, maxInQueue), done: make(chan struct{}), changed: make(chan struct{})}
	h.version = rand.Uint64() // a client may have seen the versions of another process
	return h, h.load(ctx)
}

// load makes the fleet of what the store has.
func (h *Hub) load(ctx context.Context) error {
	now := h.options.Now()
	fleet := state.New(h.options.StaleAfter, h.options.Grace, now)
	number, err := h.options.Store.Load(ctx, 0, &loader{fleet, now})
	if err != nil {
		return err
	}
	fleet.Restored()
	h.number, h.broken, h.judged, h.unsaved, h.saving = number, false, false, map[string]bool{}, map[string]bool{}
	h.fleet.Store(fleet)
	h.Changed()
	return nil
}

// loader gives a fleet what a store has.
type loader struct {
	fleet *state.Fleet
	now   time.Time
}

// Wanted takes what an environment wants, as a loader of the store.
func (l *loader) Wanted(w *state.Wanted) { l.fleet.RestoreWanted(l.now, w) }

// Environments restores the order of the environments.
func (l *loader) Environments(names []string) { l.fleet.Order(names) }

// Cluster restores the last report of a cluster.
func (l *loader) Cluster(c state.Contact) {
	l.fleet.RestoreCluster(c)
}

// Assignment restores the state of an assignment on a cluster.
func (l *loader) Assignment(environment, cluster, target string, s state.Stored) {
	l.fleet.Restore(environment, cluster, target, s)
}

// Fleet returns the state of all clusters. It may be another one later.
func (h *Hub) Fleet() *state.Fleet { return h.fleet.Load() }

// Store returns the hub's database.
func (h *Hub) Store() *store.Store { return h.options.Store }

// Waiting returns how many requests wait to be written.
func (h *Hub) Waiting() int { return len(h.queue) }

// Now returns the time by the hub's clock.
func (h *Hub) Now() time.Time { return h.options.Now() }

// Version returns a number that is another one after each change, and a channel that is closed
// when there is one.
func (h *Hub) Version() (uint64, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version, h.changed
}

// Changed makes another version, where something has changed of which answers say more than the
// fleet has.
func (h *Hub) Changed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	close(h.changed)
	h.changed = make(chan struct{})
}

// Unwritable returns why nothing can be written, so that every report is refused; nil where the last
// write succeeded. It is tried again every few seconds.
func (h *Hub) Unwritable() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unwritable
}

// ErrText is the error where a report has a text that no database keeps.
var ErrText = errors.New("a text has a NUL, is not UTF-8 or is longer than 2,000 bytes, or the " +
	"cluster's name has what cannot be printed")

// Report takes a report. Once it returns without an error, what it changed is stored.
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

// Do calls f, which may write, between two batches of reports. Of the fleet it may change what is wanted,
// which is written as well.
func (h *Hub) Do(ctx context.Context, f func(ctx context.Context, tx *store.Tx) (*state.Changes, error)) error {
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

// The times between what a hub does by itself.
const (
	lookEvery    = time.Second
	expireEvery  = 5 * time.Second
	releaseEvery = 5 * time.Second
	seenEvery    = time.Minute // at most
	tallyEvery   = 5 * time.Second
	sweepEvery   = time.Hour
	grace        = 5 * time.Second
)

// due reports whether something is to be done again. Clocks may be set back.
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
	// A write that has begun when the context ends has a little time.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	h.wrote(work, h.probe(work)) // a batch may have nothing to write, and a report would find out first
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

// look reads what other hubs have changed.
func (h *Hub) look(ctx context.Context) {
	if h.broken {
		return // the next batch that can write reads everything
	}
	number, err := h.options.Store.Number(ctx)
	switch {
	case err != nil || number == h.number:
		return // and the store says what is wrong
	case number < h.number:
		h.broken = true // an older database was restored
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*h.patience())
	defer cancel()
	if number, err = h.options.Store.Load(ctx, h.number, &loader{h.fleet.Load(), h.options.Now()}); err != nil {
		h.broken = true
		return
	}
	h.number = number
	h.Changed()
}

// last writes what is only written now and then.
func (h *Hub) last(ctx context.Context) {
	if h.broken {
		return // there is nothing that the store has not
	}
	h.flushed, h.tallied = time.Time{}, time.Time{}
	for h.batch(ctx, nil); len(h.saving) > 0 && !h.broken; h.batch(ctx, nil) {
		h.saved = time.Time{}
	}
}

// seenEvery returns how often the last news of clusters are written: several times before
// another hub, which does not hear them, would take a cluster for stale.
func (h *Hub) seenEvery(fleet *state.Fleet) time.Duration {
	bound := h.options.StaleAfter
	for _, w := range fleet.Environments() {
		if w.StaleAfter > 0 {
			bound = min(bound, w.StaleAfter)
		}
	}
	return min(max(bound/4, expireEvery), seenEvery)
}

// ListedError is a cluster that cannot be forgotten: the platform lists it.
type ListedError struct {
	Cluster      string
	Environments []string
}

// Error names the environments, and says what to do.
func (e *ListedError) Error() string {
	return fmt.Sprintf("the platform lists cluster %s, in %s: take it out of the platform",
		terminal.Line(e.Cluster), strings.Join(e.Environments, ", "))
}

// Forget forgets a cluster that the platform does not list, until it reports again; false where there
// is none.
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
