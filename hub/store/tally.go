package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

const tallyColumns = "part, at, ok, progressing, behind, drifted, stale, missing, failed"

// tallies are the last counts of all parts that there are, as the database had them after a
// change.
type tallies struct {
	number int64
	open   map[state.Part]openPart
}

type openPart struct {
	id    int64
	tally state.Tally
}

// Tally writes the counts that differ from the last ones, by whichever hub: they hold from now
// on.
func (t *Tx) Tally(ctx context.Context, now time.Time, counts map[state.Part]state.Tally) error {
	if err := t.tally(ctx, now.UnixMilli(), counts); err != nil {
		return t.store.problem(err)
	}
	return nil
}

func (t *Tx) tally(ctx context.Context, at int64, counts map[state.Part]state.Tally) error {
	open := t.store.tallies.open
	if open == nil || t.store.tallies.number != t.tallied {
		var err error
		if open, err = t.store.openParts(ctx, t.tx); err != nil {
			return err
		}
	}
	t.store.tallies = tallies{} // this write may fail
	differ, opened := map[state.Part]state.Tally{}, map[state.Part]int64{}
	for p, tally := range counts {
		was, there := open[p]
		if tally == (state.Tally{}) || there && was.tally == tally {
			continue
		}
		differ[p] = tally
		if !there {
			opened[p] = 0
		}
	}
	for p := range open {
		if counts[p] == (state.Tally{}) {
			differ[p] = state.Tally{}
		}
	}
	if len(differ) == 0 {
		t.store.tallies = tallies{t.tallied, open}
		return nil
	}
	keys, err := t.ofParts(ctx, opened)
	if err != nil {
		return err
	}
	var parts, lines, changed []any
	for p, tally := range differ {
		id, closed := open[p].id, int64(0)
		if tally == (state.Tally{}) {
			closed = at
			delete(open, p)
		} else {
			if id == 0 {
				id = opened[p]
			}
			open[p] = openPart{id, tally}
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
	const columns = "id, environment, ring, cluster_type, workload, version, base, opened, newest, closed"
	err = t.store.insert(ctx, t.tx, "part", columns, "", parts)
	for i := 0; i < len(changed) && err == nil; i += 3 {
		_, err = t.tx.ExecContext(ctx, t.store.query(`UPDATE part SET newest = ?, closed = ? WHERE id = ?`), changed[i+1], changed[i+2], changed[i])
	}
	if err == nil {
		err = t.store.insert(ctx, t.tx, "tally", tallyColumns, onConflict("part, at", tallyColumns), lines)
	}
	if err == nil {
		_, err = t.tx.ExecContext(ctx, t.store.query(`UPDATE change SET tallied = ?`), t.next())
	}
	if err != nil {
		return err
	}
	t.tallied = t.last
	t.counted = tallies{t.last, open}
	return nil
}

// ofParts sets the ids of parts, and returns the keys of those that the database never had.
func (t *Tx) ofParts(ctx context.Context, parts map[state.Part]int64) (map[state.Part][6]int64, error) {
	texts := map[string]int64{}
	for p := range parts {
		for _, text := range []string{p.Environment, p.Ring, p.ClusterType, p.Workload, p.Version, p.Base} {
			texts[text] = 0
		}
	}
	if err := t.ids(ctx, texts); err != nil || len(parts) == 0 {
		return nil, err
	}
	keys, of := map[state.Part][6]int64{}, map[[6]int64]state.Part{}
	var values []any
	for p := range parts {
		key := [6]int64{texts[p.Environment], texts[p.Ring], texts[p.ClusterType], texts[p.Workload], texts[p.Version], texts[p.Base]}
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
	if err := t.tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(id), 0) FROM part`).Scan(&last); err != nil {
		return nil, err
	}
	for p := range keys {
		last++
		parts[p] = last
	}
	return keys, nil
}

const partTexts = `JOIN term e ON e.id = p.environment JOIN term r ON r.id = p.ring JOIN term c ON c.id = p.cluster_type JOIN term w ON w.id = p.workload JOIN term v ON v.id = p.version JOIN term b ON b.id = p.base`

const partFields = `p.id, e.text, r.text, c.text, w.text, v.text, b.text, x.ok, x.progressing, x.behind, x.drifted, x.stale, x.missing, x.failed`

// openParts returns the last counts of all parts that there are.
func (s *Store) openParts(ctx context.Context, on querier) (map[state.Part]openPart, error) {
	return s.parts(ctx, on, "SELECT "+partFields+" FROM part p JOIN tally x ON x.part = p.id AND x.at = p.newest "+partTexts+" WHERE p.closed = 0")
}

// PartsAt returns the counts of all parts at a time, of some environments.
func (s *Store) PartsAt(ctx context.Context, at time.Time, of state.Environments) (map[state.Part]state.Tally, error) {
	ms := at.UnixMilli()
	q, args := "SELECT "+partFields+" FROM part p JOIN tally x ON x.part = p.id AND x.at = (SELECT MAX(y.at) FROM tally y WHERE y.part = p.id AND y.at <= ?) "+
		partTexts+" WHERE p.opened <= ? AND (p.closed = 0 OR p.closed > ?)", []any{ms, ms, ms}
	if of != nil {
		in, names := isOneOf(s, "text", storableOf(of))
		q, args = q+" AND p.environment IN (SELECT id FROM term WHERE "+in+")", append(args, names...)
	}
	parts, err := s.parts(ctx, s.read, q, args...)
	if err != nil {
		return nil, s.problem(err)
	}
	out := make(map[state.Part]state.Tally, len(parts))
	for p, is := range parts {
		if is.tally != (state.Tally{}) { // there were none between two times when there were some
			out[p] = is.tally
		}
	}
	return out, nil
}

func (s *Store) parts(ctx context.Context, on querier, q string, args ...any) (map[state.Part]openPart, error) {
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

// Filter selects transitions by all that it names; "", nil and the zero Time stand for any.
type Filter struct {
	Environments              state.Environments
	Workload, Cluster, Target string
	Since, Until              time.Time // the latter is not included
	Before                    int64     // those with a lower number; 0 for all

	// Those below are for At alone.
	ClusterType, Version string
	States               []state.State
	After                state.Position // those that come later; the zero Position for all
	Skip                 int            // how many of these are left out
}

// FilterAt returns what selects assignments of an earlier moment as a state.Filter does those of
// now. The error says what is not known of an earlier moment, or takes too long.
func FilterAt(f state.Filter) (Filter, error) {
	switch {
	case f.Cluster == "" && (len(f.Environments) != 1 || f.Workload == ""):
		return Filter{}, errors.New("of an earlier moment, ask for a cluster, or for a workload in an environment")
	case f.Ring != "" || f.Class != "" || f.Workspace != "" || f.Base != "":
		return Filter{}, errors.New("of an earlier moment, assignments are not known by ring, class, workspace or base: ask for the counts by ring and base")
	}
	return Filter{Environments: f.Environments, Workload: f.Workload, Cluster: f.Cluster, Target: f.Target, ClusterType: f.ClusterType, Version: f.Version, States: f.States}, nil
}

const transitionFields = `h.change, h.at, e.text, c.text, ct.text, w.text, t.text, h.was, h.state, v.text, d.text, n.text, k.text, m.text`

const transitionJoins = ` JOIN term e ON e.id = h.environment JOIN term c ON c.id = h.cluster JOIN term ct ON ct.id = h.cluster_type JOIN term w ON w.id = h.workload JOIN term t ON t.id = h.target
JOIN term v ON v.id = h.version JOIN term d ON d.id = h.wanted JOIN term n ON n.id = h.ran JOIN term k ON k.id = h.revision JOIN term m ON m.id = h.message`

// conditions returns the conditions of a filter on transition h; false where it names a text
// that the database does not have, so that nothing matches.
func (s *Store) conditions(ctx context.Context, f Filter) (where string, args []any, any bool, err error) {
	conditions := []string{"1 = 1"}
	for _, c := range []struct{ column, text string }{{"workload", f.Workload}, {"cluster", f.Cluster}, {"target", f.Target}} {
		if c.text == "" {
			continue
		}
		if !storable(c.text) {
			return "", nil, false, nil
		}
		ids := map[string]int64{}
		if err := s.look(ctx, s.read, []string{c.text}, ids); err != nil {
			return "", nil, false, s.problem(err)
		}
		id, there := ids[c.text]
		if !there {
			return "", nil, false, nil
		}
		conditions, args = append(conditions, "h."+c.column+" = ?"), append(args, id)
	}
	if f.Environments != nil {
		ids := map[string]int64{}
		if err := s.look(ctx, s.read, storableOf(f.Environments), ids); err != nil {
			return "", nil, false, s.problem(err)
		}
		in, values := isOneOf(s, "h.environment", slices.Collect(maps.Values(ids)))
		if len(values) == 0 {
			return "", nil, false, nil
		}
		conditions, args = append(conditions, in), append(args, values...)
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
	err = s.rows(ctx, s.read, transitions(&out), "SELECT "+transitionFields+" FROM (SELECT * FROM transition h WHERE "+where+fmt.Sprintf(" ORDER BY h.change DESC LIMIT %d) h", most)+transitionJoins+" ORDER BY h.change DESC", args...)
	if err != nil {
		return nil, s.problem(err)
	}
	return out, nil
}

// lastAt returns the part of a query after FROM that selects the last transition h before a time of
// each assignment that a filter selects; false where nothing can match.
func (s *Store) lastAt(ctx context.Context, f Filter, at time.Time) (from string, args []any, any bool, err error) {
	f.Until, f.Before = at.Add(time.Millisecond), 0
	where, args, any, err := s.conditions(ctx, f)
	if err != nil || !any || !storable(f.ClusterType+f.Version) {
		return "", nil, false, err
	}
	// Texts are read of what is listed alone, but for those that say which that is.
	outer := []string{fmt.Sprintf("h.state <> %d", gone)}
	for _, c := range []struct{ column, text string }{{"cluster_type", f.ClusterType}, {"version", f.Version}} {
		if c.text != "" {
			outer, args = append(outer, "h."+c.column+" = (SELECT id FROM term WHERE text = ?)"), append(args, c.text)
		}
	}
	if len(f.States) > 0 {
		var states []string
		for _, st := range f.States {
			states = append(states, strconv.Itoa(int(st)))
		}
		outer = append(outer, "h.state IN ("+strings.Join(states, ", ")+")")
	}
	return "(SELECT MAX(h.change) AS newest FROM transition h WHERE " + where + " GROUP BY h.environment, h.cluster, h.target) l JOIN transition h ON h.change = l.newest " +
		"JOIN term oe ON oe.id = h.environment JOIN term oc ON oc.id = h.cluster JOIN term ot ON ot.id = h.target WHERE " + strings.Join(outer, " AND "), args, true, nil
}

// CountAt counts, by state, the assignments that a filter selects, as they were at a time.
func (s *Store) CountAt(ctx context.Context, f Filter, at time.Time) (tally state.Tally, err error) {
	from, args, any, err := s.lastAt(ctx, f, at)
	if err != nil || !any {
		return tally, err
	}
	err = s.rows(ctx, s.read, func(r *sql.Rows) error {
		var is state.State
		var n int
		if err := r.Scan(&is, &n); err != nil {
			return err
		}
		if int(is) >= len(tally) {
			return fmt.Errorf("state %d is of a later version", is)
		}
		tally[is] = n
		return nil
	}, "SELECT h.state, COUNT(*) FROM "+from+" GROUP BY h.state", args...)
	if err != nil {
		return tally, s.problem(err)
	}
	return tally, nil
}

// At returns how the assignments that a filter selects were at a time, sorted by environment,
// cluster and deployment target, at most so many of them.
func (s *Store) At(ctx context.Context, f Filter, at time.Time, most int) ([]Transition, error) {
	from, args, any, err := s.lastAt(ctx, f, at)
	if err != nil || !any || !storable(f.After.Environment+f.After.Cluster+f.After.Target) {
		return nil, err
	}
	order := s.inOrder("oe.text") + ", " + s.inOrder("oc.text") + ", " + s.inOrder("ot.text")
	if f.After != (state.Position{}) {
		from, args = from+" AND ("+order+") > (?, ?, ?)", append(args, f.After.Environment, f.After.Cluster, f.After.Target)
	}
	listed := "SELECT h.* FROM " + from + " ORDER BY " + order + " LIMIT " + strconv.Itoa(most)
	if f.Skip > 0 {
		listed += " OFFSET " + strconv.Itoa(f.Skip)
	}
	var out []Transition
	err = s.rows(ctx, s.read, transitions(&out), "SELECT "+transitionFields+" FROM ("+listed+") h"+transitionJoins+
		" ORDER BY "+s.inOrder("e.text")+", "+s.inOrder("c.text")+", "+s.inOrder("t.text"), args...)
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
