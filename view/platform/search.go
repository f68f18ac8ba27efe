package platform

import (
	"context"
	"strings"

	"github.com/kalypso-io/kalypso/view"
)

// Search returns workloads, then environment by environment cluster types, configs, scheduling
// policies, assignments and clusters; entities with exactly that name are first.
func (p *Platform) Search(_ context.Context, contains string, most int) (*view.Search, error) {
	out := &view.Search{Contains: contains}
	var exact []view.Hit
	add := func(kind, name, of string, page ...string) {
		switch hit := (view.Hit{Kind: kind, Name: name, Of: of, Page: page}); {
		case !holds(contains, name, of):
		case strings.EqualFold(name, contains) && (most == 0 || len(exact) < most):
			exact = append(exact, hit)
		case most > 0 && len(out.Hits) == most:
			out.More = true
		default:
			out.Hits = append(out.Hits, hit)
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
			add("assignment", a.Target, e.Name+"/"+a.ClusterType, "assignments", e.Name, a.ClusterType,
				a.Target)
		}
		for i := range e.Model.Clusters {
			add("cluster", e.Model.Clusters[i].Name, e.Name+"/"+e.Model.Clusters[i].Folder, "clusters",
				e.Name, e.Model.Clusters[i].Name)
		}
	}
	out.Hits = append(exact, out.Hits...)
	if most > 0 && len(out.Hits) > most {
		out.Hits, out.More = out.Hits[:most], true
	}
	return out, nil
}
