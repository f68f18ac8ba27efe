package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/model"
)

func change(added, changed, removed, types int) *Change {
	c := &Change{Environment: "prod", Base: commit}
	names := func(kind string, n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprint(kind, i))
		}
		return names
	}
	c.Assignments.Added, c.Assignments.Changed, c.Assignments.Removed = names("a", added), names("c", changed), names("r", removed)
	c.Counts = compare.Total{Added: added, Changed: changed, Removed: removed}
	c.ClusterTypes = names("t", types)
	return c
}

func TestErrorsAndKept(t *testing.T) {
	sick, kept := change(0, 0, 0, 0), change(0, 0, 0, 0)
	sick.Errors, kept.Kept = 2, 3
	for name, c := range map[string]struct {
		policy Policy
		change *Change
		want   want
	}{
		"errors":           {Policy{AllowKept: true}, sick, want{Blocked, `2 assignments with errors; wanted are 0, or allow: ["errors"]`, ""}},
		"errors, allowed":  {Policy{AllowErrors: true}, sick, want{Passed, "2 assignments with errors, which the policy allows", ""}},
		"kept":             {Policy{AllowErrors: true}, kept, want{Blocked, `3 folders kept from before; wanted are 0, or allow: ["kept"]`, ""}},
		"kept, allowed":    {Policy{AllowKept: true}, kept, want{Passed, "3 folders kept from before, which the policy allows", ""}},
		"nothing is known": {Policy{AllowErrors: true, AllowKept: true}, nil, want{Pending, "the change is not planned yet", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.check(t, Planned(t.Context(), c.policy, ChangeFacts{Now: now, Change: c.change}, Skip{}))
		})
	}
	if vs := Planned(t.Context(), Policy{}, ChangeFacts{Now: now, Change: change(1, 1, 1, 1)}, Skip{}); len(vs) != 0 {
		t.Errorf("a change without either: %+v", vs)
	}
}

func TestRemovals(t *testing.T) {
	taking := func(r effect.Removals) *Change {
		c := change(0, 0, 0, 0)
		c.Removals = r
		return c
	}
	skippable := Policy{Skippable: []string{"removals"}}
	for name, c := range map[string]struct {
		removals effect.Removals
		skip     Skip
		want     want
	}{
		"too many": {effect.Removals{Removed: 5, Recorded: 16, Most: 4, On: 5, Assignments: 1, Least: 3}, Skip{}, want{Blocked, "5 of 16 assignments are removed (limit: 4)", ""}},
		"all":      {effect.Removals{Removed: 2, Recorded: 2, Most: 3, Empty: true}, Skip{}, want{Blocked, "all 2 assignments are removed, and nothing is left", ""}},
		"skipped":  {effect.Removals{Removed: 5, Recorded: 16, Most: 4, On: 5, Assignments: 1, Least: 3}, Skip{Gates: []string{"removals"}, Reason: "old shops"}, want{Passed, "5 of 16 assignments are removed (limit: 4)", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.check(t, Planned(t.Context(), skippable, ChangeFacts{Now: now, Change: taking(c.removals)}, c.skip))
		})
	}
	if vs := Planned(t.Context(), Policy{}, ChangeFacts{Now: now, Change: taking(effect.Removals{Removed: 4, Recorded: 16, Most: 4})}, Skip{}); len(vs) != 0 {
		t.Errorf("as many as are allowed: %+v", vs)
	}
}

