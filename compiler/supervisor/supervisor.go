// Package supervisor bounds the cost of evaluating a platform's own CUE. A goroutine that
// evaluates CUE cannot be ended, and a separate process costs too much for a small
// platform. So a goroutine measures the process while something is evaluated. If an
// evaluation exceeds a bound, which is called a trip, the program begins again without it.
// If goroutines do not run, because of a waiting garbage collection, a guard outside of the
// scheduler does the same.
package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/internal/again"
)

// Bounds are the most that an evaluation may cost.
type Bounds struct {
	CPU    time.Duration // of all processors together
	Memory int64         // bytes of the whole process while it is evaluated
}

// or returns the bounds, with fields of the others instead of zeros.
func (b Bounds) or(others Bounds) Bounds {
	return Bounds{cmp.Or(b.CPU, others.CPU), cmp.Or(b.Memory, others.Memory)}
}

// State is the knowledge with which the program begins again.
type State struct {
	// Trips are not evaluated again.
	Trips []Trip `json:"trips,omitempty"`
	// Sought are trips at an unknown place, in one of several files. They are evaluated
	// again, in pieces, to find the place.
	Sought []Trip `json:"sought,omitempty"`
	// OneByOne forbids evaluating two packages at the same time. Together they had too much
	// memory, and the program does not know which one takes it.
	OneByOne bool `json:"oneByOne,omitempty"`
	// Spent is the CPU time of evaluations that did not end before, by their identity. The
	// bound on CPU time covers all attempts together.
	Spent map[string]time.Duration `json:"spent,omitempty"`
	// Failed is a trip that ends the program as soon as it has begun again.
	Failed *Trip `json:"failed,omitempty"`
	// Late are the environments that others do not wait for; see Defer.
	Late []string `json:"late,omitempty"`
	// Trial is the environment that this process only tries to evaluate. Little reports
	// that it may use little of its bounds; see TrialOf.
	Trial  string `json:"trial,omitempty"`
	Little bool   `json:"little,omitempty"`
}

// Options configure a Supervisor.
type Options struct {
	State State
	// Bounds apply to everything and override the platform's bounds. A field that is zero
	// leaves the platform's bound, or Default.
	Bounds Bounds
	// Otherwise names the work of the program while nothing is evaluated. Its memory is
	// bounded as well: beyond the bound, the Supervisor calls Fail. "" means no bound.
	Otherwise string
	// Again makes the program begin again with a state. Fail ends it because of a trip if
	// it must not begin again. The Supervisor calls only one of them, which must not
	// return: evaluations go on for as long as the process.
	Again func(State)
	Fail  func(Trip)
	// Ceiling is called when the amount of memory changes that the collector should allow
	// the process, in bytes. It may be nil.
	Ceiling func(bytes int64)
	// Guard is called when the limits change at which the program begins again although no
	// goroutine runs. It may be nil.
	Guard func(...again.Limit) error
}

// Supervisor bounds the evaluations of one process. A process must have only one. Several
// goroutines may call its methods. A nil Supervisor does not bound anything.
type Supervisor struct {
	options Options
	measure func() measurement

	mu       sync.Mutex
	turn     sync.Cond // of evaluations that wait for other evaluations to end
	active   []*Evaluation
	last     time.Duration // of the process's CPU time, that is charged
	idle     int           // ticks since something was evaluated
	watching bool
	final    bool // the program must not begin again
	defers   bool // environments that take long are put off
	tripped  bool
	guarded  bool     // there are limits of the guard
	places   []*Place // that they were made with
}

// New returns a Supervisor.
func New(o Options) *Supervisor {
	s := &Supervisor{options: o, measure: newMeter()}
	s.turn.L = &s.mu
	if failed := o.State.Failed; failed != nil {
		s.options.State.Failed = nil
		o.Fail(*failed)
	}
	if o.Otherwise != "" {
		s.watching = true
		go s.watch()
	}
	return s
}

