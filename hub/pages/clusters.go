package pages

import (
	"context"
	"strings"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/view"
)

// clusterTypes returns the folders of a cluster type, or of all if of is "".
func (s *Source) clusterTypes(w *state.DesiredState, of string) []view.ClusterTypeRow {
	clusters := clustersOf(w)
	tallies := s.Hub.Fleet().Folders(w.Environment)
	var out []view.ClusterTypeRow
	for i := range w.Folders {
		f := &w.Folders[i]
		if of != "" && of != f.ClusterType && of != f.Name {
			continue
		}
		row := view.ClusterTypeRow{Environment: w.Environment, Name: f.Name, ClusterType: f.ClusterType,
			Ring: f.Ring, Clusters: clusters[f.Name], Assignments: len(f.Targets)}
		if len(f.Targets) > 0 {
			row.Reconciler = f.Targets[0].Backend
		}
		tally := tallies[f.Name]
		row.Counts = countsOf(&tally)
		if f.Name != f.ClusterType {
			row.Selectors = strings.Split(strings.TrimPrefix(f.Name, f.ClusterType+"."), ".")
		}
		out = append(out, row)
	}
	return out
}

// ClusterType returns a cluster type, or a class.
func (s *Source) ClusterType(ctx context.Context, environment, name string,
	p view.Page) (*view.ClusterType, error) {
	w, err := s.environment(ctx, environment)
	if err != nil {
		return nil, err
	}
	rows := s.clusterTypes(w, name)
	if len(rows) == 0 {
		return nil, missing("environment %s has no cluster type %s", environment, name)
	}
	out := &view.ClusterType{ClusterTypeRow: rows[0]}
	if len(rows) > 1 {
		out.Name, out.Selectors, out.Classes = name, nil, rows
		out.Clusters, out.Assignments = 0, 0
		for _, r := range rows {
			out.Clusters += r.Clusters
			out.Assignments += r.Assignments
		}
		return out, nil
	}
	var all []view.AssignmentRow
	for i := range w.Folders {
		if f := &w.Folders[i]; f.Name == rows[0].Name {
			groups, _ := s.count(state.Filter{Environments: state.In(environment), Class: f.Name},
				state.ByTarget)
			for k := range f.Targets {
				all = append(all, assignment(w, f, &f.Targets[k], rows[0].Clusters, groups[f.Targets[k].Name]))
			}
		}
	}
	out.Assigned, out.Part = view.PageOf(all, p)
	return out, nil
}

// Clusters returns clusters.
func (s *Source) Clusters(ctx context.Context, environment, contains string,
	p view.Page) (*view.Clusters, error) {
	w, err := s.environment(ctx, environment)
	if err != nil {
		return nil, err
	}
	var all []*state.Cluster
	for i := range w.Clusters {
		if c := &w.Clusters[i]; contains == "" || strings.Contains(c.Name, contains) ||
			strings.Contains(c.Folder, contains) {
			all = append(all, c)
		}
	}
	out := &view.Clusters{Environment: environment, Contains: contains, Observed: true}
	listed, part := view.PageOf(all, p)
	out.Part = part
	for _, c := range listed {
		row := clusterRow(w, c)
		row.Counts, row.Workloads = s.cluster(environment, c.Name, nil)
		row.Seen = s.Hub.Fleet().Contact(c.Name).Last
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

func clusterRow(w *state.DesiredState, c *state.Cluster) view.ClusterRow {
	row := view.ClusterRow{Name: c.Name, Class: c.Folder}
	if f := w.Folder(c.Folder); f != nil {
		row.ClusterType, row.Ring = f.ClusterType, f.Ring
	}
	return row
}

// cluster counts the assignments on a cluster, and calls f with each, if f is not nil.
func (s *Source) cluster(environment, name string, f func(state.Row)) (counts *view.Counts,
	assignments int) {
	var tally state.Tally
	s.Hub.Fleet().List(state.Filter{Environments: state.In(environment), Cluster: name},
		state.Position{}, func(r state.Row) bool {
			tally[r.State]++
			if f != nil {
				f(r)
			}
			return true
		})
	return countsOf(&tally), tally.Wanted()
}

// Cluster returns a cluster with its running assignments.
func (s *Source) Cluster(ctx context.Context, environment, name string) (*view.Cluster, error) {
	w, err := s.environment(ctx, environment)
	if err != nil {
		return nil, err
	}
	out := &view.Cluster{Environment: environment, ClusterRow: view.ClusterRow{Name: name}}
	found := false
	if c := w.Cluster(name); c != nil {
		out.ClusterRow, found = clusterRow(w, c), true
	}
	out.Counts, out.Workloads = s.cluster(environment, name, func(r state.Row) {
		out.Running = append(out.Running, running(&r))
		out.ClusterType, out.Class, found = r.ClusterType, r.Folder, true
	})
	if !found {
		return nil, missing("environment %s has no cluster %s", environment, name)
	}
	contact := s.Hub.Fleet().Contact(name)
	out.Seen, out.Problem = contact.Last, contact.Problem()
	out.Pulls = strings.TrimPrefix(w.Path+"/"+out.Class, "/")
	rows, _, err := s.Hub.Store().History(ctx, store.Filter{
		Filter: state.Filter{Environments: state.In(environment), Cluster: name}}, listed)
	if err != nil {
		return nil, err
	}
	out.History = transitions(rows)
	return out, nil
}
