package promotion

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// TestNoPolicyLocksUp lets random things happen to random platforms, by the rules that TestModel compares
// the engine with. Then a commit comes that all gates let through: runs and time alone bring it everywhere.
func TestNoPolicyLocksUp(t *testing.T) { noPolicyLocksUp(t, 200) }

func TestSlowNoPolicyLocksUp(t *testing.T) {
	isolated.Slow(t, "it tries more policies")
	seeds := 5_000
	if os.Getenv("KALYPSO_LONG") != "" {
		seeds = 100_000
	}
	noPolicyLocksUp(t, seeds)
}

func noPolicyLocksUp(t *testing.T, seeds int) {
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 13))
		w := newLiveWorld(passable(randomPolicy(random)))
		var did []string
		for n := range 30 {
			did = append(did, w.happen(random, n+1))
		}
		if late := w.settle(); late != "" {
			t.Errorf("seed %d: %s\n%s%s", seed, late, scenario{policy: w.policy}, strings.Join(did, "\n"))
			if seeds > 1000 {
				return
			}
		}
	}
}

// TestEveryPairOfWaysToAdvance lets all short histories happen to each pair of ways to advance, one after the
// other in a chain of four environments, with and without soaking, rings, and reports.
func TestEveryPairOfWaysToAdvance(t *testing.T) { everyPair(t, 2) }

func TestSlowEveryPairOfWaysToAdvance(t *testing.T) {
	isolated.Slow(t, "it tries longer histories")
	events := 3
	if os.Getenv("KALYPSO_LONG") != "" {
		events = 6 // each may be a commit
	}
	everyPair(t, events)
}

func everyPair(t *testing.T, events int) {
	ways := []model.Advance{model.LatestPassed, model.Latest, model.MatchUpstream, model.Queue, model.Lockstep, model.Batch}
	kinds := []string{"push", "bad", "both", "clock", "reports"}
	for n := range len(ways) * len(ways) * 8 {
		first, second := ways[n%len(ways)], ways[n/len(ways)%len(ways)]
		options := n / len(ways) / len(ways)
		soak, rings, reports := options&1 > 0, options&2 > 0, options&4 > 0
		p := &modelPolicy{}
		for i, name := range []string{"a", "b", "c", "d"} {
			e := modelEnvironment{Name: name, Types: 1, Every: time.Hour, Advance: []model.Advance{model.LatestPassed, first, second, model.LatestPassed}[i]}
			if e.Rollout = (&model.RolloutGate{Source: "none"}); reports {
				e.Rollout = &model.RolloutGate{Source: "report", Min: "100%"}
			}
			if i > 0 {
				e.After = []string{p.Environments[i-1].Name}
			}
			if soak && i > 1 {
				e.Soak = &model.SoakGate{For: 40 * time.Minute}
			}
			if rings && i > 1 {
				e.Rings = []modelRing{{Name: "canary"}, {Name: "main", After: []string{"canary"}}}
			}
			p.Environments = append(p.Environments, e)
		}
		all := 1
		for range events {
			all *= len(kinds)
		}
		for history := range all {
			w := newLiveWorld(passable(p))
			var did []string
			for rest, i := history, 0; i < events; rest, i = rest/len(kinds), i+1 {
				did = append(did, w.do(kinds[rest%len(kinds)], "c", i+1))
				w.rules.run(false)
			}
			if late := w.settle(); late != "" {
				t.Fatalf("%s, then %s, soak %v, rings %v, reports %v: %s\n%s%s", first, second, soak, rings, reports, late, scenario{policy: p}, strings.Join(did, "\n"))
			}
		}
	}
}

// passable removes the gates from a policy that only people can open.
func passable(p *modelPolicy) *modelPolicy {
	queues := p.queues()
	for i := range p.Environments {
		e := &p.Environments[i]
		before := map[string]bool{}
		for j := i - 1; j >= 0; j-- {
			before[p.Environments[j].Name] = before[p.Environments[j].Name] || slices.Contains(e.After, p.Environments[j].Name)
		}
		e.Manual = false
		gates := []*modelGates{&e.modelGates}
		for j := range e.Rings {
			gates = append(gates, &e.Rings[j].modelGates)
		}
		for _, g := range gates {
			if g.Budget = nil; g.Rollout != nil && queues {
				g.Rollout.Timeout = 0 // in a queue, commits cannot overtake a failed one
			}
			if g.Soak != nil && !before[g.Soak.Environment] {
				g.Soak.Environment = ""
			}
		}
		if len(e.After) == 0 { // vet refuses a soak without a stage before it
			e.Soak = nil
			for j := range e.Rings {
				if len(e.Rings[j].After) == 0 {
					e.Rings[j].Soak = nil
				}
			}
			if e.Advance == model.MatchUpstream {
				e.Advance = model.LatestPassed
			}
		}
	}
	return p
}

