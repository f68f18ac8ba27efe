package hub_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// moment is the whole state of a hub at a time.
type moment struct {
	at    time.Time
	rows  []state.Row
	parts map[state.Part]state.Tally
}

// lines formats rows, with the fields that the history knows.
func lines(rows []state.Row) (out []string) {
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%s %s %s of %s in %s, ring %s, is %s at %s of %s, wanted %s, running %s", r.Environment, r.Cluster, r.Target, r.Workload, r.Folder, r.Ring, r.State, r.Version, r.Base, r.Digest, r.Running))
	}
	return out
}

func (r *running) moment(at time.Time) moment {
	m := moment{at: at, rows: hubtest.Rows(r.Fleet()), parts: r.Fleet().Parts()}
	maps.DeleteFunc(m.parts, func(_ state.Part, t state.Tally) bool { return t == state.Tally{} })
	return m
}

// selected returns the rows of a moment that match a filter, in the order of lists.
func (m moment) selected(f state.Filter) (out []state.Row) {
	for _, r := range m.rows {
		p := state.Part{Environment: r.Environment, Ring: r.Ring, ClusterType: r.ClusterType, Workload: r.Workload, Version: r.Version, Base: r.Base}
		if p.SelectedBy(f) && (f.Class == "" || f.Class == r.Folder) && (f.Cluster == "" || f.Cluster == r.Cluster) && (f.Target == "" || f.Target == r.Target) && (len(f.States) == 0 || slices.Contains(f.States, r.State)) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b state.Row) int {
		if a.Environment != b.Environment || f.Cluster != "" {
			return 0
		}
		return strings.Compare(a.Workload, b.Workload)
	})
	return out
}

// recall returns the stored rows of a moment that match a filter. It reads them in pages of seven.
func (r *running) recall(at time.Time, f state.Filter) (rows []state.Row) {
	r.t.Helper()
	for after := (&store.Place{}); after != nil; {
		found, next, err := r.Store().At(context.Background(), f, at, *after, 0, 7)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, x := range found {
			s, err := state.Parse(x.State)
			if err != nil {
				r.t.Fatal(err)
			}
			rows = append(rows, state.Row{Environment: x.Environment, Cluster: x.Cluster, ClusterType: x.ClusterType, Folder: x.Folder, Ring: x.Ring, Target: x.Target, Workload: x.Workload,
				State: s, Version: x.Version, Base: x.Base, Digest: x.Wanted, Running: x.Running})
		}
		after = next
	}
	return rows
}

