package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/hub/state"
)

// Loader receives the state that other hubs or earlier runs have stored. The order is: the wanted
// state, the names of all environments in their order, the clusters, and the assignments.
type Loader interface {
	Wanted(*state.DesiredState)
	Environments(names []string)
	Cluster(state.Contact)
	Assignment(environment, cluster, target string, s state.StoredState)
}

// Load passes the changes after a number to a Loader, and returns the number of the last change. It
// reads the database at one moment.
func (s *Store) Load(ctx context.Context, after int64, into Loader) (int64, error) {
	tx, err := s.read.BeginTx(ctx,
		&sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: s.postgres})
	if err != nil {
		return 0, s.problem(err)
	}
	defer func() { _ = tx.Rollback() }()
	var last int64
	if err := tx.QueryRowContext(ctx, `SELECT number FROM change`).Scan(&last); err != nil {
		return 0, s.problem(err)
	}
	if last == after {
		return last, nil
	}
	if after == 0 {
		s.terms.clear() // another database may have been restored
	}
	if err := s.load(ctx, tx, after, into); err != nil {
		return 0, s.problem(err)
	}
	return last, nil
}

// Load passes the changes of others after a number to a Loader.
func (t *Tx) Load(ctx context.Context, after int64, into Loader) error {
	switch {
	case after == t.began:
		return nil
	case after > t.began:
		return t.store.problem(fmt.Errorf("it has less than before: an older one was restored"))
	}
	if err := t.store.load(ctx, t.tx, after, into); err != nil {
		return t.store.problem(err)
	}
	return nil
}

func (s *Store) load(ctx context.Context, on querier, after int64, into Loader) error {
	err := s.rows(ctx, on, func(r *sql.Rows) error {
		var content []byte
		if err := r.Scan(&content); err != nil {
			return err
		}
		w, err := unpack(content)
		if err == nil {
			into.Wanted(w)
		}
		return err
	}, `SELECT content FROM wanted WHERE change > ? ORDER BY position`, after)
	if err != nil {
		return err
	}
	names, err := environmentNames(ctx, s.database, on)
	if err != nil {
		return err
	}
	into.Environments(names)
	err = s.rows(ctx, on, func(r *sql.Rows) error {
		var c state.Contact
		err := r.Scan(&c.Cluster, milliseconds{&c.Last}, milliseconds{&c.Snapshot}, &c.Digest, &c.Partial,
			&c.By,
			&c.UID, &c.Before, milliseconds{&c.Conflict})
		if err == nil {
			into.Cluster(c)
		}
		return err
	}, `SELECT name, seen, snapshot, digest, partial, reporter, uid, uid_before, conflict FROM cluster WHERE change > ?`, after)
	if err != nil {
		return err
	}
	return s.assignments(ctx, on, after, into)
}

// Environments returns the names of all environments whose wanted state is stored, in the order of
// promotion.
func (s *Store) Environments(ctx context.Context) ([]string, error) {
	return environmentNames(ctx, s.database, s.db)
}

// environmentNames returns the names of all environments, in their order.
func environmentNames(ctx context.Context, of *database, on querier) ([]string, error) {
	return column[string](ctx, of, on, `SELECT environment FROM wanted ORDER BY position`)
}

// inPage is how many rows a page has.
const inPage = 20_000

// assignments reads rows in pages. For each page it reads the ids first, and then the unknown
// texts. A join of ten texts for each row would take longer than the rest.
func (s *Store) assignments(ctx context.Context, on querier, after int64, into Loader) error {
	const columns = `SELECT environment, cluster, target, folder, ran, digest, revision, path, message, reporter, applied, repository, branch, state, changed, reported, observed, since, change FROM assignment WHERE `
	query, from := columns+
		`(environment, cluster, target) > (?, ?, ?) ORDER BY environment, cluster, target LIMIT ?`,
		[]any{-1, -1, -1}
	if after > 0 {
		query, from = columns+`change > ? ORDER BY change LIMIT ?`, []any{after}
	}
	texts := map[int64]string{}
	page := make([]row, 0, inPage)
	for {
		page = page[:0]
		err := s.rows(ctx, on, func(r *sql.Rows) error {
			page = append(page, row{})
			x := &page[len(page)-1]
			return r.Scan(&x.ids[0], &x.ids[1], &x.ids[2], &x.ids[3], &x.ids[4], &x.ids[5], &x.ids[6],
				&x.ids[7], &x.ids[8], &x.ids[9],
				&x.ids[10], &x.ids[11], &x.ids[12],
				&x.s.State, &x.s.Changed, &x.s.Reported, &x.s.At, &x.s.Since, &x.change)
		}, query, append(from, inPage)...)
		if err == nil {
			err = s.texts(ctx, on, page, texts)
		}
		if err != nil {
			return err
		}
		for i := range page {
			st, t := &page[i].s, func(n int) string { return texts[page[i].ids[n]] }
			st.Folder, st.Ran, st.Digest, st.Commit, st.Message, st.By, st.Applied = t(3), t(4), t(5), t(6),
				t(8), t(9), t(10)
			st.Origin = origin.Origin{Repository: t(11), Branch: t(12), Path: t(7)}
			into.Assignment(t(0), t(1), t(2), *st)
		}
		if len(page) < inPage {
			return nil
		}
		last := page[len(page)-1]
		if after > 0 {
			from = []any{last.change}
		} else {
			from = []any{last.ids[0], last.ids[1], last.ids[2]}
		}
	}
}

