package state_test

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// A class has the clusters with its folder, even if the folder has the name of the cluster type.
func TestFilterClass(t *testing.T) {
	of := func(name string) state.Folder {
		return state.Folder{Name: name, ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "hello-main", Workload: "hello"}}}
	}
	fleet := state.New(time.Hour, 0, time.Unix(0, 0))
	fleet.Want(time.Unix(0, 0), &state.DesiredState{Environment: "prod", Folders: []state.Folder{of("edge"), of("edge.pci")},
		Clusters: []state.Cluster{{Name: "a", Folder: "edge"}, {Name: "b", Folder: "edge.pci"}, {Name: "c", Folder: "edge.pci"}}})
	for _, c := range []struct {
		filter state.Filter
		want   int
	}{
		{state.Filter{ClusterType: "edge"}, 3}, {state.Filter{Class: "edge"}, 1}, {state.Filter{Class: "edge.pci"}, 2}, {state.Filter{Class: "edge.old"}, 0},
	} {
		listed, counted := 0, 0
		fleet.List(c.filter, state.Position{}, func(state.Row) bool { listed++; return true })
		for _, g := range fleet.Count(c.filter, state.ByEnvironment) {
			counted += g.Tally.Wanted()
		}
		if listed != c.want || counted != c.want {
			t.Errorf("%+v lists %d and counts %d, want %d", c.filter, listed, counted, c.want)
		}
	}
}

// A reporter may name the folder of a class, as the tree does: it is the applied folder.
func TestClass(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	of := func(name, digest string) state.Folder {
		return state.Folder{Name: name, ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "hello-main", Workload: "hello", Digest: digest}}}
	}
	w := &state.DesiredState{Environment: "prod", Folders: []state.Folder{of("edge", "one"), of("edge.pci", "two")},
		Clusters: []state.Cluster{{Name: "c", Folder: "edge.pci"}}, Commits: []state.Commit{{ID: "4f2a"}}}
	for assignment, want := range map[string]state.State{
		"prod/edge/hello-main":     state.OK, // in any of its classes
		"prod/edge.pci/hello-main": state.OK,
		"prod/edge.old/hello-main": state.Behind,
		"prod/box.pci/hello-main":  state.Missing,
	} {
		fleet := state.New(time.Hour, 0, now)
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

// If the name of a deployment target is too long for a label, the objects have a shorter one.
func TestLabel(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	w := &state.DesiredState{Environment: "prod", Commits: []state.Commit{{ID: "4f2a"}}, Clusters: []state.Cluster{{Name: "c", Folder: "edge"}},
		Folders: []state.Folder{{Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "a-main", Digest: "one"}, {Name: "long-main", Label: "lo-1234", Digest: "two"}}}}}
	for assignment, want := range map[string]string{
		"prod/edge/long-main": "long-main", "prod/edge/lo-1234": "long-main", "prod/edge/lo-12345": "", "prod/other/lo-1234": "", "dev/edge/lo-1234": "",
	} {
		fleet := state.New(time.Hour, 0, now)
		fleet.Want(now, w)
		fleet.Observe(&state.Report{Cluster: "c", At: now, Received: now, Items: []state.Item{{Assignment: assignment, Commit: "4f2a", State: state.ReportedOK}}})
		got := ""
		fleet.List(state.Filter{States: []state.State{state.OK}}, state.Position{}, func(r state.Row) bool {
			got += r.Target
			return true
		})
		if got != want {
			t.Errorf("%s is about %q, want %q", assignment, got, want)
		}
	}
}
