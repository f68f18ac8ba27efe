package store

import (
	"context"
	"sync"
)

// statistics are what PostgreSQL knows of how many rows its tables have of what. It looks by
// itself a minute or two after it was necessary: until then, it would read a whole table where
// an index has the few rows of an answer.
type statistics struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	changes int // that were written
	due     int // at how many of them it is to look again
}

// firstStatistics is how many changes are written before PostgreSQL is to look at them. It is to
// look again at twice as many.
const firstStatistics = 10_000

func newStatistics() *statistics {
	ctx, cancel := context.WithCancel(context.Background())
	return &statistics{ctx: ctx, cancel: cancel, due: firstStatistics}
}

// end ends what runs, and waits for it.
func (st *statistics) end() {
	st.mu.Lock()
	st.cancel()
	st.mu.Unlock()
	st.running.Wait()
}

// analyze has PostgreSQL look at its tables, beside everything else, where many changes were
// written.
func (s *Store) analyze(changes int) {
	st := s.statistics
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.changes += changes; !s.postgres || st.changes < st.due || st.ctx.Err() != nil {
		return
	}
	st.due = 2 * st.changes
	st.running.Go(func() {
		// Where that fails, PostgreSQL does it later.
		_, _ = s.db.ExecContext(st.ctx, `ANALYZE term, wanted_target, assignment, transition`)
	})
}
