package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/build"
	"github.com/kalypso-io/kalypso/compiler/compare"
)

// affected is what a change of the platform affects: assignments, and the cluster
// types whose own files differ.
type affected struct {
	Since        string          `json:"since"`
	Assignments  compare.Folders `json:"assignments"`
	ClusterTypes compare.Folders `json:"clusterTypes"`
	// LeftOut are the ids of assignments that errors at the revision, or now, hide.
	LeftOut []string     `json:"leftOut,omitempty"`
	Stats   *build.Stats `json:"stats,omitempty"`
}

// since is `build --since`: it builds what differs from a revision of the platform,
// and prints what that is.
func (g *global) since(cmd *cobra.Command, r compiler.Request, o *buildOptions) error {
	stop := g.showProgress(cmd.Context(), &r)
	d, err := compiler.Compare(cmd.Context(), r, compiler.Side{Revision: o.since}, compiler.Side{})
	stop()
	if err != nil {
		return err
	}
	if err := g.reportDifference(d); err != nil {
		return err
	}
	item := affected{Since: o.since, Assignments: d.Report.Assignments, ClusterTypes: d.Report.ClusterTypes, LeftOut: d.Report.LeftOut}
	if o.stats {
		r.Cache.Flush()
		d.After.Recount()
		item.Stats = &d.After.Stats
	}
	err = g.print(*o.output, document[affected]{apiVersion, "Affected", item}, func(w *tabwriter.Writer) {
		for _, of := range []struct {
			kind    string
			folders compare.Folders
		}{{"assignment", item.Assignments}, {"cluster type", item.ClusterTypes}} {
			for _, list := range []struct {
				change string
				ids    []string
			}{{"added", of.folders.Added}, {"changed", of.folders.Changed}, {"removed", of.folders.Removed}} {
				for _, id := range list.ids {
					fmt.Fprintf(w, "%s\t%s\t%s\n", list.change, of.kind, id)
				}
			}
		}
		fmt.Fprintln(w, compare.Summary(d.Report))
		if o.stats {
			stats(w, d.After.Stats)
		}
	})
	if err != nil {
		return err
	}
	if d.After.Failed() {
		return errPlatform
	}
	return nil
}
