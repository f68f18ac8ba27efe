package server

import (
	"context"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// countsAt counts by what is kept of earlier moments.
func (s *server) countsAt(ctx context.Context, at time.Time, f state.Filter, by []state.Dimension) (api.Groups, error) {
	out := api.Groups{At: at}
	if f.Class != "" || f.Cluster != "" || f.Workspace != "" || f.Target != "" || slices.ContainsFunc(by, func(d state.Dimension) bool {
		return d == state.ByCluster || d == state.ByWorkspace || d == state.ByTarget
	}) {
		return out, huma.Error422UnprocessableEntity("of an earlier moment, there are no counts by class, cluster, workspace or deployment target: ask for the assignments")
	}
	parts, err := s.Hub.Store().PartsAt(ctx, at, f.Environments)
	if err != nil {
		return out, unavailable()
	}
	tallies := map[[3]string]*state.Tally{}
	for p, tally := range parts {
		if f.Ring != "" && f.Ring != p.Ring || f.ClusterType != "" && f.ClusterType != p.ClusterType || f.Workload != "" && f.Workload != p.Workload ||
			f.Version != "" && f.Version != p.Version || f.Base != "" && f.Base != p.Base {
			continue
		}
		var key [3]string
		for i, d := range by {
			key[i] = map[state.Dimension]string{state.ByEnvironment: p.Environment, state.ByRing: p.Ring, state.ByClusterType: p.ClusterType, state.ByWorkload: p.Workload, state.ByVersion: p.Version, state.ByBase: p.Base}[d]
		}
		if tallies[key] == nil {
			tallies[key] = &state.Tally{}
		}
		tallies[key].Add(&tally)
	}
	var groups []state.Group
	for key, tally := range tallies {
		groups = append(groups, state.Group{Values: slices.Clone(key[:len(by)]), Tally: *tally})
	}
	slices.SortFunc(groups, func(a, b state.Group) int { return slices.Compare(a.Values, b.Values) })
	out.Groups = groupsOf(groups, by)
	return out, nil
}

// assignmentsAt lists by what is kept of earlier moments.
func (s *server) assignmentsAt(ctx context.Context, at time.Time, f state.Filter, after state.Position, most int) (api.Assignments, error) {
	out := api.Assignments{At: at, Assignments: []state.Row{}}
	past, err := store.FilterAt(f)
	if err != nil {
		return out, huma.Error422UnprocessableEntity(err.Error())
	}
	past.After = after
	rows, err := s.Hub.Store().At(ctx, past, at, most+1)
	if err != nil {
		return out, unavailable()
	}
	for i, r := range rows {
		if i == most {
			out.Next = cursorOf(out.Assignments[i-1].Position())
			break
		}
		st, err := state.Parse(r.State)
		if err != nil {
			return out, err // it is of a later version
		}
		out.Assignments = append(out.Assignments, state.Row{
			Environment: r.Environment, Cluster: r.Cluster, ClusterType: r.ClusterType, Target: r.Target, Workload: r.Workload, State: st, Message: r.Message,
			Changed: r.At, Version: r.Version, Digest: r.Wanted, Running: r.Running, Commit: r.Commit,
		})
	}
	return out, nil
}
