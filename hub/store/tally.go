package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

const tallyColumns = "part, at, ok, progressing, behind, drifted, stale, missing, failed"

// Tallies writes counts that are others from now on. A part that is gone has the zero Tally.
func (t *Tx) Tallies(ctx context.Context, now time.Time, counts map[state.Part]state.Tally) error {
	if len(counts) == 0 {
		return nil
	}
	texts := map[string]int64{}
	for p := range counts {
		for _, text := range []string{p.Environment, p.Ring, p.ClusterType, p.Workload, p.Version, p.Base} {
			texts[text] = 0
		}
	}
	if err := t.ids(ctx, texts); err != nil {
		return t.store.problem(err)
	}
	known, err := t.parts(ctx, texts)
	if err != nil {
		return t.store.problem(err)
	}
	var last int64
	if err := t.tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(id), 0) FROM part`).Scan(&last); err != nil {
		return t.store.problem(err)
	}
	var parts, tallies []any
	at := now.UnixMilli()
	for p, tally := range counts {
		key := [6]int64{texts[p.Environment], texts[p.Ring], texts[p.ClusterType], texts[p.Workload], texts[p.Version], texts[p.Base]}
		id := known[key]
		if id == 0 {
			last++
			id = last
		}
		var closed any
		if tally == (state.Tally{}) {
			closed = at
		}
		parts = append(parts, id, key[0], key[1], key[2], key[3], key[4], key[5], at, closed)
		tallies = append(tallies, id, at)
		for _, n := range tally {
			tallies = append(tallies, n)
		}
	}
	err = t.store.insert(ctx, t.tx, "part", "id, environment, ring, cluster_type, workload, version, base, opened, closed", "ON CONFLICT (id) DO UPDATE SET closed = excluded.closed", parts)
	if err == nil {
		err = t.store.insert(ctx, t.tx, "tally", tallyColumns, onConflict("part, at", tallyColumns), tallies)
	}
	if err != nil {
		return t.store.problem(err)
	}
	return nil
}

// parts returns the ids of all parts of some environments.
func (t *Tx) parts(ctx context.Context, texts map[string]int64) (map[[6]int64]int64, error) {
	out := map[[6]int64]int64{}
	err := t.store.rows(ctx, t.tx, func(r *sql.Rows) error {
		var id int64
		var key [6]int64
		err := r.Scan(&id, &key[0], &key[1], &key[2], &key[3], &key[4], &key[5])
		out[key] = id
		return err
	}, `SELECT id, environment, ring, cluster_type, workload, version, base FROM part`)
	return out, err
}

// tallyAt selects the last tally of each part that was open at a time.
const tallyAt = `FROM part p JOIN tally x ON x.part = p.id AND x.at = (SELECT MAX(y.at) FROM tally y WHERE y.part = p.id AND y.at <= ?)
JOIN term e ON e.id = p.environment JOIN term r ON r.id = p.ring JOIN term c ON c.id = p.cluster_type JOIN term w ON w.id = p.workload JOIN term v ON v.id = p.version JOIN term b ON b.id = p.base
WHERE p.opened <= ? AND (p.closed IS NULL OR p.closed > ?)`

// PartsAt returns the counts of all parts at a time; the zero Time for the last ones.
func (s *Store) PartsAt(ctx context.Context, at time.Time, environment string) (map[state.Part]state.Tally, error) {
	ms := int64(1) << 60
	if !at.IsZero() {
		ms = at.UnixMilli()
	}
	q, args := "SELECT e.text, r.text, c.text, w.text, v.text, b.text, x.ok, x.progressing, x.behind, x.drifted, x.stale, x.missing, x.failed "+tallyAt, []any{ms, ms, ms}
	if environment != "" {
		q, args = q+" AND e.text = ?", append(args, environment)
	}
	out := map[state.Part]state.Tally{}
	err := s.rows(ctx, s.db, func(r *sql.Rows) error {
		var p state.Part
		var t state.Tally
		into := []any{&p.Environment, &p.Ring, &p.ClusterType, &p.Workload, &p.Version, &p.Base}
		for i := range t {
			into = append(into, &t[i])
		}
		if err := r.Scan(into...); err != nil {
			return err
		}
		out[p] = t
		return nil
	}, q, args...)
	if err != nil {
		return nil, s.problem(err)
	}
	return out, nil
}

// Transition is a change of an assignment on a cluster.
type Transition struct {
	Number      int64     `json:"number"`
	At          time.Time `json:"at"`
	Environment string    `json:"environment"`
	Cluster     string    `json:"cluster"`
	ClusterType string    `json:"clusterType"`
	Workload    string    `json:"workload"`
	Target      string    `json:"deploymentTarget"`
	Was         string    `json:"was,omitempty"`
	State       string    `json:"state"` // of state.State, or "gone"
	Version     string    `json:"version,omitempty"`
	Wanted      string    `json:"wanted,omitempty"`
	Running     string    `json:"running,omitempty"`
	Commit      string    `json:"commit,omitempty"`
	Message     string    `json:"message,omitempty"`
}

// Gone is the state of a Transition after which an assignment is wanted no more.
const Gone = "gone"

// Filter selects transitions by all that it names; "" and the zero Time stand for any.
type Filter struct {
	Environment, Workload, Cluster, Target string
	Since, Until                           time.Time // the latter is not included
	Before                                 int64     // those with a lower number; 0 for all
}

const transitionFields = `h.change, h.at, e.text, c.text, ct.text, w.text, t.text, h.was, h.state, v.text, d.text, n.text, k.text, m.text`

const transitionJoins = ` JOIN term e ON e.id = h.environment JOIN term c ON c.id = h.cluster JOIN term ct ON ct.id = h.cluster_type JOIN term w ON w.id = h.workload JOIN term t ON t.id = h.target
JOIN term v ON v.id = h.version JOIN term d ON d.id = h.wanted JOIN term n ON n.id = h.ran JOIN term k ON k.id = h.revision JOIN term m ON m.id = h.message`

// conditions returns the conditions of a filter on transition h; false where it names a text
// that the database does not have, so that nothing matches.
func (s *Store) conditions(ctx context.Context, f Filter) (where string, args []any, any bool, err error) {
	conditions := []string{"1 = 1"}
	for _, c := range []struct{ column, text string }{{"environment", f.Environment}, {"workload", f.Workload}, {"cluster", f.Cluster}, {"target", f.Target}} {
		if c.text == "" {
			continue
		}
		ids := map[string]int64{}
		if err := s.look(ctx, s.db, []string{c.text}, ids); err != nil {
			return "", nil, false, s.problem(err)
		}
		id, there := ids[c.text]
		if !there {
			return "", nil, false, nil
		}
		conditions, args = append(conditions, "h."+c.column+" = ?"), append(args, id)
	}
	if !f.Since.IsZero() {
		conditions, args = append(conditions, "h.at >= ?"), append(args, f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		conditions, args = append(conditions, "h.at < ?"), append(args, f.Until.UnixMilli())
	}
	if f.Before > 0 {
		conditions, args = append(conditions, "h.change < ?"), append(args, f.Before)
	}
	return strings.Join(conditions, " AND "), args, true, nil
}

// History returns at most so many transitions, the newest first.
func (s *Store) History(ctx context.Context, f Filter, most int) ([]Transition, error) {
	where, args, any, err := s.conditions(ctx, f)
	if err != nil || !any {
		return nil, err
	}
	var out []Transition
	err = s.rows(ctx, s.db, transitions(&out), "SELECT "+transitionFields+" FROM (SELECT * FROM transition h WHERE "+where+fmt.Sprintf(" ORDER BY h.change DESC LIMIT %d) h", most)+transitionJoins+" ORDER BY h.change DESC", args...)
	if err != nil {
		return nil, s.problem(err)
	}
	return out, nil
}

// At returns how the assignments that a filter selects were at a time, sorted by environment,
// cluster and deployment target, at most so many of them.
func (s *Store) At(ctx context.Context, f Filter, at time.Time, most int) ([]Transition, error) {
	f.Until, f.Before = at.Add(time.Millisecond), 0
	where, args, any, err := s.conditions(ctx, f)
	if err != nil || !any {
		return nil, err
	}
	var out []Transition
	err = s.rows(ctx, s.db, transitions(&out), "SELECT "+transitionFields+" FROM (SELECT MAX(h.change) AS newest FROM transition h WHERE "+where+
		" GROUP BY h.environment, h.cluster, h.target) l JOIN transition h ON h.change = l.newest"+transitionJoins+
		fmt.Sprintf(" WHERE h.state <> %d ORDER BY e.text, c.text, t.text LIMIT %d", gone, most), args...)
	if err != nil {
		return nil, s.problem(err)
	}
	return out, nil
}

func transitions(into *[]Transition) func(*sql.Rows) error {
	name := func(s int) string {
		if s == gone {
			return Gone
		}
		return state.State(s).String()
	}
	return func(r *sql.Rows) error {
		var t Transition
		var at int64
		var was, is int
		if err := r.Scan(&t.Number, &at, &t.Environment, &t.Cluster, &t.ClusterType, &t.Workload, &t.Target, &was, &is, &t.Version, &t.Wanted, &t.Running, &t.Commit, &t.Message); err != nil {
			return err
		}
		t.At, t.State = instant(at), name(is)
		if was != gone {
			t.Was = name(was)
		}
		*into = append(*into, t)
		return nil
	}
}
