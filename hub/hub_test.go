package hub_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	is time.Time
}

func newClock() *clock { return &clock{is: hubtest.Start()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.is
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.is = c.is.Add(d)
}

// running is a running hub.
type running struct {
	*hub.Hub
	t        *testing.T
	store    *store.Store
	stop     func()
	problems *problems
}

type problems struct {
	mu  sync.Mutex
	all []error
}

func (p *problems) add(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, err)
}

func (p *problems) take() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = nil
	return all
}

func start(t *testing.T, database string, c *clock, stale time.Duration) *running {
	t.Helper()
	return startKeeping(t, database, c, stale, 0)
}

func startKeeping(t *testing.T, database string, c *clock, stale, keep time.Duration) *running {
	t.Helper()
	return startWith(t, database, hub.Options{StaleAfter: stale, Keep: keep, Now: c.now})
}

// startWith starts a hub with options. It sets the Store and the Problem itself.
func startWith(t *testing.T, database string, o hub.Options) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	db, err := store.Open(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, store: db, problems: &problems{}}
	o.Store, o.Problem = db, r.problems.add
	if r.Hub, err = hub.Open(ctx, o); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// look makes a hub read the changes of others, and do the work that is due.
func (r *running) look() {
	r.t.Helper()
	if err := r.Do(context.Background(), func(context.Context, *store.Tx) (*state.Changes, error) { return nil, nil }); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) want(w *state.DesiredState) {
	r.t.Helper()
	if err := r.Want(context.Background(), 0, w); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) report(report state.Report) state.Outcome {
	r.t.Helper()
	outcome, err := r.Report(context.Background(), &report)
	if err != nil {
		r.t.Fatal(err)
	}
	return outcome
}

// all returns all answers of a hub about the present.
func (r *running) all() (lines []string) {
	for _, row := range hubtest.Rows(r.Fleet()) {
		lines = append(lines, fmt.Sprintf("%+v", row))
	}
	for _, g := range r.Fleet().Count(state.Filter{}, state.ByEnvironment, state.ByWorkload, state.ByBase) {
		lines = append(lines, fmt.Sprintf("%+v", g))
	}
	for i := range 6 {
		lines = append(lines, fmt.Sprintf("%+v", r.Fleet().Contact(fmt.Sprint("c", i))))
	}
	return lines
}

func equal(t *testing.T, what string, a, b []string) {
	t.Helper()
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("%s differ:\n%s\n%s", what, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		t.Fatalf("%s differ: %d and %d lines", what, len(a), len(b))
	}
}

// step performs a random step at a hub, and the same one in the reference.
func step(w *hubtest.World, r *running, m *hubtest.Reference, c *clock, late *[]state.Report, same bool) {
	c.pass(time.Duration(w.IntN(30)) * time.Second)
	switch w.IntN(7) {
	case 0:
		w.Commit()
		m.Wanted = w.Wanted()
		r.want(m.Wanted)
	case 1:
		*late = append(*late, w.Report(c.now()))
	case 2: // the delayed reports arrive, twice
		for _, report := range *late {
			report.Received = c.now()
			r.report(report)
			r.report(report)
			m.Take(report)
		}
		*late = nil
	case 3:
		short, full, there := w.Same(c.now())
		if !there {
			return
		}
		if !same || r.report(short).Resend {
			r.report(full)
		}
		m.Take(full)
	default:
		report := w.Report(c.now())
		r.report(report)
		m.Take(report)
	}
}

// cases are the tests of a hub that run on each kind of database.
var cases = []struct {
	name string
	test func(t *testing.T, database func() string)
}{
	{"restart", restart}, {"two hubs", twoHubs}, {"look", look}, {"together", together}, {"stale", stale}, {"history", history}, {"keep", keep}, {"unplaced", unplaced},
	{"removed", removed}, {"releases", releases}, {"failing", failing}, {"large", large}, {"long", long}, {"conflicts", conflicts}, {"saved", saved}, {"forgotten", forgotten},
	{"restored", restored}, {"unread", unread}, {"early", early}, {"unwritable", unwritable},
}

func TestSQLite(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, hubtest.SQLite(t))
		})
	}
}

func TestSlowPostgres(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL")
	database := hubtest.Postgres(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(t, database) })
	}
}

// restart compares a hub after a restart with the hub before it, and with the reference.
func restart(t *testing.T, database func() string) {
	for seed := range uint64(6) {
		w, c := hubtest.New(seed), newClock()
		name := database()
		r := start(t, name, c, time.Hour)
		m := &hubtest.Reference{StaleAfter: time.Hour, Wanted: w.Wanted()}
		r.want(m.Wanted)
		var late []state.Report
		for range 6 {
			for range 20 {
				step(w, r, m, c, &late, true)
			}
			was := r.all()
			r.stop()
			r = start(t, name, c, time.Hour)
			equal(t, fmt.Sprintf("seed %d: a hub and the one before", seed), was, r.all())
			if problem := m.Check(r.Fleet(), c.now()); problem != "" {
				t.Fatalf("seed %d: %s", seed, problem)
			}
		}
		r.stop()
	}
}

