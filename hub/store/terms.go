package store

import (
	"context"
	"database/sql"
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

// valid forgets all ids where texts were removed since.
func (t *terms) valid(cleared int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cleared != cleared {
		t.known, t.cleared = map[string]int64{}, cleared
	}
}

// ids returns the ids of texts, and adds those that the database does not have. It is called
// by who has locked the last change.
func (s *Store) ids(ctx context.Context, on querier, texts map[string]int64) error {
	var lacking []string
	for text := range texts {
		if id, ok := s.terms.get(text); ok {
			texts[text] = id
		} else {
			lacking = append(lacking, text)
		}
	}
	for len(lacking) > 0 {
		n := min(len(lacking), atOnce)
		if err := s.look(ctx, on, lacking[:n], texts); err != nil {
			return err
		}
		var absent []string
		for _, text := range lacking[:n] {
			if texts[text] == 0 {
				absent = append(absent, text)
			}
		}
		if len(absent) > 0 {
			var last int64
			if err := s.rows(ctx, on, func(r *sql.Rows) error { return r.Scan(&last) }, `SELECT COALESCE(MAX(id), 0) FROM term`); err != nil {
				return err
			}
			values := make([]any, 0, 2*len(absent))
			for i, text := range absent {
				texts[text] = last + int64(i) + 1
				values = append(values, texts[text], text)
			}
			if err := s.insert(ctx, on, "term", "id, text", "", values); err != nil {
				return err
			}
		}
		lacking = lacking[n:]
	}
	return nil
}

// look finds the ids of texts that the database has.
func (s *Store) look(ctx context.Context, on querier, of []string, into map[string]int64) error {
	values := make([]any, len(of))
	for i, text := range of {
		values[i] = text
	}
	list, args := s.list(1, values)
	return s.rows(ctx, on, func(r *sql.Rows) error {
		var id int64
		var text string
		if err := r.Scan(&id, &text); err != nil {
			return err
		}
		into[text] = id
		return nil
	}, "SELECT id, text FROM term WHERE text IN ("+list+")", args...)
}
