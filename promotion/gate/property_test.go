package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/window"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

const rounds = 3000

// dice makes policies and facts; times are few, so that many are equal.
type dice struct{ *rand.Rand }

func roll(seed int) dice { return dice{rand.New(rand.NewPCG(uint64(seed), 7))} }

func (d dice) yes() bool             { return d.IntN(2) == 0 }
func (d dice) of(s ...string) string { return s[d.IntN(len(s))] }
func (d dice) time() time.Time       { return now.Add(time.Duration(d.IntN(8)-6) * 12 * time.Hour) }

func (d dice) maybeTime() time.Time {
	if d.yes() {
		return time.Time{}
	}
	return d.time()
}

func (d dice) state() forge.State {
	return forge.State(d.of("success", "success", "success", "failure", "pending", "", "odd"))
}

func (d dice) order() *Freeze {
	if d.IntN(3) > 0 {
		return nil
	}
	return &Freeze{Reason: "r", At: d.maybeTime(), Until: d.maybeTime()}
}

func (d dice) window() model.Window {
	day := func() string {
		return fmt.Sprintf("%s %02d:%02d", d.of("mon", "tue", "wed", "thu", "fri", "sat", "sun"), d.IntN(24), 30*d.IntN(2))
	}
	w := model.Window{Deny: d.yes(), From: day(), To: day(), TZ: d.of("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")}
	if w.From == w.To {
		return d.window()
	}
	return w
}

func (d dice) gates() model.Gates {
	var g model.Gates
	if d.yes() {
		g.Soak = &model.SoakGate{For: time.Duration(d.IntN(5)) * 12 * time.Hour, Environment: d.of("", "qa")}
	}
	for range d.IntN(3) {
		g.Status = append(g.Status, model.StatusGate{Name: d.of("a", "b", "*"), By: [][]string{nil, {"x"}}[d.IntN(2)]})
	}
	for range d.IntN(3) {
		g.Windows = append(g.Windows, d.window())
	}
	return g
}

func (d dice) policy() Policy {
	p := Policy{Environment: "prod", Rings: d.IntN(4) == 0, Any: d.yes(), Gates: []model.Gates{d.gates(), d.gates()}[:d.IntN(3)]}
	p.After = []string{"qa", "perf", "canary"}[:d.IntN(4)]
	return p
}

func (d dice) facts() CommitFacts {
	f := CommitFacts{
		Now: now, Commit: commit, Reachable: d.IntN(4) > 0, Rejected: d.order(), Hold: d.order(), Freeze: d.order(),
		StatusesKnown: d.IntN(4) > 0, EnvironmentOnly: d.IntN(4) == 0,
	}
	for range d.IntN(6) {
		f.Stays = append(f.Stays, Stay{
			Environment: d.of("qa", "qa", "perf", "prod"), Ring: d.of("", "canary", "eu"), Held: d.IntN(4) > 0,
			Entered: d.time(), Left: d.maybeTime(), State: d.state(), Since: d.maybeTime(), Reason: d.of("", "1/1"),
		})
	}
	for range d.IntN(6) {
		f.Statuses = append(f.Statuses, forge.Status{Name: d.of("a", "b"), By: d.of("x", "y", ""), State: d.state(), At: d.time()})
	}
	return f
}

