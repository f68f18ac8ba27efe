package promotion

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/internal/testing/remotetest"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// TestOwnFilesAndRings checks the table in docs/semantics.md: which pair of a base commit (S) and
// own files (E) the ring main gets. Main comes after canary, and commits soak in canary for two
// hours. Both rings start with S0 and E0. A step is an event and the contents of main after it. S
// or E is a commit, both are one commit with both, and 1h is an hour that passes. The clusters of
// the canary fail with a commit that ends in !.
func TestOwnFilesAndRings(t *testing.T) { ownFilesAndRings(t, "an export each hour", "emergency") }

func TestSlowOwnFilesAndRings(t *testing.T) {
	isolated.Slow(t, "it goes through all rows of the table")
	ownFilesAndRings(t, "")
}

func ownFilesAndRings(t *testing.T, names ...string) {
	remotetest.Isolate(t)
	server := newModelServer(t, false)
	for _, row := range []struct{ name, steps string }{
		{"E1, and two hours pass", "E1: S0 E0, 1h: S0 E0, 1h: S0 E1"},
		{"E1, an hour later E2", "E1: S0 E0, 1h: S0 E0, E2: S0 E0, 1h: S0 E1, 1h: S0 E2"},
		{"an export each hour", "E1: S0 E0, 1h: S0 E0, E2: S0 E0, 1h: S0 E1, E3: S0 E1, 1h: S0 E2, E4: S0 E2, 1h: S0 E3, 1h: S0 E4"},
		{"S1, an hour later E1", "S1: S0 E0, 1h: S0 E0, E1: S0 E0, 1h: S1 E0, 1h: S1 E1"},
		{"E1, an hour later S1", "E1: S0 E0, 1h: S0 E0, S1: S0 E0, 1h: S0 E0, 1h: S1 E1"},
		{"S1 with E1, an hour later S2", "both1: S0 E0, 1h: S0 E0, S2: S0 E0, 1h: S0 E0, 1h: S2 E1"},
		{"E1 fails", "E1!: S0 E0, 1h: S0 E0, 1h: S0 E0, 1h: S0 E0"},
		{"E1 fails, and E2 mends it", "E1!: S0 E0, 1h: S0 E0, E2: S0 E0, 1h: S0 E0, 1h: S0 E2"},
		{"E1, an hour later E2, which fails", "E1: S0 E0, 1h: S0 E0, E2!: S0 E0, 1h: S0 E0, 1h: S0 E0"},
		{"the canary is rolled back from E1", "E1: S0 E0, 1h: S0 E0, back: S0 E0, 1h: S0 E0, 1h: S0 E0, release: S0 E0, 1h: S0 E0, 1h: S0 E1"},
		{"main is held", "E1: S0 E0, hold: S0 E0, 1h: S0 E0, 1h: S0 E0, 1h: S0 E0, release: S0 E1"},
		{"prod is frozen", "E1: S0 E0, freeze: S0 E0, 1h: S0 E0, 1h: S0 E0, thaw: S0 E1"},
		{"an emergency", "E1: S0 E0, urgent: S0 E1, S1: S0 E1, 1h: S0 E1, 1h: S1 E1"},
		{"main is rolled back", "S1: S0 E0, 1h: S0 E0, 1h: S1 E0, E1: S1 E0, revert: S0 E0, 1h: S0 E0, 1h: S0 E0, release: S1 E1"},
	} {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(row.name, name) }) {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newOwnWorld(t, server)
			for i, step := range strings.Split(row.steps, ", ") {
				event, want, _ := strings.Cut(step, ": ")
				if got := w.step(event); got != want {
					t.Fatalf("step %d, %s: main has %s, and should have %s", i, event, got, want)
				}
			}
		})
	}
}

type ownWorld struct {
	*modelWorld
	t     *testing.T
	bases map[int]string // names of base commits and of own files, by the number of the commit
	owns  map[int]string
	bad   string // the own files that the canary fails with, or ""
}

