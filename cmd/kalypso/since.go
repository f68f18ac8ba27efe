package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/build"
	"github.com/kalypso-io/kalypso/compiler/compare"
)

// affected is what a change of the platform affects: assignments, the cluster types whose
// own files differ, and clusters.
type affected struct {
	Since        string          `json:"since"`
	Assignments  compare.Folders `json:"assignments"`
	ClusterTypes compare.Folders `json:"clusterTypes"`
	// Clusters are those that are listed; nil where there are none.
	Clusters *compare.Clusters `json:"clusters,omitempty"`
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
	item := affected{Since: o.since, Assignments: d.Report.Assignments, ClusterTypes: d.Report.ClusterTypes, Clusters: d.Report.Clusters, LeftOut: d.Report.LeftOut}
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
		affectedClusters(w, item.Clusters)
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

// affectedClusters prints the clusters that come, go, pull another folder or have other
// values. Those that pull a folder in which something changes are counted.
func affectedClusters(w *tabwriter.Writer, c *compare.Clusters) {
	if c == nil {
		return
	}
	for _, m := range c.Moves {
		switch {
		case m.From == "":
			fmt.Fprintf(w, "added\tcluster\t%s\n", m.Cluster)
		case m.To == "":
			fmt.Fprintf(w, "removed\tcluster\t%s\n", m.Cluster)
		default:
			fmt.Fprintf(w, "moved\tcluster\t%s: %s -> %s\n", m.Cluster, m.From, m.To)
		}
	}
	for _, id := range c.Changed {
		fmt.Fprintf(w, "changed\tcluster\t%s\n", id)
	}
}
