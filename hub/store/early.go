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
	err := t.tx.QueryRowContext(ctx, t.store.query(`SELECT COUNT(*), MIN(received), (SELECT COUNT(*) FROM early) FROM early WHERE cluster = ?`), r.Cluster).Scan(&of, &first, &all)
	if err != nil {
		return false, t.store.problem(err)
	}
	if first.Valid && r.Received.Sub(instant(first.Int64)) > within || all >= mostOfEarly {
		return false, nil
	}
	if of >= mostEarly { // the first one says since when
		_, err = t.tx.ExecContext(ctx, t.store.query(`DELETE FROM early WHERE change = (SELECT change FROM early WHERE cluster = ? ORDER BY change LIMIT 1 OFFSET 1)`), r.Cluster)
	}
	content, marshal := json.Marshal(r)
	if marshal != nil {
		return false, marshal
	}
	if err == nil {
		err = t.store.insert(ctx, t.tx, "early", "change, cluster, received, content", "", []any{t.next(), r.Cluster, r.Received.UnixMilli(), string(content)})
	}
	if err != nil {
		return false, t.store.problem(err)
	}
	return true, nil
}

// Early returns the reports that were kept about clusters that there are now, in their order, and keeps
// them no more; nor those that are too old.
func (t *Tx) Early(ctx context.Context, now time.Time, there func(cluster string) bool) ([]*state.Report, error) {
	var reports []*state.Report
	var gone []any
	err := t.store.rows(ctx, t.tx, func(r *sql.Rows) error {
		var change, received int64
		var cluster string
		var content []byte
		if err := r.Scan(&change, &cluster, &received, &content); err != nil {
			return err
		}
		old := now.Sub(instant(received)) > forgetsEarly
		if !old && !there(cluster) {
			return nil
		}
		gone = append(gone, change)
		if old {
			return nil
		}
		report := &state.Report{}
		reports = append(reports, report)
		return json.Unmarshal(content, report)
	}, `SELECT change, cluster, received, content FROM early ORDER BY change`)
	if err == nil {
		err = t.store.each(ctx, t.tx, "DELETE FROM early WHERE change IN (", ")", 1, gone)
	}
	if err != nil {
		return nil, t.store.problem(err)
	}
	return reports, nil
}
