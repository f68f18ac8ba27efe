// Package pages gives view what a hub knows: what is wanted of clusters, and what was observed
// of them.
package pages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/compiled"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/view"
)

// listed is how many of a thing are listed where a page does not have all of them.
const listed = 100

// Source is a view.Observer of a hub. Who asks sees the environments that they may see.
type Source struct {
	Hub   *hub.Hub
	Title string
	// Why returns why what is wanted of an environment may be old; "" for no reason.
	Why func(environment string) string
	// Compiled answers what only a compiled platform knows; nil for nobody does.
	Compiled *compiled.Pool
}

var _ view.Observer = (*Source)(nil)

// environments returns those that who asks may see, in the order of promotion.
func (s *Source) environments(ctx context.Context) []*state.Wanted {
	i := access.From(ctx)
	if i == nil {
		return nil
	}
	return slices.DeleteFunc(s.Hub.Fleet().Environments(), func(w *state.Wanted) bool { return !i.Sees(w.Environment) })
}

func missing(format string, args ...any) error {
	return &view.NotFoundError{Message: fmt.Sprintf(format, args...)}
}

func (s *Source) environment(ctx context.Context, name string) (*state.Wanted, error) {
	for _, w := range s.environments(ctx) {
		if w.Environment == name {
			return w, nil
		}
	}
	return nil, missing("there is no environment %s, or you may not see it", name)
}

func countsOf(t *state.Tally) *view.Counts {
	return &view.Counts{Wanted: t.Wanted(), OK: t[state.OK], Progressing: t[state.Progressing], Behind: t[state.Behind], Drifted: t[state.Drifted], Stale: t[state.Stale], Missing: t[state.Missing], Failed: t[state.Failed]}
}

// count counts by one dimension.
func (s *Source) count(f state.Filter, by state.Dimension) (groups map[string]*view.Counts, all *view.Counts) {
	groups = map[string]*view.Counts{}
	var sum state.Tally
	for _, g := range s.Hub.Fleet().Count(f, by) {
		groups[g.Values[0]] = countsOf(&g.Tally)
		sum.Add(&g.Tally)
	}
	return groups, countsOf(&sum)
}

// About says that this is observed.
func (s *Source) About(ctx context.Context) (*view.About, error) {
	about := &view.About{Title: s.Title, Observed: true}
	if i := access.From(ctx); i != nil && i.Session {
		about.SignedIn = strings.TrimPrefix(i.Name, "person ")
	}
	for _, w := range s.environments(ctx) {
		about.Environments = append(about.Environments, w.Environment)
	}
	return about, nil
}

// summary counts what is in an environment.
func (s *Source) summary(w *state.Wanted) view.EnvironmentSummary {
	_, all := s.count(state.Filter{Environments: state.In(w.Environment)}, state.ByEnvironment)
	out := view.EnvironmentSummary{Name: w.Environment, Clusters: len(w.Clusters), Counts: all}
	types, workloads := map[string]bool{}, map[string]bool{}
	for _, f := range w.Folders {
		types[f.ClusterType] = true
		out.Assignments += len(f.Targets)
		for _, t := range f.Targets {
			workloads[t.Workload] = true
		}
	}
	out.ClusterTypes, out.Workloads = len(types), len(workloads)
	return out
}

// row is a workload in all environments, while it is made.
type row struct {
	view.WorkloadRow
	versions []map[string]int
}

// workloads returns those of some environments that a function selects, by name.
func (s *Source) workloads(of []*state.Wanted, in func(*state.Target) bool) []view.WorkloadRow {
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
					r = &row{WorkloadRow: view.WorkloadRow{Name: t.Workload, Workspace: t.Workspace, Cells: make([]view.Cell, len(of))}, versions: make([]map[string]int, len(of))}
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
				r.Cells[n].Versions = append(r.Cells[n].Versions, view.Version{Name: version, Assignments: r.versions[n][version]})
			}
		}
		out = append(out, r.WorkloadRow)
	}
	return out
}