// queues reports whether commits have to wait for each other somewhere.
func (p *modelPolicy) queues() bool {
	return slices.ContainsFunc(p.Environments, func(e modelEnvironment) bool { return e.Advance == model.Queue })
}

// liveWorld is a platform and its clusters, by only the rules.
type liveWorld struct {
	rules  rules
	policy *modelPolicy
}

func newLiveWorld(p *modelPolicy) *liveWorld {
	w := &liveWorld{policy: p}
	w.rules.now, w.rules.recorded = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), map[string]string{}
	w.rules.push(p, "text0 0", nil)
	w.rules.order()
	return w
}

// badText is in the base or the own files of a commit with which clusters fail.
const badText = "bad"

// happen does something random.
func (w *liveWorld) happen(random *rand.Rand, n int) string {
	environment := w.policy.Environments[random.IntN(len(w.policy.Environments))].Name
	kind := []string{"push", "push", "own", "both", "clock", "clock", "clock", "reports", "reports", "some reports", "bad", "bad own", "broken"}[random.IntN(13)]
	if kind == "some reports" {
		w.report(w.rules.stages[random.IntN(len(w.rules.stages))])
	}
	did := w.do(kind, environment, n)
	if random.IntN(3) > 0 {
		w.rules.run(false)
		did += ", run"
	}
	return did
}

// do applies an event, the nth in its sequence, and returns a description of it.
func (w *liveWorld) do(kind, environment string, n int) string {
	r, text := &w.rules, fmt.Sprintf("text%d %d", n, n)
	if w.policy.queues() && strings.HasPrefix(kind, "b") && kind != "both" {
		kind = "reports" // in a queue, commits cannot overtake a failed one
	}
	last := &r.commits[len(r.commits)-1]
	switch kind {
	case "push":
		r.push(w.policy, text, nil)
	case "broken":
		r.push(w.policy, text+" "+brokenBase, nil)
	case "bad":
		r.push(w.policy, badText+text, nil)
	case "own":
		r.push(w.policy, last.text, map[string]string{environment: text})
	case "bad own":
		r.push(w.policy, last.text, map[string]string{environment: badText + text})
	case "both":
		r.push(w.policy, text, map[string]string{environment: text})
	case "clock":
		r.now = r.now.Add(time.Duration(1+n%6) * 15 * time.Minute)
	case "reports":
		w.report(r.stages...)
	}
	return fmt.Sprintf("%s %s: %s", r.now.Format("15:04"), kind, w)
}

// report lets the clusters of stages report the states of their commits.
func (w *liveWorld) report(stages ...*ruleStage) {
	for _, s := range stages {
		if s.has == ruleNothing {
			continue
		}
		state, own := rollout.Healthy, ""
		if s.has.own >= 0 {
			own = w.rules.commits[s.has.own].own[s.environment]
		}
		if strings.HasPrefix(w.rules.commits[s.has.base].text, badText) || strings.HasPrefix(own, badText) {
			state = rollout.Failed
		}
		for _, id := range w.rules.assignments(s) {
			s.reports[id] = ruleReport{s.landed, state}
		}
	}
}

// settle pushes a commit that passes all gates, and lets time pass. It returns a message about
// the stages that do not get the commit. It returns "" if all stages have it.
func (w *liveWorld) settle() string {
	r := &w.rules
	own := map[string]string{}
	for _, e := range w.policy.Environments {
		own[e.Name] = "good"
	}
	last := r.push(w.policy, "good good", own)
	for range 300 {
		r.run(false)
		w.report(r.stages...)
		r.run(false)
		if !slices.ContainsFunc(r.stages, func(s *ruleStage) bool { return s.has != ruleSource{last, last} }) {
			return ""
		}
		r.now = r.now.Add(20 * time.Minute)
	}
	return fmt.Sprintf("commit %d does not come: %s", last, w)
}

// String returns the source of each stage.
func (w *liveWorld) String() string {
	var out []string
	for _, s := range w.rules.stages {
		out = append(out, fmt.Sprintf("%s %d/%d", s.id(), s.has.base, s.has.own))
	}
	return strings.Join(out, ", ")
}
