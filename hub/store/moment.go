package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
)

// Place is the row after which a list of an earlier moment continues. A list has the environments
// in their order, and is then sorted by workload, cluster and deployment target. The list of one
// cluster is instead sorted by deployment target within each environment.
type Place struct{ Environment, Workload, Cluster, Target string }

// placeOf returns the place of a row in the list that a filter selects.
func placeOf(f *state.Filter, t *api.Transition) *Place {
	p := &Place{t.Environment, t.Workload, t.Cluster, t.Target}
	if f.Cluster != "" {
		p.Workload = ""
	}
	return p
}

// ErrPlace is the error if the environment of a Place is not known any more.
var ErrPlace = errors.New("nothing is known of the environment")

// part is a part of a moment that is read at once: a workload in an environment, or a cluster in
// it.
type part struct {
	environment, workload string // workload is "" for any
	environmentID         int64
}

// moment is a question about the state at a time.
type moment struct {
	*history
	state.Filter
	at      int64
	ids     map[string]int64
	folders map[int64]map[string]folder // by environment
	began   time.Time
}

// moment prepares an answer. It returns nil if nothing can match.
func (s *history) moment(ctx context.Context, f state.Filter, at time.Time) (*moment, error) {
	ids, there, err := s.idsOf(ctx, f)
	if err != nil || !there {
		return nil, err
	}
	return &moment{s, f, at.UnixMilli(), ids, map[int64]map[string]folder{}, time.Now()}, nil
}

// late reports whether a search has taken long enough, so that the next page must return the rest.
func (m *moment) late() bool { return time.Since(m.began) >= longEnough }

// parts returns all parts of the list from a place on.
func (m *moment) parts(ctx context.Context, after Place) (all []part, err error) {
	environments, err := m.environmentsOf(ctx)
	if err != nil {
		return nil, err
	}
	if after.Environment != "" {
		i := slices.IndexFunc(environments,
			func(p part) bool { return p.environment == after.Environment })
		if i < 0 {
			return nil, ErrPlace
		}
		environments = environments[i:]
	}
	for _, e := range environments {
		switch {
		case m.Cluster != "":
			all = append(all, e)
			continue
		case m.Workload != "":
			e.workload = m.Workload
			all = append(all, e)
			continue
		}
		workloads, err := m.distinct(ctx, "workload", "environment = ? AND", e.environmentID)
		if err != nil {
			return nil, err
		}
		for _, w := range workloads {
			if e.environment != after.Environment || w.text >= after.Workload {
				all = append(all, part{e.environment, w.text, e.environmentID})
				m.ids[w.text] = w.id
			}
		}
	}
	return all, nil
}

