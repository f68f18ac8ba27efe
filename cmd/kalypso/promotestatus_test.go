package main

import (
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/observe"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

func TestRolloutTable(t *testing.T) {
	failed := func(cluster, message string) rollout.ClusterState {
		return rollout.ClusterState{Name: cluster, State: rollout.Failed, Message: message}
	}
	counts := &rollout.Counts{
		Tally: rollout.Tally{Wanted: 5, Healthy: 1, Failed: 4},
		Assignments: []rollout.AssignmentState{{ID: "dev/eu/shop-main", Workload: "shop", State: rollout.Failed, Clusters: []rollout.ClusterState{
			failed("a", "m1"), failed("b", "m2"), {Name: "c", State: rollout.Healthy}, failed("d", "m1"), failed("e", ""),
		}}},
	}
	well := &rollout.Counts{Tally: rollout.Tally{Wanted: 1, Healthy: 1}}
	for name, c := range map[string]struct {
		of   observe.Rollout
		want string
	}{
		"reasons":   {observe.Rollout{State: forge.Failure, Counts: counts}, "dev: 1/5 ok, 4 failed\n  failed  shop  dev/eu/shop-main  a, d: m1\n  failed  shop  dev/eu/shop-main  b: m2\n  failed  shop  dev/eu/shop-main  e"},
		"well":      {observe.Rollout{State: forge.Success, Counts: well}, ""},
		"not asked": {observe.Rollout{State: forge.Success, NotAsked: "not asked: hub h: no"}, "dev: not asked: hub h: no"},
		"in part":   {observe.Rollout{State: forge.Success, Counts: well, NotAsked: "not asked: hub h: no"}, "dev: 1/1 ok; not asked: hub h: no"},
		// The line of the stage has the reason.
		"not yet": {observe.Rollout{State: forge.Pending, Reason: "not asked: hub h: no", NotAsked: "not asked: hub h: no"}, ""},
	} {
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		rolloutTable(w, []*plan.StageStatus{{Environment: "dev", Rollout: &c.of}})
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(b.String()); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
