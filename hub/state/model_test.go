package state_test

import (
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// TestModel compares a Fleet with the reference. Reports are late, doubled or lost, and some clocks
// are wrong.
func TestModel(t *testing.T) {
	for seed := range uint64(300) {
		w, now := hubtest.New(seed), hubtest.Start()
		grace := time.Duration(seed%3) * 20 * time.Second
		fleet, m := state.New(time.Minute, grace, now), &hubtest.Reference{StaleAfter: time.Minute, Grace: grace, Wanted: w.Wanted()}
		fleet.Want(now, m.Wanted)
		observe := func(r state.Report) {
			fleet.Observe(&r)
			m.Take(r)
		}
		var late []state.Report
		for step := range 60 {
			now = now.Add(time.Duration(w.IntN(30)) * time.Second)
			switch w.IntN(7) {
			case 0:
				w.Commit()
				m.Wanted = w.Wanted()
				fleet.Want(now, m.Wanted)
			case 1:
				late = append(late, w.Report(now))
			case 2: // the delayed reports arrive, twice
				for _, r := range late {
					r.Received = now
					observe(r)
					observe(r)
				}
				late = nil
			case 3:
				same, full, there := w.Same(now)
				if !there {
					continue
				}
				quiet := fleet.Quiet(&same)
				changes, outcome := fleet.Observe(&same)
				if quiet && (changes.Len() > 0 || outcome.Resend) {
					t.Fatalf("seed %d, step %d: a quiet report changes something", seed, step)
				}
				if outcome.Resend {
					fleet.Observe(&full)
				}
				m.Take(full)
			default:
				observe(w.Report(now))
			}
			fleet.Expire(now)
			if problem := m.Check(fleet, now); problem != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, problem)
			}
		}
	}
}
