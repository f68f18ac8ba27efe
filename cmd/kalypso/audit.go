package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion"
	"github.com/kalypso-io/kalypso/promotion/audit"
)

func newAudit(g inspector) *cobra.Command {
	o := &promotionOptions{former: true}
	var since string
	var asCSV bool
	cmd := &cobra.Command{
		Use:   "audit [ENVIRONMENT...]",
		Short: "Rebuild from git what was promoted when, by whom and why",
		Long: `audit reads the history of environments' branches, the statuses of their commits and
the orders that stand, and lists what happened, oldest first. Nothing else is kept
anywhere, so that anybody who can read the repositories sees the same. Of environments
that the policy does not have any more, and of branches that are gone, it tells what
statuses and orders do.

For commits that change a tree, it shows how many assignments they remove, add and
change, each cluster counted, and how many clusters they leave empty: by the records of
the newest 1,000 of them in each branch. An assignment counts as changed if its folder
has other files.`,
		Example: `  kalypso audit prod --since 90d
  kalypso audit --csv > audit.csv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.named(args); err != nil {
				return err
			}
			from, err := readPast("since", since)
			if err != nil {
				return err
			}
			var events []audit.Event
			err = promoter(g).withSession(cmd, o,
				func(ctx context.Context, s *promotion.Session) (err error) {
					events, err = s.Audit(ctx, from)
					return err
				})
			if err != nil {
				return err
			}
			if asCSV {
				return g.auditCSV(events)
			}
			if events == nil {
				events = []audit.Event{}
			}
			return g.print(*o.output, list[audit.Event]{apiVersion, "Audit", events},
				func(w *tabwriter.Writer) { auditTable(w, events) })
		},
	}
	o.flags(g.platform, cmd)
	o.output = outputFlag(cmd)
	cmd.Flags().StringVar(&since, "since", "",
		"only what happened since a `TIME`, or for that long, as 90d")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print comma-separated values")
	return cmd
}

// readPast reads a flag with a time, or with a duration before now.
func readPast(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	now, err := clock()
	if err != nil {
		return time.Time{}, err
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if hours, err := time.ParseDuration(days + "h"); err == nil {
			return now().Add(-24 * hours), nil
		}
	}
	if span, err := time.ParseDuration(text); err == nil {
		return now().Add(-span), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{},
		usagef("--%s %s: write a day, a time as 2026-01-02T15:04:05Z, or how long ago, as 90d", flag,
			text)
}

// eventRow is an event as the cells of a row.
func eventRow(e audit.Event) []string {
	where := e.Environment
	if e.Ring != "" {
		where += "/" + e.Ring
	}
	return []string{
		e.Time.Format(time.RFC3339), where, e.What, string(e.Source.Base), string(e.Source.Environment),
		e.Commit, e.By, e.Reason, e.Gates, e.Clock, changeText(e),
	}
}

// changeText describes the changes of an event on clusters. It returns "" if they are not known.
func changeText(e audit.Event) string {
	if e.Change == nil {
		return ""
	}
	return e.Change.String()
}

var eventColumns = []string{"time", "environment", "what", "base", "own", "commit", "by", "reason",
	"gates", "clock", "change"}

func (g inspector) auditCSV(events []audit.Event) error {
	w := csv.NewWriter(g.out)
	rows := [][]string{eventColumns}
	for _, e := range events {
		rows = append(rows, harmless(eventRow(e)))
	}
	return w.WriteAll(rows)
}

// harmless are cells that no spreadsheet takes for formulas.
func harmless(row []string) []string {
	for i, cell := range row {
		if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
			row[i] = "'" + cell
		}
	}
	return row
}

func auditTable(w *tabwriter.Writer, events []audit.Event) {
	fmt.Fprintln(w, "TIME\tENVIRONMENT\tWHAT\tCHANGE\tBASE\tCOMMIT\tBY\tREASON")
	for _, e := range events {
		row := eventRow(e)
		if e.Clock != "" {
			row[2] += " (clock " + e.Clock + ")"
		}
		cells := []string{
			row[0], cmp.Or(row[1], "all"), row[2], cmp.Or(changeText(e), "-"),
			shortOrNone(row[3]), shortOrNone(row[5]), row[6], terminal.Line(row[7]),
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
}
