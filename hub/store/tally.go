package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

const tallyColumns = "part, at, ok, progressing, behind, drifted, stale, missing, failed, suspended"

// counts owns the counts of assignments by part and state, in the tables part and tally. Because of
// last, a writer need not read them again.
type counts struct {
	*database
	last tallies
}

// tallies are the last counts of all open parts, as the database had them after a change.
type tallies struct {
	number int64
	open   map[state.Part]openPart
}

type openPart struct {
	id    int64
	tally state.Tally
}

// Tally writes the counts that differ from the last ones, no matter which hub wrote those. They are
// valid from now on.
func (t *Tx) Tally(ctx context.Context, now time.Time, counts map[state.Part]state.Tally) error {
	if err := t.tally(ctx, now.UnixMilli(), counts); err != nil {
		return t.store.problem(err)
	}
	return nil
}

func (t *Tx) tally(ctx context.Context, at int64, counts map[state.Part]state.Tally) error {
	open := t.store.counts.last.open
	if open == nil || t.store.counts.last.number != t.tallied {
		var err error
		if open, err = t.store.openParts(ctx, t.tx); err != nil {
			return err
		}
	}
	t.store.counts.last = tallies{} // this write may fail
	differ := differing(open, counts)
	if len(differ) == 0 {
		t.store.counts.last = tallies{t.tallied, open}
		return nil
	}
	if err := t.writeTallies(ctx, at, open, differ); err != nil {
		return err
	}
	t.tallied = t.last
	t.counted = tallies{t.last, open}
	return nil
}

// differing returns the counts that differ from the last ones. The counts of parts that have ended
// are zero.
func differing(open map[state.Part]openPart,
	counts map[state.Part]state.Tally) map[state.Part]state.Tally {
	differ := map[state.Part]state.Tally{}
	for p, tally := range counts {
		if was, there := open[p]; tally != (state.Tally{}) && (!there || was.tally != tally) {
			differ[p] = tally
		}
	}
	for p := range open {
		if counts[p] == (state.Tally{}) {
			differ[p] = state.Tally{}
		}
	}
	return differ
}

// writeTallies writes counts, and updates the open parts.
func (t *Tx) writeTallies(ctx context.Context, at int64, open map[state.Part]openPart,
	differ map[state.Part]state.Tally) error {
	ids := map[state.Part]int64{}
	for p := range differ {
		if _, there := open[p]; !there {
			ids[p] = 0
		}
	}
	keys, err := t.ofParts(ctx, ids)
	if err != nil {
		return err
	}
	var parts, lines, changed []any
	for p, tally := range differ {
		id, closed := ids[p], int64(0)
		if was, there := open[p]; there {
			id = was.id
		}
		if open[p] = (openPart{id, tally}); tally == (state.Tally{}) {
			closed = at
			delete(open, p)
		}
		if key, isNew := keys[p]; isNew {
			parts = append(parts, id, key[0], key[1], key[2], key[3], key[4], key[5], at, at, closed)
		} else {
			changed = append(changed, id, at, closed)
		}
		lines = append(lines, id, at)
		for _, n := range tally {
			lines = append(lines, n)
		}
	}
	const columns = "id, environment, ring, cluster_type, workload, version, base, opened, newest, " +
		"closed"
	err = t.store.insert(ctx, t.tx, "part", columns, "", parts)
	for i := 0; i < len(changed) && err == nil; i += 3 {
		_, err = t.store.exec(ctx, t.tx, `UPDATE part SET newest = ?, closed = ? WHERE id = ?`,
			changed[i+1], changed[i+2],
			changed[i])
	}
	if err == nil {
		err = t.store.insert(ctx, t.tx, "tally", tallyColumns, onConflict("part, at", tallyColumns),
			lines)
	}
	if err == nil {
		_, err = t.store.exec(ctx, t.tx, `UPDATE change SET tallied = ?`, t.next())
	}
	return err
}

