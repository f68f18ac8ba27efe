package hub_test

import (
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// saved checks reports of many clusters with an unchanged state. The hub does not write the times
// of their contact at once. It writes some each second, and all of them before it ends.
func saved(t *testing.T, database func() string) {
	const hosts, atOnce = 5000, 2000
	name, c, f := database(), newClock(), &fleet{hosts: hosts}
	r, db := start(t, name, c, time.Hour), hubtest.SQL(t, name)
	r.want(f.commit("a"))
	all := func(same bool) {
		t.Helper()
		var wg sync.WaitGroup
		for part := range 50 {
			wg.Go(func() {
				for i := part; i < hosts; i += 50 {
					report := state.Report{Cluster: host(i), Received: c.now(), Snapshot: true, Digest: "d", Same: same}
					if !same {
						report.Items = []state.Item{{Assignment: "prod/edge/hello-main", Commit: "1", State: state.ReportedOK}}
					}
					r.report(report)
				}
			})
		}
		wg.Wait()
	}
	written := func() (n int) {
		t.Helper()
		r.look()
		if err := db.QueryRow("SELECT COUNT(*) FROM cluster WHERE seen = (SELECT MAX(seen) FROM cluster)").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	all(false)
	c.pass(30 * time.Second)
	all(true)
	c.pass(40 * time.Second)
	for _, want := range []int{atOnce, 2 * atOnce, hosts} {
		if got := written(); got != want {
			t.Errorf("the times of %d clusters are written, and should be of %d", got, want)
		}
		c.pass(time.Second)
	}
	all(true)
	at := c.now()
	r.stop()
	r = start(t, name, c, time.Hour)
	for i := range hosts {
		if got := r.Fleet().Contact(host(i)).Last; !got.Equal(at) {
			t.Fatalf("of %s there was news at %s, and should be at %s", host(i), got, at)
		}
	}
}
