package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
)

// Filter selects transitions by all of its fields, and by time. Transitions from before migration 8
// have no folder, and therefore no known ring and base: they match no Filter that names one of
// these. Class is the folder of a cluster type, or of one of its classes.
type Filter struct {
	state.Filter
	Since, Until time.Time // zero for any; Until is not included
	Before       int64     // only lower numbers; 0 means all
}

// history answers questions about earlier moments. It only reads: a Tx writes the tables transition
// and folder_history, and Sweep removes old rows.
type history struct{ *database }

// ErrWorkspace is the error of a question about past workspaces, which the history does not have.
var ErrWorkspace = errors.New("of what was, workspaces are not known: ask for a workload")

// transitionFields returns the fields of an api.Transition as SQL, including the ring and the base.
func transitionFields(ring, base string) string {
	return "h.change, h.at, e.text, c.text, ct.text, COALESCE(f.text, ''), " + ring + ", " + base +
		", w.text, t.text, h.was, h.state, v.text, d.text, n.text, k.text, m.text"
}

const transitionJoins = ` JOIN term e ON e.id = h.environment JOIN term c ON c.id = h.cluster JOIN term ct ON ct.id = h.cluster_type JOIN term w ON w.id = h.workload JOIN term t ON t.id = h.target
JOIN term v ON v.id = h.version JOIN term d ON d.id = h.wanted JOIN term n ON n.id = h.ran JOIN term k ON k.id = h.revision JOIN term m ON m.id = h.message LEFT JOIN term f ON f.id = h.folder`

// lastAt returns an SQL expression for the id that a folder last had in a column of folder_history.
// of is a condition on its row y.
func lastAt(column, of string) string {
	return "(SELECT y." + column + " FROM folder_history y WHERE " + of +
		" ORDER BY y.at DESC LIMIT 1)"
}

// textAt returns an SQL expression for the text of lastAt, which is "" if there is no row.
func textAt(column, of string) string {
	return "COALESCE((SELECT p.text FROM term p WHERE p.id = " + lastAt(column, of) + "), '')"
}

// ofTransition is the SQL condition that row y of folder_history is about the folder of transition
// h, at that time or before.
const ofTransition = "y.environment = h.environment AND y.folder = h.folder AND y.at <= h.at"

// condition is an SQL condition on transition h.
type condition struct {
	sql  string
	args []any
}

// conditions are SQL conditions that must all hold.
type conditions []condition

func (c conditions) String() string {
	all := "1 = 1"
	for _, one := range c {
		all += " AND " + one.sql
	}
	return all
}

func (c conditions) args() (all []any) {
	for _, one := range c {
		all = append(all, one.args...)
	}
	return all
}

// idsOf returns the ids of the texts that a filter names. It returns false if the database lacks
// one of them, so that nothing can match.
func (s *history) idsOf(ctx context.Context,
	f state.Filter) (ids map[string]int64, all bool, err error) {
	if f.Workspace != "" {
		return nil, false, ErrWorkspace
	}
	ids = map[string]int64{}
	var texts []string
	for _, text := range []string{f.Workload, f.Cluster, f.Target, f.Ring, f.ClusterType, f.Class,
		f.Version, f.Base} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	if err := s.look(ctx, s.read, storableOf(append(texts, f.Environments...)), ids); err != nil {
		return nil, false, s.problem(err)
	}
	for _, text := range texts {
		if _, there := ids[text]; !there {
			return nil, false, nil
		}
	}
	return ids, true, nil
}

// inStates returns the condition that a column has one of some states.
func inStates(column string, states []state.State) condition {
	var in []string
	for _, st := range states {
		in = append(in, strconv.Itoa(int(st)))
	}
	return condition{column + " IN (" + strings.Join(in, ", ") + ")", nil}
}

// residual returns the conditions of a filter that no index covers, except those on the ring and
// the base.
func residual(f state.Filter, ids map[string]int64) (all conditions) {
	for _, c := range []struct{ column, text string }{{"cluster_type", f.ClusterType},
		{"folder", f.Class}, {"version", f.Version}} {
		if c.text != "" {
			all = append(all, condition{"h." + c.column + " = ?", []any{ids[c.text]}})
		}
	}
	return all
}

