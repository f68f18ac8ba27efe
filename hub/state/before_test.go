package state_test

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// Nothing changes while a reconciler applies a commit whose folder is the same as in the commit
// before.
func TestBefore(t *testing.T) {
	const first, second, third, key = "c1", "c2", "c3", "edge/hello-main"
	now := time.Unix(1_700_000_000, 0)
	f := state.New(time.Hour, 0, now)
	f.Want(now, &state.DesiredState{
		Environment: "prod", Commits: []state.Commit{{ID: third}, {ID: second}, {ID: first, Was: map[string]string{key: "d1"}}},
		Folders:  []state.Folder{{Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "hello-main", Digest: "d2"}}}},
		Clusters: []state.Cluster{{Name: "c0", Folder: "edge"}},
	})
	for i, c := range []struct {
		commit, before string
		is             state.State
	}{
		{first, "", state.Behind}, {second, first, state.Progressing}, {second, "", state.Progressing}, {third, second, state.OK}, {third, "unknown", state.Progressing}, {"unknown", second, state.Drifted},
	} {
		now = now.Add(time.Minute)
		item := state.Item{Assignment: "prod/edge/hello-main", Commit: c.commit, Before: c.before, State: state.ReportedProgressing, Message: "Reconciliation in progress"}
		f.Observe(&state.Report{Cluster: "c0", At: now, Received: now, Snapshot: true, Items: []state.Item{item}})
		f.List(state.Filter{}, state.Position{}, func(r state.Row) bool {
			if r.State != c.is || (r.Message == "") != (c.is == state.OK) {
				t.Errorf("%d: it is %s, %q, and should be %s", i, r.State, r.Message, c.is)
			}
			return true
		})
	}
}
