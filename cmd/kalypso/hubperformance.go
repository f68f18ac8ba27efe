package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/hub/api"
)

func newHubPerformance(a *asking) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "performance [ENVIRONMENT]",
		Short: "Show lead times and failure rates of releases",
		Long: `performance shows the four DORA measures of each environment: the number of releases, in
total and per week; the lead time, from the platform's commit until the whole release was
ok (median and 90th percentile); the failure rate, as a share of the completed or failed
releases; and the time from a failure until the ring was ok again (median). It leaves out
environments without a release in that time.

A release is a commit that changes what an environment or a ring gets.`,
		Example: `  kalypso hub performance
  kalypso hub performance prod --since 90d`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := environment(args)
			if err != nil {
				return err
			}
			from, err := readPast("since", since)
			if err != nil {
				return err
			}
			hub, err := a.hub.client(a.global)
			if err != nil {
				return err
			}
			found, err := hub.Performance(cmd.Context(), name, from)
			if err != nil {
				return err
			}
			a.tell(found.Caveats)
			if *a.output != "table" {
				return a.printDocument(*a.output, document[*api.Performances]{apiVersion, "HubPerformance", found})
			}
			var rows [][]any
			for _, p := range found.Environments {
				failed := "-"
				if p.Completed+p.Failed > 0 {
					failed = fmt.Sprintf("%.0f %%", 100*p.FailureRate)
				}
				rows = append(rows, []any{
					p.Environment, p.Releases, fmt.Sprintf("%.1f", p.PerWeek),
					took(p.Completed, p.LeadMedian), took(p.Completed, p.LeadP90), failed, took(p.Restored, p.Restore),
				})
			}
			return a.table([]string{
				"ENVIRONMENT", "RELEASES", "PER WEEK", "LEAD TIME", "LEAD TIME P90", "FAILED", "TIME TO RESTORE",
			}, rows)
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "of the releases since a `TIME`, or for that long, as 90d (default: 30d)")
	return cmd
}

// took returns a duration in seconds as tables have it; "-" if it is of no release.
func took(releases, seconds int) string {
	if releases == 0 {
		return "-"
	}
	return (time.Duration(seconds) * time.Second).String()
}
