package supervisor

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/again"
)

// bench is a supervisor whose measurements the test sets. It records the calls of the
// supervisor.
type bench struct {
	*Supervisor
	now    measurement
	again  *State
	failed *Trip
}

func newBench(o Options) *bench {
	b := &bench{}
	o.Again = func(s State) { b.again = &s }
	o.Fail = func(t Trip) { b.failed = &t }
	b.Supervisor = New(o)
	b.measure = func() measurement { return b.now }
	b.watching = true // the test looks
	return b
}

func (b *bench) begin(t *testing.T, e *Evaluation) *Part {
	t.Helper()
	p, err := e.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var (
	ofDev  = [32]byte{1}
	ofProd = [32]byte{2}
	least  = Bounds{CPU: time.Second, Memory: 1 << 30}
)

// Two evaluations at the same time share the CPU time of the process. A single evaluation
// is charged for all of it.
func TestCPU(t *testing.T) {
	b := newBench(Options{})
	dev, prod := b.Evaluation("environment dev", ofDev, least), b.Evaluation("environment prod", ofProd, least)
	one, other := b.begin(t, dev), b.begin(t, prod)
	b.now.cpu += 1800 * time.Millisecond
	if b.look(); b.again != nil {
		t.Fatal("each has taken 0.9 s")
	}
	other.End()
	entity := Place{Entity: model.Ref{Collection: "configs", Name: "x"}, At: []model.Position{{File: "a.cue", Line: 3, Column: 4}}}
	one.SetPlace(entity)
	b.now.cpu += 200 * time.Millisecond
	if b.look() || b.again == nil {
		t.Fatal("dev has taken 1.1 s")
	}
	trip := b.again.Trips[0]
	if trip.What != "environment dev" || !reflect.DeepEqual(trip.Place, entity) || b.again.OneByOne || len(b.again.Trips) != 1 || b.failed != nil {
		t.Errorf("%+v", b.again)
	}

	next := newBench(Options{State: *b.again})
	if got := next.Evaluation("environment dev", ofDev, least).Tripped(); got == nil || got.Diagnostic().Sites[0].Position != entity.At[0] {
		t.Errorf("%+v", got)
	}
	for what, sources := range map[string][32]byte{"environment dev": ofProd, "environment prod": ofDev} {
		if next.Evaluation(what, sources, least).Tripped() != nil {
			t.Errorf("%s of %v has not tripped", what, sources[0])
		}
	}
}

// If the costly place is unknown, the package is evaluated again in pieces, within half of
// the time. The piece that takes most of it gets the blame.
func TestPieces(t *testing.T) {
	entity := Place{Entity: model.Ref{Collection: "configs", Name: "x"}, Files: 1}
	for name, c := range map[string]struct {
		before time.Duration // of other pieces
		piece  Place
		want   Place
	}{
		"an entity":    {200 * time.Millisecond, entity, entity},
		"a file":       {200 * time.Millisecond, Place{Files: 1}, Place{Files: 1}},
		"all together": {400 * time.Millisecond, entity, Place{Files: 7}},
		"not known":    {0, Place{Files: 3}, Place{Files: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(Options{})
			e := b.Evaluation("environment dev", ofDev, least)
			b.begin(t, e).SetPlace(Place{Files: 7})
			b.begin(t, e).SetPlace(Place{}) // does not do anything except wait
			b.now.cpu += 1100 * time.Millisecond
			if b.look(); b.again == nil || len(b.again.Sought) != 1 || len(b.again.Trips) != 0 || b.again.OneByOne {
				t.Fatalf("%+v", b.again)
			}
			next := newBench(Options{State: *b.again})
			e = next.Evaluation("environment dev", ofDev, least)
			if !e.InPieces() || e.Tripped() != nil || next.Evaluation("environment dev", ofProd, least).InPieces() {
				t.Error("it is not evaluated in pieces")
			}
			p := next.begin(t, e)
			next.now.cpu += c.before
			next.look()
			p.SetPlace(c.piece)
			next.look()
			next.now.cpu += 510*time.Millisecond - c.before
			if next.look(); next.again == nil || len(next.again.Sought) != 0 || len(next.again.Trips) != 1 {
				t.Fatalf("%+v", next.again)
			}
			if trip := next.again.Trips[0]; !reflect.DeepEqual(trip.Place, c.want) || trip.Why != b.again.Sought[0].Why {
				t.Errorf("%+v", trip)
			}
		})
	}
}

// If several evaluations together have too much memory, it is unknown which one is the
// cause: they are evaluated one by one.
func TestMemory(t *testing.T) {
	for name, now := range map[string]measurement{"memory": {memory: 1<<30 + 1}, "stacks": {stacks: maxStack + 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(Options{})
				dev, prod := b.Evaluation("environment dev", ofDev, least), b.Evaluation("environment prod", ofProd, least)
				b.begin(t, dev)
				b.begin(t, prod)
				b.now = now
				if b.look(); b.again == nil || !b.again.OneByOne || len(b.again.Trips) != 0 {
					t.Fatalf("%+v", b.again)
				}
				next := newBench(Options{State: *b.again})
				dev, prod = next.Evaluation("environment dev", ofDev, least), next.Evaluation("environment prod", ofProd, least)
				first := next.begin(t, dev)
				second := next.begin(t, dev) // of the same evaluation
				waits := make(chan *Part)
				go func() {
					p, _ := prod.Begin(t.Context())
					waits <- p
				}()
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := prod.Begin(ended); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				first.End()
				synctest.Wait()
				select {
				case <-waits:
					t.Fatal("a part of dev goes on")
				default:
				}
				second.End()
				p := <-waits
				p.SetPlace(Place{Files: 1})
				next.now = now
				if next.look(); next.again == nil || next.again.Trips[0].What != "environment prod" {
					t.Errorf("%+v", next.again)
				}
				p.End()
			})
		})
	}
}

