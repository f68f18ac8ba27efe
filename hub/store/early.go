package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// The bounds of what is kept of clusters that no environment has: reports of one, and of all, and how long
// it is remembered when one reported first.
const (
	mostEarly    = 20
	mostOfEarly  = 20_000
	forgetsEarly = 24 * time.Hour
)

// Keep keeps a report about a cluster that no environment has, as the next branch that is read may have it.
// It reports whether it did: only what comes within a time after the cluster's first report is kept, the
// newest of it, and nothing where there is too much of it already.
func (t *Tx) Keep(ctx context.Context, r *state.Report, within time.Duration) (bool, error) {
	var all, of int
	var first sql.NullInt64
	err := t.tx.QueryRowContext(ctx,
		t.store.query(`SELECT COUNT(*), MIN(received), (SELECT COUNT(*) FROM early) FROM early WHERE cluster = ?`), r.Cluster).Scan(&of, &first, &all)
	if err != nil {
		return false, t.store.problem(err)
	}
	if first.Valid && r.Received.Sub(instant(first.Int64)) > within || all >= mostOfEarly {
		return false, nil
	}
	if of >= mostEarly { // the first one says since when
		_, err = t.tx.ExecContext(ctx,
			t.store.query(`DELETE FROM early WHERE change = (SELECT change FROM early WHERE cluster = ? ORDER BY change LIMIT 1 OFFSET 1)`), r.Cluster)
	}
	is := *r
	is.At = r.At.UTC() // a zone may be one that JSON does not take
	content, marshal := json.Marshal(&is)
	if marshal != nil { // nor any other time
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

// Early calls take with the kept reports, in their order. It removes the reports for which take returns
// true, and the reports that are too old.
func (t *Tx) Early(ctx context.Context, now time.Time, take func(*state.Report) bool) error {
	var gone []any
	err := t.store.rows(ctx, t.tx, func(r *sql.Rows) error {
		var change, received int64
		var content []byte
		if err := r.Scan(&change, &received, &content); err != nil {
			return err
		}
		report := &state.Report{}
		if now.Sub(instant(received)) > forgetsEarly || json.Unmarshal(content, report) != nil || take(report) {
			gone = append(gone, change)
		}
		return nil
	}, `SELECT change, received, content FROM early ORDER BY change`)
	if err == nil {
		err = t.store.each(ctx, t.tx, "DELETE FROM early WHERE change IN (", ")", 1, gone)
	}
	if err != nil {
		return t.store.problem(err)
	}
	return nil
}
