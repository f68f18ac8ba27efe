package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// The bounds of lists of clusters: the rest is in the document.
const (
	mostLagging  = 20 // lines of a stage
	mostClusters = 10 // names in a line
)

// rolloutTable prints the clusters of stages that are not ok, and who could not be asked about
// them.
func rolloutTable(w *tabwriter.Writer, stages []*plan.StageStatus) {
	cut := false
	for _, s := range stages {
		if s.Rollout == nil {
			continue
		}
		notAsked := s.Rollout.NotAsked
		if s.Rollout.State != forge.Success { // the line of the stage says it
			notAsked = ""
		}
		if s.Rollout.Counts == nil {
			if notAsked != "" {
				fmt.Fprintf(w, "\n%s: %s\n", s.ID(), terminal.Line(notAsked))
			}
			continue
		}
		lines := laggingOf(s.Rollout.Counts)
		if len(lines) == 0 && notAsked == "" {
			continue
		}
		fmt.Fprintf(w, "\n%s: %s\n", s.ID(),
			terminal.Line(strings.TrimSuffix(s.Rollout.Counts.Tally.String()+"; "+notAsked, "; ")))
		for _, l := range lines[:min(len(lines), mostLagging)] {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", l.state, strings.TrimSpace(l.of.Workload+" "+l.of.Version),
				model.WithoutClass(l.of.ID), l.text())
			cut = cut || len(l.clusters) > mostClusters
		}
		if more := len(lines) - mostLagging; more > 0 {
			fmt.Fprintf(w, "  and %d more\n", more)
			cut = true
		}
	}
	if cut {
		fmt.Fprintln(w, "\n-o json has all of them")
	}
}

// lagging are the clusters on which an assignment is in a state that is not healthy, for the same
// reason.
type lagging struct {
	state    rollout.State
	of       *rollout.AssignmentState
	clusters []string // none where the platform lists none and nobody has reported
	message  string   // of each of them; "" where none has one
}

// laggingOf returns what lags, the worst first.
func laggingOf(c *rollout.Counts) []*lagging {
	var out []*lagging
	for i := range c.Assignments {
		a := &c.Assignments[i]
		if len(a.Clusters) == 0 && a.State != rollout.Healthy {
			out = append(out, &lagging{state: a.State, of: a, message: a.Message})
		}
		type cause struct {
			state   rollout.State
			message string
		}
		of := map[cause]*lagging{}
		for _, cluster := range a.Clusters {
			if cluster.State == rollout.Healthy {
				continue
			}
			why := cause{cluster.State, cluster.Message}
			l := of[why]
			if l == nil {
				l = &lagging{state: why.state, of: a, message: why.message}
				of[why], out = l, append(out, l)
			}
			l.clusters = append(l.clusters, cmp.Or(cluster.Name, "a cluster without a name"))
		}
	}
	slices.SortStableFunc(out, func(a, b *lagging) int { return b.state.Compare(a.state) })
	return out
}

func (l *lagging) text() string {
	shown := l.clusters[:min(len(l.clusters), mostClusters)]
	names := cmp.Or(strings.Join(shown, ", "), "no cluster has reported")
	if more := len(l.clusters) - len(shown); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if l.message == "" {
		return terminal.Line(names)
	}
	return terminal.Line(names + ": " + l.message)
}
