package supervisor

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// bench is a supervisor whose measurements the test makes, and what it did.
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

// Two evaluations at the same time share what the process takes, and one has what it
// takes alone.
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
	one.At(entity)
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

// Where it is not known what takes so much, the package is evaluated again in pieces, within
// half of the time; what takes the most of that is to blame.
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
			b.begin(t, e).At(Place{Files: 7})
			b.begin(t, e).At(Place{}) // does nothing but wait
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
			p.At(c.piece)
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

// Of several evaluations that have too much memory together, it is not known which it is:
// they are evaluated one by one.
func TestMemory(t *testing.T) {
	for name, now := range map[string]measurement{"memory": {memory: 1<<30 + 1}, "stacks": {stacks: mostStack + 1}} {
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
				p.At(Place{Files: 1})
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

// What is done while nothing is evaluated has the bound of memory as well, where it has a name.
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

// Options come before what the platform says, and that before the default.
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

// The collector is told of the least bound of what is evaluated.
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

// A nil supervisor bounds nothing.
func TestNil(t *testing.T) {
	var s *Supervisor
	s.MayBeginAgain(false)
	e := s.Evaluation("environment dev", ofDev, least)
	e.Identify(ofProd)
	p, err := e.Begin(t.Context())
	p.At(Place{})
	p.End()
	if err != nil || e.Tripped() != nil {
		t.Error(err)
	}
}
