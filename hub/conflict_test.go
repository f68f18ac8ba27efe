package hub_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// conflicts checks that a hub distinguishes two clusters with the same name from one cluster that
// was created again. Two hubs each receive the reports of one of them, and one hub restarts.
func conflicts(t *testing.T, database func() string) {
	c, name := newClock(), database()
	one, two := start(t, name, c, time.Hour), start(t, name, c, time.Hour)
	w := &state.DesiredState{Environment: "prod", Commits: []state.Commit{{ID: "4f2a"}}, Clusters: []state.Cluster{{Name: "c", Folder: "edge"}},
		Folders: []state.Folder{{Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "shop-main", Workload: "shop", Digest: "d"}}}}}
	one.want(w)
	two.look()
	late := time.Duration(0) // the lag of the reporter's clock
	tell := func(r *running, uid, digest string, same bool) {
		t.Helper()
		c.pass(time.Minute)
		report := state.Report{Cluster: "c", At: c.now().Add(-late), Received: c.now(), Snapshot: true, UID: uid, Digest: digest, Same: same}
		if !same {
			report.Items = []state.Item{{Assignment: "prod/edge/shop-main", Commit: "4f2a", State: state.ReportedOK, Message: digest}}
		}
		if outcome := r.report(report); outcome.Resend || outcome.Unlisted {
			t.Fatalf("%s: %+v", uid, outcome)
		}
	}
	lag := func(r *running, uid string, by time.Duration) {
		t.Helper()
		late = by
		tell(r, uid, "of "+uid, false)
		late = 0
	}
	expect := func(what string, is bool) {
		t.Helper()
		for _, r := range []*running{one, two} {
			r.look()
			contact := r.Fleet().Contact("c")
			if problem := contact.Problem(); strings.HasPrefix(problem, "two clusters report as c in turns, last at ") != is || problem != "" && !is {
				t.Errorf("%s: the problem is %q", what, problem)
			}
			if names := r.Fleet().Conflicts("prod"); slices.Contains(names, "c") != is || len(names) > 1 {
				t.Errorf("%s: there are %v", what, names)
			}
		}
	}
	tell(one, "", "1", false)
	tell(one, "a", "1", true)
	tell(two, "", "2", false) // from a script
	tell(one, "a", "3", false)
	expect("one cluster", false)
	tell(two, "b", "4", false)
	tell(two, "b", "4", true)
	expect("it is made anew", false)
	tell(one, "a", "5", false)
	expect("the old one still reports", true)
	one.stop()
	one = start(t, name, c, time.Hour)
	expect("after a restart", true)
	for range 62 {
		tell(two, "b", "6", false)
	}
	expect("the old one has reported no more for an hour", false)
	tell(two, "c", "7", false)
	tell(two, "d", "8", false)
	expect("it is made anew again and again", false)
	lag(two, "c", 10*time.Minute)
	tell(one, "d", "9", false)
	expect("a snapshot of the old one came late", false)
	lag(two, "b", 9*time.Minute)
	lag(two, "b", 8*time.Minute)
	expect("two of an older one came late, together", false)
	lag(two, "b", 2*time.Hour)
	tell(one, "d", "9", true)
	lag(two, "b", 90*time.Minute)
	expect("two of an older one were carried", false)
	for range 2 {
		tell(one, "d", "9", true)
		lag(two, "e", 10*time.Minute)
	}
	expect("another one reports, with a clock that lags", true)
	for range 62 {
		tell(one, "d", "9", true)
	}
	expect("it has reported no more for an hour", false)
}
