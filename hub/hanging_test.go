package hub_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func simple() (*state.DesiredState, func(c *clock, r state.ReportedState) state.Report) {
	w := &state.DesiredState{Environment: "prod", Commits: []state.Commit{{ID: "4f2a"}}, Clusters: []state.Cluster{{Name: "c", Folder: "edge"}},
		Folders: []state.Folder{{Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "shop-main", Workload: "shop", Digest: "d"}}}}}
	return w, func(c *clock, reported state.ReportedState) state.Report {
		c.pass(time.Second)
		return state.Report{Cluster: "c", At: c.now(), Received: c.now(), Snapshot: true, Items: []state.Item{{Assignment: "prod/edge/shop-main", Commit: "4f2a", State: reported, Message: reported.String()}}}
	}
}

// TestSlowHanging checks a database that does not answer, and returns no error either, from the
// beginning of a write or in the middle of it. The hub refuses reports, and does not show unstored
// ones.
func TestSlowHanging(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL")
	name := hubtest.Postgres(t)()
	c, patience := newClock(), 300*time.Millisecond
	r := startWith(t, name, hub.Options{StaleAfter: time.Hour, Now: c.now, Patience: patience})
	w, report := simple()
	r.want(w)
	is := func(want state.State) {
		t.Helper()
		if rows := hubtest.Rows(r.Fleet()); len(rows) != 1 || rows[0].State != want {
			t.Errorf("it is %+v, and should be %s", rows, want)
		}
	}
	for _, table := range []string{"change", "assignment"} {
		r.report(report(c, state.ReportedOK))
		tx, err := hubtest.SQL(t, name).Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(`LOCK TABLE ` + table + ` IN ACCESS EXCLUSIVE MODE`); err != nil {
			t.Fatal(err)
		}
		failed := report(c, state.ReportedFailed)
		if _, err := r.Report(context.Background(), &failed); err == nil {
			t.Error("a report was acknowledged that nobody has stored")
		}
		is(state.OK) // and nobody can read the stored state
		if r.Unwritable() == nil {
			t.Error("the hub says that it can write")
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		r.look() // which may wait for the write that is in progress
		if problems := r.problems.take(); len(problems) == 0 {
			t.Error("nobody hears of it")
		}
		r.report(report(c, state.ReportedDrifted))
		is(state.Drifted)
	}
}

// unwritable checks a database that cannot be written. The hub refuses reports before they touch
// anything, and clusters become stale with time. Once the database can be written, the state is as
// before.
func unwritable(t *testing.T, database func() string) {
	c, name := newClock(), database()
	r := start(t, name, c, time.Hour)
	w, report := simple()
	r.want(w)
	r.report(report(c, state.ReportedOK))
	db := hubtest.SQL(t, name)
	run := func(q string) {
		t.Helper()
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want state.State) {
		t.Helper()
		if rows := hubtest.Rows(r.Fleet()); len(rows) != 1 || rows[0].State != want {
			t.Errorf("it is %+v, and should be %s", rows, want)
		}
	}
	each, on := `BEGIN SELECT RAISE(ABORT, 'disk full'); END`, ``
	if store.IsPostgres(name) {
		run(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''disk full''; END'`)
		each, on = `EXECUTE FUNCTION refuse()`, ` ON `
	}
	tables := []string{"secret", "transition"}
	for _, table := range tables {
		run(`CREATE TRIGGER refuse_` + table + ` BEFORE INSERT ON ` + table + ` ` + each)
	}
	refused := func() {
		t.Helper()
		failed := report(c, state.ReportedFailed)
		_, err := r.Report(context.Background(), &failed)
		if err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("the report is refused with %v", err)
		}
		if err := r.Unwritable(); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("the hub says that it cannot write: %v", err)
		}
	}
	refused()
	version, _ := r.Version()
	refused()
	if now, _ := r.Version(); now != version {
		t.Error("a report that is refused without a try changes something")
	}
	is(state.OK)
	// The hub does not even record the contact: it would be lost in a restart.
	same := state.Report{Cluster: "c", At: c.now(), Received: c.now(), Snapshot: true, Same: true}
	if _, err := r.Report(context.Background(), &same); err == nil {
		t.Error("a report that changes nothing is acknowledged")
	}
	c.pass(2 * time.Hour)
	refused()
	is(state.Stale)
	for _, table := range tables {
		if on != "" {
			on = ` ON ` + table
		}
		run(`DROP TRIGGER refuse_` + table + on)
	}
	r.look()
	if err := r.Unwritable(); err != nil {
		t.Errorf("the hub says that it cannot write: %v", err)
	}
	is(state.OK)
	r.report(report(c, state.ReportedProgressing))
	is(state.Progressing)
	r.problems.take()
}

// restored restores an older database under a running hub.
func restored(t *testing.T, database func() string) {
	c, name := newClock(), database()
	r := start(t, name, c, time.Hour)
	w, report := simple()
	r.want(w)
	r.report(report(c, state.ReportedOK))
	db := hubtest.SQL(t, name)
	run := func(q string) {
		t.Helper()
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	run(`CREATE TABLE was AS SELECT * FROM assignment`)
	var number int64
	if err := db.QueryRow(`SELECT number FROM change`).Scan(&number); err != nil {
		t.Fatal(err)
	}
	r.report(report(c, state.ReportedFailed))
	run(fmt.Sprintf(`DELETE FROM transition WHERE change > %d`, number))
	run(`DELETE FROM assignment`)
	run(`INSERT INTO assignment SELECT * FROM was`)
	run(fmt.Sprintf(`UPDATE change SET number = %d`, number))
	lost := report(c, state.ReportedDrifted)
	_, _ = r.Report(context.Background(), &lost) // it may be refused, and be sent again
	r.look()
	r.problems.take()
	r.report(report(c, state.ReportedProgressing))
	if rows := hubtest.Rows(r.Fleet()); len(rows) != 1 || rows[0].State != state.Progressing {
		t.Errorf("it is %+v", rows)
	}
	was := r.all()
	r.stop()
	equal(t, "a hub on a database that was restored, and the next one", was, start(t, name, c, time.Hour).all())
}

// TestReplaced replaces the file of a database under a running hub, which then refuses reports.
func TestReplaced(t *testing.T) {
	c, name := newClock(), hubtest.SQLite(t)()
	r := start(t, name, c, time.Hour)
	w, report := simple()
	r.want(w)
	if err := os.Rename(name, name+".was"); err != nil {
		t.Fatal(err)
	}
	lost := report(c, state.ReportedOK)
	if _, err := r.Report(context.Background(), &lost); err == nil {
		t.Error("a report was acknowledged that is in no file")
	}
	if err := r.Store().Ping(context.Background()); err == nil {
		t.Error("it is ready")
	}
	if err := os.Rename(name+".was", name); err != nil {
		t.Fatal(err)
	}
	r.report(report(c, state.ReportedOK))
	r.problems.take()
}
