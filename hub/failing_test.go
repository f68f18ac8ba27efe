package hub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// failing checks a database that refuses a write in the middle. The hub does not acknowledge a
// report that is not stored, and its fleet is the same as the stored one.
func failing(t *testing.T, database func() string) {
	w, c, name := hubtest.New(5), newClock(), database()
	r := start(t, name, c, 24*time.Hour)
	m := &hubtest.Reference{StaleAfter: 24 * time.Hour, Wanted: w.Wanted()}
	r.want(m.Wanted)
	db := hubtest.SQL(t, name)
	run := func(q string) {
		t.Helper()
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	refuse := `CREATE TRIGGER refuse BEFORE INSERT ON %s BEGIN SELECT RAISE(ABORT, 'disk full'); END`
	accept := `DROP TRIGGER refuse`
	if store.IsPostgres(name) {
		run(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''disk full''; END'`)
		refuse, accept = `CREATE TRIGGER refuse BEFORE INSERT ON %s EXECUTE FUNCTION refuse()`, `DROP TRIGGER refuse ON %s`
	}
	failed := 0
	for i := range 60 {
		c.pass(2 * time.Minute)
		table := []string{"transition", "cluster", "assignment", "tally", "term"}[w.IntN(5)]
		run(fmt.Sprintf(refuse, table))
		report := w.Report(c.now())
		for n := range report.Items {
			report.Items[n].Message = fmt.Sprint("message ", i)
		}
		var err error
		if w.IntN(4) == 0 {
			w.Commit()
			wanted := w.Wanted()
			if err = r.Want(context.Background(), 0, wanted); err == nil {
				m.Wanted = wanted
			}
		} else if _, err = r.Report(context.Background(), &report); err == nil {
			m.Take(report)
		}
		if problem := m.Check(r.Fleet(), c.now()); problem != "" {
			t.Fatalf("step %d, at once after %v: %s", i, err, problem)
		}
		if store.IsPostgres(name) {
			run(fmt.Sprintf(accept, table))
		} else {
			run(accept)
		}
		if err != nil {
			failed++
			if len(r.problems.take()) == 0 {
				t.Error("nobody hears of a failure")
			}
		}
		if store.IsPostgres(name) && w.IntN(4) == 0 { // all connections end
			run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			_ = r.Do(context.Background(), func(context.Context, *store.Tx) (*state.Changes, error) { return nil, nil })
		}
		r.look()
		if problem := m.Check(r.Fleet(), c.now()); problem != "" {
			t.Fatalf("step %d, after %v: %s", i, err, problem)
		}
	}
	if failed < 10 {
		t.Errorf("only %d writes failed", failed)
	}
	was := r.all()
	r.stop()
	r = start(t, name, c, 24*time.Hour)
	equal(t, "a hub and the one before", was, r.all())
}