// With a part of the result out, or for the same a second time, the program does not begin
// again.
func TestFail(t *testing.T) {
	printed, twice := newBench(Options{}), newBench(Options{})
	printed.MayBeginAgain(false)
	e := twice.Evaluation("environment dev", ofDev, least)
	twice.options.State.Trips = []Trip{*e.trip("", "")}
	for name, b := range map[string]*bench{"printed": printed, "twice": twice} {
		b.begin(t, b.Evaluation("environment dev", ofDev, least))
		b.now.cpu = 2 * time.Second
		if b.look(); b.again != nil || b.failed == nil || b.failed.What != "environment dev" {
			t.Errorf("%s: %+v, %+v", name, b.again, b.failed)
		}
	}
}

// Work while nothing is evaluated has the bound of memory as well, if it has a name.
func TestOtherwise(t *testing.T) {
	for name, want := range map[string]bool{"": false, "compiling": true} {
		b := newBench(Options{Bounds: least})
		b.options.Otherwise = name
		b.begin(t, b.Evaluation("environment dev", ofDev, Bounds{})).End()
		b.now = measurement{cpu: time.Hour, memory: least.Memory}
		b.look()
		b.now.memory++
		if b.look(); b.again != nil || (b.failed != nil) != want {
			t.Errorf("%q: %+v, %+v", name, b.again, b.failed)
		}
		if want && b.failed.Error() != "compiling: it needs more than 1 GiB of memory; raise the bound with --evaluation-memory" {
			t.Error(b.failed)
		}
	}
}

