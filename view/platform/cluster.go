package platform

import (
	"context"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/view"
)

// ClusterType returns a cluster type, or a class of a cluster type.
func (p *Platform) ClusterType(_ context.Context, environment, name string,
	page view.Page) (*view.ClusterType, error) {
	e, err := p.readable(environment)
	if err != nil {
		return nil, err
	}
	out := &view.ClusterType{}
	var known []string
	for _, ct := range e.types {
		known = append(known, ct.Name, ct.ClusterType)
		if ct.ClusterType == name {
			out.Classes = append(out.Classes, ct)
		}
		if ct.Name == name {
			out.ClusterTypeRow = ct
		}
	}
	if len(out.Classes) == 1 && out.Classes[0].Name == name {
		out.Classes = nil
	}
	if out.Name == "" && out.Classes == nil {
		slices.Sort(known)
		return nil, p.missing("cluster type", name, slices.Compact(known), environment)
	}
	if out.Name == "" { // a type whose clusters all belong to classes
		out.ClusterTypeRow = out.Classes[0]
		out.Name, out.Selectors, out.Clusters, out.Assignments = name, nil, 0, 0
		for _, c := range out.Classes {
			out.Clusters += c.Clusters
			out.Assignments += c.Assignments
		}
	}
	for i := range e.Model.ClusterTypes {
		if ct := &e.Model.ClusterTypes[i]; ct.TypeName() == out.ClusterTypeRow.ClusterType {
			out.Description, out.Labels = ct.Description, pairs(ct.Labels)
		}
	}
	var rows []view.AssignmentRow
	for _, a := range e.rows {
		if a.ClusterType == name {
			rows = append(rows, a)
		}
	}
	out.Assigned, out.Part = view.PageOf(rows, page)
	return out, nil
}

// Clusters returns the clusters of an environment.
func (p *Platform) Clusters(_ context.Context, environment, contains string,
	page view.Page) (*view.Clusters, error) {
	e, err := p.readable(environment)
	if err != nil {
		return nil, err
	}
	var all []*model.Cluster
	for i := range e.Model.Clusters {
		if c := &e.Model.Clusters[i]; holds(contains, c.Name, c.ClusterType, c.Folder) {
			all = append(all, c)
		}
	}
	out := &view.Clusters{Environment: environment, Contains: contains}
	all, out.Part = view.PageOf(all, page)
	workloads := e.workloadsOn()
	for _, c := range all {
		out.Rows = append(out.Rows, e.cluster(c, workloads))
	}
	return out, nil
}

// workloadsOn counts the workloads that are assigned to each folder.
func (e *environment) workloadsOn() map[string]int {
	names := map[string]map[string]bool{}
	for i := range e.Schedule.Assignments {
		a := &e.Schedule.Assignments[i]
		if names[a.ClusterType.Name] == nil {
			names[a.ClusterType.Name] = map[string]bool{}
		}
		names[a.ClusterType.Name][a.Workload.Name] = true
	}
	out := map[string]int{}
	for folder, of := range names {
		out[folder] = len(of)
	}
	return out
}

func (e *environment) cluster(c *model.Cluster, workloads map[string]int) view.ClusterRow {
	return view.ClusterRow{
		Name: c.Name, ClusterType: c.ClusterType, Class: c.Folder, Ring: e.Ring(c.Folder),
		Labels:    pairs(c.Labels),
		Inventory: c.Inventory, Workloads: workloads[c.Folder],
	}
}

// Cluster returns a cluster with its assignments.
func (p *Platform) Cluster(ctx context.Context, environment, name string) (*view.Cluster, error) {
	e, err := p.readable(environment)
	if err != nil {
		return nil, err
	}
	x, ok, err := query.ExplainCluster(ctx, p.build, environment, name)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && e.Model.Cluster(name) == nil:
		return nil, &view.NotFoundError{Message: err.Error()}
	case err != nil:
		return nil, err
	case !ok:
		return nil, &view.NotFoundError{Message: "errors hide whether there is a cluster " + name +
			" in " + environment}
	}
	out := &view.Cluster{
		ClusterRow: e.cluster(e.Model.Cluster(name), nil), Environment: environment,
		Description: x.Description, Address: x.Address,
		Pulls: x.Pulls, Selectors: p.named(x.Class), Places: p.places(x.Positions),
	}
	out.Labels = pairs(x.Labels)
	own := map[string]string{}
	if x.Values != nil {
		for _, f := range x.Values.Fields() {
			own[f.Name] = f.Value.String()
		}
	}
	out.Values = pairs(own)
	of := map[string]bool{}
	for i, a := range e.Schedule.Assignments {
		if a.ClusterType.Name == out.Class {
			of[a.Workload.Name] = true
			out.Assignments = append(out.Assignments, e.rows[i])
		}
	}
	out.Workloads = len(slices.Collect(maps.Keys(of)))
	return out, nil
}
