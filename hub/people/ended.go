package people

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/hub/store"
)

// How often it is read which sessions have ended, how long what was read is believed where the
// database does not answer, and how long it may take for that.
const (
	readEvery   = 5 * time.Second
	believeFor  = 15 * time.Second
	readTimeout = 2 * time.Second
)

// ended knows the sessions that people have ended by signing out, and the sign-ins that gave one, at
// any hub of the database.
type ended struct {
	store *store.Store
	now   func() time.Time

	mu          sync.Mutex
	ids         map[string]bool
	tried, read time.Time
	err         error // of the last try
}

// has reports whether a session has ended. The error says why that is not known.
func (e *ended) has(ctx context.Context, id string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.now(); !within(now, e.tried, readEvery) {
		e.look(ctx, now)
	}
	if e.err != nil && !within(e.now(), e.read, believeFor) {
		return false, fmt.Errorf("which sessions have ended is not known: %w", e.err)
	}
	return e.ids[id], nil
}

func (e *ended) look(ctx context.Context, now time.Time) {
	// Others wait for the answer, also where who asks does not any more.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	ids, err := e.store.EndedSessions(ctx, now)
	if e.tried, e.err = now, err; err != nil {
		return
	}
	e.read, e.ids = now, make(map[string]bool, len(ids))
	for _, id := range ids {
		e.ids[id] = true
	}
}

// within reports whether no more than a time has passed.
func within(now, since time.Time, most time.Duration) bool {
	d := now.Sub(since)
	return d >= 0 && d < most
}

// end ends a session, or a sign-in, which would hold until a time. first is true for one call with an
// id, of those at all hubs.
func (e *ended) end(ctx context.Context, id string, until time.Time) (first bool, err error) {
	if first, err = e.store.EndSession(ctx, id, e.now(), until); err != nil {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ids == nil {
		e.ids = map[string]bool{}
	}
	e.ids[id] = true
	return first, nil
}