// parts returns the stored counts of a time.
func (r *running) parts(at time.Time) map[state.Part]state.Tally {
	r.t.Helper()
	parts, err := r.Store().PartsAt(context.Background(), at, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return parts
}

func (r *running) expect(what string, want moment) {
	r.t.Helper()
	equal(r.t, what, lines(want.selected(state.Filter{})), lines(r.recall(want.at, state.Filter{})))
	if got := r.parts(want.at); !maps.Equal(want.parts, got) {
		r.t.Fatalf("%s: the counts were\n%v and not\n%v", what, want.parts, got)
	}
}

// transitions returns all transitions that match a filter, the newest first.
func (r *running) transitions(f store.Filter) (all []api.Transition) {
	r.t.Helper()
	for {
		rows, next, err := r.Store().History(context.Background(), f, 50)
		if err != nil {
			r.t.Fatal(err)
		}
		if all, f.Before = append(all, rows...), next; next == 0 {
			return all
		}
	}
}

// rings are the possible rings of a folder.
var rings = []string{"canary", "stores"}

// less returns a wanted state. It puts folders in random rings, and sometimes removes a target or a
// cluster.
func less(w *hubtest.World, wanted *state.DesiredState) *state.DesiredState {
	for i := range wanted.Folders {
		wanted.Folders[i].Ring = rings[w.IntN(len(rings))]
	}
	if w.IntN(3) == 0 {
		f := &wanted.Folders[w.IntN(len(wanted.Folders))]
		i := w.IntN(len(f.Targets))
		f.Targets = slices.Delete(f.Targets, i, i+1)
	}
	if w.IntN(3) == 0 {
		i := w.IntN(len(wanted.Clusters))
		wanted.Clusters = slices.Delete(wanted.Clusters, i, i+1)
	}
	return wanted
}

// past runs a random history, and returns all moments of it.
func past(w *hubtest.World, r *running, c *clock, steps int) (moments []moment) {
	r.want(less(w, w.Wanted()))
	for range steps {
		c.pass(time.Minute + time.Duration(w.IntN(30))*time.Second)
		switch w.IntN(5) {
		case 0:
			w.Commit()
			r.want(less(w, w.Wanted()))
		case 1: // without any content, and with all of it again
			r.want(&state.DesiredState{Environment: hubtest.Environment})
		default:
			r.report(w.Report(c.now()))
		}
		r.look()
		moments = append(moments, r.moment(c.now()))
	}
	return moments
}

// history compares the stored history of earlier moments with the state at those moments.
func history(t *testing.T, database func() string) {
	for seed := range uint64(4) {
		w, c := hubtest.New(seed), newClock()
		r := start(t, database(), c, 10*time.Minute)
		moments := past(w, r, c, 60)
		for i, m := range moments {
			r.expect(fmt.Sprintf("seed %d, moment %d and what is known of it", seed, i), m)
			between := m // until the next one
			between.at = m.at.Add(time.Minute - time.Millisecond)
			r.expect(fmt.Sprintf("seed %d, the time after moment %d and what is known of it", seed, i), between)
		}
		// In their order, the transitions lead to the present rows.
		is := map[string]string{}
		all := r.transitions(store.Filter{})
		slices.Reverse(all)
		for _, x := range all {
			key := x.Environment + " " + x.Cluster + " " + x.Target
			if is[key] != x.Was {
				t.Fatalf("seed %d: %+v: it was %q", seed, x, is[key])
			}
			is[key] = x.State
			if x.State == api.Gone {
				delete(is, key)
			}
		}
		rows := map[string]string{}
		for _, row := range hubtest.Rows(r.Fleet()) {
			rows[row.Environment+" "+row.Cluster+" "+row.Target] = row.State.String()
		}
		if !maps.Equal(is, rows) {
			t.Fatalf("seed %d: transitions lead to %v, and there are %v", seed, is, rows)
		}
		r.filters(w, moments)
		r.stop()
	}
}

// random returns a random filter. With a workload or a cluster, one query reads a page.
func random(w *hubtest.World, bases []string) (f state.Filter) {
	for _, one := range []struct {
		into *string
		of   []string
	}{
		{&f.Workload, []string{"shop", "none"}}, {&f.Cluster, []string{"c1", "x0"}}, {&f.Target, []string{"shop-main"}}, {&f.ClusterType, []string{"edge", "box"}}, {&f.Class, []string{"edge.a", "edge.b"}},
		{&f.Version, []string{"d1"}}, {&f.Ring, rings}, {&f.Base, bases},
	} {
		if w.IntN(5) == 0 {
			*one.into = one.of[w.IntN(len(one.of))]
		}
	}
	f.States = []state.State{state.Missing, state.Behind}[:w.IntN(3)]
	f.Environments = []state.Environments{nil, {hubtest.Environment}, {"dev", hubtest.Environment}}[w.IntN(3)]
	return f
}

// filters compares filtered answers about earlier moments with the state at those moments, and the
// filtered history with the whole history.
func (r *running) filters(w *hubtest.World, moments []moment) {
	r.t.Helper()
	all, bases := r.transitions(store.Filter{}), []string{"none"}
	for _, m := range moments {
		for p := range m.parts {
			bases = append(bases, p.Base)
		}
	}
	slices.Sort(bases)
	for range 60 {
		m, f := moments[w.IntN(len(moments))], random(w, bases)
		want := m.selected(f)
		equal(r.t, fmt.Sprintf("what %+v selects at %s", f, m.at), lines(want), lines(r.recall(m.at, f)))
		counted, whole, err := r.Store().CountAt(context.Background(), f, m.at)
		if err != nil || whole && counted.Wanted() != len(want) {
			r.t.Fatalf("%+v at %s: counted %v of %d: %v", f, m.at, counted, len(want), err)
		}
		skip := w.IntN(len(want) + 1)
		rest, _, err := r.Store().At(context.Background(), f, m.at, store.Place{}, skip, 1000)
		if err != nil || len(rest) != len(want)-skip {
			r.t.Fatalf("%+v at %s: %d of %d after %d: %v", f, m.at, len(rest), len(want), skip, err)
		}
		var changed, got []string
		for _, x := range all {
			p, gone := state.Part{Environment: x.Environment, Ring: x.Ring, ClusterType: x.ClusterType, Workload: x.Workload, Version: x.Version, Base: x.Base}, x.State == api.Gone
			s, _ := state.Parse(x.State)
			if p.SelectedBy(f) && (f.Class == "" || f.Class == x.Folder) && (f.Cluster == "" || f.Cluster == x.Cluster) && (f.Target == "" || f.Target == x.Target) && (len(f.States) == 0 || !gone && slices.Contains(f.States, s)) {
				changed = append(changed, fmt.Sprint(x))
			}
		}
		for _, x := range r.transitions(store.Filter{Filter: f}) {
			got = append(got, fmt.Sprint(x))
		}
		equal(r.t, fmt.Sprintf("the history that %+v selects", f), changed, got)
	}
	// A transition has the folder of its time.
	for _, m := range moments {
		for _, x := range all {
			i := slices.IndexFunc(m.rows, func(row state.Row) bool {
				return row.Environment == x.Environment && row.Cluster == x.Cluster && row.Target == x.Target
			})
			if i >= 0 && x.At.Equal(m.at) && x.State != api.Gone && (x.Folder != m.rows[i].Folder || x.Ring != m.rows[i].Ring || x.Base != m.rows[i].Base) {
				r.t.Fatalf("%+v was in %+v", x, m.rows[i])
			}
		}
	}
}

// keep removes old history, and compares the rest with the history before.
func keep(t *testing.T, database func() string) {
	w, c, name := hubtest.New(3), newClock(), database()
	r := start(t, name, c, time.Hour)
	moments := past(w, r, c, 120)
	other := start(t, name, c, time.Hour) // it knows texts that are removed
	before := moments[60].at.Add(time.Second)
	all := r.transitions(store.Filter{})
	steps := 0
	for more := true; more; steps++ {
		var err error
		if more, err = r.Store().Sweep(context.Background(), before); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := r.Store().Clean(context.Background(), c.now()); err != nil {
			t.Fatal(err)
		}
	}
	kept := r.transitions(store.Filter{})
	if len(kept) >= len(all) || steps < 2 {
		t.Fatalf("%d of %d transitions are kept, after %d steps", len(kept), len(all), steps)
	}
	seen := map[string]bool{}
	for i, x := range kept {
		if x.At.Before(before) { // of each assignment, one that was still in force then
			key := x.Environment + " " + x.Cluster + " " + x.Target
			if seen[key] || x.State == api.Gone {
				t.Errorf("%+v is kept", x)
			}
			seen[key] = true
		} else if x != all[i] {
			t.Fatalf("%+v is kept of %+v", x, all[i])
		}
	}
	for i, m := range moments[61:] {
		r.expect(fmt.Sprintf("moment %d and what is kept of it", i+61), m)
	}
	if n := r.count(name, "SELECT COUNT(*) FROM tally WHERE at < ?", before.UnixMilli()); n > len(r.moment(c.now()).parts)+len(moments[60].parts) {
		t.Errorf("%d tallies are kept that were replaced", n)
	}
	// Any hub may use texts again that were removed.
	for i := range 3 {
		hub := other
		if i == 1 {
			hub = r
		}
		w.Commit()
		hub.want(w.Wanted())
		for range 20 {
			report := w.Report(c.now())
			for n := range report.Items {
				report.Items[n].Message = fmt.Sprint("message ", n)
			}
			hub.report(report)
		}
		hub.look()
		r.look()
		r.stop()
		r = start(t, name, c, time.Hour)
		other.look()
		equal(t, fmt.Sprintf("round %d: two hubs", i), r.all(), other.all())
		r.expect(fmt.Sprintf("round %d: what is known of now", i), r.moment(c.now()))
	}
}

// count queries a number from a database.
func (r *running) count(database, query string, args ...any) (n int) {
	r.t.Helper()
	db := hubtest.SQL(r.t, database)
	if store.IsPostgres(database) {
		query = strings.Replace(query, "?", "$1", 1)
	}
	if err := db.QueryRow(query, args...).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// removed removes environments that other hubs and earlier moments know.
func removed(t *testing.T, database func() string) {
	w, c, name := hubtest.New(1), newClock(), database()
	a, b := start(t, name, c, time.Hour), start(t, name, c, time.Hour)
	for i, environment := range []string{"prod", "dev", "qa"} {
		wanted := w.Wanted()
		wanted.Environment = environment
		if err := a.Want(context.Background(), i, wanted); err != nil {
			t.Fatal(err)
		}
	}
	order := func(r *running) (names []string) {
		r.look()
		for _, w := range r.Fleet().Environments() {
			names = append(names, w.Environment)
		}
		return names
	}
	for _, names := range [][]string{{"dev", "qa", "prod"}, {"qa", "prod", "unread"}} {
		before := a.moment(c.now())
		c.pass(2 * time.Minute)
		if err := a.Order(context.Background(), names); err != nil {
			t.Fatal(err)
		}
		known := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "unread" })
		restarted := start(t, name, c, time.Hour)
		for i, r := range []*running{a, b, restarted} {
			if got := order(r); !slices.Equal(got, known) {
				t.Errorf("hub %d has %v, and should have %v", i, got, known)
			}
		}
		restarted.stop()
		equal(t, "two hubs", a.all(), b.all())
		was, is := lines(before.selected(state.Filter{})), lines(a.recall(before.at, state.Filter{}))
		var order []string // the present ones first
		for _, line := range is {
			order = append(order, line[:strings.Index(line, " ")])
		}
		for _, name := range known {
			if order = slices.Compact(order); order[slices.Index(known, name)] != name {
				t.Errorf("the list is in the order of %v, and there are %v", order, known)
			}
		}
		slices.Sort(was)
		slices.Sort(is)
		equal(t, "the moment before and what is known of it", was, is)
	}
	if n := a.count(name, "SELECT COUNT(*) FROM v_assignments WHERE environment <> ?", ""); n != len(hubtest.Rows(a.Fleet())) {
		t.Errorf("the view has %d assignments, and there are %d", n, len(hubtest.Rows(a.Fleet())))
	}
}

