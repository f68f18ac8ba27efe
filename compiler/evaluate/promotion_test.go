package evaluate

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// policiesOf evaluates the environments of a base with dev and the given declarations, by name.
func policiesOf(t *testing.T, declarations string, c memo.Cache) (map[string]model.Declaration, []diag.Diagnostic) {
	t.Helper()
	p := open(t, map[string]string{"environments.cue": "package platform\n\n" + declarations})
	all, ds, err := Declarations(context.Background(), p, Options{Cache: c})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]model.Declaration{}
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
		policy: [{name: "no-namespace-goes", change: {deleted: Namespace?: <=0, created: {n: *3 | int}}, hint: "ask the board"}]
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
			Policy: []model.PolicyGate{{Name: "no-namespace-goes", Change: "{\n\tdeleted: Namespace?: <=0\n\tcreated: n:          *3 | int\n\t...\n}", Hint: "ask the board"}},
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
		of, ds := policiesOf(t, everyField, c)
		for _, d := range ds {
			t.Errorf("%s: %s", d.Code, d.Message)
		}
		if got := of["prod"]; !reflect.DeepEqual(got.Promotion, want) || got.Invalid {
			t.Errorf("from %s: got\n%+v\nwant\n%+v", from, got.Promotion, want)
		}
		if got := of["dev"].Promotion; !reflect.DeepEqual(got, model.Promotion{Advance: model.LatestPassed}) {
			t.Errorf("from %s: an environment that says nothing has %+v", from, got)
		}
	}
}

// TestPromotionErrors checks that any error in a policy makes its stage invalid. Otherwise the
// stage would look like one without conditions.
func TestPromotionErrors(t *testing.T) {
	for declaration, want := range map[string]string{
		`gates: "none"`:                                         "K1103 gates must be a struct, and is a string",
		`gates: approvals: 0`:                                   "K1103 approvals cannot be 0: it must be >=1",
		`gates: approvals: "two"`:                               "K1103 approvals must be an int, and is a string",
		`gates: approvals: {}`:                                  "K1105 required field count is missing",
		`gates: approvals: count: 0`:                            "K1103 count cannot be 0: it must be >=1",
		`gates: approvals: {count: 1, form: [_]}`:               "K1102 unknown field form",
		`gates: soak: for: "1w"`:                                `K1103 for cannot be "1w"`,
		`gates: soak: for: string`:                              "K1110 for has no value, only the constraint of the schema",
		`gates: soak: {}`:                                       "K1105 required field for is missing",
		`gates: soak: for: "24h"`:                               "K1206 a commit comes to environment dev first, and has run nowhere before",
		`gates: rollout: min: "101%"`:                           `K1103 min cannot be "101%": it must match "^(100|[0-9]{1,2}(\\.[0-9]+)?)%$"`,
		`gates: budget: assignments: -1`:                        "K1103 assignments cannot be -1: it must be >=0",
		`gates: http: {}`:                                       "K1103 http must be a list, and is a struct",
		`gates: windows: [{from: "mon 08:00"}]`:                 "K1105 required field to is missing",
		`gates: policy: [if _x == "a" {name: "b", change: {}}]`: "K1110 gates.policy has no value: _x has no value",
		`gates: policy: [{name: "n"}]`:                          "K1105 required field change is missing",
		`gates: policy: [{name: "n", change: 5}]`:               "K1402 the contract can never be satisfied: change must be a struct, and is an int",
		`gates: policy: [{name: "n", change: kept: 1 & 2}]`:     "K1402 the contract can never be satisfied: conflicting values 2 and 1 for kept",
		`gates: policy: [{name: "n", change: base: =~"("}]`:     "K1402 the regular expression \"(\" cannot be read: missing closing ): `(`",
		`gates: policy: [{name: "n", change: "\(_x)": 1}]`:      "K1402 the contract can never be checked: _x has no value, and is no field of the contract",
		`gates: policy: [{name: "n", change: deletd: {}}]`:      "K1102 unknown field deletd",
		`gates: http: [{name: "n", url: "http://board.example.com", tokenFrom: "TOKEN"}]`: "K1103 the token of $TOKEN would be sent without encryption",
		`gitops: {repo: "https://git.example.com/x", branch: "kalypso/x"}`:                "K1103 branches whose names begin with kalypso/ are those that promotion proposes changes from",
		`gitops: {repo: "https://git.example.com/x", branch: "../x"}`:                     `K1103 "../x" is not a name that git allows for a branch`,
		`rings: [{name: "x"}]`:                                      "K1105 required field select is missing",
		`rings: [{name: "X", select: {}}]`:                          `K1103 name cannot be "X"`,
		`rings: [{name: string, select: {}}]`:                       "K1110 name has no value, only the constraint of the schema",
		`rings: [{name: "x", selct: {}}]`:                           "K1102 unknown field selct",
		`rings: [{name: "x", select: labels: a: *"x" | string}]`:    "K1401 a selector cannot have defaults",
		`rings: [{name: "x", select: {}, gates: approvals: "one"}]`: "K1103 approvals must be an int, and is a string",
		`source: {}`:                                                 "K1105 required field branch is missing",
		`source: branch: "a..b"`:                                     `K1103 "a..b" is not a name that git allows for a branch`,
		`promotion: allow: ["error"]`:                                "K1104 allow[0] cannot be \"error\"",
		`promotion: skippable: ["rollout"]`:                          "K1104 skippable[0] cannot be \"rollout\"",
		`advance: "newest"`:                                          "K1104 advance cannot be \"newest\"",
		`after: ["nowhere"], gates: soak: for: "24h"`:                "K1301 there is no environment nowhere",
		`after: ["dev"], gates: soak: {for: "1h", environment: "x"}`: "K1204 environments wait for each other: dev after dev",
	} {
		all, ds := policiesOf(t, "_x: string\nenvironments: dev: {"+declaration+"}", nil)
		if len(ds) != 1 || string(ds[0].Code)+" "+ds[0].Message != want || len(ds[0].Sites) == 0 {
			t.Errorf("%s: %v", declaration, ds)
		}
		if s, there := all["dev"]; !there || !s.Invalid {
			t.Errorf("%s: the stage is taken for healthy", declaration)
		}
	}
}

// TestPolicyGateIsOpen checks that a change may have fields that a gate does not mention, even
// if the gate is a closed definition.
func TestPolicyGateIsOpen(t *testing.T) {
	of, ds := policiesOf(t, "#Few: deleted: close({Namespace?: <=5})\n#Some: created: n?: int\n"+
		`environments: dev: gates: policy: [{name: "few", change: #Few}, {name: "some", change: #Some}]`, nil)
	if len(ds) > 0 || len(of["dev"].Promotion.Gates.Policy) != 2 {
		t.Fatal(of["dev"], ds)
	}
	change := model.Expr(`{created: {n: 1, other: 2}, deleted: {Pod: 7}, more: 1}`)
	for i, want := range []bool{false, true} { // #Few closes itself
		g := of["dev"].Promotion.Gates.Policy[i]
		r := expr.New(nil).Eval([]expr.Call{{Terms: []model.Expr{change}, Contract: g.Change}})[0]
		if passes := len(r.Problems) == 0; passes != want {
			t.Errorf("%s: %v %v", g.Name, passes, r.Problems)
		}
	}
}
