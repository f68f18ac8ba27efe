package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/query"
)

func newCompare(g inspector) *cobra.Command {
	var at []string
	exitCode := false
	cmd := &cobra.Command{
		Use:   "compare ENVIRONMENT ENVIRONMENT",
		Short: "Say what differs between two environments",
		Long: `compare says what differs between two environments, workload by workload: the
cluster types that it is on, versions, namespaces, contracts and values. Of a
workload it shows what all its assignments have, each once, as the deployment
targets and cluster types of two environments need not have the same names; in
namespaces, these names are left open. The values are those of assignments that
are not configured alike on both sides. Clusters that both sides list are compared
one by one, whatever their classes are.

The environments are those of the platform as it is in its folder, or with --at of a
git revision. With --at twice the first environment is of the first revision,
and the second of the second: so one environment is compared at two commits.

An assignment with errors has no values here, and neither has what is composed for
single clusters. The exit code is 3 where there are errors.`,
		Example: `  kalypso compare dev prod
  kalypso compare dev prod --at v1.4.0
  kalypso compare prod prod --at v1.4.0 --at HEAD`,
		Args: arity(2, 2, "compare takes two environments, as in kalypso compare dev prod, and not %d"),
	}
	o := outputFlag(cmd)
	cmd.Flags().StringArrayVar(&at, "at", nil,
		"git `REV` of the platform to compile; twice for one for each environment")
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 1 if there are differences")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(at) > 2 || slices.Contains(at, "") {
			return usagef("--at takes a git revision, and is given once, or once for each environment")
		}
		return g.withCache(func(c *cache.Cache) error {
			return g.compare(cmd.Context(), c, args, at, func(x *query.Comparison, failed bool) error {
				err := g.printComparison(*o, x)
				switch {
				case err != nil:
					return err
				case failed:
					return errPlatform
				case exitCode && len(x.Workloads) > 0:
					return errDifference
				}
				return nil
			})
		})
	}
	return cmd
}

// compare compiles the environments and compares them. Two of one revision are of one build.
func (g inspector) compare(ctx context.Context, c *cache.Cache, names, at []string,
	use func(x *query.Comparison, failed bool) error) (err error) {
	if len(at) < 2 && names[0] == names[1] {
		return usagef("%s is compared with itself; with --at twice it is compared at two commits",
			names[0])
	}
	wanted := [][]string{names}
	if len(at) == 2 {
		wanted = [][]string{names[:1], names[1:]}
	}
	var sides []*engine.Environment
	var ds []diag.Diagnostic
	failed := false
	for n, environments := range wanted {
		r := g.request(environments, c)
		if n < len(at) {
			r.Revision = at[n]
		}
		b, failure := g.compileRequest(ctx, r)
		if failure != nil {
			return failure
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		failed, ds = failed || b.Failed(), append(ds, b.Diagnostics...)
		for _, name := range environments {
			var side *engine.Environment // nil if the base cannot be read
			if n := slices.IndexFunc(b.Environments,
				func(e *engine.Environment) bool { return e.Name == name }); n >= 0 {
				side = b.Environments[n]
			}
			sides = append(sides, side)
		}
	}
	// vet shows the warnings.
	ds = slices.DeleteFunc(ds, func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
	if err := g.report(g.err, ds); err != nil {
		return err
	}
	for n, e := range sides {
		if e == nil || e.Model == nil {
			fmt.Fprintf(g.err, "kalypso: not compared, because of errors: %s\n", names[n])
			return errPlatform
		}
		if e.Model.Incomplete {
			fmt.Fprintf(g.err,
				"kalypso: errors hide a part of %s: what of it is missing here may be there\n", names[n])
		}
	}
	x, err := query.Compare(ctx, sides[0], sides[1])
	if err != nil {
		return err
	}
	for n, side := range []*query.ComparedSide{&x.Before, &x.After} {
		if len(at) > 0 {
			side.Revision = at[min(n, len(at)-1)]
		}
	}
	return use(x, failed)
}

func (g inspector) printComparison(output string, x *query.Comparison) error {
	if output != "table" {
		return g.printDocument(output, document[*query.Comparison]{apiVersion, "Comparison", x})
	}
	if len(x.Workloads) > 0 {
		var rows [][]any
		for _, w := range x.Workloads {
			for _, d := range w.Differences {
				what := string(d.Kind)
				if d.Path != "" {
					what = d.Path
				}
				switch {
				case d.ClusterType != "":
					what += " on " + d.ClusterType
				case len(d.Clusters) == 1:
					what += " on cluster " + d.Clusters[0]
				case len(d.Clusters) > 1:
					what += fmt.Sprintf(" on %d clusters", len(d.Clusters))
				}
				rows = append(rows, []any{w.Workload, what, few(d.Before), few(d.After)})
			}
		}
		if err := g.table([]string{"WORKLOAD", "DIFFERS IN", titleOf(x.Before), titleOf(x.After)},
			rows); err != nil {
			return err
		}
	}
	same := "all"
	if len(x.Workloads) > 0 {
		same = fmt.Sprint(x.Same)
	}
	_, err := fmt.Fprintf(g.err, "%s, %s the same\n", plural(len(x.Workloads)+x.Same, "workload"),
		same)
	return err
}

// few names the first of a list, and counts the others.
func few(all []string) string {
	const named = 3
	if more := len(all) - named; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:named], ", "), more)
	}
	return strings.Join(all, ", ")
}

func titleOf(s query.ComparedSide) string {
	if s.Revision == "" {
		return s.Environment
	}
	return s.Environment + " at " + s.Revision
}