func newOwnWorld(t *testing.T, server *modelServer) *ownWorld {
	reports := modelGates{Rollout: &model.RolloutGate{Source: "report", Min: "100%"}}
	policy := &modelPolicy{Environments: []modelEnvironment{{
		Name: "prod", Types: 1, modelGates: reports,
		Rings: []modelRing{{Name: "canary"}, {Name: "main", After: []string{"canary"}, modelGates: modelGates{Soak: &model.SoakGate{For: 2 * time.Hour}}}},
	}}}
	w := &ownWorld{newWorld(t, server, scenario{seed: 1, policy: policy}), t, map[int]string{0: "S0"}, map[int]string{0: "E0"}, ""}
	t.Cleanup(w.close)
	w.settleRings()
	w.rules.now = w.rules.now.Add(2 * time.Hour)
	w.settleRings()
	return w
}

// has names the source of a ring.
func (w *ownWorld) has(ring string) string {
	is := sourceIn(w.record(w.gitops.refs()[session.BranchRef("prod")]), ring)
	return w.bases[w.number(is.Base)] + " " + w.owns[w.number(is.Environment)]
}

// settleRings runs, lets clusters report, and runs again so that the reports count.
func (w *ownWorld) settleRings() {
	for range 2 {
		w.do(w.apply(context.Background(), w.request()))
		for _, st := range w.rules.stages {
			mode := 0
			if st.ring == "canary" && w.bad != "" && strings.HasSuffix(w.has("canary"), w.bad) {
				mode = 7
			}
			w.report(st, mode)
		}
	}
	w.do(w.apply(context.Background(), w.request()))
}

func (w *ownWorld) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// step applies an event, and returns the contents of main after it.
func (w *ownWorld) step(event string) string {
	event, bad := strings.CutSuffix(event, "!")
	last, kind := w.last(), strings.TrimRight(event, "0123456789")
	if bad {
		w.bad = event
	}
	number, text, own := event[len(kind):], last.text, map[string]string(nil)
	decide := func(ring string, f func(context.Context, *Session) ([]*plan.StageStatus, error)) {
		r := w.request()
		r.Environments, r.Ring = []string{"prod"}, ring
		w.do(w.session(context.Background(), r, func(s *Session) error {
			_, err := f(context.Background(), s)
			return err
		}))
	}
	d := plan.Decision{Reason: "INC-1"}
	switch kind {
	case "S", "both":
		text = "text" + number + " " + number
		w.bases[len(w.ids)] = "S" + number
	}
	switch kind {
	case "E", "both":
		own = map[string]string{"prod": "own" + number}
		w.owns[len(w.ids)] = "E" + number
	}
	switch kind {
	case "S", "E", "both":
		w.push(last.policy, text, own)
	case "back":
		decide("canary", func(ctx context.Context, s *Session) ([]*plan.StageStatus, error) {
			return s.Rollback(ctx, plan.RollbackTo{Own: true}, d)
		})
	case "revert":
		decide("main", func(ctx context.Context, s *Session) ([]*plan.StageStatus, error) {
			return s.Rollback(ctx, plan.RollbackTo{}, d)
		})
	case "hold":
		decide("main", func(ctx context.Context, s *Session) ([]*plan.StageStatus, error) { return s.Hold(ctx, d) })
	case "release":
		decide("", func(ctx context.Context, s *Session) ([]*plan.StageStatus, error) { return s.Release(ctx, d) })
	case "freeze":
		decide("", func(ctx context.Context, s *Session) ([]*plan.StageStatus, error) {
			_, err := s.Freeze(ctx, d)
			return nil, err
		})
	case "thaw":
		decide("", func(ctx context.Context, s *Session) ([]*plan.StageStatus, error) {
			_, err := s.Thaw(ctx)
			return nil, err
		})
	case "urgent":
		decide("", func(ctx context.Context, s *Session) ([]*plan.StageStatus, error) {
			return s.Apply(ctx, Intent{Skip: gate.Skip{OwnAtOnce: true, Reason: "INC-1"}}, nil)
		})
	default:
		span, err := time.ParseDuration(event)
		w.do(err)
		w.rules.now = w.rules.now.Add(span)
	}
	w.settleRings()
	if got := w.has("main"); !slices.Contains([]string{"", " "}, got) {
		return got
	}
	return fmt.Sprint("nothing, and the canary ", w.has("canary"))
}
