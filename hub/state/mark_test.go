package state_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// TestReset resets a Fleet after reports of known and unknown clusters, after changes of the wanted
// commits, and after removals of clusters and environments. The Fleet must be as before, and
// continue as if nothing had happened.
func TestReset(t *testing.T) {
	clusters := []string{"c0", "c1", "c2", "c3", "c4", "c5", "x0", "x1", "x0"}
	for seed := range uint64(80) {
		w, now := hubtest.New(seed), hubtest.Start()
		fleet, m := state.New(time.Hour, 0, now), &hubtest.Reference{StaleAfter: time.Hour, Wanted: w.Wanted()}
		fleet.Want(now, m.Wanted)
		all := func() (lines []string) {
			for _, row := range hubtest.Rows(fleet) {
				lines = append(lines, fmt.Sprintf("%+v", row))
			}
			for _, g := range fleet.Count(state.Filter{}, state.ByWorkload, state.ByClusterType, state.ByBase) {
				lines = append(lines, fmt.Sprintf("%+v", g))
			}
			for _, name := range clusters {
				contact := fleet.Contact(name)
				contact.Digest = "" // which may be needed again
				news, there := fleet.News(name)
				lines = append(lines, fmt.Sprintf("%+v %+v %t %d", contact, news, there, fleet.Len(state.Filter{Cluster: name})))
			}
			contact, stale, never := fleet.Clusters(hubtest.Environment)
			return append(lines, fmt.Sprint(fleet.Names(), contact, stale, never))
		}
		for step := range 12 {
			now = now.Add(time.Duration(w.IntN(30)) * time.Second)
			for range 3 {
				r := w.Report(now)
				fleet.Observe(&r)
				m.Take(r)
			}
			was, mark := all(), fleet.Checkpoint(clusters)
			for range 1 + w.IntN(6) {
				switch w.IntN(8) {
				case 0:
					w.Commit()
					fleet.Want(now, w.Wanted())
				case 1:
					fleet.Forget(clusters[w.IntN(len(clusters))])
				case 2:
					fleet.Order(nil)
				default:
					r := w.Report(now)
					fleet.Observe(&r)
				}
			}
			fleet.Reset(mark)
			if is := all(); !slices.Equal(is, was) {
				t.Fatalf("seed %d, step %d: it was\n%q, and is\n%q", seed, step, was, is)
			}
			if problem := m.Check(fleet, now); problem != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, problem)
			}
			if w.IntN(3) == 0 {
				w.Commit()
				m.Wanted = w.Wanted()
				fleet.Want(now, m.Wanted)
			}
		}
	}
}
