package state_test

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// A reporter may name the folder of a class, as the tree does: it is the one that it applied.
func TestClass(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	of := func(name, digest string) state.Folder {
		return state.Folder{Name: name, ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "hello-main", Workload: "hello", Digest: digest}}}
	}
	w := &state.Wanted{Environment: "prod", Folders: []state.Folder{of("edge", "one"), of("edge.pci", "two")},
		Clusters: []state.Cluster{{Name: "c", Folder: "edge.pci"}}, Commits: []state.Commit{{ID: "4f2a"}}}
	for assignment, want := range map[string]state.State{
		"prod/edge/hello-main":     state.OK, // of whichever class it is
		"prod/edge.pci/hello-main": state.OK,
		"prod/edge.old/hello-main": state.Behind,
		"prod/box.pci/hello-main":  state.Missing,
	} {
		fleet := state.New(time.Hour, now)
		fleet.Want(now, w)
		fleet.Observe(&state.Report{Cluster: "c", At: now, Received: now, Items: []state.Item{{Assignment: assignment, Commit: "4f2a", State: state.ReportedOK}}})
		fleet.List(state.Filter{}, state.Position{}, func(r state.Row) bool {
			if r.State != want {
				t.Errorf("of %s, it is %s, want %s", assignment, r.State, want)
			}
			return true
		})
	}
}