// releases follows a release. The hub records its completion and its failure once, even if the next
// release comes at once. It also records when the ring was ok again.
func releases(t *testing.T, database func() string) {
	w, c, name := hubtest.New(1), newClock(), database()
	r := start(t, name, c, time.Hour)
	r.want(w.Wanted())
	tell := func(s state.ReportedState) {
		commit := r.Fleet().Environments()[0].Commits[0].ID
		for _, cluster := range []string{"c0", "c1", "c2", "c3", "c4", "c5", "x0"} {
			clusterType := map[byte]string{'c': "edge", 'x': "box"}[cluster[0]]
			report := state.Report{Cluster: cluster, Received: c.now(), Snapshot: true}
			for _, target := range []string{"hello-main", "shop-main", "till-main"} {
				report.Items = append(report.Items, state.Item{Assignment: "prod/" + clusterType + "/" + target, Commit: commit, State: s})
			}
			r.report(report)
		}
	}
	set := func(s state.ReportedState) {
		tell(s)
		c.pass(time.Minute)
		r.look()
	}
	is := func() []api.Release {
		all, err := r.Store().Releases(context.Background(), state.In("prod"), 100)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := is(); len(got) != 1 || !got[0].Completed.IsZero() || !got[0].Failed.IsZero() {
		t.Fatalf("%+v", got)
	}
	set(state.ReportedFailed)
	failed := c.now()
	set(state.ReportedOK)
	completed := c.now()
	set(state.ReportedFailed)
	set(state.ReportedOK)
	if got := is(); len(got) != 1 || !got[0].Completed.Equal(completed) || !got[0].Failed.Equal(failed) || !got[0].Restored.Equal(completed) {
		t.Fatalf("%+v, failed at %s, completed at %s", got, failed, completed)
	}
	w.Commit()
	r.want(w.Wanted())
	c.pass(time.Minute)
	r.look()
	if got := is(); len(got) != 2 || got[0].Commit != "0001" || !got[0].Completed.IsZero() || got[1].Commit != "0000" || !got[1].Completed.Equal(completed) {
		t.Fatalf("%+v", got)
	}
	tell(state.ReportedOK)
	w.Commit()
	r.want(w.Wanted())
	if got := is(); len(got) != 3 || !got[0].Completed.IsZero() || got[1].Completed.IsZero() {
		t.Fatalf("%+v", got)
	}
	// A complete release may fail later. It may be ok again by itself, or with the next release.
	set(state.ReportedOK)
	set(state.ReportedFailed)
	if got := is(); got[0].Completed.IsZero() || got[0].Failed.IsZero() || !got[0].Restored.IsZero() {
		t.Fatalf("%+v", got)
	}
	set(state.ReportedOK)
	if got := is(); !got[0].Restored.Equal(c.now()) || !got[1].Restored.IsZero() {
		t.Fatalf("%+v", got)
	}
	w.Commit()
	r.want(w.Wanted())
	set(state.ReportedFailed)
	w.Commit()
	r.want(w.Wanted())
	set(state.ReportedOK)
	if got := is(); len(got) != 5 || !got[0].Completed.Equal(c.now()) || !got[0].Restored.IsZero() || !got[1].Restored.Equal(c.now()) || !got[1].Completed.IsZero() {
		t.Fatalf("%+v", got)
	}
}
