package supervisor

import (
	"cmp"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/internal/again"
)

// guard updates the limits of the guard if the evaluations have changed. The limits are a
// little beyond the bounds: the guard makes the program begin again if this goroutine does
// not run.
func (s *Supervisor) guard(now measurement) {
	if s.options.Guard == nil || len(s.active) == 0 {
		return
	}
	var places []*Place
	for _, e := range s.active {
		for _, p := range e.parts {
			places = append(places, p.seen)
		}
	}
	if s.guarded && slices.Equal(places, s.places) {
		return
	}
	s.guarded, s.places = true, places
	least := slices.MinFunc(s.active, func(a, b *Evaluation) int {
		return cmp.Compare(a.bounds.Memory, b.bounds.Memory)
	})
	memory, together := s.beyondMemory(least, "memory", beyondMemory(least.bounds))
	first := slices.MinFunc(s.active, func(a, b *Evaluation) int {
		return cmp.Compare(a.maxCPU()-a.cpu, b.maxCPU()-b.cpu)
	})
	left := (first.maxCPU() - first.cpu) * time.Duration(len(s.active))
	_ = s.options.Guard( // without it, bounds are kept less exactly
		again.Limit{Memory: least.bounds.Memory / 8 * 9, State: s.stateAfter(memory, together)},
		again.Limit{CPU: now.cpu + left + first.bounds.CPU/8,
			State: s.stateAfter(first.beyondCPU(), false)},
	)
}

// unguard removes the limits, because nothing is evaluated.
func (s *Supervisor) unguard() {
	if s.guarded {
		s.guarded = false
		_ = s.options.Guard() // it ends always
	}
}