// Options override the platform's bounds, and these override the default.
func TestBounds(t *testing.T) {
	for _, c := range []struct{ given, declared, want Bounds }{
		{Bounds{}, Bounds{}, Default()},
		{Bounds{}, least, least},
		{Bounds{CPU: time.Hour}, least, Bounds{time.Hour, least.Memory}},
		{Bounds{Memory: 5}, Bounds{CPU: 7}, Bounds{7, 5}},
	} {
		if got := New(Options{Bounds: c.given}).Evaluation("", ofDev, c.declared).bounds; got != c.want {
			t.Errorf("%v and %v: %v, want %v", c.given, c.declared, got, c.want)
		}
	}
	if d := Default(); d.CPU != 5*time.Minute || d.Memory <= 0 || d.Memory > 4<<30 {
		t.Error(d)
	}
}

// The collector gets the smallest bound of the active evaluations.
func TestCeiling(t *testing.T) {
	var told []int64
	s := New(Options{Ceiling: func(bytes int64) { told = append(told, bytes>>20) }})
	one, _ := s.Evaluation("environment dev", ofDev, Bounds{time.Hour, 800 << 20}).Begin(t.Context())
	other, _ := s.Evaluation("environment prod", ofProd, Bounds{time.Hour, 400 << 20}).Begin(t.Context())
	other.End()
	one.End()
	if want := []int64{700, 350, 700, 1<<43 - 1}; !reflect.DeepEqual(told, want) {
		t.Errorf("%v, want %v", told, want)
	}
}

// A nil supervisor does not bound anything.
func TestNil(t *testing.T) {
	var s *Supervisor
	s.MayBeginAgain(false)
	e := s.Evaluation("environment dev", ofDev, least)
	e.Identify(ofProd)
	p, err := e.Begin(t.Context())
	p.SetPlace(Place{})
	p.End()
	if err != nil || e.Tripped() != nil {
		t.Error(err)
	}
}

// An environment that has used a part of its bounds is put off. It is not put off if a part
// of the result is out, or if the program needs everything at once. The other active
// environments are put off with it, but the base is not.
func TestLate(t *testing.T) {
	for name, c := range map[string]struct {
		what   string
		defers bool
		final  bool
		now    measurement
		want   []string
	}{
		"little":            {"environment dev", true, false, measurement{cpu: 100 * time.Millisecond, memory: 1 << 28}, nil},
		"CPU time":          {"environment dev", true, false, measurement{cpu: 130 * time.Millisecond}, []string{"dev"}},
		"memory":            {"environment dev", true, false, measurement{memory: 600 << 20}, []string{"dev"}},
		"all memory":        {"environment dev", true, false, measurement{memory: 2 << 30}, []string{"dev"}},
		"stacks":            {"environment dev", true, false, measurement{stacks: maxStack + 1}, []string{"dev"}},
		"all at once":       {"environment dev", false, false, measurement{cpu: 130 * time.Millisecond}, nil},
		"a part is written": {"environment dev", true, true, measurement{cpu: 130 * time.Millisecond}, nil},
		"the base":          {"the platform's base", true, false, measurement{cpu: 130 * time.Millisecond}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(Options{})
			b.Defer(c.defers)
			b.MayBeginAgain(!c.final)
			b.begin(t, b.Evaluation(c.what, ofDev, least))
			b.now = c.now
			if b.look(); c.want == nil {
				if b.again != nil || b.failed != nil {
					t.Errorf("%+v, %+v", b.again, b.failed)
				}
				return
			}
			if b.again == nil || !reflect.DeepEqual(b.again.Late, c.want) || len(b.again.Trips)+len(b.again.Sought) > 0 {
				t.Fatalf("%+v", b.again)
			}
			next := newBench(Options{State: *b.again})
			if got := next.Late(); !reflect.DeepEqual(got, c.want) {
				t.Error(got)
			}
			// A process below tries it: first within as much as others wait for.
			little := newBench(Options{State: next.TrialOf("dev", true)})
			e := little.Evaluation("environment dev", ofDev, least)
			if want := (Bounds{least.CPU / lateCPU, least.Memory / lateMemory}); little.Trial() != "dev" || little.Late() != nil || e.bounds != want {
				t.Errorf("%q, %q, %v", little.Trial(), little.Late(), e.bounds)
			}
			little.begin(t, e).SetPlace(Place{Files: 2})
			little.now.cpu = 200 * time.Millisecond
			if little.look(); little.again == nil || len(little.again.Trips) != 1 || len(little.again.Sought) > 0 {
				t.Fatalf("nothing is looked for within little: %+v", little.again)
			}
			if e := newBench(Options{State: next.TrialOf("dev", false)}).Evaluation("environment dev", ofDev, least); e.bounds != least {
				t.Errorf("%v", e.bounds)
			}
			next.Learn(little.again.Trips)
			next.Learn(little.again.Trips)
			if len(next.Trips()) != 1 || next.Evaluation("environment dev", ofDev, least).Tripped() == nil {
				t.Errorf("%+v", next.Trips())
			}
		})
	}
}

