package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

func newHubHistory(a *hubReader) *cobra.Command {
	s := &selection{}
	var q api.HistoryQuery
	var since, until string
	var limit int
	cmd := &cobra.Command{
		Use:   "history [ENVIRONMENT]",
		Short: "List what changed on clusters, the newest first",
		Long:  `history lists each change of the state of an assignment on a cluster, and of what it runs.`,
		Example: `  kalypso hub history prod --workload shop --since 7d
  kalypso hub history prod --ring canary --state failed   # what failed there, and when`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if q.Query, err = s.read(args); err != nil {
				return err
			}
			if q.Since, err = readPast("since", since); err != nil {
				return err
			}
			if q.Until, err = readPast("until", until); err != nil {
				return err
			}
			return a.history(cmd.Context(), q, limit)
		},
	}
	f := cmd.Flags()
	s.kept(cmd)
	s.stateFlag(cmd, "only what got into one of these states")
	f.StringVar(&since, "since", "", "only what happened since a `TIME`, or for that long, as 7d")
	f.StringVar(&until, "until", "", "only what happened before a `TIME`, or before that long ago")
	f.IntVar(&limit, "limit", 100, "list at most so many; 0 for all")
	return cmd
}

func (a *hubReader) history(ctx context.Context, q api.HistoryQuery, limit int) error {
	hub, err := a.client()
	if err != nil {
		return err
	}
	all := &api.History{Transitions: []api.Transition{}}
	err = a.pages(limit, func(cursor string, most int) (int, string, error) {
		found, err := hub.History(ctx, q, cursor, most)
		if err != nil {
			return 0, "", err
		}
		if cursor == "" {
			all.Caveats = found.Caveats
			a.tell(found.Caveats)
		}
		all.Transitions = append(all.Transitions, found.Transitions...)
		return len(found.Transitions), found.Next, nil
	})
	if err != nil {
		return err
	}
	if *a.output != "table" {
		return printItem(a, "HubHistory", all)
	}
	var rows [][]any
	for _, t := range all.Transitions {
		id := t.Environment + "/" + t.ClusterType + "/" + t.Target
		rows = append(rows, []any{when(t.At), t.Cluster, id, cmp.Or(t.Version, "-"), cmp.Or(t.Was, "-"),
			t.State, shortOrNone(t.Commit), cmp.Or(terminal.Line(t.Message), "-")})
	}
	return a.table(
		[]string{"TIME", "CLUSTER", "ASSIGNMENT", "VERSION", "WAS", "STATE", "COMMIT", "REASON"}, rows)
}

func newHubReleases(a *hubReader) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "releases [ENVIRONMENT]",
		Short: "List what was released, and when clusters had it",
		Long: `releases lists the commits that changed what environments and rings get, newest first. It
shows when all of a release was ok for the first time, and when it had more failures than
the platform allows.`,
		Example: `  kalypso hub releases prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := environment(args)
			if err != nil {
				return err
			}
			hub, err := a.client()
			if err != nil {
				return err
			}
			found := &api.Releases{Releases: []api.Release{}}
			err = a.pages(limit, func(cursor string, most int) (int, string, error) {
				page, err := hub.Releases(cmd.Context(), name, cursor, most)
				if err != nil {
					return 0, "", err
				}
				if cursor == "" {
					found.Caveats = page.Caveats
					a.tell(page.Caveats)
				}
				found.Releases = append(found.Releases, page.Releases...)
				return len(page.Releases), page.Next, nil
			})
			if err != nil {
				return err
			}
			if *a.output != "table" {
				return printItem(a, "HubReleases", found)
			}
			var rows [][]any
			for _, r := range found.Releases {
				of := r.Environment
				if r.Ring != "" {
					of += "/" + r.Ring
				}
				rows = append(rows, []any{when(r.At), of, shortOrNone(r.Commit), shortOrNone(r.Base),
					when(r.Completed), when(r.Failed), cmp.Or(r.Author, "-"),
					cmp.Or(terminal.Line(r.Subject), "-")})
			}
			return a.table(
				[]string{"TIME", "ENVIRONMENT", "COMMIT", "BASE", "COMPLETE", "FAILED", "AUTHOR", "SUBJECT"},
				rows)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "list at most so many; 0 for all")
	return cmd
}

func newHubPerformance(a *hubReader) *cobra.Command {
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
			hub, err := a.client()
			if err != nil {
				return err
			}
			found, err := hub.Performance(cmd.Context(), name, from)
			if err != nil {
				return err
			}
			a.tell(found.Caveats)
			if *a.output != "table" {
				return printItem(a, "HubPerformance", found)
			}
			var rows [][]any
			for _, p := range found.Environments {
				failed := "-"
				if p.Completed+p.Failed > 0 {
					failed = fmt.Sprintf("%.0f %%", 100*p.FailureRate)
				}
				rows = append(rows, []any{
					p.Environment, p.Releases, fmt.Sprintf("%.1f", p.PerWeek),
					took(p.Completed, p.LeadMedian), took(p.Completed, p.LeadP90), failed,
					took(p.Restored, p.Restore),
				})
			}
			return a.table([]string{
				"ENVIRONMENT", "RELEASES", "PER WEEK", "LEAD TIME", "LEAD TIME P90", "FAILED",
				"TIME TO RESTORE",
			}, rows)
		},
	}
	cmd.Flags().StringVar(&since, "since", "",
		"of the releases since a `TIME`, or for that long, as 90d (default: 30d)")
	return cmd
}

// took returns a duration in seconds as tables have it; "-" if it is of no release.
func took(releases, seconds int) string {
	if releases == 0 {
		return "-"
	}
	return (time.Duration(seconds) * time.Second).String()
}
