package hub

import (
	"context"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// gather adds the other waiting requests.
func (h *Hub) gather(first *request) []*request {
	out := []*request{first}
	for len(out) < maxInBatch {
		select {
		case q := <-h.queue:
			out = append(out, q)
		default:
			return out
		}
	}
	return out
}

// batch handles the requests and the work that is due, in one write. If the store fails, batch
// acknowledges no request, and the fleet stays as before. From then on, it handles nothing until
// the store can be written and the fleet is read again.
func (h *Hub) batch(ctx context.Context, requests []*request) {
	asked := len(requests) > 0
	requests = h.quiet(ctx, requests)
	if asked && len(requests) == 0 {
		return
	}
	var err error
	if h.broken {
		if err = h.probe(ctx); err != nil {
			if now := h.options.Now(); due(h.expired, now, expireEvery) {
				h.expired = now
				if h.fleet.Load().Expire(now).Len() > 0 {
					h.Changed()
				}
			}
		}
	}
	if err == nil {
		limit := h.patience()
		// The wanted state may have millions of rows. So may the fleet, which is read first if it
		// is broken.
		if h.broken || slices.ContainsFunc(requests, func(q *request) bool { return q.do != nil }) {
			limit *= 10
		}
		within, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err = h.write(within, requests)
	}
	h.wrote(ctx, err)
	for _, q := range requests {
		q.err = err
	}
	h.end(requests)
}

// probe returns an error if nothing can be written.
func (h *Hub) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.patience())
	defer cancel()
	return h.options.Store.Probe(ctx)
}

// wrote records the result of a write, which answers show. If the write succeeded, err is nil.
func (h *Hub) wrote(ctx context.Context, err error) {
	if err != nil {
		h.broken = true
		if ctx.Err() != nil {
			return // the hub ends
		}
		h.options.Problem(err)
	}
	h.mu.Lock()
	was := h.unwritable
	h.unwritable = err
	h.mu.Unlock()
	if (was == nil) != (err == nil) {
		h.Changed()
	}
}

func (h *Hub) end(requests []*request) {
	for _, q := range requests {
		h.weight.Add(-q.weight)
		close(q.done)
	}
}

// quiet handles the reports that change only the last contact of a cluster, which is written later.
// It returns the other requests. Most reports are quiet.
func (h *Hub) quiet(ctx context.Context, requests []*request) []*request {
	fleet := h.fleet.Load()
	is := func(q *request) bool { return q.report != nil && q.report.Same && fleet.Quiet(q.report) }
	if h.broken || !slices.ContainsFunc(requests, is) {
		return requests
	}
	if number, err := h.options.Store.Number(ctx); err != nil || number != h.number {
		return requests // another hub may know another snapshot
	}
	var quiet, others []*request
	for _, q := range requests {
		if !is(q) {
			others = append(others, q)
			continue
		}
		_, q.outcome = fleet.Observe(q.report)
		h.unsaved[q.report.Cluster] = true
		quiet = append(quiet, q)
	}
	h.end(quiet)
	return others
}

func (h *Hub) write(ctx context.Context, requests []*request) error {
	if h.broken {
		if err := h.load(ctx); err != nil {
			return err
		}
	}
	h.now = h.options.Now()
	w := &writing{Hub: h, fleet: h.fleet.Load(), contacts: map[string]bool{}}
	number, err := h.options.Store.Write(ctx, func(tx *store.Tx) error {
		w.tx = tx
		if err := tx.Load(ctx, h.number, &loader{w.fleet, w.now}); err != nil {
			return err
		}
		if err := w.requests(ctx, requests); err != nil {
			return err
		}
		return w.due(ctx)
	})
	if err != nil {
		if w.checkpoint != nil {
			w.fleet.Reset(w.checkpoint)
			h.Changed() // an answer may contain a change that the store has refused
		}
		return err
	}
	h.judged = true
	if h.number != number || w.count > 0 {
		h.Changed()
	}
	h.number = number
	return nil
}

// writing is one write of a hub.
type writing struct {
	*Hub
	tx         *store.Tx
	fleet      *state.Fleet
	checkpoint *state.Checkpoint // the fleet before the requests; nil until then
	contacts   map[string]bool   // clusters whose last contact must be written
	count      int               // of changes
	wanted     bool              // the wanted state has changed
}

