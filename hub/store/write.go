package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// Tx is a write transaction. No other one can write until it ends.
type Tx struct {
	store *Store
	conn  *sql.Conn
	tx    *sql.Tx
	last  int64 // the number of the last change
	began int64
	new   map[string]int64 // ids of texts
	empty map[int64]bool   // environments that had no assignments when this write was to add some

	rows int // how many changes it has written

	tallied, cleaned, swept int64 // as table change has them
	counted                 tallies
}

// Write calls f, and commits its changes. The result is the number of the last change. An error of
// f, or of the database, undoes everything.
func (s *Store) Write(ctx context.Context, f func(*Tx) error) (number int64, err error) {
	if err := s.there(); err != nil {
		return 0, err
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return 0, s.problem(err)
	}
	defer func() { _ = conn.Close() }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return 0, s.problem(err)
	}
	defer func() { _ = tx.Rollback() }()
	t := &Tx{store: s, conn: conn, tx: tx, new: map[string]int64{}, empty: map[int64]bool{}}
	lock := `SELECT number, tallied, cleared, cleaned, swept FROM change`
	if s.postgres {
		lock += ` FOR UPDATE` // a transaction of SQLite locks all of it
	}
	var cleared int64
	if err := tx.QueryRowContext(ctx, lock).Scan(&t.last, &t.tallied, &cleared, &t.cleaned,
		&t.swept); err != nil {
		return 0, s.problem(err)
	}
	s.terms.valid(cleared)
	t.began = t.last
	if err := f(t); err != nil {
		return 0, err
	}
	if t.last != t.began {
		if _, err := s.exec(ctx, tx, `UPDATE change SET number = ?`, t.last); err != nil {
			return 0, s.problem(err)
		}
	}
	if err := tx.Commit(); err != nil {
		return 0, s.problem(err)
	}
	s.terms.learn(t.new)
	s.analyze(t.rows)
	if t.counted.open != nil {
		s.counts.last = t.counted
	}
	return t.last, nil
}

// Last returns the number of the last change before this write.
func (t *Tx) Last() int64 { return t.began }

func (t *Tx) next() int64 {
	t.last++
	return t.last
}

