package main

import (
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/assert"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/query"
)

func newTest(g *global) *cobra.Command {
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
	completeFlag(cmd, "run", nameValues(g, query.Tests, func(t query.Test) string { return regexp.QuoteMeta(t.Name) }))
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

// tested prints the results of tests, and what is wrong with them and with the platform.
func (g *global) tested(output string, b *compiler.Build, report *assert.Report) error {
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
		fmt.Fprintln(g.err, countResults(len(rows), counts))
	}
	if err := g.reportErrors(b); err != nil {
		return err
	}
	if diag.Errors(report.Diagnostics) {
		return errPlatform
	}
	return nil
}

// countResults counts the results of tests.
func countResults(all int, counts map[assert.Status]int) string {
	if all == 0 {
		return "there are no tests to run; `kalypso help test` says more"
	}
	out := plural(all, "test")
	for _, s := range []assert.Status{assert.Passed, assert.Failed, assert.Empty, assert.Unknown} {
		if n := counts[s]; n > 0 {
			out += fmt.Sprintf(", %d %s", n, s)
		}
	}
	return out
}
