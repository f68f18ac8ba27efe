package promotion

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/internal/testing/remotetest"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// TestModel applies random events to random platforms, and compares the engine with the rules,
// run by run. It checks the invariants in the repositories themselves. With KALYPSO_LONG=1 there
// are many more events.
func TestModel(t *testing.T) { randomEvents(t) }

func TestSlowModel(t *testing.T) {
	isolated.Slow(t, "it goes through more random events")
	randomEvents(t)
}

func randomEvents(t *testing.T) {
	remotetest.Isolate(t)
	server := newModelServer(t, false)
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	seeds, events := 200, 4
	switch {
	case !isolated.IsSlow(t):
	case os.Getenv("KALYPSO_LONG") != "":
		seeds, events = 1000, 40
	default:
		seeds, events = 200, 10
	}
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				holdsFor(t, server, newScenario(uint64(seed), events))
			})
		}
	})
}

// TestModelOnGit is TestModel with git's own server.
func TestModelOnGit(t *testing.T) {
	if testing.Short() {
		t.Skip("git's own server is slow")
	}
	remotetest.Isolate(t)
	server := newModelServer(t, true)
	seeds := 2
	if os.Getenv("KALYPSO_LONG") != "" {
		seeds = 60
	}
	for seed := range seeds {
		holdsFor(t, server, newScenario(uint64(seed)+1_000_000, 8))
	}
}

// TestModelFound are the shortest sequences of events for the mistakes that random events have
// found.
func TestModelFound(t *testing.T) {
	remotetest.Isolate(t)
	server := newModelServer(t, false)
	run, push := event{"run", 0, 0, 0}, event{"push", 0, 0, 0}
	rings := []modelRing{{Name: "canary"}, {Name: "east", After: []string{"canary"}}}
	reports := modelGates{Rollout: &model.RolloutGate{Source: "report", Min: "100%"}}
	for _, c := range []struct {
		name         string
		environments []modelEnvironment
		events       []event
	}{
		{"the same order twice", []modelEnvironment{{Name: "a"}}, []event{{"reject", 0, 0, 0}, {"reject", 0, 0, 0}, {"freeze", 0, 1, 0}, {"freeze", 0, 1, 0}}},
		{
			"a hold of a ring that has nothing", []modelEnvironment{{Name: "a", modelGates: reports, Rings: rings}},
			[]event{run, {"hold", 1, 1, 0}, {"report", 0, 0, 0}, push, run},
		},
		{"one step back, and one more", []modelEnvironment{{Name: "a"}}, []event{run, push, run, push, run, {"rollback", 0, 0, 1}, {"rollback", 0, 0, 1}, run}},
		{"a step back over edits by hand", []modelEnvironment{{Name: "a"}}, []event{run, push, run, {"edit", 0, 0, 0}, {"rollback", 0, 0, 1}, {"rollback", 0, 0, 0}}},
		{"an end of edits keeps a hold", []modelEnvironment{{Name: "a"}}, []event{run, {"hold", 0, 1, 0}, {"edit", 0, 0, 0}, {"overwrite", 0, 0, 0}}},
		{
			"an end of edits while something waits", []modelEnvironment{{Name: "a", Advance: model.Latest}},
			[]event{run, {"edit", 0, 0, 0}, push, {"reject", 0, 0, 0}, {"overwrite", 0, 0, 0}, {"verify", 0, 0, 0}},
		},
		{"the files of before, by change request", []modelEnvironment{{Name: "a"}}, []event{run, push, run, {"rollback", 0, 0, 0}}},
		{"a freeze of what people may merge", []modelEnvironment{{Name: "a", Manual: true}}, []event{run, push, run, {"freeze", 0, 1, 0}, run, {"merge", 0, 0, 0}}},
		{"an edit where people may merge", []modelEnvironment{{Name: "a", Manual: true}}, []event{run, push, run, {"edit", 0, 0, 0}, run, run}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.environments {
				c.environments[i].Types = 1
			}
			for _, hosted := range []bool{false, true} {
				if err := (scenario{policy: &modelPolicy{c.environments}, events: c.events, forge: hosted}).run(t, server); err != nil {
					t.Errorf("with a forge: %v: %v", hosted, err)
				}
			}
		})
	}
}

