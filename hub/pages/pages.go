// Package pages lets package view show a hub's data: the wanted state of clusters, and their
// observed state.
package pages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/compiled"
	"github.com/kalypso-io/kalypso/hub/question"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/view"
)

// listed is the length of lists on pages that do not show all rows.
const listed = 100

// Source is a view.Observer of a hub. It shows the environments that the caller may see.
type Source struct {
	Hub   *hub.Hub
	Title string
	// Why explains why the wanted state of an environment may be out of date. For "" it explains
	// this for all environments. It returns "" if there is no reason. Why may be nil.
	Why func(environment string) string
	// Compiled answers questions that need the compiled platform.
	Compiled *compiled.Pool
}

var _ view.Observer = (*Source)(nil)

// environments returns the environments that the caller may see, in the order of promotion.
func (s *Source) environments(ctx context.Context) []*state.DesiredState {
	i := access.From(ctx)
	if i == nil {
		return nil
	}
	return slices.DeleteFunc(s.Hub.Fleet().Environments(),
		func(w *state.DesiredState) bool { return !i.Sees(w.Environment) })
}

func missing(format string, args ...any) error {
	return &view.NotFoundError{Message: fmt.Sprintf(format, args...)}
}

func (s *Source) environment(ctx context.Context, name string) (*state.DesiredState, error) {
	for _, w := range s.environments(ctx) {
		if w.Environment == name {
			return w, nil
		}
	}
	text := fmt.Sprintf("there is no environment %s, or you may not see it", name)
	var unknown *question.UnknownError
	if i := access.From(ctx); i != nil &&
		errors.As(question.Environment(s.Hub.Fleet(), name, i.Sees), &unknown) && unknown.Hint != "" {
		text += "; " + unknown.Hint
	}
	return nil, missing("%s", text)
}

func countsOf(t *state.Tally) *view.Counts {
	return &view.Counts{Wanted: t.Wanted(), OK: t[state.OK], Progressing: t[state.Progressing],
		Suspended: t[state.Suspended], Behind: t[state.Behind], Drifted: t[state.Drifted],
		Stale: t[state.Stale], Missing: t[state.Missing], Failed: t[state.Failed]}
}

// count counts by one dimension.
func (s *Source) count(f state.Filter, by state.Dimension) (groups map[string]*view.Counts,
	all *view.Counts) {
	groups = map[string]*view.Counts{}
	var sum state.Tally
	for _, g := range s.Hub.Fleet().Count(f, by) {
		groups[g.Values[0]] = countsOf(&g.Tally)
		sum.Add(&g.Tally)
	}
	return groups, countsOf(&sum)
}

// PageData returns that the data is observed.
func (s *Source) PageData(ctx context.Context) (*view.PageData, error) {
	about := &view.PageData{Title: s.Title, Observed: true}
	i := access.From(ctx)
	if i != nil && i.Session {
		about.SignedIn = strings.TrimPrefix(i.Name, "person ")
	}
	if i != nil && s.Why != nil {
		about.Failure = question.Problem(s.Hub.Fleet(), i.Sees, s.Why)
	}
	for _, w := range s.environments(ctx) {
		about.Environments = append(about.Environments, w.Environment)
	}
	return about, nil
}

