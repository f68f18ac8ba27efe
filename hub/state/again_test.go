package state_test

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// An assignment that is wanted again is known from the next snapshot, even if the cluster has run
// the same all the time.
func TestWantedAgain(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	f := state.New(time.Hour, 0, now)
	want := func(targets ...string) {
		w := &state.DesiredState{Environment: "prod", Commits: []state.Commit{{ID: "c1"}}, Clusters: []state.Cluster{{Name: "c0", Folder: "edge"}}, Folders: []state.Folder{{Name: "edge", ClusterType: "edge", Listed: true}}}
		for _, name := range targets {
			w.Folders[0].Targets = append(w.Folders[0].Targets, state.Target{Name: name, Digest: "d"})
		}
		f.Want(now, w)
	}
	report := func(same bool) state.Outcome {
		now = now.Add(time.Minute)
		r := &state.Report{Cluster: "c0", At: now, Received: now, Snapshot: true, Digest: "s", Same: same}
		for _, name := range []string{"a", "b"} {
			if !same {
				r.Items = append(r.Items, state.Item{Assignment: "prod/edge/" + name, Commit: "c1", State: state.ReportedOK})
			}
		}
		_, outcome := f.Observe(r)
		return outcome
	}
	ok := func() int { return f.Len(state.Filter{States: []state.State{state.OK}}) }
	again := func(what string, change func()) {
		change()
		want("a", "b")
		if !report(true).Resend {
			t.Errorf("%s: the hub does not ask for the items", what)
		}
		if report(false); ok() != 2 {
			t.Errorf("%s: %d are ok", what, ok())
		}
	}
	want("a", "b")
	report(false)
	again("an assignment", func() { want("a"); report(true) })
	again("an environment", func() { f.Order(nil) })
}