// All attempts together take less than twice the bound of CPU time. If too little is left,
// the supervisor does not look for the place.
func TestSpent(t *testing.T) {
	b := newBench(Options{})
	b.begin(t, b.Evaluation("environment dev", ofDev, least)).SetPlace(Place{Files: 7})
	b.now = measurement{cpu: 900 * time.Millisecond, memory: 2 << 30}
	if b.look(); b.again == nil || len(b.again.Sought) != 1 {
		t.Fatalf("%+v", b.again)
	}
	next := newBench(Options{State: *b.again})
	e := next.Evaluation("environment dev", ofDev, least)
	if got := e.maxCPU(); got != 500*time.Millisecond {
		t.Errorf("half of the bound is left, and not %s", got)
	}
	if got := next.Evaluation("environment dev", ofProd, least); got.left(next.options.State) != 1750*time.Millisecond {
		t.Error("other sources have taken nothing")
	}
	state := *b.again
	state.Sought = nil
	state.OneByOne = true
	again := newBench(Options{State: state})
	again.begin(t, again.Evaluation("environment dev", ofDev, least)).SetPlace(Place{Files: 7})
	again.now = measurement{cpu: 950 * time.Millisecond, memory: 2 << 30}
	if again.look(); again.again == nil || len(again.again.Sought) != 0 || len(again.again.Trips) != 1 {
		t.Errorf("it has taken 1.85 s: %+v", again.again)
	}
}

// The guard gets the limits at which the program begins again, and the state, whenever the
// active evaluations change. It gets no limit if nothing is evaluated.
func TestGuard(t *testing.T) {
	var told []again.Limit
	calls := 0
	b := newBench(Options{Guard: func(limits ...again.Limit) error { told, calls = limits, calls+1; return nil }})
	e := b.Evaluation("environment dev", ofDev, least)
	p := b.begin(t, e)
	p.SetPlace(Place{Files: 1})
	b.now = measurement{cpu: 400 * time.Millisecond}
	b.look()
	b.look()
	if calls != 1 || len(told) != 2 || told[0].Memory != 1152<<20 || told[1].CPU != 1125*time.Millisecond {
		t.Fatalf("%d calls: %+v", calls, told)
	}
	for _, l := range told {
		if trips := l.State.(State).Trips; len(trips) != 1 || trips[0].Place.Files != 1 || l.State.(State).Spent[e.identity()] != 400*time.Millisecond {
			t.Errorf("%+v", l.State)
		}
	}
	b.MayBeginAgain(false)
	p.SetPlace(Place{Files: 2})
	b.look()
	failed := told[0].State.(State).Failed
	if calls != 2 || failed == nil || failed.Place.Files != 2 {
		t.Fatalf("%d calls: %+v", calls, told)
	}
	if p.End(); calls != 3 || len(told) != 0 {
		t.Errorf("%d calls: %+v", calls, told)
	}
	next := newBench(Options{State: State{Failed: failed}})
	if !reflect.DeepEqual(next.failed, failed) || next.options.State.Failed != nil {
		t.Errorf("%+v", next.failed)
	}
}
