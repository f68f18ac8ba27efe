package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// Transition is a change of an assignment on a cluster.
type Transition struct {
	Number      int64
	At          time.Time
	Environment string
	Cluster     string
	ClusterType string
	Workload    string
	Target      string
	Was         string
	State       string // of state.State, or "gone"
	Version     string
	Wanted      string // digests: what is wanted,
	Running     string // and what runs; "" where that is not known
	Commit      string // of the GitOps branch, as it was reported
	Message     string
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

// selected is a condition: a column of transition, and the ids of which it must have one.
type selected struct {
	column string
	ids    []int64
}

// selects returns the conditions of a filter; false where it names texts that the database does
// not have, so that nothing matches.
func (s *Store) selects(ctx context.Context, f Filter) (all []selected, any bool, err error) {
	for _, c := range []struct {
		column string
		any    bool
		texts  []string
	}{
		{"environment", f.Environments == nil, f.Environments}, {"workload", f.Workload == "", []string{f.Workload}},
		{"cluster", f.Cluster == "", []string{f.Cluster}}, {"target", f.Target == "", []string{f.Target}},
	} {
		if c.any {
			continue
		}
		ids := map[string]int64{}
		if err := s.look(ctx, s.read, storableOf(c.texts), ids); err != nil {
			return nil, false, s.problem(err)
		}
		if len(ids) == 0 {
			return nil, false, nil
		}
		all = append(all, selected{"h." + c.column, slices.Collect(maps.Values(ids))})
	}
	return all, true, nil
}

// conditions returns conditions on transition h as SQL.
func (s *Store) conditions(all []selected, since, until time.Time) (where string, args []any) {
	where = "1 = 1"
	for _, c := range all {
		is, ids := isOneOf(s, c.column, c.ids)
		where, args = where+" AND "+is, append(args, ids...)
	}
	if !since.IsZero() {
		where, args = where+" AND h.at >= ?", append(args, since.UnixMilli())
	}
	if !until.IsZero() {
		where, args = where+" AND h.at < ?", append(args, until.UnixMilli())
	}
	return where, args
}

// rangeOf returns the condition that transitions are before a number, and their order, the newest
// first. Where an index has those that a filter selects, both are of its columns: a database
// that has the choice may read all transitions in their order until enough of them match.
func rangeOf(f Filter, all []selected) (where string, args []any, order string) {
	key := all[:0:0]
	for _, c := range all {
		if c.column == "h.cluster" || f.Cluster == "" && f.Workload != "" && len(f.Environments) == 1 && c.column != "h.target" {
			key = append(key, c)
		}
	}
	before := int64(math.MaxInt64)
	if f.Before > 0 {
		before = f.Before
	}
	var columns, marks string
	var first, last []any
	for _, c := range key {
		columns, marks, order = columns+c.column+", ", marks+"?, ", order+c.column+" DESC, "
		first, last = append(first, c.ids[0]), append(last, c.ids[0])
	}
	columns, marks = "("+columns+"h.change)", "("+marks+"?)"
	return columns + " >= " + marks + " AND " + columns + " < " + marks, slices.Concat(first, []any{0}, last, []any{before}), order + "h.change DESC"
}

// History returns at most so many transitions, the newest first.
func (s *Store) History(ctx context.Context, f Filter, most int) ([]Transition, error) {
	all, any, err := s.selects(ctx, f)
	if err != nil || !any {
		return nil, err
	}
	where, args := s.conditions(all, f.Since, f.Until)
	within, more, order := rangeOf(f, all)
	var out []Transition
	err = s.rows(ctx, s.read, transitions(&out), fmt.Sprintf("SELECT %s FROM (SELECT * FROM transition h WHERE %s AND %s ORDER BY %s LIMIT %d) h%s ORDER BY h.change DESC", transitionFields, where, within, order, most, transitionJoins),
		append(args, more...)...)
	if err != nil {
		return nil, s.problem(err)
	}
	return out, nil
}

// lastAt returns the part of a query after FROM that selects the last transition before a time of
// each assignment that a filter selects, as change, state, environment, cluster and target of l;
// false where nothing can match.
func (s *Store) lastAt(ctx context.Context, f Filter, at time.Time) (from, where string, args []any, any bool, err error) {
	all, any, err := s.selects(ctx, f)
	if err != nil || !any || !storable(f.ClusterType+f.Version) {
		return "", "", nil, false, err
	}
	before, args := s.conditions(all, time.Time{}, at.Add(time.Millisecond))
	// The state comes with the number of a transition, in its last four bits: an index has both, and of all but what is listed nothing
	// else is to be read.
	from = "(SELECT newest / 16 AS change, newest % 16 - 1 AS state, environment, cluster, target FROM (SELECT MAX(h.change * 16 + h.state + 1) AS newest, h.environment, h.cluster, h.target FROM transition h WHERE " +
		before + " GROUP BY h.environment, h.cluster, h.target) m) l"
	where = fmt.Sprintf("l.state <> %d", gone)
	if len(f.States) > 0 {
		var states []string
		for _, st := range f.States {
			states = append(states, strconv.Itoa(int(st)))
		}
		where += " AND l.state IN (" + strings.Join(states, ", ") + ")"
	}
	if f.ClusterType+f.Version != "" {
		from += " JOIN transition h ON h.change = l.change"
	}
	for _, c := range []struct{ column, text string }{{"cluster_type", f.ClusterType}, {"version", f.Version}} {
		if c.text != "" {
			where, args = where+" AND h."+c.column+" = (SELECT id FROM term WHERE text = ?)", append(args, c.text)
		}
	}
	return from, where, args, true, nil
}

// CountAt counts, by state, the assignments that a filter selects, as they were at a time.
func (s *Store) CountAt(ctx context.Context, f Filter, at time.Time) (tally state.Tally, err error) {
	from, where, args, any, err := s.lastAt(ctx, f, at)
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
	}, "SELECT l.state, COUNT(*) FROM "+from+" WHERE "+where+" GROUP BY l.state", args...)
	if err != nil {
		return tally, s.problem(err)
	}
	return tally, nil
}

// At returns how the assignments that a filter selects were at a time, sorted by environment,
// cluster and deployment target, at most so many of them.
func (s *Store) At(ctx context.Context, f Filter, at time.Time, most int) ([]Transition, error) {
	from, where, args, any, err := s.lastAt(ctx, f, at)
	if err != nil || !any || !storable(f.After.Environment+f.After.Cluster+f.After.Target) {
		return nil, err
	}
	order := func(environment, cluster, target string) string {
		return s.inOrder(environment) + ", " + s.inOrder(cluster) + ", " + s.inOrder(target)
	}
	inner := order("oe.text", "oc.text", "ot.text")
	if f.After != (state.Position{}) {
		where, args = where+" AND ("+inner+") > (?, ?, ?)", append(args, f.After.Environment, f.After.Cluster, f.After.Target)
	}
	listed := fmt.Sprintf("SELECT l.change FROM %s JOIN term oe ON oe.id = l.environment JOIN term oc ON oc.id = l.cluster JOIN term ot ON ot.id = l.target WHERE %s ORDER BY %s LIMIT %d OFFSET %d", from, where, inner, most, f.Skip)
	var out []Transition
	err = s.rows(ctx, s.read, transitions(&out), "SELECT "+transitionFields+" FROM ("+listed+") l JOIN transition h ON h.change = l.change"+transitionJoins+" ORDER BY "+order("e.text", "c.text", "t.text"), args...)
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
