package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/assert"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/promotion"
)

func newVet(g author) *cobra.Command {
	var promoted bool
	var workspace string
	var failOn *string
	cmd := &cobra.Command{
		Use:   "vet [ENVIRONMENT...]",
		Short: "Say what is wrong with the platform",
		Long: `vet compiles the environments, or all, runs their tests, writes nothing, and prints
everything there is to say about them. The exit code is 3 if there are errors; warnings
alone leave it 0, but with --fail-on warning. A scheduling policy that selects nothing
because of a likely mistake is an error here, and a warning of builds. 'kalypso explain
CODE' tells more about a code.

With --promoted vet compiles the environments' own files as they are in the commit
that is checked out with the base commits that run there now, by the records of their
GitOps trees: what a change of these files is going to meet. That is for pull requests.

With --workspace vet prints what concerns the workloads, registrations and assignments
of one workspace, and errors that hide them. That is for pull requests of a team.`,
		RunE: func(cmd *cobra.Command, environments []string) error {
			if promoted && workspace != "" {
				return usagef("--promoted and --workspace: give one of them")
			}
			if promoted {
				return g.vetPromoted(cmd, environments, *failOn)
			}
			return g.compile(cmd.Context(), environments, func(b *compiler.Build) error {
				tests, err := assert.Run(cmd.Context(), b, func(string) bool { return true })
				if err != nil {
					return err
				}
				b.Diagnostics = diag.Sort(append(b.Diagnostics, tests.Diagnostics...))
				if workspace == "" {
					return g.findings(b.Diagnostics, *failOn, size(b, tests))
				}
				about, found := query.AboutWorkspace(b, workspace)
				if !found && !diag.Errors(about) {
					return g.unknownWorkspace(b, workspace, about)
				}
				return g.findings(about, *failOn, "workspace "+workspace)
			})
		},
	}
	cmd.Flags().StringVar(&workspace, "workspace", "", "print what concerns this `WORKSPACE` alone")
	cmd.Flags().BoolVar(&promoted, "promoted", false, "compile the environments' own files with the "+
		"base commits that run there")
	g.diagnosticsFlag(cmd, cmd.Flags(), "output", "o",
		"how to print what is found, as --diagnostics does")
	failOn = failOnFlag(cmd)
	return cmd
}

// findings prints the diagnostics, their number and the objects that were checked. It fails if a
// diagnostic is as severe as failOn.
func (g author) findings(ds []diag.Diagnostic, failOn, lookedAt string) error {
	ds = diag.EscalateMistakes(ds)
	if err := g.report(g.out, ds); err != nil {
		return err
	}
	if g.diagnostics == "text" {
		fmt.Fprintf(g.out, "%s, %s\n", lookedAt, counted(ds))
	}
	if failsOn(failOn, ds) {
		return errPlatform
	}
	return nil
}

// size returns the number of environments, assignments and tests of a build, as text.
func size(b *compiler.Build, tests *assert.Report) string {
	assignments := 0
	for _, e := range b.Environments {
		if e.Schedule != nil {
			assignments += len(e.Schedule.Assignments)
		}
	}
	out := plural(len(b.Environments), "environment") + ", " + plural(assignments, "assignment")
	names := map[string]bool{}
	for _, r := range tests.Results {
		names[r.Test] = true
	}
	if len(names) > 0 {
		out += ", " + plural(len(names), "test")
	}
	return out
}

// vetPromoted looks at the commit that is checked out.
func (g author) vetPromoted(cmd *cobra.Command, environments []string, failOn string) error {
	o := &promotionOptions{environments: environments, local: true, forge: "none"}
	var said []diag.Diagnostic
	var leftOut []string
	err := promoter(g).withSession(cmd, o,
		func(ctx context.Context, s *promotion.Session) (err error) {
			said, leftOut, err = s.Vet(ctx)
			return err
		})
	if err != nil {
		return err
	}
	if len(leftOut) > 0 {
		fmt.Fprintf(g.err, "nothing is promoted yet to %s\n", strings.Join(leftOut, ", "))
	}
	return g.findings(said, failOn, "the commit with what is promoted")
}

func newTest(g author) *cobra.Command {
	var run string
	cmd := &cobra.Command{
		Use:   "test [ENVIRONMENT...]",
		Short: "Run the tests of the platform",
		Long: `test compiles the environments, or all, and runs the tests of the platform: what
tests assert of the assignments that they match, of their composed values, of what else
is known of them, and of how many there are. The results are printed on stdout, and what
fails on stderr. The exit code is 3 if a test fails, or the platform has errors. Nothing
is written; 'kalypso vet' runs the tests as well, and builds do not.`,
		Example: `  kalypso test prod
  kalypso test --run debug -o json`,
	}
	cmd.Flags().StringVar(&run, "run", "", "run the tests whose names match this `REGEXP` alone")
	completeFlag(cmd, "run", nameValues(g.complete(), query.Tests,
		func(t query.Test) string { return regexp.QuoteMeta(t.Name) }))
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, environments []string) error {
		names, err := regexp.Compile(run)
		if err != nil {
			return usagef("--run: %v", err)
		}
		return g.compile(cmd.Context(), environments, func(b *compiler.Build) error {
			report, err := assert.Run(cmd.Context(), b, names.MatchString)
			if err != nil {
				return err
			}
			return g.tested(*output, b, report)
		})
	}
	return cmd
}

// tested prints the results of tests, and the errors in them and in the platform.
func (g author) tested(output string, b *compiler.Build, report *assert.Report) error {
	counts := map[assert.Status]int{}
	var rows [][]any
	for _, r := range report.Results {
		counts[r.Status]++
		rows = append(rows, []any{r.Environment, r.Test, r.Status, r.Assignments})
	}
	var err error
	if output == "table" {
		err = g.table([]string{"ENVIRONMENT", "TEST", "RESULT", "ASSIGNMENTS"}, rows)
	} else {
		err = g.printDocument(output, list[assert.Result]{apiVersion, "TestResultList", report.Results})
	}
	if err != nil {
		return err
	}
	if err := g.report(g.err, report.Diagnostics); err != nil {
		return err
	}
	if output == "table" && g.diagnostics == "text" {
		summary := plural(len(rows), "test")
		for _, s := range []assert.Status{assert.Passed, assert.Failed, assert.Empty, assert.Unknown} {
			if n := counts[s]; n > 0 {
				summary += fmt.Sprintf(", %d %s", n, s)
			}
		}
		if len(rows) == 0 {
			summary = "there are no tests to run; `kalypso help test` says more"
		}
		fmt.Fprintln(g.err, summary)
	}
	if err := g.reportErrors(b); err != nil {
		return err
	}
	if diag.Errors(report.Diagnostics) {
		return errPlatform
	}
	return nil
}
