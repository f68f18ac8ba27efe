package state_test

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/hub/state"
)

// The whole source of a cluster's content is compared, in each form in which reporters name it, and
// the reason has both values. A suspended assignment is never ok, and a behind one names its
// applied commit.
func TestWhatIsReportedIsComparedWhole(t *testing.T) {
	const repository, is, before, unread = "https://git.example.com/gitops.git", "2222222222222222222222222222222222222222", "1111111111111111111111111111111111111111", "3333333333333333333333333333333333333333"
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	wanted := func(path string) *state.DesiredState {
		return &state.DesiredState{
			Environment: "dev", Repository: repository, Branch: "dev", Path: path, Mirrors: []string{"https://mirror.example.net/gitops.git"},
			Commits:  []state.Commit{{ID: is}, {ID: before, Was: map[string]string{"store/till": "d1", "store.a/till": "d1"}}},
			Folders:  []state.Folder{{Name: "store", ClusterType: "store", Listed: true, Targets: []state.Target{{Name: "till", Digest: "d2"}}}, {Name: "store.a", ClusterType: "store", Targets: []state.Target{{Name: "till", Digest: "d2"}}}},
			Clusters: []state.Cluster{{Name: "st-1", Folder: "store"}},
		}
	}
	for name, c := range map[string]struct {
		item                state.Item
		want, message, runs string
	}{
		"where it is wanted": {state.Item{Origin: origin.Origin{Repository: repository, Branch: "dev", Path: "live3/store/till"}}, "ok", "", is},
		"from a mirror":      {state.Item{Origin: origin.Origin{Repository: "https://mirror.example.net/gitops", Branch: "dev", Path: "live3/store/till"}}, "ok", "", is},
		"a class":            {state.Item{Origin: origin.Origin{Path: "./live3/store.a/till"}}, "ok", "", is},
		"a class, no place":  {state.Item{Assignment: "dev/store.a/till"}, "ok", "", is},
		"of Fleet":           {state.Item{Origin: origin.Origin{Path: "live3/store/" + origin.Any}}, "ok", "", is},
		"another folder": {state.Item{Origin: origin.Origin{Repository: repository, Branch: "dev", Path: "./live2/store/till"}},
			"drifted", "it applies folder live2/store/till, and live3/store/till is wanted", is},
		"another branch": {state.Item{Origin: origin.Origin{Branch: "stage"}}, "drifted", "it applies branch stage, and dev is wanted", is},
		"a fork that fails": {state.Item{Origin: origin.Origin{Repository: "https://git.example.com/fork"}, State: state.ReportedFailed, Message: "no such path"},
			"drifted", "it applies repository https://git.example.com/fork, and " + repository + " is wanted; no such path", is},
		"another folder, of a commit that the hub has not read": {state.Item{Origin: origin.Origin{Path: "live4/store/till"}, Commit: unread},
			"progressing", "the hub has not read commit " + unread + " yet", unread},
		"suspended":             {state.Item{State: state.ReportedSuspended, Message: "is suspended: it is at x"}, "suspended", "is suspended: it is at x", is},
		"suspended before":      {state.Item{State: state.ReportedSuspended, Commit: before, Message: "m"}, "suspended", "m", before},
		"suspended elsewhere":   {state.Item{State: state.ReportedSuspended, Origin: origin.Origin{Branch: "stage"}}, "drifted", "it applies branch stage, and dev is wanted", is},
		"behind":                {state.Item{Commit: before}, "behind", "", before},
		"behind, after another": {state.Item{State: state.ReportedFailed, Commit: before, Applied: "4444444444444444444444444444444444444444", Message: "m"}, "behind", "m", "4444444444444444444444444444444444444444"},
		"behind, and no more":   {state.Item{State: state.ReportedProgressing, Commit: before, Applied: state.Unknown, Message: "m"}, "behind", "m", ""},
	} {
		fleet := state.New(time.Hour, time.Minute, at)
		fleet.Want(at, wanted("live3"))
		it := c.item
		if it.Assignment == "" {
			it.Assignment = "dev/store/till"
		}
		if it.Commit == "" {
			it.Commit = is
		}
		if it.State == state.Nothing {
			it.State = state.ReportedOK
		}
		fleet.Observe(&state.Report{Cluster: "st-1", At: at, Received: at, Snapshot: true, Items: []state.Item{it}})
		fleet.List(state.Filter{}, state.Position{}, func(r state.Row) bool {
			if r.State.String() != c.want || r.Message != c.message || r.Runs() != c.runs {
				t.Errorf("%s: %s %q at %q, want %s %q at %q", name, r.State, r.Message, r.Runs(), c.want, c.message, c.runs)
			}
			return true
		})
	}

	// An event without a source is about the source of the last snapshot. Once the environment's
	// gitops names that source, it is ok.
	fleet := state.New(time.Hour, time.Minute, at)
	fleet.Want(at, wanted("live3"))
	item := state.Item{Assignment: "dev/store/till", Commit: is, State: state.ReportedOK, Origin: origin.Origin{Path: "live2/store/till"}}
	fleet.Observe(&state.Report{Cluster: "st-1", At: at, Received: at, Snapshot: true, Items: []state.Item{item}})
	item.Origin = origin.Origin{}
	later := at.Add(time.Second)
	fleet.Observe(&state.Report{Cluster: "st-1", At: later, Received: later, Items: []state.Item{item}})
	for path, want := range map[string]state.State{"live3": state.Drifted, "live2": state.OK} {
		fleet.Want(later, wanted(path))
		if tally := fleet.Count(state.Filter{})[0].Tally; tally[want] != 1 {
			t.Errorf("in %s: %v", path, tally)
		}
	}
}
