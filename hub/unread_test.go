package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// unread checks reports of a commit that the hub has not read yet, at two hubs. One of them
// restarts.
func unread(t *testing.T, database func() string) {
	w, c, name := hubtest.New(1), newClock(), database()
	open := func() *running {
		t.Helper()
		return startWith(t, name, hub.Options{StaleAfter: anHour, Grace: time.Minute, Now: c.now})
	}
	a, b := open(), open()
	a.want(w.Wanted())
	expect := func(what, c0, c1 string) {
		t.Helper()
		for range 2 {
			a.look()
			b.look()
		}
		for _, r := range []*running{a, b} {
			for cluster, want := range map[string]string{"c0": c0, "c1": c1} {
				r.Fleet().List(state.Filter{Cluster: cluster, Target: "hello-main"}, state.Position{}, func(row state.Row) bool {
					if got := strings.TrimSpace(row.State.String() + " " + row.Message); got != want {
						t.Errorf("%s: %s is %q, want %q", what, cluster, got, want)
					}
					return true
				})
			}
		}
		equal(t, what+": two hubs", a.all(), b.all())
	}
	report := func(r *running, cluster, commit string) {
		t.Helper()
		r.report(state.Report{Cluster: cluster, Received: c.now(), Items: []state.Item{{Assignment: "prod/edge/hello-main", Commit: commit, State: state.ReportedOK}}})
	}
	report(a, "c0", "0001")
	report(b, "c1", "elsewhere")
	expect("reported", "progressing the hub has not read commit 0001 yet", "progressing the hub has not read commit elsewhere yet")
	c.pass(30 * time.Second)
	b.stop()
	b = open()
	expect("a hub that was started anew", "progressing the hub has not read commit 0001 yet", "progressing the hub has not read commit elsewhere yet")
	w.Commit()
	a.want(w.Wanted())
	is := map[bool]string{true: "ok", false: "behind"}
	read := is[w.Wanted().DigestAt(0, "edge.a/hello-main") == w.Wanted().Folders[1].Targets[0].Digest]
	expect("read", read, "progressing the hub has not read commit elsewhere yet")
	c.pass(31 * time.Second)
	expect("for too long", read, "drifted")
	b.stop()
	b = open()
	expect("once more", read, "drifted")
	rows, _, err := a.Store().History(context.Background(), store.Filter{Filter: state.Filter{Cluster: "c1", Target: "hello-main"}}, 10)
	var states []string
	for _, r := range rows {
		if len(states) == 0 || states[len(states)-1] != r.State {
			states = append(states, r.State)
		}
	}
	if got := fmt.Sprint(states, err); got != "[drifted progressing missing] <nil>" {
		t.Errorf("the history is %s", got)
	}
}
