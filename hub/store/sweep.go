package store

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

// inStep is how many rows a step of a sweep reads. No one else can write meanwhile.
const inStep = 500

// PostgreSQL has no partitions by month for this. The last transition of each assignment in a month
// must stay, so that no partition can be dropped whole. A tenth of 10,000,000 transitions takes
// half a minute in steps, and queries find their rows by indexes, of any month.

// Sweep is one step of the removal of rows that were replaced before a time. These are transitions
// and tallies with a later row of the same assignment or part. The state at that time and later
// stays known. Sweep reports whether there may be more to remove.
func (s *Store) Sweep(ctx context.Context, before time.Time) (more bool, err error) {
	_, err = s.Write(ctx, func(t *Tx) error {
		last, err := t.sweepTransitions(ctx, before.UnixMilli())
		if err == nil && last == t.swept {
			more, err = t.sweepTallies(ctx, before.UnixMilli())
		} else if err == nil {
			more = true
			_, err = s.exec(ctx, t.tx, `UPDATE change SET swept = ?`, last)
		}
		if err != nil {
			return s.problem(err)
		}
		return nil
	})
	return more, err
}

// sweepTransitions continues after the last transition of the previous step, and removes the
// transitions that each one replaced. It returns the last one that it has read.
func (t *Tx) sweepTransitions(ctx context.Context, before int64) (last int64, err error) {
	last = t.swept
	newer := false
	err = t.store.rows(ctx, t.tx, func(r *sql.Rows) error {
		var number, at int64
		if err := r.Scan(&number, &at); err != nil {
			return err
		}
		if newer = newer || at >= before; !newer {
			last = number
		}
		return nil
	}, `SELECT change, at FROM transition WHERE change > ? ORDER BY change LIMIT ?`, t.swept, inStep)
	if err != nil || last == t.swept {
		return last, err
	}
	for _, q := range []string{
		`DELETE FROM transition WHERE change IN (SELECT h.change FROM transition n JOIN transition h ON h.cluster = n.cluster AND h.environment = n.environment AND h.target = n.target AND h.change < n.change WHERE n.change > ? AND n.change <= ?)`,
		`DELETE FROM transition WHERE change > ? AND change <= ? AND state = -1`,
	} {
		if _, err := t.store.exec(ctx, t.tx, q, t.swept, last); err != nil {
			return last, err
		}
	}
	return last, nil
}

// sweepTallies removes the parts that ended before a time. Of other parts it removes the tallies,
// and of folders the history, that were replaced before that time.
func (t *Tx) sweepTallies(ctx context.Context, before int64) (more bool, err error) {
	const gone = `SELECT id FROM part WHERE closed > 0 AND closed < ? ORDER BY closed, id LIMIT 100`
	for _, q := range []string{`DELETE FROM tally WHERE part IN (` + gone + `)`,
		`DELETE FROM part WHERE id IN (` + gone + `)`} {
		n, err := t.store.exec(ctx, t.tx, q, before)
		if more = n > 0; err != nil {
			return false, err
		}
	}
	if more {
		return true, nil
	}
	if _, err := t.store.exec(ctx, t.tx,
		`DELETE FROM folder_history WHERE at < ? AND at < (SELECT MAX(y.at) FROM folder_history y WHERE y.environment = folder_history.environment AND y.folder = folder_history.folder AND y.at < ?)`, before, before); err != nil {
		return false, err
	}
	// It reads the removed rows part by part, and no row that stays.
	const most = 10 * inStep
	n, err := t.store.exec(ctx, t.tx, `DELETE FROM tally WHERE (part, at) IN (SELECT x.part, x.at FROM part p CROSS JOIN tally x
WHERE x.part = p.id AND x.at < (SELECT MAX(y.at) FROM tally y WHERE y.part = p.id AND y.at < ?) LIMIT ?)`, before, most)
	return n == most, err
}

// cleanEvery is how often a hub looks for unused texts, which reads everything.
const cleanEvery = 24 * time.Hour

// Clean removes texts that no row uses any more, once a day. Several hubs may call it.
func (s *Store) Clean(ctx context.Context, now time.Time) error {
	due := false
	begun, err := s.Write(ctx, func(t *Tx) error {
		if due = now.Sub(time.UnixMilli(t.cleaned)) >= cleanEvery; !due {
			return nil
		}
		_, err := s.exec(ctx, t.tx, `UPDATE change SET cleaned = ?`, now.UnixMilli())
		return err
	})
	if err != nil || !due {
		return err
	}
	unused, err := s.unused(ctx, begun)
	for err == nil && len(unused) > 0 {
		n := min(len(unused), 10*inStep)
		_, err = s.Write(ctx, func(t *Tx) error { return t.removeTexts(ctx, begun, unused[:n]) })
		unused = unused[n:]
	}
	return s.problem(err)
}

