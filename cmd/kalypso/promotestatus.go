package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

func newPromoteStatus(g promoter, o *promoteOptions) *cobra.Command {
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
			err := g.withSession(cmd, &o.promotionOptions,
				func(ctx context.Context, s *promotion.Session) (err error) {
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

// statusTable prints the stages, notes about commits that wait, and the position of each commit.
func statusTable(w *tabwriter.Writer, s *plan.Status) {
	stageTableSince(w, s.Stages)
	rolloutTable(w, s.Stages)
	for _, stage := range s.Stages {
		if stage.Step == nil || len(stage.Step.Verdicts) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s: %s %s\n", stage.ID(), stage.Step.Kind,
			shortOrNone(string(stage.Step.Source.Base)))
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
			fmt.Fprintf(w, "%s: not %s: %s\n", stage.ID(), shortOrNone(other.Commit),
				terminal.Line(other.Reason))
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
func commitTable(w *tabwriter.Writer, heading string, stages []*plan.StageStatus,
	commits []plan.CommitStatus) {
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

func newPromoteAbort(g promoter, o *promoteOptions) *cobra.Command {
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

// printStages prints stages as a table, or as a list of a kind.
func (g promoter) printStages(output, kind string, stages []*plan.StageStatus) error {
	return g.print(output, list[*plan.StageStatus]{apiVersion, kind, stages},
		func(w *tabwriter.Writer) { stageTable(w, stages) })
}

// stageTable prints stages, a line each.
func stageTable(w *tabwriter.Writer, stages []*plan.StageStatus) {
	fmt.Fprintln(w, "ENVIRONMENT\tHAS\tNEXT\tSTATE\tROLLOUT\tREASON")
	for _, s := range stages {
		next, rollout, reason := cellsOf(s)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.ID(), shortOrNone(string(s.Has.Base)), next, s.State,
			rollout, reason)
	}
}

// stageTableSince writes the table of stages with the time of their states.
func stageTableSince(w *tabwriter.Writer, stages []*plan.StageStatus) {
	fmt.Fprintln(w, "ENVIRONMENT\tHAS\tNEXT\tSTATE\tSINCE\tROLLOUT\tREASON")
	for _, s := range stages {
		next, rollout, reason := cellsOf(s)
		since := "-"
		if !s.Since.IsZero() {
			since = s.Since.UTC().Format("2006-01-02T15:04Z")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.ID(), shortOrNone(string(s.Has.Base)), next,
			s.State, since, rollout, reason)
	}
}

// cellsOf returns the cells of a stage in tables, except its state.
func cellsOf(s *plan.StageStatus) (next, rollout, reason string) {
	next, rollout, reason = "-", "-", s.Reason
	if s.Step != nil && s.State != plan.Promoted {
		next = shortOrNone(string(s.Step.Source.Base))
		if s.Step.Kind == plan.Configure {
			next = "own " + shortOrNone(string(s.Step.Source.Environment))
		}
	}
	if s.Rollout != nil {
		rollout = string(s.Rollout.State)
		if s.Rollout.State != forge.Success {
			reason += "; rollout: " + s.Rollout.Reason
		}
		if f := s.Rollout.Failing; f != nil {
			reason += "; fails since " + f.Since.UTC().Format("2006-01-02T15:04Z") + ": " + f.Reason
		}
	}
	return next, rollout, terminal.Line(reason)
}

// shortOrNone is a commit as tables have it.
func shortOrNone(id string) string {
	if id == "" {
		return "-"
	}
	return shortRevision(id)
}

// The bounds of lists of clusters: the rest is in the document.
const (
	maxLagging  = 20 // lines of a stage
	maxClusters = 10 // names in a line
)

// rolloutTable prints the clusters of stages that are not ok, and the sources that could not be
// read.
func rolloutTable(w *tabwriter.Writer, stages []*plan.StageStatus) {
	cut := false
	for _, s := range stages {
		if s.Rollout == nil {
			continue
		}
		notAsked := s.Rollout.NotAsked
		if s.Rollout.State != forge.Success { // the line of the stage shows it
			notAsked = ""
		}
		if s.Rollout.Counts == nil {
			if notAsked != "" {
				fmt.Fprintf(w, "\n%s: %s\n", s.ID(), terminal.Line(notAsked))
			}
			continue
		}
		lines := laggardsOf(s.Rollout.Counts)
		if len(lines) == 0 && notAsked == "" {
			continue
		}
		fmt.Fprintf(w, "\n%s: %s\n", s.ID(),
			terminal.Line(strings.TrimSuffix(s.Rollout.Counts.Tally.String()+"; "+notAsked, "; ")))
		for _, l := range lines[:min(len(lines), maxLagging)] {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", l.state, strings.TrimSpace(l.of.Workload+" "+l.of.Version),
				model.WithoutClass(l.of.ID), l.text())
			cut = cut || len(l.clusters) > maxClusters
		}
		if more := len(lines) - maxLagging; more > 0 {
			fmt.Fprintf(w, "  and %d more\n", more)
			cut = true
		}
	}
	if cut {
		fmt.Fprintln(w, "\n-o json has all of them")
	}
}

// laggard has the clusters on which an assignment is in a state that is not healthy, for the same
// reason.
type laggard struct {
	state    rollout.State
	of       *rollout.AssignmentState
	clusters []string // empty if the platform lists none and nobody has reported
	message  string   // of each of them; "" if there is no message
}

// laggardsOf returns the assignments on clusters that are not healthy, sorted by state, worst
// first.
func laggardsOf(c *rollout.Counts) []*laggard {
	var out []*laggard
	for i := range c.Assignments {
		a := &c.Assignments[i]
		if len(a.Clusters) == 0 && a.State != rollout.Healthy {
			out = append(out, &laggard{state: a.State, of: a, message: a.Message})
		}
		type cause struct {
			state   rollout.State
			message string
		}
		of := map[cause]*laggard{}
		for _, cluster := range a.Clusters {
			if cluster.State == rollout.Healthy {
				continue
			}
			why := cause{cluster.State, cluster.Message}
			l := of[why]
			if l == nil {
				l = &laggard{state: why.state, of: a, message: why.message}
				of[why], out = l, append(out, l)
			}
			l.clusters = append(l.clusters, cmp.Or(cluster.Name, "a cluster without a name"))
		}
	}
	slices.SortStableFunc(out, func(a, b *laggard) int { return b.state.Compare(a.state) })
	return out
}

func (l *laggard) text() string {
	shown := l.clusters[:min(len(l.clusters), maxClusters)]
	names := cmp.Or(strings.Join(shown, ", "), "no cluster has reported")
	if more := len(l.clusters) - len(shown); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if l.message == "" {
		return terminal.Line(names)
	}
	return terminal.Line(names + ": " + l.message)
}
