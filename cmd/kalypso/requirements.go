package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
)

func newRequirements(g author) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "requirements [ENVIRONMENT...]",
		Short: "List which assignment needs which keys, and what gives them",
		Long: `requirements lists, for every assignment, the keys that the contracts of its
workload, its deployment target and the platform name: what each must satisfy,
what gives it a value, and which are missing.`,
	}
	output := outputFlag(cmd)
	missing := cmd.Flags().Bool("missing", false, "only the required keys that nothing gives")
	cmd.RunE = func(cmd *cobra.Command, environments []string) error {
		return g.compile(cmd.Context(), environments, func(b *compiler.Build) error {
			all, err := query.Requirements(cmd.Context(), b)
			if err != nil {
				return err
			}
			items := []query.Requirement{}
			for _, r := range all {
				if !*missing || !r.Given && !r.Optional {
					items = append(items, r)
				}
			}
			err = g.print(*output, list[query.Requirement]{apiVersion, "RequirementList", items},
				func(w *tabwriter.Writer) {
					row(w, "ENVIRONMENT", "CLUSTER TYPE", "DEPLOYMENT TARGET", "KEY", "GIVEN BY", "REQUIRED BY",
						"CONSTRAINT")
					shown := map[string]bool{} // if several classes have the same row, it is printed once
					for _, r := range items {
						cells := []any{r.Environment, model.TypeOfFolder(r.ClusterType), r.DeploymentTarget, r.Key,
							givenBy(r),
							r.RequiredBy.Kind + " " + r.RequiredBy.Name, oneLine(r.Constraint)}
						if text := fmt.Sprintf("%q", cells); !shown[text] {
							shown[text] = true
							row(w, cells...)
						}
					}
				})
			if err != nil {
				return err
			}
			return g.reportErrors(b)
		})
	}
	return cmd
}

// oneLine is a constraint as a cell of a table.
func oneLine(s string) string {
	const longest = 60
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest-1]) + "…"
	}
	return s
}

func givenBy(r query.Requirement) string {
	switch {
	case r.Given:
		var names []string
		for _, o := range r.By {
			if !slices.Contains(names, o.Name) {
				names = append(names, o.Name)
			}
		}
		return join(names)
	case r.Optional:
		return "(optional)"
	}
	return "MISSING"
}
