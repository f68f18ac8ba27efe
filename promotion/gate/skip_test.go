package gate

import (
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestSkip(t *testing.T) {
	const soaking = "soaking in qa for 1h of 24h, until 2026-11-21T11:12:00Z"
	p := gates(model.Gates{Soak: &model.SoakGate{For: 24 * time.Hour, Environment: "qa"}})
	skip := Skip{Gates: []string{"soak"}, Reason: "INC-42", By: "alice"}
	for name, c := range map[string]struct {
		skippable []string
		skip      Skip
		skipped   string
		want      want
	}{
		"passed over":   {[]string{"soak"}, skip, "INC-42, by alice", want{Passed, soaking, ""}},
		"by nobody":     {[]string{"soak"}, Skip{Gates: skip.Gates, Reason: "INC-42"}, "INC-42", want{Passed, soaking, ""}},
		"another one":   {[]string{"soak"}, Skip{Gates: []string{"after"}, Reason: "INC-42"}, "", want{Pending, soaking, "2026-11-21T11:12:00Z"}},
		"no reason":     {[]string{"soak"}, Skip{Gates: skip.Gates, Reason: " "}, "", want{Pending, soaking + " (not passed over: no reason is given)", "2026-11-21T11:12:00Z"}},
		"none":          {nil, skip, "", want{Pending, soaking + " (not passed over: the policy of prod lets none be passed over)", "2026-11-21T11:12:00Z"}},
		"only other":    {[]string{"status", "after"}, skip, "", want{Pending, soaking + " (not passed over: the policy of prod lets only after, status be passed over)", "2026-11-21T11:12:00Z"}},
		"never a order": {[]string{"hold"}, skip, "", want{Pending, soaking + " (not passed over: the policy of prod lets none be passed over)", "2026-11-21T11:12:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			p.Skippable = c.skippable
			vs := Commit(p, facts(ran("qa", "", time.Hour)), c.skip)
			c.want.check(t, vs)
			if vs[0].Skipped != c.skipped {
				t.Errorf("skipped: %q, want %q", vs[0].Skipped, c.skipped)
			}
		})
	}

	t.Run("what passes is not passed over", func(t *testing.T) {
		for _, skippable := range [][]string{nil, {"soak"}} {
			p.Skippable = skippable
			want{Passed, "soaked in qa for 24h, since 2026-11-18T12:12:00Z", ""}.check(t, Commit(p, facts(ran("qa", "", 48*time.Hour)), skip))
		}
	})
	t.Run("orders", func(t *testing.T) {
		p := Policy{Environment: "prod", Skippable: names()}
		f := CommitFacts{Now: now, Commit: commit, Rejected: &Freeze{}, Hold: &Freeze{}, Freeze: &Freeze{}}
		c := change(0, 0, 0, 0)
		c.Errors, c.Kept = 1, 1
		skip := Skip{Gates: names(), Reason: "INC-42"}
		vs := append(Commit(p, f, skip), Planned(t.Context(), p, ChangeFacts{Now: now, Change: c}, skip)...)
		if orders := len(table) - len(MayBeSkippable()); len(vs) != orders {
			t.Errorf("%d verdicts for %d kinds", len(vs), orders)
		}
		for _, v := range vs {
			if v.State != Blocked || v.Skipped != "" || !strings.Contains(v.Reason, "lets only after, approvals, budget, http, policy, removals, soak, status, windows be passed over") {
				t.Errorf("%+v", v)
			}
		}
	})
}

func TestCheckSkip(t *testing.T) {
	p := Policy{Environment: "prod", Skippable: []string{"soak", "after", "freeze"}}
	for name, c := range map[string]struct {
		skip Skip
		want string // "" for no error
	}{
		"nothing":      {Skip{}, ""},
		"reason only":  {Skip{Reason: "INC-42"}, ""},
		"may":          {Skip{Gates: []string{"soak", "after"}, Reason: "INC-42"}, ""},
		"no such":      {Skip{Gates: []string{"soka"}, Reason: "INC-42"}, `there is no gate "soka": did you mean soak?`},
		"nothing near": {Skip{Gates: []string{"everything"}, Reason: "INC-42"}, `there is no gate "everything": there are: after, approvals, budget, http, policy, removals, soak, status, windows`},
		"may not":      {Skip{Gates: []string{"http"}, Reason: "INC-42"}, "gate http cannot be passed over: the policy of prod lets only after, soak be passed over"},
		"never":        {Skip{Gates: []string{"freeze"}, Reason: "INC-42"}, "gate freeze cannot be passed over: the policy of prod lets only after, soak be passed over"},
		"no reason":    {Skip{Gates: []string{"soak"}}, "pass --reason: promotion records why gates are passed over"},
		"at once":      {Skip{OwnAtOnce: true}, "pass --reason: promotion records why gates are passed over"},
		"a blank":      {Skip{Gates: []string{"soak"}, Reason: " \n"}, "pass --reason: promotion records why gates are passed over"},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			if err := CheckSkip(p, c.skip); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