// ofParts sets the ids of parts, and returns the keys of the parts that are new to the database.
func (t *Tx) ofParts(ctx context.Context, parts map[state.Part]int64) (map[state.Part][6]int64,
	error) {
	texts := map[string]int64{}
	for p := range parts {
		for _, text := range []string{p.Environment, p.Ring, p.ClusterType, p.Workload, p.Version,
			p.Base} {
			texts[text] = 0
		}
	}
	if err := t.ids(ctx, texts); err != nil || len(parts) == 0 {
		return nil, err
	}
	keys, of := map[state.Part][6]int64{}, map[[6]int64]state.Part{}
	var values []any
	for p := range parts {
		key := [6]int64{texts[p.Environment], texts[p.Ring], texts[p.ClusterType], texts[p.Workload],
			texts[p.Version], texts[p.Base]}
		keys[p], of[key] = key, p
		for _, id := range key {
			values = append(values, id)
		}
	}
	for rest := values; len(rest) > 0; {
		n := min(len(rest), 6*atOnce)
		list, args := t.store.list(6, rest[:n])
		err := t.store.rows(ctx, t.tx, func(r *sql.Rows) error {
			var id int64
			var key [6]int64
			err := r.Scan(&id, &key[0], &key[1], &key[2], &key[3], &key[4], &key[5])
			parts[of[key]] = id
			delete(keys, of[key])
			return err
		}, `SELECT id, environment, ring, cluster_type, workload, version, base FROM part WHERE (environment, ring, cluster_type, workload, version, base) IN (`+list+`)`, args...)
		if err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	var last int64
	if err := t.tx.QueryRowContext(ctx,
		`SELECT COALESCE(MAX(id), 0) FROM part`).Scan(&last); err != nil {
		return nil, err
	}
	for p := range keys {
		last++
		parts[p] = last
	}
	return keys, nil
}

const partTexts = `JOIN term e ON e.id = p.environment JOIN term r ON r.id = p.ring JOIN term c ON c.id = p.cluster_type JOIN term w ON w.id = p.workload JOIN term v ON v.id = p.version JOIN term b ON b.id = p.base`

const partFields = `p.id, e.text, r.text, c.text, w.text, v.text, b.text, x.ok, x.progressing, x.behind, x.drifted, x.stale, x.missing, x.failed, x.suspended`

// openParts returns the last counts of all open parts.
func (s *counts) openParts(ctx context.Context, on querier) (map[state.Part]openPart, error) {
	return s.parts(ctx, on, "SELECT "+partFields+" FROM part p JOIN tally x ON x.part = p.id AND "+
		"x.at = p.newest "+partTexts+" WHERE p.closed = 0")
}

// PartsAt returns the counts of all parts at a time, of some environments.
func (s *counts) PartsAt(ctx context.Context, at time.Time,
	of state.Environments) (map[state.Part]state.Tally, error) {
	ms := at.UnixMilli()
	q, args := "SELECT "+partFields+" FROM part p JOIN tally x ON x.part = p.id AND x.at = (SELECT "+
		"MAX(y.at) FROM tally y WHERE y.part = p.id AND y.at <= ?) "+
		partTexts+" WHERE p.opened <= ? AND (p.closed = 0 OR p.closed > ?)", []any{ms, ms, ms}
	if of != nil {
		in, names := isOneOf(s.database, "text", storableOf(of))
		q, args = q+" AND p.environment IN (SELECT id FROM term WHERE "+in+")", append(args, names...)
	}
	parts, err := s.parts(ctx, s.read, q, args...)
	if err != nil {
		return nil, s.problem(err)
	}
	out := make(map[state.Part]state.Tally, len(parts))
	for p, is := range parts {
		if is.tally != (state.Tally{}) { // the part was empty for a while between two times
			out[p] = is.tally
		}
	}
	return out, nil
}

func (s *counts) parts(ctx context.Context, on querier, q string,
	args ...any) (map[state.Part]openPart, error) {
	out := map[state.Part]openPart{}
	err := s.rows(ctx, on, func(r *sql.Rows) error {
		var p state.Part
		var is openPart
		into := []any{&is.id, &p.Environment, &p.Ring, &p.ClusterType, &p.Workload, &p.Version, &p.Base}
		for i := range is.tally {
			into = append(into, &is.tally[i])
		}
		err := r.Scan(into...)
		out[p] = is
		return err
	}, q, args...)
	return out, err
}