// MayBeginAgain reports whether the program may begin again from now on. It may at first,
// and must not when a part of its result is printed or written.
func (s *Supervisor) MayBeginAgain(may bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.final = !may
}

const (
	// tick is the time between two measurements. In that time a process can write some ten
	// megabytes of new memory.
	tick = 10 * time.Millisecond
	// maxIdle is the number of ticks for which the watch goes on when nothing is
	// evaluated.
	maxIdle = 100
	// maxStack is the memory that the stacks of goroutines may have, in bytes. Go ends a
	// process whose stack does not fit in a gibibyte, and doubles a stack when it is full.
	maxStack = 900 << 20
	// largestStack is the most that Go allows for a stack (runtime/debug.SetMaxStack).
	largestStack = 2_000_000_000
)

// watch measures until nothing was evaluated for a while.
func (s *Supervisor) watch() {
	debug.SetMaxStack(largestStack)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for range ticker.C {
		if !s.look() {
			return
		}
	}
}

// look measures once, and returns whether to go on.
func (s *Supervisor) look() bool {
	s.mu.Lock()
	now := s.measure()
	s.charge(now)
	if s.idle++; len(s.active) > 0 {
		s.idle = 0
	}
	s.watching = s.idle < maxIdle || s.options.Otherwise != ""
	if s.tripped {
		defer s.mu.Unlock()
		return s.watching
	}
	trip, together := s.judge(now)
	var state State
	switch late := s.late(now); {
	case trip != nil:
		state = s.stateAfter(trip, together)
	case late != nil:
		state = s.spent().withLate(late)
	default:
		s.guard(now)
		defer s.mu.Unlock()
		return s.watching
	}
	s.tripped = true // the following call takes a moment
	s.mu.Unlock()
	if state.Failed != nil {
		s.options.Fail(*state.Failed)
	} else {
		s.options.Again(state)
	}
	return false
}

// stateAfter returns the state in which the program begins again after a trip. together reports
// that the trip belongs to one of several evaluations, and that it is unknown which one.
func (s *Supervisor) stateAfter(trip *Trip, together bool) State {
	state := s.spent()
	if s.final || len(s.active) == 0 || slices.ContainsFunc(state.Trips, trip.repeats) {
		state.Failed = trip
		return state
	}
	blamed := slices.DeleteFunc(slices.Clone(s.active), func(e *Evaluation) bool {
		return !together && e.what != trip.What
	})
	switch {
	case s.defers &&
		!slices.ContainsFunc(blamed, func(e *Evaluation) bool { return e.environment() == "" }):
		return state.withLate(blamed)
	case together:
		state.OneByOne = true
		return state
	}
	mayLook := !state.Little && len(blamed) > 0 && blamed[0].left(state) > 0
	return state.with(*trip, mayLook)
}

// spent returns the state with the CPU time of the active evaluations.
func (s *Supervisor) spent() State {
	state := s.options.State
	state.Spent = maps.Clone(state.Spent)
	for _, e := range s.active {
		if state.Spent == nil {
			state.Spent = map[string]time.Duration{}
		}
		state.Spent[e.identity()] += e.cpu
	}
	return state
}

// with returns the state with a trip. If the place of the trip is unknown, the package is
// evaluated again in pieces to find it. It is not evaluated again if the place is known, if
// it was sought before, or if mayLook is false.
func (s State) with(t Trip, mayLook bool) State {
	s.Sought, s.Trips = slices.Clone(s.Sought), slices.Clone(s.Trips)
	if i := slices.IndexFunc(s.Sought, t.repeats); i >= 0 {
		if t.Place.exact() {
			s.Sought[i].Place = t.Place
		}
		s.Trips = append(s.Trips, s.Sought[i])
		s.Sought = slices.Delete(s.Sought, i, i+1)
		return s
	}
	if t.Place.exact() || !mayLook {
		s.Trips = append(s.Trips, t)
		return s
	}
	s.Sought = append(s.Sought, t)
	s.OneByOne = s.OneByOne || t.Bound != "cpu" // memory covers all evaluations together
	return s
}

