package gate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// ran returns a stay whose rollout succeeded some time ago, and that continues.
func ran(environment, ring string, since time.Duration) Stay {
	return Stay{
		Environment: environment, Ring: ring, Held: true, Entered: ago(since + time.Hour),
		State: forge.Success, Since: ago(since), Reason: "12/12 healthy",
	}
}

// left is a stay that ended some time ago.
func left(s Stay, before time.Duration) Stay {
	s.Left = ago(before)
	return s
}

// said returns a stay with a different newest report.
func said(s Stay, state forge.State, reason string) Stay {
	s.State, s.Reason = state, reason
	return s
}

func TestAfter(t *testing.T) {
	qa := ran("qa", "", time.Hour)
	eu, us := ran("qa", "eu", time.Hour), ran("qa", "us", 2*time.Hour)
	silent := said(eu, forge.Pending, "0 of 12 assignments")
	silent.Since = time.Time{}
	unheld, unknown := qa, qa
	unheld.Held = false
	unknown.State = ""
	one := Policy{Environment: "prod", After: []string{"qa"}}
	both := Policy{Environment: "prod", After: []string{"qa", "perf"}}
	either := both
	either.Any = true
	rings := Policy{Environment: "prod", Ring: "us", Rings: true, After: []string{"canary"}}
	for name, c := range map[string]struct {
		policy Policy
		stays  []Stay
		want   want
	}{
		"passed":            {one, []Stay{qa}, want{Passed, "qa: the rollout succeeded; at that time: 12/12 healthy", ""}},
		"passed and left":   {one, []Stay{left(qa, time.Minute)}, want{Passed, "qa: the rollout succeeded; at that time: 12/12 healthy", ""}},
		"missing":           {one, nil, want{Pending, "qa: has not had it yet", ""}},
		"not held":          {one, []Stay{unheld}, want{Pending, "qa: has not had it yet", ""}},
		"not held, failure": {one, []Stay{said(unheld, forge.Failure, "")}, want{Pending, "qa: has not had it yet", ""}},
		"no state":          {one, []Stay{unknown}, want{Pending, "qa: is rolling out; 12/12 healthy", ""}},
		"silent":            {one, []Stay{silent, us}, want{Pending, "qa/eu: nobody has reported yet; 0 of 12 assignments", ""}},
		"rolling out":       {one, []Stay{said(qa, forge.Pending, "73/100 healthy")}, want{Pending, "qa: is rolling out; 73/100 healthy", ""}},
		"failed":            {one, []Stay{said(qa, forge.Failure, "2 failed")}, want{Blocked, "qa: the rollout failed, and has to succeed; 2 failed", ""}},
		"all rings":         {one, []Stay{us, eu}, want{Passed, "qa/eu: the rollout succeeded; at that time: 12/12 healthy; qa/us: the rollout succeeded; at that time: 12/12 healthy", ""}},
		"one ring is not enough": {
			either, []Stay{eu, said(us, forge.Pending, "")},
			want{Pending, "one is enough: qa/us: is rolling out; perf: has not had it yet", ""},
		},
		"both, one missing": {both, []Stay{qa}, want{Pending, "perf: has not had it yet", ""}},
		"both, one failed": {
			both, []Stay{said(ran("perf", "", 0), forge.Failure, "")},
			want{Blocked, "perf: the rollout failed, and has to succeed; qa: has not had it yet", ""},
		},
		"either":               {either, []Stay{ran("perf", "", 0)}, want{Passed, "perf: the rollout succeeded; at that time: 12/12 healthy (one is enough)", ""}},
		"either, both blocked": {either, []Stay{said(qa, forge.Failure, ""), said(ran("perf", "", 0), forge.Failure, "")}, want{Blocked, "one is enough: qa: the rollout failed, and has to succeed; perf: the rollout failed, and has to succeed", ""}},
		"either, one blocked":  {either, []Stay{said(qa, forge.Failure, "")}, want{Pending, "one is enough: qa: the rollout failed, and has to succeed; perf: has not had it yet", ""}},
		"rings":                {rings, []Stay{ran("prod", "canary", 0), said(ran("prod", "eu", 0), forge.Failure, "")}, want{Passed, "prod/canary: the rollout succeeded; at that time: 12/12 healthy", ""}},
		"rings, another environment's": {
			rings, []Stay{ran("qa", "canary", 0)}, want{Pending, "prod/canary: has not had it yet", ""},
		},
	} {
		t.Run(name, func(t *testing.T) { c.want.check(t, Commit(c.policy, facts(c.stays...), Skip{})) })
	}

	vs := Commit(either, facts(ran("perf", "", 0)), Skip{})
	if vs[0].Name != "perf" || !vs[0].Since.Equal(now) {
		t.Errorf("the verdict does not name which one was enough, and since when: %+v", vs[0])
	}
}

