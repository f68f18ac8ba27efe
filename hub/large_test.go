package hub_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// large wants so many assignments that they are written in several parts. Nobody sees only some of
// them, and a write that is interrupted stores none.
func large(t *testing.T, database func() string) {
	const hosts = 12_000
	ctx, name, c, f := context.Background(), database(), newClock(), &fleet{hosts: hosts}
	s, db := hubtest.Open(t, name), hubtest.SQL(t, name)
	stored := func() (counts [3]int) {
		t.Helper()
		for i, view := range []string{"v_assignments", "v_history", "wanted"} {
			if err := db.QueryRow("SELECT COUNT(*) FROM " + view).Scan(&counts[i]); err != nil {
				t.Fatal(err)
			}
		}
		return counts
	}
	write := func(w *state.DesiredState, then func() error) error {
		_, err := s.Write(ctx, func(tx *store.Tx) error {
			if err := tx.Wanted(ctx, c.now(), 0, w); err != nil {
				return err
			}
			if err := tx.Changes(ctx, c.now(), state.New(time.Hour, 0, c.now()).Want(c.now(), w)); err != nil {
				return err
			}
			return then()
		})
		return err
	}
	w := f.commit("a")
	err := write(w, func() error {
		if got := stored(); got != [3]int{} {
			t.Errorf("before the end of a write, %v of it are seen", got)
		}
		return errors.New("killed")
	})
	if got := stored(); err == nil || got != [3]int{} {
		t.Errorf("%v of a write that failed with %v are stored", got, err)
	}
	if store.IsPostgres(name) {
		err := write(w, func() error {
			_, err := db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			return err
		})
		if got := stored(); err == nil || got != [3]int{} {
			t.Errorf("%v of a write that ended with %v are stored", got, err)
		}
	}

	r := start(t, name, c, time.Hour)
	if store.IsPostgres(name) { // or it may look at its tables by itself
		for _, table := range []string{"term", "assignment", "transition"} {
			if _, err := db.Exec("ALTER TABLE " + table + " SET (autovacuum_enabled = off)"); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.want(w)
	for known := 0; store.IsPostgres(name) && known < 3; { // statistics are updated in the background
		if err := db.QueryRow(`SELECT COUNT(*) FROM pg_class WHERE relname IN ('term', 'assignment', 'transition') AND reltuples >= $1`, hosts).Scan(&known); err != nil {
			t.Fatal(err)
		}
	}
	if got := stored(); got != [3]int{hosts, hosts, 1} {
		t.Errorf("%v are stored", got)
	}
	c.pass(time.Minute)
	r.says(c, hosts/2, 1, state.ReportedOK, "")
	c.pass(time.Minute)
	f.hosts += 2000 // in an environment that already has assignments
	r.want(f.commit("b"))
	if got := stored(); got != [3]int{hosts + 2000, 2*hosts + 2001, 1} {
		t.Errorf("with another commit, %v are stored", got)
	}
	was := r.all()
	r.stop()
	r = start(t, name, c, time.Hour)
	equal(t, "a hub and the one before", was, r.all())
	states := func(i int) (states []string) {
		t.Helper()
		rows, _, err := r.Store().History(ctx, store.Filter{Filter: state.Filter{Cluster: host(i)}}, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range rows {
			states = append(states, h.Version+" "+h.State)
		}
		return states
	}
	for i, want := range map[int][]string{0: {"b missing", "a missing"}, hosts / 2: {"b behind", "a ok", "a missing"}, hosts - 1: {"b missing", "a missing"}, hosts: {"b missing"}} {
		if got := states(i); !slices.Equal(got, want) {
			t.Errorf("the history of host %d is %q, and should be %q", i, got, want)
		}
	}
	f.hosts = 1
	r.want(f.commit("b"))
	if got := stored(); got != [3]int{1, 3*hosts + 4000, 1} {
		t.Errorf("when one is left, %v are stored", got)
	}
}

// long has a version that is too long for an index.
func long(t *testing.T, database func() string) {
	random := rand.New(rand.NewPCG(1, 1)) // a text that can be compressed would fit
	text := make([]byte, 20_000)
	for i := range text {
		text[i] = byte('!' + random.IntN(90))
	}
	c, f, name := newClock(), &fleet{hosts: 2}, database()
	r := start(t, name, c, time.Hour)
	w := f.commit("a")
	w.Folders[0].Targets[0].Version = string(text)
	if err := w.Bound(); err != nil {
		t.Fatal(err)
	}
	r.want(w)
	r.says(c, 0, 1, state.ReportedOK, "")
	was := r.all()
	r.stop()
	r = start(t, name, c, time.Hour)
	equal(t, "a hub and the one before", was, r.all())
	rows, _, err := r.Store().History(context.Background(), store.Filter{Filter: state.Filter{Cluster: host(0)}}, 10)
	if err != nil || len(rows) != 2 || !strings.HasPrefix(rows[0].Version, string(text[:200])) {
		t.Errorf("the history is %.300v, %v", rows, err)
	}
}
