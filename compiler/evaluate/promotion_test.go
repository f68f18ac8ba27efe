package evaluate

import (
	"context"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// stages evaluates the environments of a base with the given declarations beside
// dev, by name.
func stages(t *testing.T, declarations string, c Cache) (map[string]Stage, []diag.Diagnostic) {
	t.Helper()
	p := open(t, map[string]string{"environments.cue": "package platform\n\n" + declarations})
	all, ds, err := Stages(context.Background(), p, c)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Stage{}
	for _, s := range all {
		out[s.Name] = s
	}
	return out, ds
}

const everyField = `
_named: name: "z" | "y"

environments: stage: after: ["dev"]
environments: prod: {
	description: "where it counts"
	after: ["dev", "stage"]
	require: "any"
	advance: "queue"
	source: {branch: "env/prod", path: "prod"}
	promotion: {
		write:       "pull-request"
		autoMerge:   true
		mergeMethod: "rebase"
		labels: ["fleet"]
		reviewers: ["ops/on-call"]
		skippable: ["soak", "windows"]
		allow: ["kept"]
	}
	gates: {
		rollout: {min: "99.5%", maxFailed: 2, timeout: "1h30m", staleAfter: "1d", unreachable: "exclude", status: [{name: "e2e/*"}], by: ["flux[bot]"]}
		status: [{name: "ci/*", by: ["ci[bot]"]}]
		soak: {for: "7d12h", environment: "stage"}
		approvals: 2
		windows: [
			{from: "mon 08:00", to: "fri 16:00", tz: "Europe/Berlin"},
			{deny: true, from: "2026-12-20T00:00", to: "2027-01-02T00:00", why: "holidays"},
		]
		http: [{name: "change-board", url: "https://board.example.com/kalypso", tokenFrom: "BOARD_TOKEN"}]
		policy: [{name: "no-namespace-goes", change: {deleted: Namespace?: <=0, added: {n: *3 | int}}, hint: "ask the board"}]
		budget: {assignments: 100, clusterTypes: 0}
	}
	rings: [
		{name: "canary", select: labels: {ring: "canary", size?: =~"^s"}, gates: soak: for: "30s"},
		{name: "named", select: _named, after: ["canary"]},
		{name: "rest", select: {}, after: ["canary", "named"], gates: {approvals: {count: 1, from: ["ops"]}, rollout: source: "none"}},
	]
}
`

func TestPromotion(t *testing.T) {
	c := newMemory()
	equal := func(value string) model.Selector { return model.Selector{Op: model.OpEqual, Text: value} }
	field := func(op model.SelectorOp, name string, of model.Selector) model.Selector {
		return model.Selector{Op: op, Key: name, Args: []model.Selector{of}}
	}
	zero, hundred := 0, 100
	want := model.Promotion{
		After: []string{"dev", "stage"}, Any: true, Advance: model.Queue,
		Source: &model.EnvironmentSource{Branch: "env/prod", Path: "prod"},
		Write:  model.WritePullRequest, AutoMerge: true, MergeMethod: "rebase", Labels: []string{"fleet"}, Reviewers: []string{"ops/on-call"},
		Skippable: []string{"soak", "windows"}, AllowKept: true,
		Gates: model.Gates{
			Rollout: &model.RolloutGate{Source: "any", Min: "99.5%", MaxFailed: 2, Timeout: 90 * time.Minute, StaleAfter: 24 * time.Hour, Exclude: true,
				Status: []model.StatusGate{{Name: "e2e/*"}}, By: []string{"flux[bot]"}},
			Status:    []model.StatusGate{{Name: "ci/*", By: []string{"ci[bot]"}}},
			Soak:      &model.SoakGate{For: 7*24*time.Hour + 12*time.Hour, Environment: "stage"},
			Approvals: &model.ApprovalsGate{Count: 2},
			Windows: []model.Window{
				{From: "mon 08:00", To: "fri 16:00", TZ: "Europe/Berlin"},
				{Deny: true, From: "2026-12-20T00:00", To: "2027-01-02T00:00", TZ: "UTC", Why: "holidays"},
			},
			HTTP:   []model.HTTPGate{{Name: "change-board", URL: "https://board.example.com/kalypso", Timeout: 10 * time.Second, TokenFrom: "BOARD_TOKEN"}},
			Policy: []model.PolicyGate{{Name: "no-namespace-goes", Change: "{\n\tdeleted: Namespace?: <=0\n\tadded: n:            *3 | int\n\t...\n}", Hint: "ask the board"}},
			Budget: &model.BudgetGate{Assignments: &hundred, ClusterTypes: &zero},
		},
		Rings: []model.Ring{
			{Name: "canary", Select: field(model.OpField, "labels", model.Selector{Op: model.OpAnd, Args: []model.Selector{
				field(model.OpField, "ring", equal("canary")),
				field(model.OpOptional, "size", model.Selector{Op: model.OpSatisfy, Expr: `=~"^s"`}),
			}}), Gates: model.Gates{Soak: &model.SoakGate{For: 30 * time.Second}}},
			{Name: "named", Select: field(model.OpField, "name", model.Selector{Op: model.OpOr, Args: []model.Selector{equal("z"), equal("y")}}), After: []string{"canary"}},
			{Name: "rest", After: []string{"canary", "named"}, Gates: model.Gates{
				Approvals: &model.ApprovalsGate{Count: 1, From: []string{"ops"}},
				Rollout:   &model.RolloutGate{Source: "none", Min: "100%"},
			}},
		},
	}
	for _, from := range []string{"files", "cache"} {
		of, ds := stages(t, everyField, c)
		for _, d := range ds {
			t.Errorf("%s: %s", d.Code, d.Message)
		}
		if got := of["prod"]; !reflect.DeepEqual(got.Promotion, want) || got.Sick {
			t.Errorf("from %s: got\n%+v\nwant\n%+v", from, got.Promotion, want)
		}
		if got := of["dev"].Promotion; !reflect.DeepEqual(got, model.Promotion{Advance: model.LatestPassed}) {
			t.Errorf("from %s: an environment that says nothing has %+v", from, got)
		}
	}
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s":                          0,
		"90s":                         90 * time.Second,
		"1h30m":                       90 * time.Minute,
		"7d":                          7 * 24 * time.Hour,
		"1d1d":                        48 * time.Hour,
		"106751d":                     106751 * 24 * time.Hour,
		"106752d":                     math.MaxInt64,
		"106751d24h":                  math.MaxInt64,
		"99999999999999999999999999d": math.MaxInt64,
	} {
		var got span
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(got), err)
		}
	}
}
