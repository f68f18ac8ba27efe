package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Fresh are the parameters of what changes: a client that has seen a version gets 304, or waits
// for the next one.
type Fresh struct {
	IfNoneMatch string `header:"If-None-Match" doc:"The ETag of the last answer: 304 where nothing has changed since."`
	Wait        int    `query:"wait" minimum:"0" maximum:"60" doc:"With If-None-Match: wait so many seconds for a change."`
}

// answer is an answer with its version.
type answer[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// etag is the name of a version, for one who asks: people see different parts.
func etag(version uint64, i *access.Identity) string {
	scope := ""
	if i != nil {
		scope = strings.Join(i.Scope(access.Viewer), "/")
	}
	return fmt.Sprintf("%q", strconv.FormatUint(version, 36)+"-"+scope)
}

// check returns the version to answer with, or the answer that nothing has changed.
func (s *server) check(ctx context.Context, f Fresh) (string, error) {
	is := s.wait(ctx, f.IfNoneMatch, time.Duration(f.Wait)*time.Second)
	if is == f.IfNoneMatch {
		return is, huma.ErrorWithHeaders(huma.Status304NotModified(), http.Header{"Etag": {is}})
	}
	return is, nil
}

// Selection are the parameters that select assignments on clusters.
type Selection struct {
	Environment string    `query:"environment"`
	Ring        string    `query:"ring"`
	ClusterType string    `query:"clusterType"`
	Class       string    `query:"class" doc:"The folder of a class of clusters: the cluster type, or clusterType.class."`
	Cluster     string    `query:"cluster"`
	Workload    string    `query:"workload"`
	Workspace   string    `query:"workspace"`
	Target      string    `query:"deploymentTarget"`
	Version     string    `query:"version"`
	Base        string    `query:"base" doc:"The platform's commit that it was compiled from."`
	State       []string  `query:"state" doc:"Some states, with commas between."`
	At          time.Time `query:"at" doc:"The moment; now where it is absent."`
}

func (q *Selection) filter(ctx context.Context) (state.Filter, error) {
	environments, err := sees(ctx, q.Environment)
	if err != nil {
		return state.Filter{}, err
	}
	f := state.Filter{Environments: environments, Ring: q.Ring, ClusterType: q.ClusterType, Class: q.Class, Cluster: q.Cluster, Workload: q.Workload, Workspace: q.Workspace, Target: q.Target, Version: q.Version, Base: q.Base}
	for _, name := range q.State {
		st, err := state.Parse(name)
		if err != nil {
			return f, huma.Error422UnprocessableEntity(err.Error())
		}
		f.States = append(f.States, st)
	}
	return f, nil
}

// questions registers what people and programs ask for.
func (s *server) questions() {
	huma.Register(s.api, huma.Operation{OperationID: "environments", Method: http.MethodGet, Path: "/v1/environments", Summary: "All environments, with what they want and their counts"}, s.getEnvironments)
	huma.Register(s.api, huma.Operation{OperationID: "counts", Method: http.MethodGet, Path: "/v1/counts", Summary: "Assignments on clusters, counted by state", Description: "Of an earlier moment, counts are those of the minute before it, and by class, cluster, workspace and deployment target there are none."}, s.getCounts)
	huma.Register(s.api, huma.Operation{OperationID: "assignments", Method: http.MethodGet, Path: "/v1/assignments", Summary: "Assignments on clusters, sorted by environment, cluster and deployment target"}, s.getAssignments)
	huma.Register(s.api, huma.Operation{OperationID: "cluster", Method: http.MethodGet, Path: "/v1/clusters/{name}", Summary: "A cluster with all its assignments"}, s.getCluster)
	huma.Register(s.api, huma.Operation{
		OperationID: "forget", Method: http.MethodDelete, Path: "/v1/clusters/{name}", Summary: "Forget a cluster that the platform does not list", DefaultStatus: http.StatusNoContent,
		Description: "It counts no more, until it reports again. One that the platform lists is to be taken out of the platform.", Errors: []int{401, 403, 404, 409},
	}, s.forget)
	huma.Register(s.api, huma.Operation{OperationID: "history", Method: http.MethodGet, Path: "/v1/history", Summary: "What changed, the newest first"}, s.getHistory)
	huma.Register(s.api, huma.Operation{OperationID: "releases", Method: http.MethodGet, Path: "/v1/releases", Summary: "What was released, the newest first"}, s.getReleases)
}

// getEnvironments returns the environments that who asks may see.
func (s *server) getEnvironments(ctx context.Context, in *struct{ Fresh }) (*answer[api.Environments], error) {
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

// getCounts counts what a selection selects.
func (s *server) getCounts(ctx context.Context, in *countsQuestion) (*answer[api.Groups], error) {
	f, err := in.filter(ctx)
	if err != nil {
		return nil, err
	}
	by, err := dimensions(in.By)
	if err != nil {
		return nil, err
	}
	if !in.At.IsZero() {
		groups, err := s.countsAt(ctx, in.At, f, by)
		return &answer[api.Groups]{Body: groups}, err
	}
	tag, err := s.check(ctx, in.Fresh)
	if err != nil {
		return nil, err
	}
	return &answer[api.Groups]{tag, api.Groups{At: s.Hub.Now(), Groups: groupsOf(s.Hub.Fleet().Count(f, by...), by)}}, nil
}

// assignmentsQuestion are the parameters of getAssignments.
type assignmentsQuestion struct {
	Selection
	Page
}

// getAssignments lists what a selection selects.
func (s *server) getAssignments(ctx context.Context, in *assignmentsQuestion) (*body[api.Assignments], error) {
	f, err := in.filter(ctx)
	if err != nil {
		return nil, err
	}
	var after state.Position
	if err := in.cursor(&after); err != nil {
		return nil, err
	}
	if !in.At.IsZero() {
		out, err := s.assignmentsAt(ctx, in.At, f, after, in.Limit)
		return &body[api.Assignments]{out}, err
	}
	out := api.Assignments{At: s.Hub.Now(), Assignments: []state.Row{}}
	s.Hub.Fleet().List(f, after, func(r state.Row) bool {
		if len(out.Assignments) == in.Limit {
			last := out.Assignments[in.Limit-1].Position()
			out.Next = cursorOf(last)
			return false
		}
		out.Assignments = append(out.Assignments, r)
		return true
	})
	return &body[api.Assignments]{out}, nil
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
		return nil, unlisted(in.Name)
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
			return nil, huma.Error403Forbidden(fmt.Sprintf("cluster %s is in environment %s, too, where %s may not do that", terminal.Line(in.Name), environment, i.Name))
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
	Environment string    `query:"environment"`
	Workload    string    `query:"workload"`
	Cluster     string    `query:"cluster"`
	Target      string    `query:"deploymentTarget"`
	Since       time.Time `query:"since"`
	Until       time.Time `query:"until"`
}

// getHistory lists what changed.
func (s *server) getHistory(ctx context.Context, in *historyQuestion) (*body[api.History], error) {
	environments, err := sees(ctx, in.Environment)
	if err != nil {
		return nil, err
	}
	f := store.Filter{Environments: environments, Workload: in.Workload, Cluster: in.Cluster, Target: in.Target, Since: in.Since, Until: in.Until}
	if err := in.cursor(&f.Before); err != nil {
		return nil, err
	}
	rows, err := s.Hub.Store().History(ctx, f, in.Limit+1)
	if err != nil {
		return nil, unavailable()
	}
	out := api.History{Transitions: []api.Transition{}}
	for i, r := range rows {
		if i == in.Limit {
			out.Next = cursorOf(rows[i-1].Number)
			break
		}
		out.Transitions = append(out.Transitions, api.Transition(r))
	}
	return &body[api.History]{out}, nil
}

// releasesQuestion are the parameters of getReleases.
type releasesQuestion struct {
	Environment string `query:"environment"`
	Limit       int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// getReleases lists what was released.
func (s *server) getReleases(ctx context.Context, in *releasesQuestion) (*body[api.Releases], error) {
	environments, err := sees(ctx, in.Environment)
	if err != nil {
		return nil, err
	}
	rows, err := s.Hub.Store().Releases(ctx, environments, in.Limit)
	if err != nil {
		return nil, unavailable()
	}
	out := api.Releases{Releases: []api.Release{}}
	for _, r := range rows {
		out.Releases = append(out.Releases, api.Release(r))
	}
	return &body[api.Releases]{out}, nil
}

func unavailable() error { return retry(http.StatusServiceUnavailable, "the database does not answer") }

// Page are the parameters of a long list. Those that operations have in common are exported
// for huma, which fills no others.
type Page struct {
	Cursor string `query:"cursor" maxLength:"1024" doc:"The next of the page before."`
	Limit  int    `query:"limit" minimum:"1" maximum:"10000" default:"100"`
}

// cursor reads where a page begins.
func (p *Page) cursor(into any) error {
	if p.Cursor == "" {
		return nil
	}
	data, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil || json.Unmarshal(data, into) != nil {
		return huma.Error422UnprocessableEntity("cursor is none that this hub has given")
	}
	return nil
}

func cursorOf(at any) string {
	data, _ := json.Marshal(at) // it is plain data
	return base64.RawURLEncoding.EncodeToString(data)
}

func dimensions(names []string) ([]state.Dimension, error) {
	var out []state.Dimension
	for _, name := range names {
		d := state.Dimension(name)
		if !slices.Contains(state.Dimensions(), d) {
			return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("%.40q is nothing to count by: there are %v", name, state.Dimensions()))
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
	out := api.Environments{Environments: []api.Environment{}}
	fleet := s.Hub.Fleet()
	for _, w := range fleet.Environments() {
		if !i.Sees(w.Environment) {
			continue
		}
		e := api.Environment{Name: w.Environment, Repository: w.Repository, Branch: w.Branch, Path: w.Path, Rings: []api.Ring{}, Clusters: len(w.Clusters), Problem: s.Problem(w.Environment)}
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
				e.Rings = append(e.Rings, api.Ring{Name: r.Name, Base: r.Base, Own: r.Own, Counts: api.CountsOf(&tally)})
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
		fleet.List(state.Filter{Environments: state.In(environment), Cluster: name}, state.Position{}, func(r state.Row) bool {
			out.Assignments = append(out.Assignments, r)
			tally[r.State]++
			return true
		})
	}
	heard := fleet.Heard(name)
	out.Problem = heard.Problem()
	out.Counts = api.CountsOf(&tally)
	return out, listed && len(out.Environments) > 0
}

// metrics answers Prometheus, about the environments that who asks may see.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	i, err := allow(r.Context(), access.Viewer)
	if err != nil {
		problem(w, http.StatusForbidden, err.Error())
		return
	}
	s.meters.Serve(w, r, i.Scope(access.Viewer))
}