// summary counts the contents of an environment.
func (s *Source) summary(w *state.DesiredState) view.EnvironmentSummary {
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

// Fleet returns workloads and environments.
func (s *Source) Fleet(ctx context.Context, contains string, p view.Page) (*view.Fleet, error) {
	of := s.environments(ctx)
	out := &view.Fleet{Contains: contains}
	for _, w := range of {
		out.Environments = append(out.Environments, s.summary(w))
	}
	all := s.workloads(of, func(t *state.Target) bool {
		return contains == "" || strings.Contains(t.Workload, contains) ||
			strings.Contains(t.Workspace, contains)
	})
	out.Workloads, out.Part = view.PageOf(all, p)
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
	out.Workloads = s.workloads([]*state.DesiredState{w}, func(*state.Target) bool { return true })
	s.counted([]*state.DesiredState{w}, out.Workloads)
	return out, nil
}

// clustersOf counts the clusters that pull each folder.
func clustersOf(w *state.DesiredState) map[string]int {
	clusters := map[string]int{}
	for i := range w.Clusters {
		clusters[w.Clusters[i].Folder]++
	}
	return clusters
}

// Search finds workloads and clusters.
func (s *Source) Search(ctx context.Context, contains string, most int) (*view.Search, error) {
	out := &view.Search{Contains: contains}
	var hits []view.Hit
	if contains == "" {
		return out, nil
	}
	of := s.environments(ctx)
	for _, w := range s.workloads(of,
		func(t *state.Target) bool { return strings.Contains(t.Workload, contains) }) {
		hits = append(hits, view.Hit{Kind: "workload", Name: w.Name, Page: []string{"workloads", w.Name}})
	}
	for _, w := range of {
		for _, f := range w.Folders {
			if strings.Contains(f.Name, contains) {
				hits = append(hits, view.Hit{Kind: "cluster type", Name: f.Name, Of: w.Environment,
					Page: []string{"cluster-types", w.Environment, f.Name}})
			}
		}
		for _, c := range w.Clusters {
			if strings.Contains(c.Name, contains) {
				hits = append(hits, view.Hit{Kind: "cluster", Name: c.Name, Of: w.Environment,
					Page: []string{"clusters", w.Environment, c.Name}})
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

// commitsOf returns the commits from which an environment is compiled, in a ring or in its first
// one.
func commitsOf(w *state.DesiredState, ring string) (compiled.At, error) {
	if len(w.Commits) == 0 || len(w.Commits[0].Rings) == 0 {
		return compiled.At{}, missing("nothing was promoted to environment %s yet", w.Environment)
	}
	for i, r := range w.Commits[0].Rings {
		if r.Name == ring || ring == "" && i == 0 {
			return compiled.At{Environment: w.Environment, Base: r.Base, Own: r.Own}, nil
		}
	}
	return compiled.At{},
		missing("environment %s has no ring %s, or nothing was promoted to it yet", w.Environment, ring)
}

// Policies returns the scheduling policies of the commits that a ring of an environment has.
func (s *Source) Policies(ctx context.Context, environment, ring string) (*view.Policies, error) {
	out, rings, err := inRing(ctx, s, environment, ring, s.Compiled.Policies)
	if err == nil {
		out.Rings = rings
	}
	return out, err
}

// Configs returns the configs of the commits that a ring of an environment has.
func (s *Source) Configs(ctx context.Context, environment, ring string) (*view.Configs, error) {
	out, rings, err := inRing(ctx, s, environment, ring, s.Compiled.Configs)
	if err == nil {
		out.Rings = rings
	}
	return out, err
}

// Diagnostics returns an error, because a hub has none.
func (s *Source) Diagnostics(context.Context) (*view.Diagnostics, error) {
	return nil,
		notCompiled()
}

// Changes returns an error, because a hub has none.
func (s *Source) Changes(context.Context, string) (*view.Changes, error) {
	return nil,
		notCompiled()
}

func notCompiled() error {
	return missing(
		"a hub knows what is in GitOps branches: kalypso view shows this page, and what is not committed")
}

// inRing returns a compiled result of an environment in a ring or in its first one, and all rings.
// rings is nil if the environment has no rings. An error contains the rings too.
func inRing[T any](ctx context.Context, s *Source, environment, ring string,
	of func(context.Context, compiled.At) (T, error)) (out T, rings []view.RingSource, err error) {
	w, err := s.environment(ctx, environment)
	if err != nil {
		return out, nil, err
	}
	rings = ringsOf(w, ring)
	from, err := commitsOf(w, ring)
	if err == nil {
		out, err = of(ctx, from)
	}
	if err != nil {
		err = &view.RingError{Environment: environment, Rings: rings, Err: err}
	}
	return out, rings, err
}

// ringsOf returns the rings of an environment, and marks the shown ring, which is the first one if
// ring is "". It returns nil if the environment has no rings.
func ringsOf(w *state.DesiredState, ring string) (rings []view.RingSource) {
	if len(w.Commits) == 0 || len(w.Commits[0].Rings) == 0 || w.Commits[0].Rings[0].Name == "" {
		return nil
	}
	for i, r := range w.Commits[0].Rings {
		rings = append(rings, view.RingSource{Name: r.Name, Base: r.Base, Own: r.Own,
			Shown: r.Name == ring || ring == "" && i == 0})
	}
	return rings
}
