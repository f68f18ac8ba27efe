package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/question"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Selection are the parameters that select assignments on clusters.
type Selection struct {
	Environment string    `query:"environment" doc:"Some environments, with commas between; all where it is absent."`
	Ring        string    `query:"ring"`
	ClusterType string    `query:"clusterType"`
	Class       string    `query:"class" doc:"A class of clusters: its folder, which is the cluster type or clusterType.class, or the class alone."`
	Cluster     string    `query:"cluster"`
	Workload    string    `query:"workload"`
	Workspace   string    `query:"workspace"`
	Target      string    `query:"deploymentTarget"`
	Version     string    `query:"version"`
	Base        string    `query:"base" doc:"The platform's commit that it was compiled from, or its first digits, at least 7."`
	State       []string  `query:"state" doc:"Some states, with commas between."`
	At          time.Time `query:"at" doc:"The moment; now where it is absent."`
}

func (s *server) filter(ctx context.Context, q *Selection) (state.Filter, error) {
	environments, err := s.sees(ctx, q.Environment)
	if err != nil {
		return state.Filter{}, err
	}
	f := state.Filter{Environments: environments, Ring: q.Ring, ClusterType: q.ClusterType,
		Class: q.Class, Cluster: q.Cluster, Workload: q.Workload, Workspace: q.Workspace,
		Target: q.Target, Version: q.Version, Base: q.Base}
	for _, name := range q.State {
		st, err := state.Parse(name)
		if err != nil {
			return f, huma.Error422UnprocessableEntity(err.Error())
		}
		f.States = append(f.States, st)
	}
	f, err = question.Resolve(s.Hub.Fleet(), f)
	return f, named(err)
}

// questions registers the operations for people and programs.
func (s *server) questions() {
	huma.Register(s.api, huma.Operation{OperationID: "environments", Method: http.MethodGet,
		Path: "/v1/environments", Summary: "All environments, with what they want and their counts"},
		s.getEnvironments)
	huma.Register(s.api, huma.Operation{OperationID: "counts", Method: http.MethodGet,
		Path: "/v1/counts", Summary: "Assignments on clusters, counted by state",
		Description: "Of an earlier moment, counts are of some time from oldest until at, and by " +
			"class, cluster and deployment target there are those of one cluster alone; by workspace, " +
			"there are none."}, s.getCounts)
	huma.Register(s.api, huma.Operation{OperationID: "assignments", Method: http.MethodGet,
		Path: "/v1/assignments", Summary: "Assignments on clusters",
		Description: "They are in the order of environments, then sorted by cluster and deployment " +
			"target; of an earlier moment, by workload before that, unless a cluster is asked for. Of an " +
			"earlier moment, a page may have fewer than limit, and a next, where those that are asked for " +
			"are rare. What was written before hubs kept the ring and the base has none."}, s.getAssignments)
	huma.Register(s.api, huma.Operation{OperationID: "cluster", Method: http.MethodGet,
		Path: "/v1/clusters/{name}", Summary: "A cluster with all its assignments"}, s.getCluster)
	huma.Register(s.api, huma.Operation{
		OperationID: "forget", Method: http.MethodDelete, Path: "/v1/clusters/{name}",
		Summary: "Forget a cluster that the platform does not list", DefaultStatus: http.StatusNoContent,
		Description: "It counts no more, until it reports again. One that the platform lists is to be " +
			"taken out of the platform.", Errors: []int{401, 403, 404, 409},
	}, s.forget)
	huma.Register(s.api, huma.Operation{OperationID: "history", Method: http.MethodGet,
		Path: "/v1/history", Summary: "What changed, the newest first",
		Description: "A page may have fewer than limit, and a next, where those that are asked for are " +
			"rare."}, s.getHistory)
	huma.Register(s.api, huma.Operation{OperationID: "releases", Method: http.MethodGet,
		Path: "/v1/releases", Summary: "What was released, the newest first"}, s.getReleases)
	for _, path := range []string{"/v1/environments", "/v1/counts"} {
		s.api.OpenAPI().Paths[path].Get.Responses["304"] = &huma.Response{
			Description: "Nothing has changed since the version that If-None-Match names.",
		}
	}
}

