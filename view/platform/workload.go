package platform

import (
	"context"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/view"
)

// Fleet returns the matrix of workloads and environments.
func (p *Platform) Fleet(_ context.Context, contains string, page view.Page) (*view.Fleet, error) {
	out := &view.Fleet{Contains: contains}
	for _, e := range p.order {
		out.Environments = append(out.Environments, e.summary)
	}
	var rows []view.WorkloadRow
	for _, w := range p.sorted {
		if holds(contains, w.Name, w.Workspace, w.Application) {
			rows = append(rows, w.WorkloadRow)
		}
	}
	out.Workloads, out.Part = view.PageOf(rows, page)
	return out, nil
}

// Environment returns the contents of an environment.
func (p *Platform) Environment(_ context.Context, name string) (*view.Environment, error) {
	e, err := p.readable(name)
	if err != nil {
		return nil, err
	}
	out := &view.Environment{EnvironmentSummary: e.summary, ClusterTypes: e.types}
	n := slices.Index(p.order, e)
	for _, w := range p.sorted {
		if w.Cells[n].Assignments > 0 {
			row := w.WorkloadRow
			row.Cells = w.Cells[n : n+1]
			out.Workloads = append(out.Workloads, row)
		}
	}
	return out, nil
}

// Workload returns a workload in all environments.
func (p *Platform) Workload(_ context.Context, name string, page view.Page) (*view.Workload,
	error) {
	w := p.workloads[name]
	if w == nil {
		return nil, p.missing("workload", name, slices.Collect(maps.Keys(p.workloads)), "this platform")
	}
	out := &view.Workload{WorkloadRow: w.WorkloadRow, Description: w.description,
		Labels: pairs(w.labels)}
	out.Assignments, out.Part = view.PageOf(w.rows, page)
	for _, e := range p.order {
		if e.Model == nil {
			continue
		}
		for i := range e.Model.Workloads {
			if e.Model.Workloads[i].Name != name {
				continue
			}
			for _, t := range e.Model.Workloads[i].Targets {
				for _, ct := range e.types {
					if _, assigned := e.Schedule.Index(ct.Name, t.FullName); !assigned &&
						len(out.Absent) < listed {
						out.Absent = append(out.Absent, view.AssignmentRow{Environment: e.Name, ClusterType: ct.Name,
							Target: t.FullName, Workload: name})
					}
				}
			}
		}
	}
	return out, nil
}
