package state_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// Content that the hub has not read is not drift until it was reported for longer than the grace
// time.
func TestUnread(t *testing.T) {
	const grace = time.Minute
	now := time.Unix(1_700_000_000, 0)
	wanted := func(commits ...string) *state.DesiredState {
		w := &state.DesiredState{
			Environment: "prod", Clusters: []state.Cluster{{Name: "c0", Folder: "edge"}, {Name: "c1", Folder: "edge"}},
			Folders: []state.Folder{{Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "hello-main", Digest: "d1"}}}},
		}
		for _, id := range commits {
			w.Commits = append(w.Commits, state.Commit{ID: id})
		}
		return w
	}
	f := state.New(time.Hour, grace, now)
	f.Want(now, wanted("1"))
	report := func(cluster, commit, digest string, is state.ReportedState, snapshot bool) {
		item := state.Item{Assignment: "prod/edge/hello-main", Commit: commit, Digest: digest, State: is, Message: "m"}
		f.Observe(&state.Report{Cluster: cluster, At: now.Add(-10 * time.Minute), Received: now, Snapshot: snapshot, Items: []state.Item{item}})
	}
	expect := func(what string, want ...string) {
		t.Helper()
		f.Expire(now)
		i := 0
		f.List(state.Filter{}, state.Position{}, func(r state.Row) bool {
			if got := r.State.String() + " " + r.Message; got != want[i] {
				t.Errorf("%s: %s is %q, want %q", what, r.Cluster, got, want[i])
			}
			i++
			return true
		})
	}
	const unread = "progressing the hub has not read commit 2 yet"
	report("c0", "2", "", state.ReportedOK, true)
	expect("reported", unread, "missing ")
	now = now.Add(grace / 2)
	report("c1", "2", "", state.ReportedFailed, true)
	expect("reported by another", unread, unread+"; m")
	f.Want(now, wanted("2", "1"))
	expect("read", "ok ", "failed m")

	now = now.Add(time.Second)
	report("c0", "3", "", state.ReportedOK, false)
	report("c1", "", "d2", state.ReportedProgressing, false)
	const digest = "progressing the hub has not read digest d2 yet; m"
	expect("others", "progressing the hub has not read commit 3 yet", digest)
	for range 3 { // another report does not make it newer
		now = now.Add(grace / 3)
		report("c0", "3", "", state.ReportedOK, false)
	}
	expect("just as long as it may", "progressing the hub has not read commit 3 yet", digest)
	now = now.Add(time.Millisecond)
	expect("longer", "drifted ", "drifted m")
	now = now.Add(time.Second)
	report("c1", "3", "", state.ReportedOK, true)
	expect("another one that has it", "drifted ", "drifted ")
	now = now.Add(time.Second)
	report("c0", "4", "", state.ReportedDrifted, true)
	report("c1", "", "", state.ReportedOK, true)
	expect("changed on the cluster, and nothing known", "drifted m", "drifted ")

	for i := range 5000 { // content that no cluster runs any more is dropped
		now = now.Add(time.Millisecond)
		report("c0", fmt.Sprint("x", i), "", state.ReportedOK, true)
	}
	expect("many", "progressing the hub has not read commit x4999 yet", "drifted ")
	now = now.Add(time.Second)
	report("c0", "2", "", state.ReportedOK, true)
	expect("what is known", "ok ", "drifted ")
}