// kinds checks the kinds of verdicts. It fails if there is a verdict without a reason in the
// policy and the facts.
func kinds(t *testing.T, p Policy, f CommitFacts, vs []Verdict) {
	statuses, soaks, windowed := 0, 0, false
	said := !f.EnvironmentOnly || p.Ring != "" // a ring reports which gates do not apply
	for _, g := range p.Gates {
		if said {
			statuses += len(g.Status)
		}
		if g.Soak != nil && (said || p.Rings && !p.OwnAtOnce && g.Soak.Environment == "") {
			soaks++
		}
		windowed = windowed || len(g.Windows) > 0
	}
	one := func(there bool) int {
		if there {
			return 1
		}
		return 0
	}
	stands := func(o *Freeze) bool { return o != nil && (o.Until.IsZero() || f.Now.Before(o.Until)) }
	want := map[string]int{
		"reject": one(f.Rejected != nil), "hold": one(stands(f.Hold)), "freeze": one(stands(f.Freeze)), "history": one(!f.Reachable),
		"after": one(len(p.After) > 0 && (p.Rings || said)), "status": statuses, "soak": soaks,
		"windows": one(windowed),
	}
	last := 0
	for _, v := range vs {
		at := slices.Index(names(), v.Gate)
		if at < last {
			t.Fatalf("%s comes too late in %+v", v.Gate, vs)
		}
		last = at
		want[v.Gate]--
	}
	for gate, n := range want {
		if n != 0 {
			t.Fatalf("%d verdicts of %s are missing in %+v", n, gate, vs)
		}
	}
}

func TestCommitProperties(t *testing.T) {
	for seed := range rounds {
		d := roll(seed)
		p, f := d.policy(), d.facts()
		vs := Commit(p, f, Skip{})
		kinds(t, p, f, vs)
		for _, v := range vs {
			if v.Reason == "" || v.State != Passed && v.State != Pending && v.State != Blocked {
				t.Fatalf("seed %d: %+v", seed, v)
			}
			if v.State != Pending && !v.Until.IsZero() || !v.Until.IsZero() && (!v.Until.After(f.Now) || v.Until.Location() != time.UTC) {
				t.Fatalf("seed %d: %s until %v", seed, v.State, v.Until)
			}
		}

		// Then the same facts in another order.
		g := f
		g.Stays, g.Statuses = slices.Clone(f.Stays), slices.Clone(f.Statuses)
		d.Shuffle(len(g.Stays), func(i, j int) { g.Stays[i], g.Stays[j] = g.Stays[j], g.Stays[i] })
		d.Shuffle(len(g.Statuses), func(i, j int) { g.Statuses[i], g.Statuses[j] = g.Statuses[j], g.Statuses[i] })
		if shuffled := Commit(p, g, Skip{}); !reflect.DeepEqual(shuffled, vs) {
			t.Fatalf("seed %d: shuffled:\n%+v\n%+v", seed, shuffled, vs)
		}
	}
}

// If only time passes, soak gates only get closer to passing. They pass at the time that they
// announced, and never go back.
func TestSoakIsMonotone(t *testing.T) {
	ended := 0
	for seed := range rounds {
		d := roll(seed)
		p, f := d.policy(), d.facts()
		soaking := func(t time.Time) []answer {
			var as []answer
			g := f
			g.Now = t
			for _, v := range soakVerdicts(p, g) {
				as = append(as, answer{State: v.State, until: v.Until})
			}
			return as
		}
		before := soaking(now)
		for i, a := range before {
			for _, later := range []time.Duration{1, time.Hour, 24 * time.Hour, 1000 * time.Hour} {
				if b := soaking(now.Add(later))[i]; a.State == Passed && b.State != Passed || a.State == Blocked && b.State != Blocked {
					t.Fatalf("seed %d: %s, and %s after %v", seed, a.State, b.State, later)
				}
			}
			if a.until.IsZero() {
				continue
			}
			ended++
			if s := soaking(a.until)[i].State; s != Passed {
				t.Fatalf("seed %d: %s at the time at which it ends", seed, s)
			}
			if s := soaking(a.until.Add(-1))[i].State; s != Pending {
				t.Fatalf("seed %d: %s before the time at which it ends", seed, s)
			}
		}
	}
	if ended == 0 {
		t.Error("no soak gate said when it ends")
	}
}

