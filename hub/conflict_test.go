package hub_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// conflicts holds that two clusters of one name are told from one that is made anew, on two hubs
// that each hears one of them, and after a restart.
func conflicts(t *testing.T, database func() string) {
	c, name := newClock(), database()
	one, two := start(t, name, c, time.Hour), start(t, name, c, time.Hour)
	w := &state.Wanted{Environment: "prod", Commits: []state.Commit{{ID: "4f2a"}}, Clusters: []state.Cluster{{Name: "c", Folder: "edge"}},
		Folders: []state.Folder{{Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "shop-main", Workload: "shop", Digest: "d"}}}}}
	one.want(w)
	two.look()
	tell := func(r *running, uid, digest string, same bool) {
		t.Helper()
		c.pass(time.Minute)
		report := state.Report{Cluster: "c", At: c.now(), Received: c.now(), Snapshot: true, UID: uid, Digest: digest, Same: same}
		if !same {
			report.Items = []state.Item{{Assignment: "prod/edge/shop-main", Commit: "4f2a", State: state.ReportedOK, Message: digest}}
		}
		if outcome := r.report(report); outcome.Resend || outcome.Unlisted {
			t.Fatalf("%s: %+v", uid, outcome)
		}
	}
	expect := func(what string, is bool) {
		t.Helper()
		for _, r := range []*running{one, two} {
			r.look()
			heard := r.Fleet().Heard("c")
			if problem := heard.Problem(); strings.HasPrefix(problem, "two clusters report as c in turns, last at ") != is || problem != "" && !is {
				t.Errorf("%s: the problem is %q", what, problem)
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
}