// The columns that name texts.
var (
	ofAssignments = []string{"environment", "cluster", "target", "folder", "ran", "digest", "revision",
		"applied", "repository", "branch", "path", "message", "reporter"}
	ofTransitions = []string{"environment", "workload", "cluster", "target", "cluster_type", "folder",
		"version", "wanted", "ran", "revision", "message"}
	ofParts   = []string{"environment", "ring", "cluster_type", "workload", "version", "base"}
	ofFolders = []string{"environment", "folder", "ring", "base"}
	ofWanted  = []string{"environment", "folder", "target", "cluster_type", "ring", "workload",
		"version", "base", "digest"}
)

// bits is a set of ids.
type bits []uint64

func (b bits) has(id int64) bool { return int(id/64) < len(b) && b[id/64]&(1<<(id%64)) != 0 }

// unused returns the ids of texts that no row up to a change uses. Rows of later changes may use
// them again.
func (s *Store) unused(ctx context.Context, until int64) (unused []int64, err error) {
	used := bits{}
	for _, table := range []struct {
		name    string
		columns []string
	}{{"assignment", ofAssignments}, {"transition", ofTransitions}} {
		var last int64
		if err := s.rows(ctx, s.read, func(r *sql.Rows) error { return r.Scan(&last) },
			`SELECT COALESCE(MAX(change), 0) FROM `+table.name); err != nil {
			return nil, err
		}
		for from := int64(0); from < min(last, until); from += inPage {
			if err := s.named(ctx, s.read, table.name, table.columns, &used,
				` WHERE change > ? AND change <= ?`, from, from+inPage); err != nil {
				return nil, err
			}
		}
	}
	if err := s.namedByParts(ctx, s.read, &used); err != nil {
		return nil, err
	}
	err = s.rows(ctx, s.read, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		if !used.has(id) {
			unused = append(unused, id)
		}
		return err
	}, `SELECT id FROM term`)
	return unused, err
}

// named adds the ids in the columns of some rows.
func (s *Store) named(ctx context.Context, on querier, table string, columns []string, used *bits,
	where string, args ...any) error {
	ids := make([]int64, len(columns))
	into := make([]any, len(columns))
	for i := range ids {
		into[i] = &ids[i]
	}
	return s.rows(ctx, on, func(r *sql.Rows) error {
		err := r.Scan(into...)
		for _, id := range ids {
			for int(id/64) >= len(*used) {
				*used = append(*used, make(bits, len(*used)+1024)...)
			}
			(*used)[id/64] |= 1 << (id % 64)
		}
		return err
	}, `SELECT `+strings.Join(columns, ", ")+` FROM `+table+where, args...)
}

func (s *Store) namedByParts(ctx context.Context, on querier, used *bits) error {
	err := s.named(ctx, on, "part", ofParts, used, "")
	if err == nil {
		err = s.named(ctx, on, "folder_history", ofFolders, used, "")
	}
	if err == nil {
		err = s.named(ctx, on, "wanted_target", ofWanted, used, "")
	}
	return err
}

// removeTexts removes texts that no row used up to a change, unless a later row uses them.
func (t *Tx) removeTexts(ctx context.Context, since int64, ids []int64) error {
	used := bits{}
	err := t.store.named(ctx, t.tx, "assignment", ofAssignments, &used, ` WHERE change > ?`, since)
	if err == nil {
		err = t.store.named(ctx, t.tx, "transition", ofTransitions, &used, ` WHERE change > ?`, since)
	}
	if err == nil {
		err = t.store.namedByParts(ctx, t.tx, &used)
	}
	if err != nil {
		return err
	}
	var unused []any
	for _, id := range ids {
		if !used.has(id) {
			unused = append(unused, id)
		}
	}
	if err := t.store.each(ctx, t.tx, "DELETE FROM term WHERE id IN (", ")", 1, unused); err != nil {
		return err
	}
	_, err = t.tx.ExecContext(ctx, `UPDATE change SET cleared = cleared + 1`)
	return err
}