// counted adds what runs to workloads.
func (s *Source) counted(of []*state.Wanted, rows []view.WorkloadRow) {
	for n, w := range of {
		groups, _ := s.count(state.Filter{Environments: state.In(w.Environment)}, state.ByWorkload)
		for i := range rows {
			rows[i].Cells[n].Counts = groups[rows[i].Name]
		}
	}
}

// Fleet returns workloads and environments.
func (s *Source) Fleet(ctx context.Context, contains string, p view.Page) (*view.Fleet, error) {
	of := s.environments(ctx)
	out := &view.Fleet{Contains: contains}
	for _, w := range of {
		out.Environments = append(out.Environments, s.summary(w))
	}
	all := s.workloads(of, func(t *state.Target) bool {
		return contains == "" || strings.Contains(t.Workload, contains) || strings.Contains(t.Workspace, contains)
	})
	out.Workloads, out.Part = view.Of(all, p)
	s.counted(of, out.Workloads)
	return out, nil
}

// Environment returns an environment.
func (s *Source) Environment(ctx context.Context, name string) (*view.Environment, error) {
	w, err := s.environment(ctx, name)
	if err != nil {
		return nil, err
	}
	out := &view.Environment{EnvironmentSummary: s.summary(w), ClusterTypes: s.clusterTypes(w, "")}
	out.Workloads = s.workloads([]*state.Wanted{w}, func(*state.Target) bool { return true })
	s.counted([]*state.Wanted{w}, out.Workloads)
	return out, nil
}

// clustersOf counts the clusters that pull each folder.
func clustersOf(w *state.Wanted) map[string]int {
	clusters := map[string]int{}
	for i := range w.Clusters {
		clusters[w.Clusters[i].Folder]++
	}
	return clusters
}

// clusterTypes returns the folders of a cluster type; "" for all.
func (s *Source) clusterTypes(w *state.Wanted, of string) []view.ClusterTypeRow {
	clusters := clustersOf(w)
	tallies := s.Hub.Fleet().Folders(w.Environment)
	var out []view.ClusterTypeRow
	for i := range w.Folders {
		f := &w.Folders[i]
		if of != "" && of != f.ClusterType && of != f.Name {
			continue
		}
		row := view.ClusterTypeRow{Environment: w.Environment, Name: f.Name, ClusterType: f.ClusterType, Ring: f.Ring, Clusters: clusters[f.Name], Assignments: len(f.Targets)}
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

// assignment is a row of an assignment, whose folder some clusters pull.
func assignment(w *state.Wanted, f *state.Folder, t *state.Target, clusters int, counts *view.Counts) view.AssignmentRow {
	return view.AssignmentRow{Environment: w.Environment, ClusterType: f.Name, Target: t.Name, Workload: t.Workload, Namespace: t.Namespace, Version: t.Version, Clusters: clusters, Counts: counts}
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
	out.Assignments, out.Part = view.Of(all, p)
	for i := range out.Assignments {
		a := &out.Assignments[i]
		_, a.Counts = s.count(state.Filter{Environments: state.In(a.Environment), Class: a.ClusterType, Target: a.Target}, state.ByEnvironment)
	}
	return out, nil
}

// Assignment returns an assignment to a class with where it runs; of a cluster type that has only
// others, to the first of them.
func (s *Source) Assignment(ctx context.Context, environment, clusterType, target string) (*view.Assignment, error) {
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
			out := &view.Assignment{AssignmentRow: assignment(w, folder, t, clustersOf(w)[folder.Name], counts), Assigned: true, Workspace: t.Workspace, Reconciler: t.Backend}
			s.why(ctx, w, folder, out)
			out.Running = s.worst(f)
			return out, nil
		}
	}
	return &view.Assignment{AssignmentRow: view.AssignmentRow{Environment: environment, ClusterType: clusterType, Target: target}, Why: "The environment's GitOps branch does not have it. kalypso explain says why."}, nil
}

