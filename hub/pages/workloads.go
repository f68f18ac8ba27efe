package pages

import (
	"context"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/view"
)

// row is a workload in all environments, under construction.
type row struct {
	view.WorkloadRow
	versions []map[string]int
}

// workloads returns the workloads of some environments that a function selects, by name.
func (s *Source) workloads(of []*state.DesiredState,
	in func(*state.Target) bool) []view.WorkloadRow {
	rows := map[string]*row{}
	for n, w := range of {
		for i := range w.Folders {
			for k := range w.Folders[i].Targets {
				t := &w.Folders[i].Targets[k]
				if !in(t) {
					continue
				}
				r := rows[t.Workload]
				if r == nil {
					r = &row{WorkloadRow: view.WorkloadRow{Name: t.Workload, Workspace: t.Workspace,
						Cells: make([]view.Cell, len(of))}, versions: make([]map[string]int, len(of))}
					for m, other := range of {
						r.Cells[m].Environment = other.Environment
					}
					rows[t.Workload] = r
				}
				if r.versions[n] == nil {
					r.versions[n] = map[string]int{}
				}
				r.versions[n][t.Version]++
				r.Cells[n].Assignments++
			}
		}
	}
	out := make([]view.WorkloadRow, 0, len(rows))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		for n := range r.Cells {
			for _, version := range slices.Sorted(maps.Keys(r.versions[n])) {
				r.Cells[n].Versions = append(r.Cells[n].Versions,
					view.Version{Name: version, Assignments: r.versions[n][version]})
			}
		}
		out = append(out, r.WorkloadRow)
	}
	return out
}

// counted adds the counts of running assignments to workloads.
func (s *Source) counted(of []*state.DesiredState, rows []view.WorkloadRow) {
	for n, w := range of {
		groups, _ := s.count(state.Filter{Environments: state.In(w.Environment)}, state.ByWorkload)
		for i := range rows {
			rows[i].Cells[n].Counts = groups[rows[i].Name]
		}
	}
}

// assignment returns a row for an assignment. Some clusters pull its folder.
func assignment(w *state.DesiredState, f *state.Folder, t *state.Target, clusters int,
	counts *view.Counts) view.AssignmentRow {
	return view.AssignmentRow{Environment: w.Environment, ClusterType: f.Name, Target: t.Name,
		Workload: t.Workload, Namespace: t.Namespace, Version: t.Version, Clusters: clusters,
		Counts: counts}
}

// Workload returns a workload.
func (s *Source) Workload(ctx context.Context, name string, p view.Page) (*view.Workload, error) {
	of := s.environments(ctx)
	rows := s.workloads(of, func(t *state.Target) bool { return t.Workload == name })
	if len(rows) == 0 {
		return nil, missing("there is no workload %s", name)
	}
	s.counted(of, rows)
	out := &view.Workload{WorkloadRow: rows[0]}
	var all []view.AssignmentRow
	for _, w := range of {
		clusters := clustersOf(w)
		for i := range w.Folders {
			for k := range w.Folders[i].Targets {
				if t := &w.Folders[i].Targets[k]; t.Workload == name {
					all = append(all, assignment(w, &w.Folders[i], t, clusters[w.Folders[i].Name], nil))
				}
			}
		}
	}
	out.Assignments, out.Part = view.PageOf(all, p)
	for i := range out.Assignments {
		a := &out.Assignments[i]
		_, a.Counts = s.count(state.Filter{Environments: state.In(a.Environment), Class: a.ClusterType,
			Target: a.Target}, state.ByEnvironment)
	}
	return out, nil
}

// Assignment returns an assignment to a class, with its running state. If clusterType is a cluster
// type that has only other classes, it returns the assignment to the first of them.
func (s *Source) Assignment(ctx context.Context, environment, clusterType,
	target string) (*view.Assignment, error) {
	w, err := s.environment(ctx, environment)
	if err != nil {
		return nil, err
	}
	exact := w.Folder(clusterType) != nil
	for i := range w.Folders {
		folder := &w.Folders[i]
		if folder.Name != clusterType && (exact || folder.ClusterType != clusterType) {
			continue
		}
		for k := range folder.Targets {
			t := &folder.Targets[k]
			if t.Name != target {
				continue
			}
			f := state.Filter{Environments: state.In(environment), Class: folder.Name, Target: target}
			_, counts := s.count(f, state.ByEnvironment)
			out := &view.Assignment{AssignmentRow: assignment(w, folder, t, clustersOf(w)[folder.Name],
				counts), Assigned: true, Workspace: t.Workspace, Reconciler: t.Backend}
			s.why(ctx, w, folder, out)
			out.Running, out.Runs = s.worst(f), s.Hub.Fleet().Len(f)
			return out, nil
		}
	}
	return &view.Assignment{AssignmentRow: view.AssignmentRow{Environment: environment,
		ClusterType: clusterType, Target: target}, Why: "The environment's GitOps branch does not have " +
		"it. kalypso explain says why."}, nil
}

// why adds the details that need the compiled platform. If it cannot be compiled, the page shows
// the reason.
func (s *Source) why(ctx context.Context, w *state.DesiredState, f *state.Folder,
	out *view.Assignment) {
	from, err := commitsOf(w, f.Ring)
	if err == nil {
		var is *view.Assignment
		if is, err = s.Compiled.Assignment(ctx, from, f.Name, out.Target); err == nil {
			row, workspace := out.AssignmentRow, out.Workspace
			*out = *is
			out.AssignmentRow, out.Workspace = row, workspace
			out.Assigned = true
			return
		}
	}
	out.Uncompiled = err.Error()
}

// Compare compares the versions that two environments want.
func (s *Source) Compare(ctx context.Context, before, after string) (*view.Comparison, error) {
	a, err := s.environment(ctx, before)
	if err != nil {
		return nil, err
	}
	b, err := s.environment(ctx, after)
	if err != nil {
		return nil, err
	}
	out := &view.Comparison{Before: before, After: after}
	for _, w := range s.workloads([]*state.DesiredState{a, b},
		func(*state.Target) bool { return true }) {
		was, is := versions(w.Cells[0]), versions(w.Cells[1])
		if slices.Equal(was, is) {
			out.Same++
			continue
		}
		out.Workloads = append(out.Workloads,
			view.Difference{Workload: w.Name, In: "version", Before: was, After: is})
	}
	return out, nil
}

func versions(c view.Cell) []string {
	var out []string
	for _, v := range c.Versions {
		if v.Name == "" {
			v.Name = "no version"
		}
		out = append(out, v.Name)
	}
	return out
}