// TestLostRaceEndsARun lets another run promote a newer commit to a stage after a run has read
// its state. The first run does not decide anything about the stages after that stage.
func TestLostRaceEndsARun(t *testing.T) {
	remotetest.Isolate(t)
	gates := modelGates{Rollout: &model.RolloutGate{Source: "report", Min: "0%"}}
	first, second := modelEnvironment{Name: "a", Types: 1, modelGates: gates}, modelEnvironment{Name: "b", Types: 1, After: []string{"a"}}
	w := newWorld(t, newModelServer(t, false), scenario{policy: &modelPolicy{[]modelEnvironment{first, second}}})
	defer w.close()
	ctx := context.Background()
	happen := func(what string) {
		t.Helper()
		if err := w.happen(event{what, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
	}
	happen("run")
	happen("report")
	happen("push")
	late, err := Open(ctx, w.request())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	happen("push")
	r := w.request()
	r.Environments = []string{"a"}
	if err := w.apply(ctx, r); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Apply(ctx, plan.Intent{}, nil); !errors.Is(err, git.ErrLostRace) {
		t.Errorf("the late run has %v, and should have %v", err, git.ErrLostRace)
	}
	if tip := w.gitops.refs()[session.BranchRef("b")]; !tip.IsZero() {
		t.Errorf("the late run pushed %s to b", tip)
	}
}

// holdsFor runs a scenario. One that fails is made shorter before it is shown.
func holdsFor(t *testing.T, server *modelServer, s scenario) {
	t.Helper()
	err := s.run(t, server)
	if err == nil {
		return
	}
	deadline := time.Now().Add(20 * time.Second)
	for shorter := true; shorter && time.Now().Before(deadline); {
		shorter = false
		for i := len(s.events) - 1; i >= 0 && time.Now().Before(deadline); i-- {
			less := s
			less.events = slices.Delete(slices.Clone(s.events), i, i+1)
			if failure := less.run(t, server); failure != nil {
				s, err, shorter = less, failure, true
			}
		}
	}
	t.Errorf("seed %d: %v\n%s", s.seed, err, s)
}

// scenario is a platform and the events in its life.
type scenario struct {
	seed   uint64
	policy *modelPolicy
	events []event
	forge  bool // hosts the repositories
}

// event is something that happens. The meaning of its numbers depends on its kind. They have a
// meaning in every state, so that a test can leave out events.
type event struct {
	what    string
	a, b, c int
}

func (s scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "with a forge: %v\n", s.forge)
	for _, e := range s.policy.Environments {
		fmt.Fprintf(&b, "environment %s after %v any=%v manual=%v %s, %d cluster types, %v\n", e.Name, e.After, e.Any, e.Manual, e.Advance, e.Types, e.modelGates)
		for _, r := range e.Rings {
			fmt.Fprintf(&b, "  ring %s after %v, %v\n", r.Name, r.After, r.modelGates)
		}
	}
	for _, e := range s.events {
		fmt.Fprintf(&b, "{%q, %d, %d, %d},\n", e.what, e.a, e.b, e.c)
	}
	return b.String()
}

func (g modelGates) String() string {
	var out []string
	if g.Rollout != nil {
		out = append(out, fmt.Sprintf("rollout %+v", *g.Rollout))
	}
	if g.Soak != nil {
		out = append(out, fmt.Sprintf("soak %+v", *g.Soak))
	}
	if g.Budget != nil {
		out = append(out, fmt.Sprintf("budget %d", *g.Budget))
	}
	return strings.Join(out, "; ")
}

// happens are events, as often as they should come.
var happens = []struct {
	what  string
	times int
}{
	{"push", 10}, {"broken", 1}, {"small", 2}, {"own", 4}, {"both", 1}, {"policy", 1}, {"same", 1},
	{"report", 14}, {"clock", 8}, {"rollback", 3}, {"hold", 1}, {"release", 3}, {"freeze", 1}, {"thaw", 1},
	{"reject", 2}, {"unreject", 1}, {"edit", 1}, {"overwrite", 2}, {"named", 3}, {"revert", 3}, {"rename", 1}, {"force", 2}, {"merge", 8},
}

func newScenario(seed uint64, events int) scenario {
	random := rand.New(rand.NewPCG(seed, 11))
	s := scenario{seed: seed, policy: randomPolicy(random), forge: seed%3 == 2}
	var bag []string
	for _, h := range happens {
		bag = append(bag, slices.Repeat([]string{h.what}, h.times)...)
	}
	for range events {
		s.events = append(s.events, event{bag[random.IntN(len(bag))], random.IntN(1000), random.IntN(1000), random.IntN(1000)})
		switch random.IntN(8) {
		case 0, 1:
		case 2:
			s.events = append(s.events, event{"race", 2 + random.IntN(2), 0, 0})
		case 3:
			s.events = append(s.events, event{"crash", random.IntN(60), random.IntN(2), random.IntN(2)})
		case 4:
			s.events = append(s.events, event{"run", 0, 0, 0}, event{"run", 0, 0, 0})
		default:
			s.events = append(s.events, event{"run", 0, 0, 0})
		}
	}
	s.events = append(s.events, event{"run", 0, 0, 0}, event{"verify", 0, 0, 0})
	return s
}

func randomPolicy(random *rand.Rand) *modelPolicy {
	p := &modelPolicy{}
	names := []string{"a", "b", "c", "d"}[:1+random.IntN(4)]
	for i, name := range names {
		e := modelEnvironment{Name: name, Types: 1 + random.IntN(2), Any: random.IntN(3) == 0, Manual: random.IntN(3) == 0}
		e.Advance = []model.Advance{model.LatestPassed, model.LatestPassed, model.Latest, model.MatchUpstream, model.Queue, model.Lockstep, model.Lockstep, model.Batch}[random.IntN(8)]
		if e.Advance == model.Batch {
			e.Every = time.Duration(1+random.IntN(4)) * 20 * time.Minute
		}
		if i > 0 {
			for _, before := range names[:i] {
				if random.IntN(2) == 0 {
					e.After = append(e.After, before)
				}
			}
		}
		e.modelGates = randomGates(random, len(e.After) > 0, names)
		if random.IntN(3) == 0 {
			rings := []string{"canary", "east", "west"}[:2+random.IntN(2)]
			for j, ring := range rings {
				r := modelRing{Name: ring}
				if j > 0 && random.IntN(4) > 0 {
					r.After = []string{rings[random.IntN(j)]}
				}
				if random.IntN(3) == 0 {
					r.modelGates = randomGates(random, len(r.After) > 0 || len(e.After) > 0, names)
				}
				e.Rings = append(e.Rings, r)
			}
		}
		p.Environments = append(p.Environments, e)
	}
	return p
}

func randomGates(random *rand.Rand, after bool, names []string) modelGates {
	var g modelGates
	switch random.IntN(4) {
	case 0:
		g.Rollout = &model.RolloutGate{Source: "none"}
	case 1, 2:
		g.Rollout = &model.RolloutGate{
			Source: "report", Min: []string{"100%", "50%", "0%"}[random.IntN(3)], MaxFailed: random.IntN(2),
			Timeout: time.Duration(random.IntN(2)*random.IntN(3)) * time.Hour,
		}
	}
	if random.IntN(3) == 0 && after {
		g.Soak = &model.SoakGate{For: time.Duration(1+random.IntN(3)) * 30 * time.Minute}
		g.Soak.Restart = random.IntN(2) == 0
		if random.IntN(4) == 0 {
			g.Soak.Environment = names[random.IntN(len(names))]
		}
	}
	if random.IntN(8) == 0 {
		most := random.IntN(9)
		g.Budget = &most
	}
	return g
}

// errDiffers is the error if the engine does not follow the rules.
var errDiffers = errors.New("the engine does not do what the rules say")

// run applies all events, and returns an error if the engine or the rules are wrong.
func (s scenario) run(t testing.TB, server *modelServer) (err error) {
	w := newWorld(t, server, s)
	defer w.close()
	for i, e := range s.events {
		if err := w.happen(e); err != nil {
			return fmt.Errorf("event %d, %v: %w", i, e, err)
		}
	}
	return nil
}
