package store

import (
	"context"
	"database/sql"
	"slices"
	"sync"
)

// terms are the ids of texts, as far as they are known.
type terms struct {
	mu      sync.Mutex
	known   map[string]int64
	cleared int64 // how often texts had been removed when these were read
}

// The bounds of what is kept in memory: messages have no end.
const (
	mostKnown   = 200_000
	longestKept = 128
)

func newTerms() terms { return terms{known: map[string]int64{}} }

func (t *terms) get(text string) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok := t.known[text]
	return id, ok
}

func (t *terms) learn(texts map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known)+len(texts) > mostKnown {
		t.known = map[string]int64{}
	}
	for text, id := range texts {
		if len(text) <= longestKept {
			t.known[text] = id
		}
	}
}

// clear forgets all ids.
func (t *terms) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = map[string]int64{}
}

// valid forgets all ids where texts were removed since.
func (t *terms) valid(cleared int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cleared != cleared {
		t.known, t.cleared = map[string]int64{}, cleared
	}
}

// ids sets the ids of texts, and adds those that the database does not have.
func (t *Tx) ids(ctx context.Context, texts map[string]int64) error {
	var lacking []string
	for text := range texts {
		id, known := t.new[text]
		if !known {
			id, known = t.store.terms.get(text)
		}
		if texts[text] = id; !known {
			lacking = append(lacking, text)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	slices.Sort(lacking) // so that rows come in the order of their index
	if err := t.store.look(ctx, t.tx, lacking, t.new); err != nil {
		return err
	}
	var last int64
	if err := t.tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(id), 0) FROM term`).Scan(&last); err != nil {
		return err
	}
	var absent []any
	for _, text := range lacking {
		if t.new[text] == 0 {
			last++
			t.new[text] = last
			absent = append(absent, last, text)
		}
		texts[text] = t.new[text]
	}
	return t.add(ctx, "term", "id, text", absent)
}

// look finds the ids of texts that the database has.
func (s *Store) look(ctx context.Context, on querier, texts []string, into map[string]int64) error {
	for some := range slices.Chunk(texts, atOnce) {
		values := make([]any, len(some))
		for i, text := range some {
			values[i] = text
		}
		among, args := s.among(values)
		err := s.rows(ctx, on, func(r *sql.Rows) error {
			var id int64
			var text string
			err := r.Scan(&id, &text)
			into[text] = id
			return err
		}, "SELECT id, text FROM term WHERE text "+among, args...)
		if err != nil {
			return err
		}
	}
	return nil
}