// texts reads the unknown texts of rows.
func (s *Store) texts(ctx context.Context, on querier, page []row, texts map[int64]string) error {
	var lacking []any
	for i := range page {
		for _, id := range page[i].ids {
			if _, known := texts[id]; !known {
				texts[id] = ""
				lacking = append(lacking, id)
			}
		}
	}
	for some := range slices.Chunk(lacking, atOnce) {
		among, args := s.anyOf(some)
		err := s.rows(ctx, on, func(r *sql.Rows) error {
			var id int64
			var text string
			err := r.Scan(&id, &text)
			texts[id] = text
			return err
		}, `SELECT id, text FROM term WHERE id `+among, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// row is a row of assignment, with the ids of its texts.
type row struct {
	ids    [13]int64
	change int64
	s      state.StoredState
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// The limits of reports about clusters that no environment has: the reports of one cluster, those
// of all, and how long the time of a first report is kept.
const (
	maxEarly     = 20
	maxOfEarly   = 20_000
	forgetsEarly = 24 * time.Hour
)

// Keep stores a report about a cluster that no environment has, because the next branch may have
// it. It reports whether it did. It stores only the newest reports, within a time after the
// cluster's first report. It stores nothing if there are too many early reports already.
func (t *Tx) Keep(ctx context.Context, r *state.Report, within time.Duration) (bool, error) {
	var all, of int
	var first sql.NullInt64
	err := t.tx.QueryRowContext(ctx,
		t.store.query(
			`SELECT COUNT(*), MIN(received), (SELECT COUNT(*) FROM early) FROM early WHERE cluster = ?`),
		r.Cluster).Scan(&of, &first, &all)
	if err != nil {
		return false, t.store.problem(err)
	}
	if first.Valid && r.Received.Sub(instant(first.Int64)) > within || all >= maxOfEarly {
		return false, nil
	}
	if of >= maxEarly { // the first one has the time of the first report
		_, err = t.store.exec(ctx, t.tx,
			`DELETE FROM early WHERE change = (SELECT change FROM early WHERE cluster = ? ORDER BY change LIMIT 1 OFFSET 1)`, r.Cluster)
	}
	is := *r
	is.At = r.At.UTC() // JSON may not accept its zone
	content, marshal := json.Marshal(&is)
	if marshal != nil { // nor does it accept some other times
		return false, nil
	}
	if err == nil {
		err = t.store.insert(ctx, t.tx, "early", "change, cluster, received, content", "",
			[]any{t.next(), r.Cluster, r.Received.UnixMilli(), string(content)})
	}
	if err != nil {
		return false, t.store.problem(err)
	}
	return true, nil
}

// Early calls take with the kept reports, in their order. It removes the reports for which take
// returns true, and the reports that are too old.
func (t *Tx) Early(ctx context.Context, now time.Time, take func(*state.Report) bool) error {
	var gone []any
	err := t.store.rows(ctx, t.tx, func(r *sql.Rows) error {
		var change, received int64
		var content []byte
		if err := r.Scan(&change, &received, &content); err != nil {
			return err
		}
		report := &state.Report{}
		if now.Sub(instant(received)) > forgetsEarly || json.Unmarshal(content, report) != nil ||
			take(report) {
			gone = append(gone, change)
		}
		return nil
	}, `SELECT change, received, content FROM early ORDER BY change`)
	if err == nil {
		err = t.store.each(ctx, t.tx, "DELETE FROM early WHERE change IN (", ")", 1, gone)
	}
	return t.store.problem(err)
}
