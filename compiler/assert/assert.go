// Package assert runs the tests of a platform: it compares the output of a finished build
// with the assertions of the tests. The build does not depend on it.
//
// The hello-world example has no tests, so this example is from k2015-test-failed.txtar in
// testdata/script. Its platform has this test:
//
//	tests: "levels are quiet": values: LOG_LEVEL: "warn" | "error"
//
// Run of a build returns a [Report]. In dev, the test has the Status failed for its two
// Assignments. The Failure names dev/large/shop-test and dev/small/shop-test, and has the Path
// LOG_LEVEL. Its Message contains
//
//	LOG_LEVEL is "info", and must be error or warn
package assert

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
)

// Status is the result of a test in an environment.
type Status string

// The results.
const (
	Passed Status = "passed"
	Failed Status = "failed"
	// Empty is the status of a test that matches no assignment and does not expect a number
	// of them.
	Empty Status = "empty"
	// Unknown is the status of a test without failures whose result is uncertain, because
	// some of its assignments failed or because the test itself has errors.
	Unknown Status = "unknown"
)

// Result is the result of one test in one environment.
type Result struct {
	Environment string `json:"environment"`
	Test        string `json:"test"`
	Description string `json:"description,omitempty"`
	Status      Status `json:"status"`
	// Assignments is the number of assignments that the test matches.
	Assignments int       `json:"assignments"`
	Failures    []Failure `json:"failures"`
}

// Failure is an assertion of a test that does not hold.
type Failure struct {
	Message     string           `json:"message"`
	Path        string           `json:"path"`
	Assignments []string         `json:"assignments"` // sorted
	Positions   []model.Position `json:"positions"`
}

// Report is the results of a run of tests.
type Report struct {
	// Results are by environment, in the order of promotion, and then by test. A test is
	// absent from environments that its match leaves out.
	Results []Result
	// Diagnostics are the failures, and the warnings about tests that match nothing. They
	// are resolved and sorted.
	Diagnostics []diag.Diagnostic
}

// Run runs the tests of a build for which wants returns true.
func Run(ctx context.Context, b *compiler.Build, wants func(test string) bool) (*Report, error) {
	all := query.InOrder(b)
	environments := make([]*environment, len(all))
	group, ctx := errgroup.WithContext(ctx)
	for i, e := range all {
		environments[i] = &environment{Environment: e}
		if e.Model == nil {
			continue
		}
		group.Go(func() error { return environments[i].run(ctx, wants) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := &Report{Results: []Result{}}
	for _, e := range environments {
		for _, t := range e.tests {
			out.Results = append(out.Results, t.result())
			out.Diagnostics = append(out.Diagnostics, t.ds...)
		}
	}
	out.Diagnostics = diag.Sort(append(out.Diagnostics,
		unmatched(environments, len(all) == len(b.Declarations), withoutAssignments(b))...))
	b.Platform.Quote(out.Diagnostics)
	return out, nil
}

// environment is an environment with its tests.
type environment struct {
	*engine.Environment
	tests []*test
	names []string // of all its wanted tests, and of tests that do not concern it
}

// test is a test in an environment.
type test struct {
	*model.Test
	in      *engine.Environment
	matches []int // numbers of assignments
	// clusters are the clusters that it is about, by the folders that they follow; nil if they
	// are not known yet.
	clusters map[string][]*model.Cluster
	unknown  bool // an assignment failed before it could be tested
	ds       []diag.Diagnostic
}

// run runs the tests that concern the environment.
func (e *environment) run(ctx context.Context, wants func(string) bool) error {
	var tests []*model.Test
	for i := range e.Model.Tests {
		t := &e.Model.Tests[i]
		if !wants(t.Name) {
			continue
		}
		e.names = append(e.names, t.Name)
		if t.MatchUnknown || e.MayMatch(t.Match) {
			e.tests = append(e.tests, &test{Test: t, in: e.Environment})
			tests = append(tests, t)
		}
	}
	if len(e.tests) == 0 {
		return nil
	}
	for i, hits := range e.SelectTested(tests) {
		if t := e.tests[i]; !t.MatchUnknown {
			t.matches = hits
		}
	}
	h := e.Plan.NewHolder()
	for _, t := range e.tests {
		if !t.Invalid {
			t.count(h)
			t.facts(h)
		}
	}
	if err := e.values(ctx, h); err != nil {
		return err
	}
	for _, t := range e.tests {
		for i := range t.ds {
			t.ds[i].Environment = e.Name
		}
		diag.Resolve(t.ds, e.Model.Positions)
		t.ds = diag.Sort(t.ds)
	}
	return nil
}

// result returns the test's result.
func (t *test) result() Result {
	r := Result{Environment: t.in.Name, Test: t.Name, Description: t.Description, Status: Passed,
		Assignments: len(t.matches), Failures: []Failure{}}
	switch {
	case len(t.ds) > 0:
		r.Status = Failed
	case t.Invalid || t.unknown:
		r.Status = Unknown
	case len(t.matches) == 0 && t.Count == nil:
		r.Status = Empty
	}
	for _, d := range t.ds {
		f := Failure{Message: d.Message, Path: d.Path, Assignments: append([]string{}, d.Assignments...),
			Positions: []model.Position{}}
		for _, s := range d.Sites {
			f.Positions = append(f.Positions, s.Position)
		}
		r.Failures = append(r.Failures, f)
	}
	return r
}

// unmatched warns of tests that match nothing in any of the environments, unless they
// expect that. all reports that the platform has no other environments. If errors hide
// assignments, a test may match one of these, so there is no warning. because is the reason
// why there are no assignments.
func unmatched(environments []*environment, all bool, because string) []diag.Diagnostic {
	asked, matched := map[string]*test{}, map[string]bool{}
	for _, e := range environments {
		for _, t := range e.tests {
			asked[t.Name] = t
			matched[t.Name] = matched[t.Name] || len(t.matches) > 0 || t.Count != nil || t.Invalid ||
				e.Model.Incomplete
		}
	}
	var out []diag.Diagnostic
	warn := func(name string, in *engine.Environment) {
		ref := model.Ref{Collection: "tests", Name: name, Path: "match"}
		ds := []diag.Diagnostic{diag.New(diag.SelectsNothing,
			fmt.Sprintf("test %q matches no assignment", name)).At(ref, "").On(ref.String()).
			Hinting("correct match and clusters, or say how many it is to match: count: 0").Following(
			because)}
		diag.Resolve(ds, in.Model.Positions)
		out = append(out, ds...)
	}
	for _, e := range environments {
		for _, name := range e.names {
			t, concerns := asked[name]
			if concerns && !matched[name] {
				warn(name, t.in)
			} else if !concerns && all &&
				!slices.ContainsFunc(environments, func(e *environment) bool { return e.Model == nil }) {
				warn(name, e.Environment) // its match leaves every environment out
			}
		}
	}
	return out
}

// withoutAssignments returns the reason why no environment of the build has assignments, as
// the path from which diagnostics follow. It returns "" if an environment has some.
func withoutAssignments(b *compiler.Build) string {
	because := ""
	for _, e := range b.Environments {
		if e.Schedule == nil || len(e.Schedule.Assignments) > 0 {
			return ""
		}
		because = cmp.Or(because, e.Schedule.WithoutAssignments())
	}
	return because
}