// onConflict returns the SQL that replaces all columns of a row except the key.
func onConflict(key, columns string) string {
	var sets []string
	for _, c := range strings.Split(columns, ", ") {
		if !strings.Contains(", "+key+",", ", "+c+",") {
			sets = append(sets, c+" = excluded."+c)
		}
	}
	return "ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(sets, ", ")
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

const clusterColumns = "name, seen, snapshot, digest, partial, reporter, uid, uid_before, " +
	"conflict, change"

// Clusters writes the last contact of clusters, each at most once. The caller must first load the
// contacts that other hubs have written.
func (t *Tx) Clusters(ctx context.Context, clusters []state.Contact) error {
	if len(clusters) == 0 {
		return nil
	}
	number := t.next()
	values := make([]any, 0, 10*len(clusters))
	for _, c := range clusters {
		partial := 0
		if c.Partial {
			partial = 1
		}
		values = append(values, c.Cluster, millis(c.Last), millis(c.Snapshot), c.Digest,
			partial, c.By, c.UID, c.Before, millis(c.Conflict), number)
	}
	err := t.store.insert(ctx, t.tx, "cluster", clusterColumns, onConflict("name", clusterColumns),
		values)
	return t.store.problem(err)
}

// Wanted writes the new wanted state of an environment, which has a position among all
// environments.
func (t *Tx) Wanted(ctx context.Context, now time.Time, position int, w *state.DesiredState) error {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(w); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	tip := ""
	if len(w.Commits) > 0 {
		tip = w.Commits[0].ID
	}
	const columns = "environment, tip, content, position, change"
	err := t.store.insert(ctx, t.tx, "wanted", columns, onConflict("environment", columns),
		[]any{w.Environment, tip, b.Bytes(), position, t.next()})
	if err == nil {
		err = t.targets(ctx, now, w)
	}
	return t.store.problem(err)
}

// targets writes the wanted state as rows.
func (t *Tx) targets(ctx context.Context, now time.Time, w *state.DesiredState) error {
	texts := map[string]int64{w.Environment: 0}
	for i := range w.Folders {
		f := &w.Folders[i]
		for _, text := range []string{f.Name, f.ClusterType, f.Ring, f.Base} {
			texts[text] = 0
		}
		for _, x := range f.Targets {
			for _, text := range []string{x.Name, x.Workload, x.Version, x.Digest} {
				texts[text] = 0
			}
		}
	}
	if err := t.ids(ctx, texts); err != nil {
		return err
	}
	var rows []any
	for i := range w.Folders {
		f := &w.Folders[i]
		for _, x := range f.Targets {
			rows = append(rows, texts[w.Environment], texts[f.Name], texts[x.Name], texts[f.ClusterType],
				texts[f.Ring], texts[x.Workload], texts[x.Version], texts[f.Base], texts[x.Digest])
		}
	}
	if err := t.folders(ctx, now, w, texts); err != nil {
		return err
	}
	if _, err := t.store.exec(ctx, t.tx, `DELETE FROM wanted_target WHERE environment = ?`,
		texts[w.Environment]); err != nil {
		return err
	}
	return t.store.insert(ctx, t.tx, "wanted_target", "environment, folder, target, cluster_type, "+
		"ring, workload, version, base, digest", "", rows)
}

// folders writes the folders whose ring or base differs from wanted_target.
func (t *Tx) folders(ctx context.Context, now time.Time, w *state.DesiredState,
	texts map[string]int64) error {
	was := map[[3]int64]bool{}
	err := t.store.rows(ctx, t.tx, func(r *sql.Rows) error {
		var x [3]int64
		err := r.Scan(&x[0], &x[1], &x[2])
		was[x] = true
		return err
	}, `SELECT DISTINCT folder, ring, base FROM wanted_target WHERE environment = ?`,
		texts[w.Environment])
	if err != nil {
		return err
	}
	var rows []any
	for i := range w.Folders {
		f := &w.Folders[i]
		if x := [3]int64{texts[f.Name], texts[f.Ring], texts[f.Base]}; !was[x] {
			rows = append(rows, texts[w.Environment], x[0], now.UnixMilli(), x[1], x[2])
		}
	}
	const columns = "environment, folder, at, ring, base"
	return t.store.insert(ctx, t.tx, "folder_history", columns,
		onConflict("environment, folder, at", columns), rows)
}

// Order sets the list and the order of the environments. It removes the wanted state of all others.
// The changes of a Fleet remove their assignments.
func (t *Tx) Order(ctx context.Context, names []string) error {
	is, err := environmentNames(ctx, t.store.database, t.tx)
	if err != nil {
		return t.store.problem(err)
	}
	if names = slices.DeleteFunc(slices.Clone(names),
		func(name string) bool { return !slices.Contains(is, name) }); slices.Equal(is, names) {
		return nil
	}
	t.next()
	for _, name := range is {
		if slices.Contains(names, name) {
			continue
		}
		for _, q := range []string{`DELETE FROM wanted WHERE environment = ?`,
			`DELETE FROM wanted_target WHERE environment = (SELECT id FROM term WHERE text = ?)`} {
			if _, err := t.store.exec(ctx, t.tx, q, name); err != nil {
				return t.store.problem(err)
			}
		}
	}
	for i, name := range names {
		if _, err := t.store.exec(ctx, t.tx, `UPDATE wanted SET position = ? WHERE environment = ?`, i,
			name); err != nil {
			return t.store.problem(err)
		}
	}
	return nil
}

func unpack(data []byte) (*state.DesiredState, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	w := &state.DesiredState{}
	if err := json.NewDecoder(z).Decode(w); err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, z) // this verifies the checksum
	return w, err
}

const (
	assignmentColumns = "environment, cluster, target, folder, state, changed, reported, ran, " +
		"digest, revision, applied, repository, branch, path, message, reporter, observed, since, change"
	transitionColumns = "change, at, environment, workload, cluster, target, cluster_type, folder, " +
		"was, state, version, wanted, ran, revision, message"
)

// gone is the state in a transition of an assignment that is not wanted any more.
const gone = -1

// assignmentChange is a change, and the assignment after it.
type assignmentChange struct {
	state.Change
	state.Row
}

// place identifies an assignment on a cluster.
func (c *assignmentChange) place() [3]string {
	return [3]string{c.Environment, c.Cluster,
		c.Target}
}

// changesAtOnce limits the changes in memory during a write.
const changesAtOnce = 10_000

