package hub_test

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// unplaced checks a database whose transitions have no folders yet. The present state is known in
// full from its last change on. Of earlier states at most the folder is known.
func unplaced(t *testing.T, database func() string) {
	w, c, name := hubtest.New(2), newClock(), database()
	r := start(t, name, c, time.Hour)
	moments := past(w, r, c, 40)
	c.pass(time.Minute)
	r.want(less(w, w.Wanted()))
	r.stop()
	db := hubtest.SQL(t, name)
	for _, q := range []string{`ALTER TABLE transition DROP COLUMN folder`, `DROP TABLE folder_history`, `DELETE FROM migration WHERE number = 8`} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	r = start(t, name, c, time.Hour)
	now := r.moment(c.now())
	if len(now.rows) == 0 {
		t.Fatal("there is nothing")
	}
	r.expect("what still holds", now)
	for _, ring := range rings {
		f := state.Filter{Ring: ring}
		equal(t, "what still holds in ring "+ring, lines(now.selected(f)), lines(r.recall(now.at, f)))
		if rows := r.recall(moments[5].at, f); len(rows) > 0 {
			t.Errorf("of long ago, %v are in ring %s", lines(rows), ring)
		}
	}
	if got, want := r.recall(moments[5].at, state.Filter{}), moments[5].rows; len(got) != len(want) {
		t.Errorf("of long ago, there are %d and should be %d", len(got), len(want))
	}
	c.pass(time.Minute)
	w.Commit()
	r.want(less(w, w.Wanted()))
	r.look()
	r.expect("what came since", r.moment(c.now()))
}
