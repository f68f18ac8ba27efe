package hub_test

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// early checks reports of clusters that no hub has read yet. They count once a hub reads the
// clusters, even after a restart, and at another hub. Reports of unknown clusters are kept only for
// a short time.
func early(t *testing.T, database func() string) {
	w, c, name := hubtest.New(1), newClock(), database()
	open := func() *running {
		t.Helper()
		return startWith(t, name, hub.Options{StaleAfter: anHour, Grace: time.Minute, Now: c.now})
	}
	a := open()
	report := func(cluster, commit string, reported state.ReportedState, want state.Outcome) {
		t.Helper()
		items := []state.Item{{Assignment: "prod/edge/hello-main", Commit: commit, State: reported}}
		got, err := a.Report(t.Context(), &state.Report{Cluster: cluster, Received: c.now(), At: c.now(), Items: items})
		if err != nil || got.Unlisted != want.Unlisted || got.Early != want.Early {
			t.Errorf("%s: %+v, %v", cluster, got, err)
		}
	}
	kept := state.Outcome{Unlisted: true, Early: true}
	is := w.Wanted().Commits[0].ID
	report("c0", is, state.ReportedFailed, kept)
	report("nobody", is, state.ReportedOK, kept)
	c.pass(30 * time.Second)
	for range 30 { // there are too many to keep, and the newest counts
		report("c0", is, state.ReportedOK, kept)
		c.pass(time.Millisecond)
	}
	a.stop()
	a = open()
	b := open()
	c.pass(29 * time.Second)
	report("nobody", is, state.ReportedOK, kept)
	c.pass(2 * time.Second)
	report("nobody", is, state.ReportedOK, state.Outcome{Unlisted: true})

	box := state.Item{Assignment: "prod/box/hello-main", Commit: is, State: state.ReportedOK} // of a type that lists no clusters
	if got, err := a.Report(t.Context(), &state.Report{Cluster: "x0", Received: c.now(), At: c.now().In(time.FixedZone("", 24*60*60)), Items: []state.Item{box}}); err != nil || !got.Early {
		t.Errorf("x0: %+v, %v", got, err)
	}
	a.want(w.Wanted())
	b.look()
	for _, r := range []*running{a, b} {
		r.Fleet().List(state.Filter{Cluster: "c0", Target: "hello-main"}, state.Position{}, func(row state.Row) bool {
			if row.State != state.OK || c.now().Sub(row.Seen) > time.Minute {
				t.Errorf("c0 is %+v", row)
			}
			return true
		})
	}
	a.Fleet().List(state.Filter{Cluster: "x0", Target: "hello-main"}, state.Position{}, func(row state.Row) bool {
		if row.State != state.OK {
			t.Errorf("x0 is %+v", row)
		}
		return true
	})
	if a.Fleet().Len(state.Filter{Cluster: "x0"}) == 0 {
		t.Error("x0 is not there")
	}
	report("c0", is, state.ReportedOK, state.Outcome{})
	report("nobody", is, state.ReportedOK, state.Outcome{Unlisted: true})
	c.pass(25 * time.Hour) // a different cluster may have the name by now
	a.want(w.Wanted())
	report("nobody", is, state.ReportedOK, kept)
}