// rangeOf returns the condition that transitions are in a range of numbers, and their order, the
// newest first. If an index covers a filter, both use its columns. Otherwise a database might read
// all transitions in their order until enough of them match.
func rangeOf(f state.Filter, ids map[string]int64, from, before int64) (within condition,
	order string) {
	var columns, marks string
	var first, last []any
	key := func(column, text string) {
		columns, marks, order = columns+"h."+column+", ", marks+"?, ", order+"h."+column+" DESC, "
		first, last = append(first, ids[text]), append(last, ids[text])
	}
	switch {
	case f.Cluster != "":
		key("cluster", f.Cluster)
	case f.Workload != "" && len(f.Environments) == 1:
		key("environment", f.Environments[0])
		key("workload", f.Workload)
	}
	columns, marks = "("+columns+"h.change)", "("+marks+"?)"
	return condition{columns + " >= " + marks + " AND " + columns + " < " + marks,
		slices.Concat(first, []any{from}, last, []any{before})}, order + "h.change DESC"
}

// selects returns the conditions of a filter that need only the transition itself.
func (s *history) selects(f Filter, ids map[string]int64) (all conditions) {
	if f.Environments != nil {
		var of []int64
		for _, name := range f.Environments {
			if id, there := ids[name]; there {
				of = append(of, id)
			}
		}
		is, args := isOneOf(s.database, "h.environment", of)
		all = append(all, condition{is, args})
	}
	for _, c := range []struct{ column, text string }{{"workload", f.Workload}, {"cluster", f.Cluster},
		{"target", f.Target}} {
		if c.text != "" {
			all = append(all, condition{"h." + c.column + " = ?", []any{ids[c.text]}})
		}
	}
	if len(f.States) > 0 {
		all = append(all, inStates("h.state", f.States))
	}
	if !f.Since.IsZero() {
		all = append(all, condition{"h.at >= ?", []any{f.Since.UnixMilli()}})
	}
	if !f.Until.IsZero() {
		all = append(all, condition{"h.at < ?", []any{f.Until.UnixMilli()}})
	}
	return all
}

// longEnough is how long a search may take before it returns the rows found so far.
const longEnough = 2 * time.Second

// inPart is how many changes are read at once if no index covers the filter.
const inPart = 100_000

// History returns at most so many transitions, the newest first. next is the number before which
// the list continues, or 0 at the end. There may be fewer transitions if matches are rare. The list
// is never nil.
func (s *history) History(ctx context.Context, f Filter,
	most int) (found []api.Transition, next int64, err error) {
	found = []api.Transition{}
	ids, there, err := s.idsOf(ctx, f.Filter)
	if err != nil || !there {
		return found, 0, err
	}
	rare := residual(f.Filter, ids)
	for _, c := range []struct{ column, text string }{{"ring", f.Ring}, {"base", f.Base}} {
		if c.text != "" {
			rare = append(rare, condition{lastAt(c.column, ofTransition) + " = ?", []any{ids[c.text]}})
		}
	}
	where := append(s.selects(f, ids), rare...)
	before, step := f.Before, int64(math.MaxInt64)
	if hasKey := f.Cluster != "" || f.Workload != "" && len(f.Environments) == 1; len(rare) > 0 ||
		len(f.States) > 0 || !hasKey && len(where) > 0 {
		step = inPart
	}
	if before == 0 {
		if before, err = s.Number(ctx); err != nil {
			return nil, 0, err
		}
		before++
	}
	for began := time.Now(); before > 0 && time.Since(began) < longEnough; {
		from := max(before-step, 0)
		within, order := rangeOf(f.Filter, ids, from, before)
		part := append(slices.Clone(where), within)
		err := s.rows(ctx, s.read, transitions(&found),
			fmt.Sprintf("SELECT %s FROM (SELECT * FROM transition h WHERE %s ORDER BY %s LIMIT %d) h%s "+
				"ORDER BY h.change DESC", transitionFields(textAt("ring", ofTransition),
				textAt("base", ofTransition)), part, order, most+1-len(found), transitionJoins),
			part.args()...)
		if err != nil {
			return nil, 0, s.problem(err)
		}
		if len(found) > most {
			return found[:most], found[most-1].Number, nil
		}
		if before = from; time.Since(began) < longEnough/8 {
			step *= 2
		}
	}
	return found, before, nil
}

func transitions(into *[]api.Transition) func(*sql.Rows) error {
	name := func(s int) string {
		if s == gone {
			return api.Gone
		}
		return state.State(s).String()
	}
	return func(r *sql.Rows) error {
		var t api.Transition
		var was, is int
		if err := r.Scan(&t.Number, milliseconds{&t.At}, &t.Environment, &t.Cluster, &t.ClusterType,
			&t.Folder, &t.Ring,
			&t.Base, &t.Workload, &t.Target, &was, &is, &t.Version, &t.Wanted, &t.Running, &t.Commit,
			&t.Message); err != nil {
			return err
		}
		t.State = name(is)
		if was != gone {
			t.Was = name(was)
		}
		*into = append(*into, t)
		return nil
	}
}
