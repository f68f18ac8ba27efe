package hub_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/state"
)

// forgotten forgets clusters that the platform does not list. Another hub forgets them too, even
// after a restart, until they report again.
func forgotten(t *testing.T, database func() string) {
	c, name := newClock(), database()
	one, two := start(t, name, c, time.Hour), start(t, name, c, time.Hour)
	one.want(&state.DesiredState{Environment: "prod", Commits: []state.Commit{{ID: "4f2a"}}, Clusters: []state.Cluster{{Name: "c", Folder: "edge"}}, Folders: []state.Folder{
		{Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "shop-main", Workload: "shop", Digest: "d"}}},
		{Name: "vm", ClusterType: "vm", Targets: []state.Target{{Name: "agent-main", Workload: "agent", Digest: "d"}, {Name: "shop-main", Workload: "shop", Digest: "d"}}},
	}})
	two.look()
	report := func(r *running, cluster string, same bool, assignments ...string) state.Outcome {
		c.pass(time.Second)
		s := state.Report{Cluster: cluster, At: c.now(), Received: c.now(), Snapshot: true, Digest: "1", Same: same}
		for _, a := range assignments {
			s.Items = append(s.Items, state.Item{Assignment: a, Commit: "4f2a", State: state.ReportedOK})
		}
		return r.report(s)
	}
	expect := func(what string, ok, missing int) {
		t.Helper()
		for i, r := range []*running{one, two} {
			r.look()
			var sum state.Tally
			for _, g := range r.Fleet().Count(state.Filter{}, state.ByClusterType) {
				sum.Add(&g.Tally)
			}
			if sum[state.OK] != ok || sum[state.Missing] != missing {
				t.Errorf("%s: of hub %d, %v are ok and missing", what, i, sum)
			}
		}
	}
	report(one, "c", false, "prod/edge/shop-main")
	report(one, "vm-1", false, "prod/vm/agent-main", "prod/vm/shop-main")
	report(two, "vm-2", false, "prod/vm/agent-main")
	expect("one vm lacks something", 2, 1)
	if there, err := one.Forget(context.Background(), "vm-2"); !there || err != nil {
		t.Fatal(there, err)
	}
	expect("it is forgotten", 3, 0)
	if there, err := one.Forget(context.Background(), "vm-2"); there || err != nil {
		t.Errorf("it is forgotten twice: %v", err)
	}
	if _, err := two.Forget(context.Background(), "c"); !errors.As(err, new(*hub.ListedError)) {
		t.Errorf("a cluster that is listed: got %v", err)
	}
	two.stop()
	two = start(t, name, c, time.Hour)
	expect("after a restart", 3, 0)
	if !report(two, "vm-2", true).Resend {
		t.Error("the hub does not ask for the items of a cluster that it has forgotten")
	}
	report(two, "vm-2", false, "prod/vm/agent-main")
	expect("it is back", 2, 1)
}