// getEnvironments returns the environments that the caller may see.
func (s *server) getEnvironments(ctx context.Context,
	in *struct{ Fresh }) (*answer[api.Environments], error) {
	i, err := allow(ctx, access.Viewer)
	if err != nil {
		return nil, err
	}
	tag, err := s.check(ctx, in.Fresh)
	if err != nil {
		return nil, err
	}
	return &answer[api.Environments]{tag, s.environments(i)}, nil
}

// countsQuestion are the parameters of getCounts.
type countsQuestion struct {
	Fresh
	Selection
	By []string `query:"by" maxItems:"3" doc:"At most three of environment, ring, clusterType, cluster, workload, workspace, deploymentTarget, version, base."`
}

// getCounts counts the assignments of a selection.
func (s *server) getCounts(ctx context.Context, in *countsQuestion) (*answer[api.Groups], error) {
	f, err := s.filter(ctx, &in.Selection)
	if err != nil {
		return nil, err
	}
	by, err := dimensions(in.By)
	if err != nil {
		return nil, err
	}
	if !in.At.IsZero() {
		groups, err := past{s}.countsAt(ctx, in.At, f, by)
		if err == nil && len(groups.Groups) == 0 {
			groups.Caveats, err = s.nothingAt(ctx, in.Environment, f, groups.Warning)
		}
		return &answer[api.Groups]{Body: groups}, err
	}
	tag, err := s.check(ctx, in.Fresh)
	if err != nil {
		return nil, err
	}
	out := api.Groups{At: s.Hub.Now(), Groups: groupsOf(s.Hub.Fleet().Count(f, by...), by),
		Caveats: s.caveats(f.Environments)}
	if len(out.Groups) == 0 {
		out.Caveats, err = s.nothing(ctx, in.Environment, f, false)
	}
	return &answer[api.Groups]{tag, out}, err
}

// assignmentsQuestion are the parameters of getAssignments.
type assignmentsQuestion struct {
	Selection
	Page
}

// getAssignments lists the assignments of a selection.
func (s *server) getAssignments(ctx context.Context,
	in *assignmentsQuestion) (*body[api.Assignments], error) {
	f, err := s.filter(ctx, &in.Selection)
	if err != nil {
		return nil, err
	}
	if !in.At.IsZero() {
		out, err := past{s}.assignmentsAt(ctx, in.At, f, &in.Page)
		if err == nil && len(out.Assignments) == 0 && in.Cursor == "" {
			out.Caveats, err = s.nothingAt(ctx, in.Environment, f, out.Warning)
		}
		return &body[api.Assignments]{out}, err
	}
	after, err := in.afterPosition()
	if err != nil {
		return nil, err
	}
	if in.Cursor != "" && !slices.Contains(s.Hub.Fleet().Names(), after.Environment) {
		return nil, gone()
	}
	out := api.Assignments{At: s.Hub.Now(), Assignments: []state.Row{},
		Caveats: s.caveats(f.Environments)}
	s.Hub.Fleet().List(f, after, func(r state.Row) bool {
		if len(out.Assignments) == in.Limit {
			last := out.Assignments[in.Limit-1].Position()
			out.Next = cursorOf(last)
			return false
		}
		out.Assignments = append(out.Assignments, r)
		return true
	})
	if len(out.Assignments) == 0 && in.Cursor == "" {
		out.Caveats, err = s.nothing(ctx, in.Environment, f, false)
	}
	return &body[api.Assignments]{out}, err
}

// clusterQuestion are the parameters of getCluster.
type clusterQuestion struct {
	Name string `path:"name" maxLength:"253"`
}

// getCluster returns a cluster.
func (s *server) getCluster(ctx context.Context, in *clusterQuestion) (*body[api.Cluster], error) {
	i, err := allow(ctx, access.Viewer)
	if err != nil {
		return nil, err
	}
	out, found := s.cluster(i, in.Name)
	if !found {
		return nil, s.unknown(i, in.Name)
	}
	return &body[api.Cluster]{out}, nil
}

