package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion"
	"github.com/kalypso-io/kalypso/promotion/plan"
)

func newPromoteStatus(g *global, o *promoteOptions) *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use:   "status [--env ENVIRONMENT...]",
		Short: "Say where every commit is, and why it is not further",
		Long: `status asks all gates and writes nothing. For every environment and ring it
prints what it has, how that went on the clusters, what may come next and what that waits
for, and why newer commits are not next. The exit code is 0 whatever it says.`,
		Args: noArgs("promote status"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var status *plan.Status
			err := g.withSession(cmd, &o.promotionOptions, func(ctx context.Context, s *promotion.Session) (err error) {
				if err := g.noteFolder(ctx, s, &o.folder); err != nil {
					return err
				}
				status, err = s.Status(ctx, most)
				return err
			})
			if err != nil {
				return err
			}
			g.noteUnreported(&o.promotionOptions, status.Stages)
			return g.print(*o.output, document[*plan.Status]{apiVersion, "PromotionStatus", status},
				func(w *tabwriter.Writer) { statusTable(w, status) })
		},
	}
	cmd.Flags().IntVar(&most, "commits", 10, "show this many of the newest commits")
	return cmd
}

// statusTable prints the stages, what is to say about commits that wait, and which
// commits are where.
func statusTable(w *tabwriter.Writer, s *plan.Status) {
	stageTableSince(w, s.Stages)
	rolloutTable(w, s.Stages)
	for _, stage := range s.Stages {
		if stage.Step == nil || len(stage.Step.Verdicts) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s: %s %s\n", stage.ID(), stage.Step.Kind, shortOrNone(string(stage.Step.Source.Base)))
		for _, v := range stage.Step.Verdicts {
			name := v.Gate
			if v.Name != "" {
				name += " " + v.Name
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\n", name, v.State, terminal.Line(v.Reason))
		}
	}
	for _, stage := range s.Stages {
		if len(stage.Others) > 0 {
			fmt.Fprintln(w)
		}
		for _, other := range stage.Others {
			fmt.Fprintf(w, "%s: not %s: %s\n", stage.ID(), shortOrNone(other.Commit), terminal.Line(other.Reason))
		}
	}
	commitTable(w, "COMMIT", s.Stages, s.Commits)
	for _, stage := range slices.CompactFunc(slices.Clone(s.Stages),
		func(a, b *plan.StageStatus) bool { return a.Environment == b.Environment }) {
		var own []plan.CommitStatus
		for _, c := range s.Own {
			if c.Environment == stage.Environment {
				own = append(own, c.CommitStatus)
			}
		}
		rings := slices.DeleteFunc(slices.Clone(s.Stages),
			func(of *plan.StageStatus) bool { return of.Environment != stage.Environment })
		commitTable(w, "OWN FILES", rings, own)
	}
}

// commitTable prints which commits are in which stages.
func commitTable(w *tabwriter.Writer, heading string, stages []*plan.StageStatus, commits []plan.CommitStatus) {
	if len(commits) == 0 {
		return
	}
	fmt.Fprint(w, "\n"+heading)
	for _, stage := range stages {
		fmt.Fprintf(w, "\t%s", stage.ID())
	}
	fmt.Fprintln(w, "\tSUBJECT")
	for _, c := range commits {
		fmt.Fprint(w, shortOrNone(c.Commit))
		for _, stage := range stages {
			fmt.Fprintf(w, "\t%s", cmp.Or(c.Stages[stage.ID()], "-"))
		}
		fmt.Fprintf(w, "\t%s\n", c.Subject)
	}
}

func newPromoteAbort(g *global, o *promoteOptions) *cobra.Command {
	d := &decisionOptions{}
	cmd := &cobra.Command{
		Use:   "abort --env ENVIRONMENT --reason REASON",
		Short: "Call off what is proposed",
		Long: `abort closes the pull requests of environments and removes their branches. The commit
that was proposed comes to them only if somebody promotes it by name; a newer one may
come all the same.`,
		Args: noArgs("promote abort"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.decide(cmd, &o.promotionOptions, d, "Abortion", nil, (*promotion.Session).Abort)
		},
	}
	o.decisionFlags(cmd, d)
	return cmd
}
