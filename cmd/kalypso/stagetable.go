package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/plan"
)

// printStages prints stages as a table, or as a list of a kind.
func (g *global) printStages(output, kind string, stages []*plan.StageStatus) error {
	return g.print(output, list[*plan.StageStatus]{apiVersion, kind, stages},
		func(w *tabwriter.Writer) { stageTable(w, stages) })
}

// stageTable prints stages, a line each.
func stageTable(w *tabwriter.Writer, stages []*plan.StageStatus) {
	fmt.Fprintln(w, "ENVIRONMENT\tHAS\tNEXT\tSTATE\tROLLOUT\tREASON")
	for _, s := range stages {
		next, rollout, reason := cellsOf(s)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.ID(), shortOrNone(string(s.Has.Base)), next, s.State, rollout, reason)
	}
}

// stageTableSince says since when as well.
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

// cellsOf are what tables have of a stage beside its state.
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