func TestSoak(t *testing.T) {
	const day = 24 * time.Hour
	soak := func(g model.SoakGate) Policy { return gates(model.Gates{Soak: &g}) }
	named := soak(model.SoakGate{For: day, Environment: "qa"})
	qa := func(since time.Duration) Stay { return ran("qa", "", since) }
	unsaid, unheld := qa(time.Hour), qa(2*day)
	unsaid.Since, unheld.Held = time.Time{}, false
	const soaked = "soaked in qa for 24h, since "
	for name, c := range map[string]struct {
		policy Policy
		stays  []Stay
		want   want
	}{
		"soaking":              {named, []Stay{qa(3*time.Hour + 12*time.Minute)}, want{Pending, "soaking in qa for 3h12m of 24h, until 2026-11-21T09:00:00Z", "2026-11-21T09:00:00Z"}},
		"a moment too early":   {named, []Stay{qa(day - 1)}, want{Pending, "soaking in qa for 23h59m of 24h, until 2026-11-20T12:12:00Z", "2026-11-20T12:12:00Z"}},
		"just now":             {named, []Stay{qa(day)}, want{Passed, soaked + "2026-11-19T12:12:00Z", ""}},
		"said in the future":   {named, []Stay{qa(-time.Hour)}, want{Pending, "soaking in qa for 0s of 24h, until 2026-11-21T13:12:00Z", "2026-11-21T13:12:00Z"}},
		"left early":           {named, []Stay{left(qa(5*day), 5*day-3*time.Hour)}, want{Blocked, "left qa after 3h of 24h", ""}},
		"left in time":         {named, []Stay{left(qa(5*day), 4*day)}, want{Passed, soaked + "2026-11-15T12:12:00Z", ""}},
		"left before success":  {named, []Stay{left(qa(time.Hour), 2*time.Hour)}, want{Blocked, "left qa after 0s of 24h", ""}},
		"left without success": {named, []Stay{left(said(qa(day), forge.Pending, ""), time.Hour)}, want{Blocked, "left qa before its rollout succeeded; wanted there for 24h", ""}},
		"leaves in the future": {named, []Stay{left(qa(23*time.Hour), -2*time.Hour)}, want{Pending, "soaking in qa for 23h of 24h, until 2026-11-20T13:12:00Z", "2026-11-20T13:12:00Z"}},
		"failed":               {named, []Stay{said(qa(2*day), forge.Failure, "2 failed")}, want{Blocked, "qa: the rollout failed, and has to succeed; 2 failed; then 24h to soak", ""}},
		"rolling out":          {named, []Stay{said(qa(2*day), forge.Pending, "")}, want{Pending, "qa: is rolling out; then 24h to soak", ""}},
		"missing":              {named, nil, want{Pending, "qa: has not had it yet; then 24h to soak", ""}},
		"not held":             {named, []Stay{unheld}, want{Pending, "qa: has not had it yet; then 24h to soak", ""}},
		"nobody says when":     {named, []Stay{unsaid}, want{Pending, "nobody says since when qa runs it; wanted for 24h", ""}},
		"the slowest ring counts": {
			named, []Stay{ran("qa", "a", day), ran("qa", "b", 22*time.Hour), ran("qa", "c", 23*time.Hour)},
			want{Pending, "soaking in qa/b for 22h of 24h, until 2026-11-20T14:12:00Z; soaking in qa/c for 23h of 24h, until 2026-11-20T13:12:00Z", "2026-11-20T14:12:00Z"},
		},
		"nobody knows the end of all": {
			named, []Stay{ran("qa", "a", time.Hour), said(ran("qa", "b", time.Hour), forge.Pending, "")},
			want{Pending, "soaking in qa/a for 1h of 24h, until 2026-11-21T11:12:00Z; qa/b: is rolling out; then 24h to soak", ""},
		},
		"nowhere": {soak(model.SoakGate{For: day}), nil, want{Blocked, "nothing to soak in for 24h: the gate names no environment, and prod is after none", ""}},
	} {
		t.Run(name, func(t *testing.T) { c.want.check(t, Commit(c.policy, facts(c.stays...), Skip{})) })
	}
}