// why adds what only the compiled platform knows. Where that cannot be had, the page says why.
func (s *Source) why(ctx context.Context, w *state.Wanted, f *state.Folder, out *view.Assignment) {
	from, err := at(w, f.Ring)
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

// ClusterType returns a cluster type, or a class.
func (s *Source) ClusterType(ctx context.Context, environment, name string, p view.Page) (*view.ClusterType, error) {
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
			groups, _ := s.count(state.Filter{Environments: state.In(environment), Class: f.Name}, state.ByTarget)
			for k := range f.Targets {
				all = append(all, assignment(w, f, &f.Targets[k], rows[0].Clusters, groups[f.Targets[k].Name]))
			}
		}
	}
	out.Assigned, out.Part = view.Of(all, p)
	return out, nil
}

// Clusters returns clusters.
func (s *Source) Clusters(ctx context.Context, environment, contains string, p view.Page) (*view.Clusters, error) {
	w, err := s.environment(ctx, environment)
	if err != nil {
		return nil, err
	}
	var all []*state.Cluster
	for i := range w.Clusters {
		if c := &w.Clusters[i]; contains == "" || strings.Contains(c.Name, contains) || strings.Contains(c.Folder, contains) {
			all = append(all, c)
		}
	}
	out := &view.Clusters{Environment: environment, Contains: contains, Observed: true}
	listed, part := view.Of(all, p)
	out.Part = part
	for _, c := range listed {
		row := clusterRow(w, c)
		row.Counts, row.Workloads = s.cluster(environment, c.Name, nil)
		row.Seen = s.Hub.Fleet().Heard(c.Name).Last
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

func clusterRow(w *state.Wanted, c *state.Cluster) view.ClusterRow {
	row := view.ClusterRow{Name: c.Name, Class: c.Folder}
	if f := w.Folder(c.Folder); f != nil {
		row.ClusterType, row.Ring = f.ClusterType, f.Ring
	}
	return row
}

// cluster counts what is on a cluster, and calls f, if not nil, with it.
func (s *Source) cluster(environment, name string, f func(state.Row)) (counts *view.Counts, assignments int) {
	var tally state.Tally
	s.Hub.Fleet().List(state.Filter{Environments: state.In(environment), Cluster: name}, state.Position{}, func(r state.Row) bool {
		tally[r.State]++
		if f != nil {
			f(r)
		}
		return true
	})
	return countsOf(&tally), tally.Wanted()
}

// Cluster returns a cluster with what runs on it.
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
	heard := s.Hub.Fleet().Heard(name)
	out.Seen, out.Problem = heard.Last, heard.Problem()
	out.Pulls = strings.TrimPrefix(w.Path+"/"+out.Class, "/")
	rows, err := s.Hub.Store().History(ctx, store.Filter{Environments: state.In(environment), Cluster: name}, listed)
	if err != nil {
		return nil, err
	}
	out.History = transitions(rows)
	return out, nil
}

// at returns what an environment is compiled from: in a ring, or in its first one.
func at(w *state.Wanted, ring string) (compiled.At, error) {
	if len(w.Commits) == 0 || len(w.Commits[0].Rings) == 0 {
		return compiled.At{}, missing("nothing was promoted to environment %s yet", w.Environment)
	}
	for i, r := range w.Commits[0].Rings {
		if r.Name == ring || ring == "" && i == 0 {
			return compiled.At{Environment: w.Environment, Base: r.Base, Own: r.Own}, nil
		}
	}
	return compiled.At{}, missing("environment %s has no ring %s, or nothing was promoted to it yet", w.Environment, ring)
}

// inRing returns what an environment is compiled from in a ring, or in its first one, and all rings;
// none where it has none.
func (s *Source) inRing(ctx context.Context, environment, ring string) (compiled.At, []view.RingSource, error) {
	w, err := s.environment(ctx, environment)
	if err != nil {
		return compiled.At{}, nil, err
	}
	from, err := at(w, ring)
	if err != nil || w.Commits[0].Rings[0].Name == "" {
		return from, nil, err
	}
	var rings []view.RingSource
	for i, r := range w.Commits[0].Rings {
		rings = append(rings, view.RingSource{Name: r.Name, Base: r.Base, Own: r.Own, Shown: r.Name == ring || ring == "" && i == 0})
	}
	return from, rings, nil
}

// Policies returns the scheduling policies of the commits that a ring of an environment has.
func (s *Source) Policies(ctx context.Context, environment, ring string) (*view.Policies, error) {
	from, rings, err := s.inRing(ctx, environment, ring)
	if err != nil {
		return nil, err
	}
	out, err := s.Compiled.Policies(ctx, from)
	if err == nil {
		out.Rings = rings
	}
	return out, err
}

// Configs returns the configs of the commits that a ring of an environment has.
func (s *Source) Configs(ctx context.Context, environment, ring string) (*view.Configs, error) {
	from, rings, err := s.inRing(ctx, environment, ring)
	if err != nil {
		return nil, err
	}
	out, err := s.Compiled.Configs(ctx, from)
	if err == nil {
		out.Rings = rings
	}
	return out, err
}

// Diagnostics says that a hub has none.
func (s *Source) Diagnostics(context.Context) (*view.Diagnostics, error) { return nil, notCompiled() }

// Changes says that a hub has none.
func (s *Source) Changes(context.Context, string) (*view.Changes, error) { return nil, notCompiled() }

func notCompiled() error {
	return missing("a hub knows what is in GitOps branches: kalypso view shows this page, and what is not committed")
}

// Search finds workloads and clusters.
func (s *Source) Search(ctx context.Context, contains string, most int) (*view.Search, error) {
	out := &view.Search{Contains: contains}
	var hits []view.Hit
	if contains == "" {
		return out, nil
	}
	of := s.environments(ctx)
	for _, w := range s.workloads(of, func(t *state.Target) bool { return strings.Contains(t.Workload, contains) }) {
		hits = append(hits, view.Hit{Kind: "workload", Name: w.Name, Page: []string{"workloads", w.Name}})
	}
	for _, w := range of {
		for _, f := range w.Folders {
			if strings.Contains(f.Name, contains) {
				hits = append(hits, view.Hit{Kind: "cluster type", Name: f.Name, Of: w.Environment, Page: []string{"cluster-types", w.Environment, f.Name}})
			}
		}
		for _, c := range w.Clusters {
			if strings.Contains(c.Name, contains) {
				hits = append(hits, view.Hit{Kind: "cluster", Name: c.Name, Of: w.Environment, Page: []string{"clusters", w.Environment, c.Name}})
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b view.Hit) int {
		switch exact := func(h view.Hit) bool { return h.Name == contains }; {
		case exact(a) == exact(b):
			return 0
		case exact(a):
			return -1
		}
		return 1
	})
	if most > 0 && len(hits) > most {
		hits, out.More = hits[:most], true
	}
	out.Hits = hits
	return out, nil
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
	for _, w := range s.workloads([]*state.Wanted{a, b}, func(*state.Target) bool { return true }) {
		was, is := versions(w.Cells[0]), versions(w.Cells[1])
		if slices.Equal(was, is) {
			out.Same++
			continue
		}
		out.Workloads = append(out.Workloads, view.Difference{Workload: w.Name, In: "version", Before: was, After: is})
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

// Follow moves a feed when the hub has changed, at most once a second, until the context ends.
func (s *Source) Follow(ctx context.Context, feed *view.Feed) {
	feed.Set(s, nil)
	for {
		_, changed := s.Hub.Version()
		pause := time.NewTimer(time.Second)
		select {
		case <-changed:
			feed.Moved()
		case <-ctx.Done():
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}