// environmentsOf returns the environments that a filter selects and that ever had an assignment.
// The present ones are first, in their order, and the others follow, sorted.
func (m *moment) environmentsOf(ctx context.Context) (all []part, err error) {
	ever, err := m.distinct(ctx, "environment", "")
	if err != nil {
		return nil, err
	}
	order, err := environmentNames(ctx, m.database, m.read)
	if err != nil {
		return nil, err
	}
	for _, e := range ever {
		if m.Filter.Environments.Has(e.text) {
			all = append(all, part{environment: e.text, environmentID: e.id})
		}
	}
	place := func(p part) int {
		if i := slices.Index(order, p.environment); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(all, func(a, b part) int { return place(a) - place(b) })
	return all, nil
}

// term is a text with its id.
type term struct {
	id   int64
	text string
}

// distinctOf returns the beginning of a query, with the distinct values of a table's column as
// d.id. It reads one row of an index for each value. The query uses the condition where twice. The
// condition must end with AND.
func distinctOf(column, table, where string) string {
	least := "SELECT MIN(" + column + ") FROM " + table + " WHERE " + where
	return "WITH RECURSIVE d(id) AS (" + least + " 1 = 1 UNION ALL SELECT (" + least + " " + column +
		" > d.id) FROM d WHERE d.id IS NOT NULL) "
}

// distinct returns the distinct values of a column of transition, sorted.
func (s *history) distinct(ctx context.Context, column, where string,
	args ...any) (all []term, err error) {
	err = s.rows(ctx, s.read, func(r *sql.Rows) error {
		var t term
		err := r.Scan(&t.id, &t.text)
		all = append(all, t)
		return err
	}, distinctOf(column, "transition", where)+"SELECT t.id, t.text FROM d JOIN term t ON t.id = d.id",
		append(args, args...)...)
	slices.SortFunc(all, func(a, b term) int { return strings.Compare(a.text, b.text) })
	return all, err
}

// last returns the FROM part of a query for the last transition of each assignment in a part before
// the time. The part has the columns change, state, cluster and target of l. where has the
// conditions for WHERE.
func (m *moment) last(p part) (from string, args []any, where conditions) {
	// For one cluster, the plus keeps a database from the index that begins with the environment.
	environment := "h.environment = ?"
	if m.Cluster != "" {
		environment = "+" + environment
	}
	before := conditions{{"h.at < ?", []any{m.at + 1}}, {environment, []any{p.environmentID}}}
	for _, c := range []struct{ column, text string }{{"workload", cmp.Or(p.workload, m.Workload)},
		{"cluster", m.Cluster}, {"target", m.Target}} {
		if c.text != "" {
			before = append(before, condition{"h." + c.column + " = ?", []any{m.ids[c.text]}})
		}
	}
	// The number of a transition has the state in its last four bits. An index has both, so the
	// query must read more only for the listed rows.
	from = "(SELECT newest / 16 AS change, newest % 16 - 1 AS state, cluster, target FROM (SELECT " +
		"MAX(h.change * 16 + h.state + 1) AS newest, h.cluster, h.target FROM transition h WHERE " +
		before.String() + " GROUP BY h.cluster, h.target) m) l"
	where = conditions{{fmt.Sprintf("l.state <> %d", gone), nil}}
	if len(m.States) > 0 {
		where = append(where, inStates("l.state", m.States))
	}
	rest := residual(m.Filter, m.ids)
	if m.Ring != "" || m.Base != "" {
		var of []int64
		for _, f := range m.folders[p.environmentID] {
			if (m.Ring == "" || m.Ring == f.ring) && (m.Base == "" || m.Base == f.base) {
				of = append(of, f.id)
			}
		}
		is, args := isOneOf(m.database, "h.folder", of)
		rest = append(rest, condition{is, args})
	}
	if len(rest) > 0 {
		from += " JOIN transition h ON h.change = l.change"
		where = append(where, rest...)
	}
	return from, before.args(), where
}

// folder is the ring and the base of a folder at the time.
type folder struct {
	id         int64
	ring, base string
}

// place reads the folders of a part's environment at that time, by name.
func (m *moment) place(ctx context.Context, p part) error {
	if m.folders[p.environmentID] != nil {
		return nil
	}
	all := map[string]folder{}
	m.folders[p.environmentID] = all
	const of = "y.environment = ? AND y.folder = d.id AND y.at <= ?"
	return m.rows(ctx, m.read, func(r *sql.Rows) error {
		var name string
		var f folder
		err := r.Scan(&f.id, &name, &f.ring, &f.base)
		all[name] = f
		return err
	}, distinctOf("folder", "folder_history",
		"environment = ? AND")+"SELECT f.id, f.text, "+textAt("ring", of)+", "+textAt("base",
		of)+" FROM d JOIN term f ON f.id = d.id",
		p.environmentID, p.environmentID, p.environmentID, m.at, p.environmentID, m.at)
}

// count counts the assignments of a part by state.
func (m *moment) count(ctx context.Context, p part) (tally state.Tally, err error) {
	from, args, where := m.last(p)
	err = m.rows(ctx, m.read, func(r *sql.Rows) error {
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
	}, "SELECT l.state, COUNT(*) FROM "+from+" WHERE "+where.String()+" GROUP BY l.state",
		append(args, where.args()...)...)
	return tally, err
}

// list lists at most so many rows of a part after a place, and skips some of them.
func (m *moment) list(ctx context.Context, p part, after Place, skip,
	most int) (rows []api.Transition, err error) {
	from, args, where := m.last(p)
	order := func(cluster,
		target string) string {
		return m.inOrder(cluster) + ", " + m.inOrder(target)
	}
	inner := order("oc.text", "ot.text")
	if after.Environment == p.environment && after.Workload == p.workload {
		where = append(where, condition{"(" + inner + ") > (?, ?)", []any{after.Cluster, after.Target}})
	}
	listed := fmt.Sprintf("SELECT l.change FROM %s JOIN term oc ON oc.id = l.cluster JOIN term ot "+
		"ON ot.id = l.target WHERE %s ORDER BY %s LIMIT %d OFFSET %d", from, where, inner, most, skip)
	err = m.rows(ctx, m.read, transitions(&rows), "SELECT "+transitionFields("''",
		"''")+" FROM ("+listed+") l JOIN transition h ON h.change = l.change"+transitionJoins+
		" ORDER BY "+order("c.text", "t.text"),
		append(args, where.args()...)...)
	for i := range rows {
		f := m.folders[p.environmentID][rows[i].Folder]
		rows[i].Ring, rows[i].Base = f.ring, f.base
	}
	return rows, err
}

// CountAt counts, by state, the assignments that matched a filter at a time. whole is false if the
// count took too long, and is not complete.
func (s *history) CountAt(ctx context.Context, f state.Filter,
	at time.Time) (tally state.Tally, whole bool, err error) {
	m, err := s.moment(ctx, f, at)
	if err != nil || m == nil {
		return tally, true, err
	}
	parts, err := m.parts(ctx, Place{})
	if err != nil {
		return tally, false, s.problem(err)
	}
	for _, p := range parts {
		if m.late() {
			return tally, false, nil
		}
		if err := m.place(ctx, p); err != nil {
			return tally, false, s.problem(err)
		}
		n, err := m.count(ctx, p)
		if err != nil {
			return tally, false, s.problem(err)
		}
		tally.Add(&n)
	}
	return tally, true, nil
}

// At returns the assignments that matched a filter at a time. It starts after a place, skips some
// of the matches, and returns at most so many. next is where the list continues, or nil at the end.
// There may be fewer rows if matches are rare.
func (s *history) At(ctx context.Context, f state.Filter, at time.Time, after Place, skip,
	most int) (found []api.Transition, next *Place, err error) {
	m, err := s.moment(ctx, f, at)
	if err != nil || m == nil ||
		!storable(after.Environment+after.Workload+after.Cluster+after.Target) {
		return nil, nil, err
	}
	parts, err := m.parts(ctx, after)
	if err != nil {
		return nil, nil, s.problem(err)
	}
	for i, p := range parts {
		if i > 0 && m.late() {
			return found, &Place{Environment: p.environment, Workload: p.workload}, nil
		}
		if err := m.place(ctx, p); err != nil {
			return nil, nil, s.problem(err)
		}
		if skip > 0 {
			tally, err := m.count(ctx, p)
			if err != nil {
				return nil, nil, s.problem(err)
			}
			if n := tally.Wanted(); n <= skip {
				skip -= n
				continue
			}
		}
		rows, err := m.list(ctx, p, after, skip, most+1-len(found))
		if err != nil {
			return nil, nil, s.problem(err)
		}
		skip = 0
		if found = append(found, rows...); len(found) > most {
			return found[:most], placeOf(&f, &found[most-1]), nil
		}
	}
	return found, nil, nil
}

// Oldest returns the time of the oldest transition, or the zero Time if there is no transition.
func (s *history) Oldest(ctx context.Context) (at time.Time, err error) {
	err = s.rows(ctx, s.read, func(r *sql.Rows) error { return r.Scan(milliseconds{&at}) },
		`SELECT at FROM transition ORDER BY change LIMIT 1`)
	return at, s.problem(err)
}
