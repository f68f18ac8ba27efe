package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/performance"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// past answers questions about an earlier moment. It reads the stored history, while the answers
// about the present come from the fleet in memory. It has no state of its own, so it is a value.
type past struct{ *server }

// countsAt counts the assignments of an earlier moment, from the stored history.
func (s past) countsAt(ctx context.Context, at time.Time, f state.Filter,
	by []state.Dimension) (api.Groups, error) {
	out := api.Groups{At: at}
	if f.Workspace != "" || slices.Contains(by, state.ByWorkspace) {
		return out, huma.Error422UnprocessableEntity(store.ErrWorkspace.Error())
	}
	var err error
	if out.Warning, err = s.Hub.AboutPast(ctx, at); err != nil {
		return out, unavailable()
	}
	tallies := map[[3]string]*state.Tally{}
	group := func(of map[state.Dimension]string) *state.Tally {
		var key [3]string
		for i, d := range by {
			key[i] = of[d]
		}
		if tallies[key] == nil {
			tallies[key] = &state.Tally{}
		}
		return tallies[key]
	}
	if f.Cluster != "" {
		err = s.countCluster(ctx, at, f, group)
	} else {
		out.Oldest = at
		if now := s.Hub.Now(); now.Before(at) {
			out.Oldest = now
		}
		out.Oldest = out.Oldest.Add(-hub.CountedWithin)
		err = s.countParts(ctx, at, f, by, group)
	}
	if err != nil {
		return out, err
	}
	var groups []state.Group
	for key, tally := range tallies {
		groups = append(groups, state.Group{Values: slices.Clone(key[:len(by)]), Tally: *tally})
	}
	order := s.Hub.Fleet().Names()
	slices.SortFunc(groups, func(a, b state.Group) int {
		for i, d := range by {
			c := strings.Compare(a.Values[i], b.Values[i])
			if d == state.ByEnvironment && c != 0 {
				c = cmp.Or(cmp.Compare(place(order, a.Values[i]), place(order, b.Values[i])), c)
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	out.Groups = groupsOf(groups, by)
	return out, nil
}

// place returns the place of an environment in their order. A removed environment comes after all
// others.
func place(order []string, name string) int {
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}

// countParts counts from the tallies that were stored then.
func (s past) countParts(ctx context.Context, at time.Time, f state.Filter, by []state.Dimension,
	group func(map[state.Dimension]string) *state.Tally) error {
	if f.Class != "" || f.Target != "" || slices.ContainsFunc(by,
		func(d state.Dimension) bool { return d == state.ByCluster || d == state.ByTarget }) {
		return huma.Error422UnprocessableEntity("of an earlier moment, there are no counts by class, " +
			"cluster or deployment target, but for those of one cluster: name it, or ask for the " +
			"assignments")
	}
	parts, err := s.Hub.Store().PartsAt(ctx, at, f.Environments)
	if err != nil {
		return unavailable()
	}
	for p, tally := range parts {
		if p.SelectedBy(f) {
			group(map[state.Dimension]string{state.ByEnvironment: p.Environment, state.ByRing: p.Ring,
				state.ByClusterType: p.ClusterType, state.ByWorkload: p.Workload, state.ByVersion: p.Version,
				state.ByBase: p.Base}).Add(&tally)
		}
	}
	return nil
}

// maxOnCluster limits how many assignments of a cluster are read at once.
const maxOnCluster = 10_000

// countCluster counts the assignments of a cluster at an earlier moment.
func (s past) countCluster(ctx context.Context, at time.Time, f state.Filter,
	group func(map[state.Dimension]string) *state.Tally) error {
	f.States = nil
	for after := (&store.Place{}); after != nil; {
		rows, next, err := s.Hub.Store().At(ctx, f, at, *after, 0, maxOnCluster)
		if err != nil {
			return unavailable()
		}
		for i := range rows {
			r, err := rowAt(&rows[i])
			if err != nil {
				return err
			}
			group(map[state.Dimension]string{
				state.ByEnvironment: r.Environment, state.ByRing: r.Ring, state.ByClusterType: r.ClusterType,
				state.ByCluster: r.Cluster, state.ByWorkload: r.Workload, state.ByTarget: r.Target,
				state.ByVersion: r.Version, state.ByBase: r.Base,
			})[r.State]++
		}
		after = next
	}
	return nil
}

// assignmentsAt lists the assignments of an earlier moment, from the stored history.
func (s past) assignmentsAt(ctx context.Context, at time.Time, f state.Filter,
	p *Page) (api.Assignments, error) {
	out := api.Assignments{At: at, Assignments: []state.Row{}}
	if f.Workspace != "" {
		return out, huma.Error422UnprocessableEntity(store.ErrWorkspace.Error())
	}
	after, err := p.place()
	if err != nil {
		return out, err
	}
	if out.Warning, err = s.Hub.AboutPast(ctx, at); err != nil {
		return out, unavailable()
	}
	rows, next, err := s.Hub.Store().At(ctx, f, at, after, 0, p.Limit)
	if errors.Is(err, store.ErrPlace) {
		return out, gone()
	}
	if err != nil {
		return out, unavailable()
	}
	for i := range rows {
		r, err := rowAt(&rows[i])
		if err != nil {
			return out, err
		}
		out.Assignments = append(out.Assignments, r)
	}
	if next != nil {
		out.Next = cursorOf(next)
	}
	return out, nil
}

// rowAt returns an assignment after its last transition.
func rowAt(t *api.Transition) (state.Row, error) {
	st, err := state.Parse(t.State) // an error if a later version has written it
	return state.Row{
		Environment: t.Environment, Cluster: t.Cluster, ClusterType: t.ClusterType, Folder: t.Folder,
		Ring: t.Ring, Target: t.Target, Workload: t.Workload, State: st, Message: t.Message,
		Changed: t.At, Version: t.Version, Digest: t.Wanted, Base: t.Base, Running: t.Running,
		Commit: t.Commit,
	}, err
}

// sinceDays is the default number of days of performance.
const sinceDays = 30

// performance registers the operation for the measures of releases.
func (s *server) performance() {
	huma.Register(s.api, huma.Operation{OperationID: "performance", Method: http.MethodGet,
		Path: "/v1/performance", Summary: "How well releases go, by environment",
		Description: "The measures of DORA: how often, how long until all of it was ok, how many " +
			"failed, and how long until the ring was ok again."},
		func(ctx context.Context, in *struct {
			Environment string    `query:"environment" doc:"Some environments, with commas between; all where it is absent."`
			Since       time.Time `query:"since" doc:"30 days ago where it is absent."`
		}) (*body[api.Performances], error) {
			environments, err := s.sees(ctx, in.Environment)
			if err != nil {
				return nil, err
			}
			now := s.Hub.Now()
			since := in.Since
			if since.IsZero() {
				since = now.AddDate(0, 0, -sinceDays)
			}
			if !since.Before(now) {
				return nil, huma.Error422UnprocessableEntity("since is not in the past")
			}
			if err := s.environment(ctx, in.Environment); err != nil {
				return nil, err
			}
			rows, err := s.Hub.Store().ReleasesSince(ctx, environments, since)
			if err != nil {
				return nil, unavailable()
			}
			return &body[api.Performances]{api.Performances{Since: since, Until: now,
				Environments: performance.Of(rows, since, now), Caveats: s.caveats(environments)}}, nil
		})
}

// Page has the parameters of a long list. The parameters that operations share are exported,
// because huma sets only exported fields.
type Page struct {
	Cursor string `query:"cursor" maxLength:"1024" doc:"The next of the page before."`
	Limit  int    `query:"limit" minimum:"1" maximum:"10000" default:"100"`
}

// cursorOf returns the cursor of the page after something.
func cursorOf(last any) string {
	data, _ := json.Marshal(last) // it is plain data
	return base64.RawURLEncoding.EncodeToString(data)
}

// read decodes the cursor of a page. It returns false if the page is the first one, and an error if
// no hub has issued the cursor.
func (p *Page) read(into any) (there bool, err error) {
	if p.Cursor == "" {
		return false, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil || json.Unmarshal(data, into) != nil {
		return false, errCursor()
	}
	return true, nil
}

func errCursor() error {
	return huma.Error422UnprocessableEntity("cursor is none that this hub has given for this list")
}

// beforeNumber decodes the number before which a page begins; 0 means the newest.
func (p *Page) beforeNumber() (number int64, err error) {
	there, err := p.read(&number)
	if err == nil && there && number <= 0 {
		err = errCursor()
	}
	return number, err
}

// place decodes the place after which a page of assignments of an earlier moment begins.
func (p *Page) place() (at store.Place, err error) {
	there, err := p.read(&at)
	if err == nil && there && at.Environment == "" {
		err = errCursor()
	}
	return at, err
}

// afterPosition decodes the position after which a page of assignments begins.
func (p *Page) afterPosition() (at state.Position, err error) {
	there, err := p.read(&at)
	if err == nil && there && (at.Environment == "" || at.Cluster == "" || at.Target == "") {
		err = errCursor()
	}
	return at, err
}
