package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// SelectTested returns the numbers of the assignments that each of some tests is about,
// ascending, whether they fail or not.
func (e *Environment) SelectTested(tests []*model.Test) [][]int {
	selectors := make([]model.Selector, len(tests))
	for i, t := range tests {
		selectors[i] = t.Match
	}
	out := e.Select(selectors)
	for i, t := range tests {
		if t.Clusters == nil {
			continue
		}
		folders := map[string]bool{}
		for _, c := range e.SelectClusters(t.Clusters) {
			folders[c.Folder] = true
		}
		out[i] = slices.DeleteFunc(out[i], func(n int) bool { return !folders[e.Schedule.Assignments[n].ClusterType.Name] })
	}
	return out
}

// SelectClusters returns the clusters that a selector of clusters holds for, sorted; nil
// selects all.
func (e *Environment) SelectClusters(s *model.Selector) []*model.Cluster {
	all := e.Model.Clusters
	if s == nil {
		out := make([]*model.Cluster, len(all))
		for i := range all {
			out[i] = &all[i]
		}
		return out
	}
	types := map[string]map[string]string{} // labels
	for i := range e.Model.ClusterTypes {
		types[e.Model.ClusterTypes[i].Name] = e.Model.ClusterTypes[i].Labels
	}
	index := selector.NewIndex(func(yield func(selector.Facts) bool) {
		for i := range all {
			labels := maps.Clone(types[all[i].Folder])
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, all[i].Labels)
			if !yield(selector.Facts{"name": selector.Values(all[i].Name), "labels": selector.Labels(labels)}) {
				return
			}
		}
	}, newSatisfier(expr.In(e.request.Workers)))
	var out []*model.Cluster
	for _, n := range index.Select(*s) {
		out = append(out, &all[n])
	}
	return out
}

// GraphsOn calls f with the configuration graph of a tuple on each of some clusters, without
// the clusters' own values.
func (e *Environment) GraphsOn(ctx context.Context, tuple int32, clusters []*model.Cluster,
	f func(c *model.Cluster, g *compose.Graph)) error {
	const atOnce = 256 // whose functions of the assignment are evaluated together
	composer := e.Plan.NewComposer()
	for some := range slices.Chunk(clusters, atOnce) {
		prepared, err := e.Plan.PrepareOn(ctx, tuple, some)
		if err != nil {
			return err
		}
		for _, c := range some {
			if err := ctx.Err(); err != nil {
				return err
			}
			f(c, composer.ComposeOn(tuple, c, prepared))
		}
	}
	return nil
}