// forget forgets a cluster.
func (s *server) forget(ctx context.Context, in *clusterQuestion) (*struct{}, error) {
	i, err := allow(ctx, access.Operator)
	if err != nil {
		return nil, err
	}
	news, _ := s.Hub.Fleet().News(in.Name)
	for _, environment := range news.Environments {
		if !i.MayIn(access.Operator, environment) {
			return nil, huma.Error403Forbidden(fmt.Sprintf("cluster %s is in environment %s, too, where "+
				"%s may not do that", terminal.Line(in.Name), environment, i.Name))
		}
	}
	there, err := s.Hub.Forget(ctx, in.Name)
	switch listed := (*hub.ListedError)(nil); {
	case errors.As(err, &listed):
		return nil, huma.Error409Conflict(err.Error())
	case err != nil:
		return nil, unavailable()
	case !there:
		return nil, huma.Error404NotFound("no cluster " + terminal.Line(in.Name) + " has reported")
	}
	if err := s.audit(ctx, "forget", in.Name, ""); err != nil {
		return nil, unavailable()
	}
	return nil, nil
}

// historyQuestion are the parameters of getHistory.
type historyQuestion struct {
	Page
	Environment string    `query:"environment" doc:"Some environments, with commas between; all where it is absent."`
	Ring        string    `query:"ring"`
	ClusterType string    `query:"clusterType"`
	Class       string    `query:"class" doc:"The folder of a class of clusters: the cluster type, or clusterType.class."`
	Cluster     string    `query:"cluster"`
	Workload    string    `query:"workload"`
	Target      string    `query:"deploymentTarget"`
	Version     string    `query:"version"`
	Base        string    `query:"base" doc:"The platform's commit that it was compiled from."`
	State       []string  `query:"state" doc:"Some states, with commas between: what got into one of them."`
	Since       time.Time `query:"since"`
	Until       time.Time `query:"until"`
}

// getHistory lists the changes.
func (s *server) getHistory(ctx context.Context, in *historyQuestion) (*body[api.History], error) {
	of := Selection{Environment: in.Environment, Ring: in.Ring, ClusterType: in.ClusterType,
		Class: in.Class, Cluster: in.Cluster, Workload: in.Workload, Target: in.Target,
		Version: in.Version, Base: in.Base, State: in.State}
	selected, err := s.filter(ctx, &of)
	if err != nil {
		return nil, err
	}
	f := store.Filter{Filter: selected, Since: in.Since, Until: in.Until}
	if f.Before, err = in.beforeNumber(); err != nil {
		return nil, err
	}
	rows, next, err := s.Hub.Store().History(ctx, f, in.Limit)
	if err != nil {
		return nil, unavailable()
	}
	out := api.History{Transitions: rows, Caveats: s.caveats(f.Environments)}
	if len(rows) == 0 && next == 0 && in.Cursor == "" {
		if out.Caveats,
			err = s.nothing(ctx, in.Environment, selected,
			!in.Since.IsZero() || !in.Until.IsZero()); err != nil {
			return nil, err
		}
	}
	if next > 0 {
		out.Next = cursorOf(next)
	}
	return &body[api.History]{out}, nil
}

// releasesQuestion are the parameters of getReleases.
type releasesQuestion struct {
	Environment string `query:"environment" doc:"Some environments, with commas between; all where it is absent."`
	Page
	Since time.Time `query:"since" doc:"Those that the hub read at this time or later, as at says."`
}

