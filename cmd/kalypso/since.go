package main

import (
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/engine"
)

// affected is what a change of the platform does on clusters: the pairs of compare.Report,
// without the differences of their files.
type affected struct {
	Since        string              `json:"since"`
	Removed      []compare.Entry     `json:"removed"`
	Added        []compare.Entry     `json:"added"`
	Changed      []compare.Entry     `json:"changed"`
	Total        compare.Total       `json:"total"`
	Assignments  compare.Folders     `json:"assignments"`
	ClusterTypes compare.Folders     `json:"clusterTypes"`
	Clusters     *compare.Clusters   `json:"clusters,omitempty"`
	ClusterSets  map[string][]string `json:"clusterSets,omitempty"`
	LeftOut      []string            `json:"leftOut,omitempty"`
	Stats        *engine.Stats       `json:"stats,omitempty"`
}

// since is `build --since`: it builds what differs from a revision of the platform,
// and prints what that is.
func (g *global) since(cmd *cobra.Command, r compiler.Request, o *buildOptions) error {
	stop := g.showProgress(cmd.Context(), &r)
	d, err := compiler.Compare(cmd.Context(), r, compiler.Side{Revision: o.since}, compiler.Side{}, compiler.Output{})
	stop()
	if err != nil {
		return err
	}
	if err := g.reportDifference(d); err != nil {
		return err
	}
	f := d.Report
	item := affected{Since: o.since, Removed: f.Removed, Added: f.Added, Changed: f.Changed,
		Total: f.Total, Assignments: f.Assignments, ClusterTypes: f.ClusterTypes, Clusters: f.Clusters,
		ClusterSets: f.ClusterSets, LeftOut: f.LeftOut}
	if o.stats {
		r.Cache.Flush()
		d.After.Recount()
		item.Stats = &d.After.Stats
	}
	if *o.output == "table" {
		if err := compare.WriteList(g.out, d.Report); err != nil {
			return err
		}
		err = g.print(*o.output, nil, func(w *tabwriter.Writer) {
			if o.stats {
				stats(w, d.After.Stats)
			}
		})
	} else {
		err = g.printDocument(*o.output, document[affected]{apiVersion, "Affected", item})
	}
	if err != nil {
		return err
	}
	if d.After.Failed() {
		return errPlatform
	}
	return nil
}