// A soak gate without an environment is about the environments that the policy is after.
func TestSoakInAfter(t *testing.T) {
	qa, perf := ran("qa", "", time.Hour), ran("perf", "", 2*time.Hour)
	g := model.Gates{Soak: &model.SoakGate{For: 90 * time.Minute}}
	named := model.Gates{Soak: &model.SoakGate{For: 90 * time.Minute, Environment: "qa"}}
	for name, c := range map[string]struct {
		policy Policy
		stays  []Stay
		want   State
	}{
		"all":                {Policy{After: []string{"qa", "perf"}, Gates: []model.Gates{g}}, []Stay{qa, perf}, Pending},
		"any":                {Policy{After: []string{"qa", "perf"}, Any: true, Gates: []model.Gates{g}}, []Stay{qa, perf}, Passed},
		"any, but one named": {Policy{After: []string{"qa", "perf"}, Any: true, Gates: []model.Gates{named}}, []Stay{qa, perf}, Pending},
		"rings": {
			Policy{Environment: "prod", Rings: true, After: []string{"canary"}, Gates: []model.Gates{g}},
			[]Stay{ran("prod", "canary", 2*time.Hour), ran("prod", "eu", 0)}, Passed,
		},
		"the ring's is longer": {
			Policy{Environment: "prod", Rings: true, After: []string{"canary"}, Gates: []model.Gates{g, {Soak: &model.SoakGate{For: 3 * time.Hour}}}},
			[]Stay{ran("prod", "canary", 2*time.Hour)}, Pending,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Overall(Commit(c.policy, facts(c.stays...), Skip{})); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// If one is enough, the gate passes as soon as the first does.
func TestSoakUntil(t *testing.T) {
	p := Policy{After: []string{"qa", "perf", "dev"}, Any: true, Gates: []model.Gates{{Soak: &model.SoakGate{For: 3 * time.Hour}}}}
	want{
		Pending, "one is enough: soaking in qa for 1h of 3h, until 2026-11-20T14:12:00Z; soaking in perf for 2h of 3h, until 2026-11-20T13:12:00Z; dev: has not had it yet; then 3h to soak",
		"2026-11-20T13:12:00Z",
	}.check(t, Commit(p, facts(ran("qa", "", time.Hour), ran("perf", "", 2*time.Hour)), Skip{})[1:])
}

// An environment's own files do not wait for the commit that is there already, but
// they go from ring to ring.
func TestEnvironmentOnly(t *testing.T) {
	g := model.Gates{
		Soak: &model.SoakGate{For: time.Hour, Environment: "qa"}, Status: []model.StatusGate{{Name: "test"}},
		Windows: []model.Window{{From: "mon 00:00", To: "tue 00:00", TZ: "UTC"}},
	}
	f := facts()
	f.EnvironmentOnly = true
	p := gates(g)
	p.After = []string{"qa"}
	if vs := Commit(p, f, Skip{}); len(vs) != 1 || vs[0].Gate != "windows" {
		t.Errorf("environments: got %+v", vs)
	}
	p.Ring, p.Rings, p.After = "eu", true, []string{"canary"}
	text := func() (out []string) {
		for _, v := range Commit(p, f, Skip{}) {
			out = append(out, fmt.Sprintf("%s %s: %s", v.Gate, v.State, v.Reason))
		}
		return out
	}
	notAsked := "not asked: own files"
	window := "windows pending: commits only mon 00:00 to tue 00:00 UTC; open 2026-11-23T00:00:00Z"
	if got, want := text(), []string{"after pending: prod/canary: has not had it yet", "status passed: " + notAsked, "soak passed: " + notAsked, window}; !slices.Equal(got, want) {
		t.Errorf("rings: got %q", got)
	}
	g.Soak.Environment = "" // then it soaks in the rings before
	if got := text()[2]; got != "soak pending: prod/canary: has not had it yet; then 1h to soak" {
		t.Errorf("soak in rings: got %q", got)
	}
	p.OwnAtOnce = true
	if got := text()[2]; got != "soak passed: "+notAsked {
		t.Errorf("ownChanges is at-once: got %q", got)
	}
	f.AtOnce = "at once: INC-1"
	if got := text()[:3]; got[0] != "after passed: not asked: at once: INC-1" || got[2] != "soak passed: not asked: at once: INC-1" {
		t.Errorf("--at-once: got %q", got)
	}
}