// getReleases lists the releases.
func (s *server) getReleases(ctx context.Context, in *releasesQuestion) (*body[api.Releases],
	error) {
	environments, err := s.sees(ctx, in.Environment)
	if err != nil {
		return nil, err
	}
	var after store.ReleasePosition
	if there, err := in.read(&after); err != nil || there && !after.Valid() {
		return nil, errCursor()
	}
	rows, err := s.Hub.Store().ReleasesAfter(ctx, environments, in.Since, after, in.Limit+1)
	if err != nil {
		return nil, unavailable()
	}
	out := api.Releases{Releases: rows, Caveats: s.caveats(environments)}
	if len(rows) == 0 && in.Cursor == "" {
		if err := s.environment(ctx, in.Environment); err != nil {
			return nil, err
		}
	}
	if len(rows) > in.Limit {
		out.Releases = rows[:in.Limit]
		out.Next = cursorOf(store.PositionOf(&rows[in.Limit-1]))
	}
	return &body[api.Releases]{out}, nil
}

func gone() error {
	return huma.Error410Gone(
		"the environment that the page before ended with is gone: begin again without a cursor")
}

func unavailable() error {
	return retry(http.StatusServiceUnavailable,
		"the database does not answer")
}

func dimensions(names []string) ([]state.Dimension, error) {
	var out []state.Dimension
	for _, name := range names {
		d := state.Dimension(name)
		if !slices.Contains(state.Dimensions(), d) {
			return nil, huma.Error422UnprocessableEntity(
				fmt.Sprintf("%.40q is nothing to count by: there are %v", name, state.Dimensions()))
		}
		out = append(out, d)
	}
	return out, nil
}

func groupsOf(groups []state.Group, by []state.Dimension) []api.Group {
	out := make([]api.Group, 0, len(groups))
	for i := range groups {
		values := map[string]string{}
		for n, d := range by {
			values[string(d)] = groups[i].Values[n]
		}
		out = append(out, api.Group{Values: values, Counts: api.CountsOf(&groups[i].Tally)})
	}
	return out
}

func (s *server) environments(i *access.Identity) api.Environments {
	out := api.Environments{Environments: []api.Environment{},
		Caveats: s.caveats(i.Scope(access.Viewer))}
	fleet := s.Hub.Fleet()
	for _, w := range fleet.Environments() {
		if !i.Sees(w.Environment) {
			continue
		}
		e := api.Environment{Name: w.Environment, Repository: w.Repository, Branch: w.Branch,
			Path: w.Path, Rings: []api.Ring{}, Clusters: len(w.Clusters), Problem: s.Problem(w.Environment)}
		counts := map[string]state.Tally{}
		var all state.Tally
		for _, g := range fleet.Count(state.Filter{Environments: state.In(w.Environment)}, state.ByRing) {
			counts[g.Values[0]] = g.Tally
			all.Add(&g.Tally)
		}
		e.Counts = api.CountsOf(&all)
		if len(w.Commits) > 0 {
			e.Commit = w.Commits[0].ID
			for _, r := range w.Commits[0].Rings {
				tally := counts[r.Name]
				e.Rings = append(e.Rings,
					api.Ring{Name: r.Name, Base: r.Base, Own: r.Own, Counts: api.CountsOf(&tally)})
			}
		}
		out.Environments = append(out.Environments, e)
	}
	return out
}

func (s *server) cluster(i *access.Identity, name string) (api.Cluster, bool) {
	fleet := s.Hub.Fleet()
	news, listed := fleet.News(name)
	out := api.Cluster{Name: name, Seen: news.Last, By: news.By, Assignments: []state.Row{}}
	var tally state.Tally
	for _, environment := range news.Environments {
		if !i.Sees(environment) {
			continue
		}
		out.Environments = append(out.Environments, environment)
		fleet.List(state.Filter{Environments: state.In(environment), Cluster: name}, state.Position{},
			func(r state.Row) bool {
				out.Assignments = append(out.Assignments, r)
				tally[r.State]++
				return true
			})
	}
	contact := fleet.Contact(name)
	out.Problem = contact.Problem()
	out.Counts = api.CountsOf(&tally)
	return out, listed && len(out.Environments) > 0
}

// metrics answers Prometheus, about the environments that the caller may see.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	i, err := allow(r.Context(), access.Viewer)
	if err != nil {
		problem(w, http.StatusForbidden, err.Error())
		return
	}
	s.meters.Serve(w, r, i.Scope(access.Viewer))
}