func TestBudget(t *testing.T) {
	n := func(n int) *int { return &n }
	twice := change(0, 0, 0, 0)
	twice.ClusterTypes = []string{"a", "a"}
	fleet := change(1, 0, 0, 1)
	fleet.Clusters = 1204
	for name, c := range map[string]struct {
		gate   model.BudgetGate
		change *Change
		want   want
	}{
		"as many":                {model.BudgetGate{Assignments: n(6), ClusterTypes: n(4)}, change(1, 2, 3, 4), want{Passed, "6 of at most 6 assignments, 4 of at most 4 cluster types", ""}},
		"too many assignments":   {model.BudgetGate{Assignments: n(5), ClusterTypes: n(4)}, change(1, 2, 3, 4), want{Blocked, "6 of at most 5 assignments, 4 of at most 4 cluster types", ""}},
		"too many cluster types": {model.BudgetGate{ClusterTypes: n(3)}, change(1, 2, 3, 4), want{Blocked, "6 assignments, 4 of at most 3 cluster types", ""}},
		"none":                   {model.BudgetGate{Assignments: n(0)}, change(1, 0, 0, 1), want{Blocked, "1 of at most 0 assignments, 1 cluster types", ""}},
		"no bounds":              {model.BudgetGate{}, change(1, 0, 0, 1), want{Passed, "1 assignments, 1 cluster types", ""}},
		"as many clusters":       {model.BudgetGate{Clusters: n(1204)}, fleet, want{Passed, "1 assignments, 1 cluster types, 1204 of at most 1204 clusters", ""}},
		"too many clusters":      {model.BudgetGate{Clusters: n(500)}, fleet, want{Blocked, "1 assignments, 1 cluster types, 1204 of at most 500 clusters", ""}},
		"a type that is twice":   {model.BudgetGate{ClusterTypes: n(1)}, twice, want{Passed, "0 assignments, 1 of at most 1 cluster types", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.check(t, Planned(t.Context(), gates(model.Gates{Budget: &c.gate}), ChangeFacts{Now: now, Change: c.change}, Skip{}))
		})
	}
}