// changes writes some changes.
func (w *writing) changes(ctx context.Context, changes *state.Changes) error {
	for _, name := range changes.Contacts() {
		w.contacts[name] = true
	}
	w.count += changes.Len()
	return w.tx.Changes(ctx, w.now, changes)
}

// requests first applies the changes that are due to time, and then handles the requests.
func (w *writing) requests(ctx context.Context, requests []*request) error {
	changes := &state.Changes{}
	switch {
	case !w.judged:
		changes = w.fleet.Judge(w.now)
	case due(w.expired, w.now, expireEvery):
		changes = w.fleet.Expire(w.now)
		w.expired = w.now
	}
	about := make([]string, len(requests))
	for i, q := range requests {
		about[i] = q.cluster
	}
	w.checkpoint = w.fleet.Checkpoint(about)
	for _, q := range requests {
		if q.report != nil {
			more, err := w.observe(ctx, q)
			if err != nil {
				return err
			}
			changes.Append(more)
			continue
		}
		// before q.do changes the fleet that they are about
		if err := w.changes(ctx, changes); err != nil {
			return err
		}
		more, err := q.do(ctx, w.tx)
		if err == nil && more != nil { // the next report may change the same assignments
			w.wanted = true
			err = w.changes(ctx, more)
		}
		if err != nil {
			return err
		}
		changes = &state.Changes{}
	}
	return w.changes(ctx, changes)
}

// observe handles a report. The last contact of a cluster is written together with the changes of
// the report. If only the time of the contact changes, it is written later.
func (w *writing) observe(ctx context.Context, q *request) (changes *state.Changes, err error) {
	changes, q.outcome = w.fleet.Observe(q.report)
	switch {
	case q.outcome.Unlisted && w.options.Grace > 0 && len(q.report.Items) > 0:
		q.outcome.Early, err = w.tx.Keep(ctx, q.report, w.options.Grace)
	case changes.Len() > 0:
		w.contacts[q.report.Cluster] = true
	case q.outcome.Unlisted || q.outcome.Elsewhere:
	case q.report.Snapshot && !q.report.Same:
		w.contacts[q.report.Cluster] = true
	case !q.outcome.Resend:
		w.unsaved[q.report.Cluster] = true
	}
	return changes, err
}

// due does the work that is done at intervals: it judges releases and writes tallies. It also
// writes tallies when the wanted state has changed. It writes the last contact of clusters, at once
// if more than its time has changed.
func (w *writing) due(ctx context.Context) error {
	if due(w.released, w.now, releaseEvery) {
		w.released = w.now
		noted, err := w.judgeReleases(ctx, w.tx, w.fleet, w.now)
		if err != nil {
			return err
		}
		w.count += noted
	}
	w.save()
	clusters := make([]state.Contact, 0, len(w.contacts))
	for name := range w.contacts {
		clusters = append(clusters, w.fleet.Contact(name))
	}
	if err := w.tx.Clusters(ctx, clusters); err != nil {
		return err
	}
	if !w.wanted && !due(w.tallied, w.now, tallyEvery) {
		return nil
	}
	w.tallied = w.now
	return w.tx.Tally(ctx, w.now, w.fleet.Parts())
}

// maxSaved is the minimum number of clusters whose contact each write may add.
const maxSaved = 2000

// save selects more clusters whose last contact must be written, though only its time has changed.
// It selects some each second, so that no report waits for the write of all clusters.
func (w *writing) save() {
	every := w.seenEvery(w.fleet)
	switch {
	case due(w.flushed, w.now, every):
		maps.Copy(w.saving, w.unsaved)
		w.flushed, w.unsaved = w.now, map[string]bool{}
		w.portion = max(maxSaved, 2*len(w.saving)/int(every/lookEvery)) // all of them in half of the time
	case len(w.saving) == 0 || !due(w.saved, w.now, lookEvery):
		return
	}
	w.saved = w.now
	left := w.portion
	for name := range w.saving {
		if left--; left < 0 {
			return
		}
		w.contacts[name] = true
		delete(w.saving, name)
	}
}