// twoHubs runs two hubs on one database, and restarts one of them now and then.
func twoHubs(t *testing.T, database func() string) {
	for seed := range uint64(6) {
		w, c := hubtest.New(seed), newClock()
		name := database()
		hubs := []*running{start(t, name, c, 24*time.Hour), start(t, name, c, 24*time.Hour)}
		m := &hubtest.Reference{StaleAfter: 24 * time.Hour, Wanted: w.Wanted()}
		hubs[0].want(m.Wanted)
		var late []state.Report
		for i := range 100 {
			step(w, hubs[w.IntN(2)], m, c, &late, false)
			if i%10 < 9 {
				continue
			}
			if w.IntN(2) == 0 {
				which := w.IntN(2)
				hubs[which].stop()
				hubs[which] = start(t, name, c, 24*time.Hour)
			}
			c.pass(2 * time.Minute)
			for range 2 { // each hub writes the contacts it has received, and then the other reads them
				hubs[0].look()
				hubs[1].look()
			}
			if problem := m.Check(hubs[0].Fleet(), c.now()); problem != "" {
				t.Fatalf("seed %d, step %d: %s", seed, i, problem)
			}
			equal(t, fmt.Sprintf("seed %d, step %d: two hubs", seed, i), hubs[0].all(), hubs[1].all())
		}
		hubs[0].stop()
		hubs[1].stop()
	}
}

// look checks that a hub without reports sees the reports of another hub.
func look(t *testing.T, database func() string) {
	w, c, name := hubtest.New(1), newClock(), database()
	a, b := start(t, name, c, time.Hour), start(t, name, c, time.Hour)
	_, changed := b.Version()
	a.want(w.Wanted())
	for len(b.Fleet().Environments()) == 0 {
		<-changed
		_, changed = b.Version()
	}
	report := state.Report{Cluster: "c0", Received: c.now(), Items: []state.Item{{Assignment: "prod/edge/hello-main", Commit: "0000", State: state.ReportedOK}}}
	a.report(report)
	for b.Fleet().Count(state.Filter{Cluster: "c0"})[0].Tally[state.OK] == 0 {
		<-changed
		_, changed = b.Version()
	}
	if v, _ := a.Version(); func() bool { other, _ := b.Version(); return v == other }() {
		t.Error("two hubs have one version: a client of both would think that nothing has changed")
	}
}

// together sends a report while the wanted state waits to be written. Both must be in the same
// write.
func together(t *testing.T, database func() string) {
	c, f := newClock(), &fleet{hosts: 1}
	r := start(t, database(), c, time.Hour)
	var wg sync.WaitGroup
	begun, held := make(chan bool), make(chan bool)
	wg.Go(func() {
		_ = r.Do(context.Background(), func(context.Context, *store.Tx) (*state.Changes, error) {
			close(begun)
			<-held
			return nil, nil
		})
	})
	<-begun
	waits := func(n int) {
		for r.Waiting() < n {
			runtime.Gosched()
		}
	}
	wg.Go(func() { r.want(f.commit("a")) })
	waits(1)
	wg.Go(func() { r.says(c, 0, 1, state.ReportedOK, "") })
	waits(2)
	close(held)
	wg.Wait()
	rows, _, err := r.Store().History(context.Background(), store.Filter{Filter: state.Filter{Cluster: host(0)}}, 10)
	if err != nil || len(rows) != 2 || rows[0].State != "ok" || rows[1].State != "missing" {
		t.Errorf("the history is %v, %v", rows, err)
	}
}

var anHour = time.Hour

// stale checks silent clusters. After a restart, a hub waits for the clusters that reported before,
// but not for those that were already stale.
func stale(t *testing.T, database func() string) {
	w, c, name := hubtest.New(1), newClock(), database()
	r := start(t, name, c, anHour)
	r.want(w.Wanted())
	item := state.Item{Assignment: "prod/edge/hello-main", Commit: "0000", State: state.ReportedOK}
	is := func(r *running, cluster string) state.State {
		t.Helper()
		r.look()
		return slices.Collect(func(yield func(state.State) bool) {
			r.Fleet().List(state.Filter{Cluster: cluster, Target: "hello-main"}, state.Position{}, func(row state.Row) bool { return yield(row.State) })
		})[0]
	}
	expect := func(r *running, cluster string, want state.State) {
		t.Helper()
		if got := is(r, cluster); got != want {
			t.Errorf("%s is %s, and should be %s", cluster, got, want)
		}
	}
	r.report(state.Report{Cluster: "c0", Received: c.now(), Items: []state.Item{item}})
	c.pass(anHour / 2)
	r.report(state.Report{Cluster: "c1", Received: c.now(), Items: []state.Item{item}})
	c.pass(anHour/2 + time.Minute)
	expect(r, "c0", state.Stale)
	expect(r, "c1", state.OK)
	r.stop()
	c.pass(10 * anHour) // no hub runs
	r = start(t, name, c, anHour)
	expect(r, "c0", state.Stale)
	expect(r, "c1", state.OK)
	c.pass(anHour - time.Minute)
	expect(r, "c1", state.OK)
	c.pass(2 * time.Minute)
	expect(r, "c1", state.Stale)
	rows, _, err := r.Store().History(context.Background(), store.Filter{Filter: state.Filter{Cluster: "c0", Target: "hello-main"}}, 100)
	if err != nil || len(rows) != 3 { // missing, ok, stale
		t.Errorf("the history of c0 is %v, %v", rows, err)
	}

	// A hub without reports of a cluster knows that another hub receives them.
	other := start(t, name, c, anHour)
	for range 10 {
		c.pass(anHour / 4)
		r.report(state.Report{Cluster: "c0", Received: c.now(), Items: []state.Item{item}})
		r.report(state.Report{Cluster: "c1", Received: c.now(), Items: []state.Item{item}})
		expect(other, "c0", state.OK)
		expect(r, "c0", state.OK)
	}
	if rows, _, err = r.Store().History(context.Background(), store.Filter{Filter: state.Filter{Cluster: "c0", Target: "hello-main"}}, 100); err != nil || len(rows) != 4 {
		t.Errorf("the history of c0 is %v, %v", rows, err)
	}
}