func TestPolicy(t *testing.T) {
	g := model.PolicyGate{Name: "few", Change: "{deleted: Namespace?: <=5}", Hint: "ask the platform team"}
	satisfies := func(violations []string, err error) func(context.Context, model.Expr, json.RawMessage) ([]string, error) {
		return func(_ context.Context, c model.Expr, document json.RawMessage) ([]string, error) {
			if c != g.Change {
				return nil, fmt.Errorf("asked for %s", c)
			}
			const want = `{"environment":"prod","counts":{"added":0,"removed":0,"changed":0},"removed":[],"added":[],"changed":[],"assignments":{"added":[],"changed":[],"removed":[]},"clusterTypes":[],"clusters":0,"emptied":[],"created":{},"updated":{},"deleted":{},"errors":0,"kept":0,` +
				`"removals":{"removed":0,"recorded":0,"most":0,"on":0,"assignments":0,"least":0,"empties":false,"emptied":0,"mostEmptied":0},` +
				`"base":"4f2a9c1d00000000000000000000000000000000","own":"0000000000000000000000000000000000000000"}`
			if string(document) != want {
				return nil, fmt.Errorf("the document is %s", document)
			}
			return violations, err
		}
	}
	many := []string{"1", "2", "3", "4", "5", "6", "7"}
	for name, c := range map[string]struct {
		facts ChangeFacts
		want  want
	}{
		"holds":          {ChangeFacts{Satisfies: satisfies(nil, nil)}, want{Passed, "the change is as it should be", ""}},
		"violated":       {ChangeFacts{Satisfies: satisfies([]string{"deleted.Namespace: 6 is more\nthan 5"}, nil)}, want{Blocked, "deleted.Namespace: 6 is more than 5; ask the platform team", ""}},
		"violated a lot": {ChangeFacts{Satisfies: satisfies(many, nil)}, want{Blocked, "1; 2; 3; 4; 5; and 2 more; ask the platform team", ""}},
		"error":          {ChangeFacts{Satisfies: satisfies(nil, errors.New("no such field"))}, want{Blocked, "cannot be evaluated: no such field", ""}},
		"nobody":         {ChangeFacts{}, want{Pending, "nothing here evaluates constraints", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now, c.facts.Change = now, change(0, 0, 0, 0)
			c.want.check(t, Planned(t.Context(), gates(model.Gates{Policy: []model.PolicyGate{g}}), c.facts, Skip{}))
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f := ChangeFacts{Now: now, Change: change(0, 0, 0, 0), Satisfies: satisfies(nil, context.Canceled)}
		want{Pending, "was not evaluated: context canceled", ""}.check(t, Planned(ctx, gates(model.Gates{Policy: []model.PolicyGate{g}}), f, Skip{}))
	})
}

func TestService(t *testing.T) {
	g := model.HTTPGate{Name: "cab", URL: "https://cab.example/?key=secret"}
	for name, c := range map[string]struct {
		body string
		err  error
		want want
	}{
		"passed":            {`{"status":"passed"}`, nil, want{Passed, "cab says passed", ""}},
		"passed, with ends": {` {"until":"2026-11-21T09:00:00Z","reason":"CHG-7","status":"passed"} `, nil, want{Passed, "cab says passed: CHG-7", ""}},
		"pending":           {`{"status":"pending","reason":"waits for bob","until":"2026-11-21T10:00:00+01:00"}`, nil, want{Pending, "cab says pending: waits for bob, until 2026-11-21T09:00:00Z", "2026-11-21T09:00:00Z"}},
		"pending since":     {`{"status":"pending","until":"2026-11-19T10:00:00Z"}`, nil, want{Pending, "cab says pending", ""}},
		"blocked":           {`{"status":"blocked","reason":"no change ticket"}`, nil, want{Blocked, "cab says blocked: no change ticket", ""}},
		"nulls":             {`{"status":"passed","reason":null,"until":null}`, nil, want{Passed, "cab says passed", ""}},
		"escapes":           {`{"status":"blocked","reason":"\u001b[31mno\nno"}`, nil, want{Blocked, "cab says blocked: [31mno no", ""}},
		"repeats a token":   {`{"status":"blocked","reason":"Authorization: Bearer s3cr3t was refused"}`, nil, want{Blocked, "cab says blocked: Authorization: Bearer *** was refused", ""}},
		"no answer":         {"", errors.New("timed out"), want{Pending, "cab does not answer: timed out", ""}},
		"no URL in errors":  {"", fmt.Errorf("asking: %w", &url.Error{Op: "Post", URL: g.URL, Err: errors.New("refused")}), want{Pending, "cab does not answer: refused", ""}},
		"empty":             {"", nil, want{Pending, "the answer of cab cannot be read: it is no JSON", ""}},
		"a page":            {"<html>", nil, want{Pending, "the answer of cab cannot be read: it is no JSON", ""}},
		"a list":            {`["passed"]`, nil, want{Pending, "the answer of cab cannot be read: it is no object", ""}},
		"two answers":       {`{"status":"passed"}{"status":"blocked"}`, nil, want{Pending, "the answer of cab cannot be read: it is no JSON", ""}},
		"one in two":        {`{"status":"blocked","status":"passed"}`, nil, want{Pending, `the answer of cab cannot be read: field "status" is there twice, or not wanted`, ""}},
		"in capitals":       {`{"Status":"passed"}`, nil, want{Pending, `the answer of cab cannot be read: field "Status" is there twice, or not wanted`, ""}},
		"more":              {`{"status":"passed","ok":false}`, nil, want{Pending, `the answer of cab cannot be read: field "ok" is there twice, or not wanted`, ""}},
		"no status":         {`{}`, nil, want{Pending, "the answer of cab cannot be read: status is none of passed, pending and blocked", ""}},
		"null":              {`{"status":null}`, nil, want{Pending, "the answer of cab cannot be read: status is none of passed, pending and blocked", ""}},
		"another status":    {`{"status":"PASSED"}`, nil, want{Pending, "the answer of cab cannot be read: status is none of passed, pending and blocked", ""}},
		"true":              {`{"status":true}`, nil, want{Pending, "the answer of cab cannot be read: status is no string", ""}},
		"no time":           {`{"status":"passed","until":"tomorrow"}`, nil, want{Pending, "the answer of cab cannot be read: until is no time such as 2026-11-21T09:00:00Z", ""}},
		"the year 10000":    {`{"status":"pending","until":"9999-12-31T23:59:59-01:00"}`, nil, want{Pending, "the answer of cab cannot be read: until is no time such as 2026-11-21T09:00:00Z", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			post := func(_ context.Context, asked model.HTTPGate, body []byte) ([]byte, error) {
				if asked != g || !strings.HasPrefix(string(body), `{"environment":"prod",`) {
					t.Errorf("asked %+v for %s", asked, body)
				}
				return []byte(c.body), c.err
			}
			f := ChangeFacts{Now: now, Change: change(0, 0, 0, 0), Post: post}
			c.want.check(t, Planned(t.Context(), gates(model.Gates{HTTP: []model.HTTPGate{g}}), f, Skip{}))
		})
	}
	t.Run("from nowhere", func(t *testing.T) {
		f := ChangeFacts{Now: now, Change: change(0, 0, 0, 0)}
		want{Pending, "cab cannot be asked from here", ""}.check(t, Planned(t.Context(), gates(model.Gates{HTTP: []model.HTTPGate{g}}), f, Skip{}))
	})
}

// For any answer of a service, the verdict is one line within bounds, and JSON. An answer passes
// only if it is an object with the status in just one place.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"status":"passed"}`, `{"status":"pending","reason":"x","until":"2026-11-21T09:00:00Z"}`, `{"status":"blocked","status":"passed"}`,
		`{"Status":"passed"}`, `{"status":"passed"}{}`, `[]`, ``, `{"status":"pending","until":"0000-01-01T00:00:00+23:59"}`, "{\"status\":\"blocked\",\"reason\":\"\xff\\u001b\"}",
	} {
		f.Add([]byte(seed))
	}
	g := model.HTTPGate{Name: "cab"}
	f.Fuzz(func(t *testing.T, body []byte) {
		facts := ChangeFacts{Now: now, Post: func(context.Context, model.HTTPGate, []byte) ([]byte, error) { return body, nil }}
		v := service(t.Context(), g, facts, nil).verdict(g.Name)
		if _, err := json.Marshal(v); err != nil {
			t.Errorf("the verdict is no JSON: %v", err)
		}
		if len([]rune(v.Reason)) > 700 || strings.ContainsFunc(v.Reason, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("reason %q", v.Reason)
		}
		if v.State != Pending && !v.Until.IsZero() || !v.Until.IsZero() && !v.Until.After(now) {
			t.Errorf("%s until %v", v.State, v.Until)
		}
		if v.State == Passed {
			var loose map[string]any
			if err := json.Unmarshal(body, &loose); err != nil || loose["status"] != "passed" || strings.Contains(string(body), `"blocked"`) && !strings.Contains(string(body), "reason") && !strings.Contains(string(body), `\`) {
				t.Errorf("passed by %q", body)
			}
		}
	})
}

// Slow gates are evaluated in the order of the policy, and the verdicts are in the order of the
// table.
func TestPlannedOrder(t *testing.T) {
	one := 1
	g := func(name string) model.Gates {
		return model.Gates{
			HTTP: []model.HTTPGate{{Name: name + "-http"}}, Policy: []model.PolicyGate{{Name: name + "-policy"}},
			Budget: &model.BudgetGate{Assignments: &one}, Approvals: &model.ApprovalsGate{Count: 1},
		}
	}
	c := change(1, 1, 1, 1)
	c.Errors, c.Kept = 1, 1
	var got []string
	for _, v := range Planned(t.Context(), gates(g("env"), g("ring")), ChangeFacts{Now: now, Change: c}, Skip{}) {
		got = append(got, strings.TrimSuffix(v.Gate+" "+v.Name, " "))
	}
	const want = "errors, kept, budget, budget, policy env-policy, policy ring-policy, http env-http, http ring-http, approvals, approvals"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}