// Changes writes changes: the present rows, and a transition for each change of a state or of the
// running digest.
func (t *Tx) Changes(ctx context.Context, now time.Time, changes *state.Changes) error {
	batch := make([]assignmentChange, 0, min(changes.Len(), changesAtOnce))
	err := changes.Each(func(c state.Change, r state.Row) error {
		if batch = append(batch, assignmentChange{c, r}); len(batch) < changesAtOnce {
			return nil
		}
		err := t.changes(ctx, now, batch)
		batch = batch[:0]
		return err
	})
	if err == nil {
		err = t.changes(ctx, now, batch)
	}
	if err != nil {
		return t.store.problem(err)
	}
	t.rows += changes.Len()
	return nil
}

func (t *Tx) changes(ctx context.Context, now time.Time, batch []assignmentChange) error {
	texts := map[string]int64{}
	latest := map[[3]string]int{} // a statement may not have a row twice
	for i := range batch {
		c := &batch[i]
		for _, text := range []string{c.Environment, c.Cluster, c.Target, c.ClusterType, c.Folder,
			c.Workload, c.Version, c.Digest, c.Running, c.Given, c.Commit, c.Applied, c.Repository, c.Branch,
			c.Path, c.Message, c.Said, c.By} {
			texts[text] = 0
		}
		latest[c.place()] = i
	}
	if err := t.ids(ctx, texts); err != nil {
		return err
	}
	var added, replaced, removed []any
	transitions := make([]any, 0, len(batch)*(1+strings.Count(transitionColumns, ",")))
	for i := range batch {
		c := &batch[i]
		number := t.next()
		if c.Moved || c.Ran || c.Other || c.New || c.Gone {
			transitions = c.transition(transitions, number, now, texts)
		}
		if latest[c.place()] != i {
			continue
		}
		if c.Gone {
			removed = append(removed, texts[c.Environment], texts[c.Cluster], texts[c.Target])
			continue
		}
		if isNew, err := t.isNew(ctx, c, texts[c.Environment]); err != nil {
			return err
		} else if isNew {
			added = c.row(added, number, texts)
		} else {
			replaced = c.row(replaced, number, texts)
		}
	}
	err := t.store.each(ctx, t.tx, "DELETE FROM assignment WHERE (environment, cluster, target) IN (",
		")", 3, removed)
	if err == nil {
		err = t.add(ctx, "assignment", assignmentColumns, added)
	}
	if err == nil {
		err = t.store.insert(ctx, t.tx, "assignment", assignmentColumns,
			onConflict("environment, cluster, target", assignmentColumns), replaced)
	}
	if err == nil {
		err = t.add(ctx, "transition", transitionColumns, transitions)
	}
	return err
}

// isNew reports whether the database certainly has no row of an assignment. That is so if it is new
// in an environment without assignments.
func (t *Tx) isNew(ctx context.Context, c *assignmentChange, environment int64) (bool, error) {
	if !c.New {
		return false, nil
	}
	empty, known := t.empty[environment]
	if !known {
		if err := t.tx.QueryRowContext(ctx,
			t.store.query(`SELECT NOT EXISTS (SELECT 1 FROM assignment WHERE environment = ?)`),
			environment).Scan(&empty); err != nil {
			return false, err
		}
		t.empty[environment] = empty
	}
	return empty, nil
}

// row adds the values of assignmentColumns.
func (c *assignmentChange) row(to []any, number int64, texts map[string]int64) []any {
	reported, _ := state.ParseReportedState(c.Reported)
	return append(to,
		texts[c.Environment], texts[c.Cluster], texts[c.Target], texts[c.Folder], int(c.State),
		c.Changed.UnixMilli(), int(reported), texts[c.Running], texts[c.Given], texts[c.Commit],
		texts[c.Applied], texts[c.Repository], texts[c.Branch], texts[c.Path], texts[c.Said],
		texts[c.By], millis(c.At), millis(c.Since), number)
}

// transition adds the values of transitionColumns.
func (c *assignmentChange) transition(to []any, number int64, now time.Time,
	texts map[string]int64) []any {
	was, is, at := int(c.Was), int(c.State), c.Changed
	if c.New {
		was = gone // it was not wanted
	}
	if c.Gone {
		is = gone
	}
	if !c.Moved {
		at = now
	}
	return append(to,
		number, at.UnixMilli(), texts[c.Environment], texts[c.Workload], texts[c.Cluster],
		texts[c.Target], texts[c.ClusterType], texts[c.Folder],
		was, is, texts[c.Version], texts[c.Digest], texts[c.Running], texts[c.Commit], texts[c.Message])
}