// charge divides the CPU time since the last charge among the active evaluations.
func (s *Supervisor) charge(now measurement) {
	for _, e := range s.active {
		e.cpu += (now.cpu - s.last) / time.Duration(len(s.active))
	}
	s.last = now.cpu
}

// judge returns the trip of an evaluation that exceeds a bound, or nil. together reports
// that the trip belongs to one of several evaluations, and that it is unknown which one.
func (s *Supervisor) judge(now measurement) (t *Trip, together bool) {
	for _, e := range s.active {
		// Note the places of the parts.
		for _, p := range e.parts {
			now := p.place.Load()
			if p.ticks++; now != p.seen {
				p.seen, p.ticks, p.since = now, 0, e.cpu
			}
		}
		if e.cpu > e.maxCPU() {
			return e.beyondCPU(), false
		}
	}
	if bounds := s.options.Bounds.or(Default()); len(s.active) == 0 && s.options.Otherwise != "" &&
		now.memory > bounds.Memory {
		return &Trip{What: s.options.Otherwise, Why: beyondMemory(bounds), Bound: "memory"}, false
	}
	for _, e := range s.active {
		switch {
		case now.memory > e.bounds.Memory:
			return s.beyondMemory(e, "memory", beyondMemory(e.bounds))
		case now.stacks > maxStack:
			return s.beyondMemory(e, "", "it recurses without end, or too deeply")
		}
	}
	return nil, false
}

// beyondMemory returns the trip of an evaluation in a process that has too much memory, or
// the trip of all evaluations together.
func (s *Supervisor) beyondMemory(e *Evaluation, bound, why string) (t *Trip, together bool) {
	if len(s.active) == 1 {
		return e.trip(bound, why), false
	}
	var names []string
	for _, e := range s.active {
		names = append(names, e.what)
	}
	return &Trip{What: strings.Join(slices.Sorted(slices.Values(names)), " or "), Why: why,
		Bound: bound}, true
}

func beyondMemory(b Bounds) string {
	return fmt.Sprintf("it needs more than %s of memory", SizeText(b.Memory))
}

// SizeText writes a number of bytes in the form that people use.
func SizeText(bytes int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", bytes/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// ceiling passes the smallest bound of the active evaluations to the collector. Below that
// size, garbage must not look like need.
func (s *Supervisor) ceiling() {
	if s.options.Ceiling == nil {
		return
	}
	least := int64(math.MaxInt64)
	for _, e := range s.active {
		bound := e.bounds.Memory
		if s.defers && !s.final {
			bound /= lateMemory
		}
		least = min(least, bound/8*7)
	}
	s.options.Ceiling(least)
}

// begin begins a part of an evaluation. Where packages are evaluated one by one it waits.
func (s *Supervisor) begin(ctx context.Context, p *Part) error {
	e := p.evaluation
	s.mu.Lock()
	defer s.mu.Unlock()
	defer context.AfterFunc(ctx, s.wake)()
	for s.options.State.OneByOne && len(s.active) > 0 && s.active[0] != e && ctx.Err() == nil {
		s.turn.Wait()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.charge(s.measure())
	if e.parts = append(e.parts, p); len(e.parts) == 1 {
		s.active = append(s.active, e)
		s.ceiling()
		if s.guarded {
			s.guard(s.measure())
		}
	}
	if !s.watching {
		s.watching, s.idle = true, 0
		go s.watch()
	}
	return nil
}

func (s *Supervisor) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn.Broadcast()
}

// end ends a part of an evaluation.
func (s *Supervisor) end(p *Part) {
	e := p.evaluation
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charge(s.measure())
	e.parts = slices.DeleteFunc(e.parts, func(o *Part) bool { return o == p })
	if len(e.parts) == 0 {
		s.active = slices.DeleteFunc(s.active, func(o *Evaluation) bool { return o == e })
		s.ceiling()
		s.turn.Broadcast()
	}
	if len(s.active) == 0 {
		s.unguard()
	}
}