// The time at which windows open is the first that is open, looked for minute by minute.
func TestWindowsOpen(t *testing.T) {
	opened := 0
	for seed := range 300 {
		d := roll(seed)
		var p Policy
		for range 1 + d.IntN(4) {
			p.Gates = append(p.Gates, model.Gates{Windows: []model.Window{d.window()}})
		}
		from := at("2026-03-20T00:00:00Z").Add(time.Duration(d.IntN(21*48)) * 30 * time.Minute)
		first := from
		for !isOpen(t, p, first) && first.Before(from.AddDate(0, 0, 9)) {
			first = first.Add(15 * time.Minute)
		}
		v := windows(p, CommitFacts{Now: from})[0]
		switch {
		case first.Equal(from):
			if v.State != Passed {
				t.Fatalf("seed %d: open, but %+v", seed, v)
			}
		case isOpen(t, p, first):
			opened++
			if v.State != Pending || !v.Until.Equal(first) {
				t.Fatalf("seed %d: at %v, opens %v, but %+v", seed, from, first, v)
			}
		case v.State == Passed || !v.Until.IsZero() && v.Until.Before(first):
			t.Fatalf("seed %d: not open until %v, but %+v", seed, first, v)
		}
	}
	if opened == 0 {
		t.Error("none opened")
	}
}

func isOpen(t *testing.T, p Policy, now time.Time) bool {
	for _, g := range p.Gates {
		some, within := false, false
		for _, w := range g.Windows {
			parsed, err := window.Parse(w.From, w.To, w.TZ)
			if err != nil {
				t.Fatal(err)
			}
			in := parsed.Contains(now)
			if w.Deny && in {
				return false
			}
			some, within = some || !w.Deny, within || !w.Deny && in
		}
		if some && !within {
			return false
		}
	}
	return true
}

// Unknown facts pass no gate: neither the zero facts, nor known facts with any one of them
// removed.
func TestUnknownPassesNothing(t *testing.T) {
	for seed := range rounds {
		d := roll(seed)
		p := d.policy()
		for _, v := range Commit(p, CommitFacts{}, Skip{}) {
			if v.State == Passed {
				t.Fatalf("seed %d: nothing is known, and %+v", seed, v)
			}
		}
	}

	five := 5
	p := gates(model.Gates{
		Budget: &model.BudgetGate{Assignments: &five}, Approvals: &model.ApprovalsGate{Count: 1},
		Policy: []model.PolicyGate{{Name: "p"}}, HTTP: []model.HTTPGate{{Name: "h"}},
	})
	known := func() ChangeFacts {
		return ChangeFacts{
			Now: now, Change: change(1, 1, 1, 1), Head: head, Author: "promoter",
			Reviews: &forge.Reviews{Reviews: []forge.Review{{By: "alice", Approved: true, Commit: head}}},
			Post: func(context.Context, model.HTTPGate, []byte) ([]byte, error) {
				return []byte(`{"status":"passed"}`), nil
			},
			Satisfies: func(context.Context, model.Expr, json.RawMessage) ([]string, error) { return nil, nil },
		}
	}
	if vs := Planned(t.Context(), p, known(), Skip{}); len(vs) != 4 || Overall(vs) != Passed {
		t.Fatalf("all is known, and %+v", vs)
	}
	for name, take := range map[string]func(f *ChangeFacts){
		"change":    func(f *ChangeFacts) { f.Change = nil },
		"head":      func(f *ChangeFacts) { f.Head = git.Hash{} },
		"author":    func(f *ChangeFacts) { f.Author = "" },
		"reviews":   func(f *ChangeFacts) { f.Reviews = nil },
		"reviewer":  func(f *ChangeFacts) { f.Reviews.Reviews[0].By = "" },
		"post":      func(f *ChangeFacts) { f.Post = nil },
		"satisfies": func(f *ChangeFacts) { f.Satisfies = nil },
	} {
		f := known()
		take(&f)
		if got := Overall(Planned(t.Context(), p, f, Skip{})); got != Pending {
			t.Errorf("without %s, the gates are %s", name, got)
		}
	}
	for _, v := range Planned(t.Context(), p, ChangeFacts{}, Skip{}) {
		if v.State != Pending {
			t.Errorf("nothing is known, and %+v", v)
		}
	}
}
