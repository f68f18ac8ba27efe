package platform

import (
	"context"

	"github.com/kalypso-io/kalypso/view"
)

// Search returns workloads, then environment by environment cluster types, configs, scheduling
// policies, assignments and clusters.
func (p *Platform) Search(_ context.Context, contains string, most int) (*view.Search, error) {
	out := &view.Search{Contains: contains}
	add := func(kind, name, of string, page ...string) {
		switch {
		case !holds(contains, name, of):
		case most > 0 && len(out.Hits) == most:
			out.More = true
		default:
			out.Hits = append(out.Hits, view.Hit{Kind: kind, Name: name, Of: of, Page: page})
		}
	}
	for _, w := range p.sorted {
		add("workload", w.Name, "", "workloads", w.Name)
	}
	for _, e := range p.order {
		if e.Model == nil {
			continue
		}
		for _, ct := range e.types {
			add("cluster type", ct.Name, e.Name, "cluster-types", e.Name, ct.Name)
		}
		for i := range e.Model.Configs {
			add("config", e.Model.Configs[i].Name, e.Name, "configs", e.Name)
		}
		for i := range e.Model.SchedulingPolicies {
			add("scheduling policy", e.Model.SchedulingPolicies[i].Name, e.Name, "policies", e.Name)
		}
		for _, a := range e.rows {
			add("assignment", a.Target, e.Name+"/"+a.ClusterType, "assignments", e.Name, a.ClusterType, a.Target)
		}
		for i := range e.Model.Clusters {
			add("cluster", e.Model.Clusters[i].Name, e.Name+"/"+e.Model.Clusters[i].Folder, "clusters", e.Name, e.Model.Clusters[i].Name)
		}
	}
	return out, nil
}
