package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
)

func newHubDrift(a *asking) *cobra.Command {
	s := &selection{}
	cmd := &cobra.Command{
		Use:   "drift [ENVIRONMENT]",
		Short: "List what runs and is not what is wanted, the oldest first",
		Long: `drift lists the assignments on clusters that run something else than what is wanted: what
their branch had before (behind), or what it never had or somebody changed on the
cluster (drifted).`,
		Example: `  kalypso hub drift prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := s.read(args)
			if err != nil {
				return err
			}
			q.States = []state.State{state.Behind, state.Drifted}
			return a.oldest(cmd.Context(), q, s.limit)
		},
	}
	s.flags(cmd)
	return cmd
}

// oldest prints those assignments on clusters that have been in their state for the longest time, of all
// that there are.
func (a *asking) oldest(ctx context.Context, q api.Query, limit int) error {
	out, cut := &api.Assignments{Assignments: []state.Row{}}, false
	err := a.assignments(ctx, q, 0, out, func() {
		slices.SortStableFunc(out.Assignments, func(x, y state.Row) int { return x.Holds().Compare(y.Holds()) })
		if limit > 0 && len(out.Assignments) > limit {
			out.Assignments, cut = out.Assignments[:limit], true
		}
	})
	if err != nil {
		return err
	}
	if cut {
		a.tellMore(limit)
	}
	return a.printRows(out)
}
