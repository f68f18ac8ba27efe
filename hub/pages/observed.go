package pages

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/performance"
	"github.com/kalypso-io/kalypso/hub/question"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/view"
)

// running converts a row for pages. If the reconciler is trying a commit other than the applied
// one, the running digest is not known, and is "".
func running(r *state.Row) view.RunningRow {
	digest := r.Running
	if r.Applied != "" {
		digest = ""
	}
	return view.RunningRow{
		Environment: r.Environment, Cluster: r.Cluster, ClusterType: r.ClusterType, Class: r.Folder,
		Ring: r.Ring, Target: r.Target, Workload: r.Workload,
		State: r.State.String(), Message: r.Message, Since: r.Holds(), Version: r.Version, Base: r.Base,
		Digest: r.Digest, Running: digest,
		Commit: r.Runs(), By: r.By, At: r.At, Seen: r.Seen,
	}
}

// worst returns the rows that match a filter, the worst first and the ok ones last.
func (s *Source) worst(f state.Filter) []view.RunningRow {
	states := state.States()
	slices.Reverse(states)
	var out []view.RunningRow
	for _, st := range states {
		f.States = []state.State{st}
		if len(out) < listed {
			s.Hub.Fleet().List(f, state.Position{}, func(r state.Row) bool {
				out = append(out, running(&r))
				return len(out) < listed
			})
		}
	}
	return out
}

// newest is how many releases a page lists.
const newest = 20

// Rollout returns the progress of an environment.
func (s *Source) Rollout(ctx context.Context, environment string) (*view.Rollout, error) {
	w, err := s.environment(ctx, environment)
	if err != nil {
		return nil, err
	}
	out := &view.Rollout{Environment: environment, Branch: w.Branch}
	rings, all := s.count(state.Filter{Environments: state.In(environment)}, state.ByRing)
	out.Counts = *all
	if len(w.Commits) > 0 {
		out.Commit = w.Commits[0].ID
		for _, r := range w.Commits[0].Rings {
			row := view.RingCounts{Environment: environment, Name: r.Name, Base: r.Base, Own: r.Own}
			if c := rings[r.Name]; c != nil {
				row.Counts = *c
			}
			out.Rings = append(out.Rings, row)
		}
	}
	for _, g := range s.Hub.Fleet().Count(state.Filter{Environments: state.In(environment)},
		state.ByWorkload, state.ByVersion) {
		out.Workloads = append(out.Workloads, view.WorkloadCounts{Environment: environment,
			Workload: g.Values[0], Version: g.Values[1], Counts: *countsOf(&g.Tally)})
	}
	out.Lagging = s.worst(state.Filter{Environments: state.In(environment)})
	out.NotOK = s.Hub.Fleet().Len(
		state.Filter{Environments: state.In(environment), States: state.States()[1:]})
	out.Lagging = slices.DeleteFunc(out.Lagging,
		func(r view.RunningRow) bool { return r.State == state.OK.String() })
	releases, err := s.Hub.Store().Releases(ctx, state.In(environment), newest+1)
	if err != nil {
		return nil, err
	}
	if len(releases) > newest {
		releases, out.Older = releases[:newest], true
	}
	for _, r := range releases {
		out.Releases = append(out.Releases, view.Release{Ring: r.Ring, Commit: r.Commit, Base: r.Base,
			Own: r.Own, Author: r.Author, Subject: r.Subject, At: r.At, Completed: r.Completed,
			Failed: r.Failed})
	}
	out.Performance, err = s.performance(ctx, environment)
	return out, err
}

// performanceDays is the length of the period of the performance on pages.
const performanceDays = 30

// performance returns how well the releases of an environment went, or nil if there were no
// releases.
func (s *Source) performance(ctx context.Context, environment string) (*view.Performance, error) {
	now := s.Hub.Now()
	since := now.AddDate(0, 0, -performanceDays)
	releases, err := s.Hub.Store().ReleasesSince(ctx, state.In(environment), since)
	if err != nil {
		return nil, err
	}
	for _, p := range performance.Of(releases, since, now) {
		words := func(n, seconds int) string {
			if n == 0 {
				return ""
			}
			return (time.Duration(seconds) * time.Second).String()
		}
		return &view.Performance{
			Days: performanceDays, Releases: p.Releases, PerWeek: fmt.Sprintf("%.1f", p.PerWeek),
			Lead: words(p.Completed, p.LeadMedian), Slow: words(p.Completed, p.LeadP90),
			Restore: words(p.Restored, p.Restore), Failed: fmt.Sprintf("%.0f %%", 100*p.FailureRate),
		}, nil
	}
	return nil, nil
}

// filter returns the filter of a selection, limited to the environments that the caller may see.
func (s *Source) filter(ctx context.Context, of view.Selection) (state.Filter, error) {
	f := state.Filter{Environments: state.In(of.Environment), Ring: of.Ring,
		ClusterType: of.ClusterType, Class: of.Class, Cluster: of.Cluster, Workload: of.Workload,
		Target: of.Target, Version: of.Version, Base: of.Base}
	i := access.From(ctx)
	switch {
	case i == nil:
		return f, missing("nobody knows who you are")
	case of.Environment == "":
		f.Environments = i.Scope(access.Viewer)
	default:
		if _, err := s.environment(ctx, of.Environment); err != nil {
			return f, err
		}
	}
	for name := range strings.SplitSeq(of.State, ",") {
		if name == "" {
			continue
		}
		st, err := state.Parse(name)
		if err != nil {
			return f, missing("%v", err)
		}
		f.States = append(f.States, st)
	}
	f, err := question.Resolve(s.Hub.Fleet(), f)
	if err != nil {
		return f, missing("%v", err)
	}
	return f, nil
}

// unknown returns a message about the unknown names of a filter, or "" if all names are known.
func (s *Source) unknown(f state.Filter) string {
	warning, err := question.Names(s.Hub.Fleet(), f)
	if err != nil {
		return err.Error()
	}
	return warning
}

// Running returns assignments on clusters.
func (s *Source) Running(ctx context.Context, of view.Selection, p view.Page) (*view.Running,
	error) {
	f, err := s.filter(ctx, of)
	if err != nil {
		return nil, err
	}
	if !of.At.IsZero() {
		return s.runningAt(ctx, of, f, p)
	}
	var tally state.Tally
	for _, g := range s.Hub.Fleet().Count(f, state.ByEnvironment) {
		tally.Add(&g.Tally)
	}
	out := &view.Running{Of: of, Counts: *countsOf(&tally),
		Part: view.Part{Page: p, Total: s.Hub.Fleet().Len(f)}}
	skip := (p.Number - 1) * p.Size
	s.Hub.Fleet().List(f, state.Position{}, func(r state.Row) bool {
		if skip > 0 {
			skip--
			return true
		}
		out.Rows = append(out.Rows, running(&r))
		return len(out.Rows) < p.Size
	})
	if len(out.Rows) == 0 {
		out.Warning = s.unknown(f)
	}
	return out, nil
}

// runningAt returns assignments as they were.
func (s *Source) runningAt(ctx context.Context, of view.Selection, f state.Filter,
	p view.Page) (*view.Running, error) {
	var err error
	out := &view.Running{Of: of}
	if out.Warning, err = s.Hub.AboutPast(ctx, of.At); err != nil {
		return nil, err
	}
	tally, whole, err := s.countAt(ctx, f, of.At)
	if err != nil {
		return nil, err
	}
	rows, next, err := s.Hub.Store().At(ctx, f, of.At, store.Place{}, (p.Number-1)*p.Size, p.Size)
	if err != nil {
		return nil, err
	}
	if !whole || next != nil && len(rows) < p.Size {
		out.Warning = question.Join(out.Warning, "not all of it is here, because to find it takes too "+
			"long: select an environment and a workload, or a cluster")
	}
	out.Counts, out.Part = *countsOf(&tally), partOf(&tally, f, p)
	for _, r := range rows {
		out.Rows = append(out.Rows, view.RunningRow{Environment: r.Environment, Cluster: r.Cluster,
			ClusterType: r.ClusterType, Class: r.Folder, Ring: r.Ring, Target: r.Target,
			Workload: r.Workload,
			State:    r.State, Message: r.Message, Since: r.At, Version: r.Version, Base: r.Base,
			Digest: r.Wanted, Running: r.Running, Commit: r.Commit})
	}
	if len(rows) == 0 {
		out.Warning = question.Join(out.Warning, s.unknown(f))
	}
	return out, nil
}

// countAt counts the matches of a filter at an earlier moment, in any state. For a wide filter it
// uses the stored tallies. whole is false if the count took too long.
func (s *Source) countAt(ctx context.Context, f state.Filter, at time.Time) (tally state.Tally,
	whole bool, err error) {
	few := f.Cluster != "" || f.Workload != "" && len(f.Environments) == 1
	if few || f.Class != "" || f.Target != "" {
		f.States = nil
		return s.Hub.Store().CountAt(ctx, f, at)
	}
	parts, err := s.Hub.Store().PartsAt(ctx, at, f.Environments)
	for p, n := range parts {
		if p.SelectedBy(f) {
			tally.Add(&n)
		}
	}
	return tally, true, err
}

// partOf returns which part of the matches a page shows, given the counts in any state.
func partOf(tally *state.Tally, f state.Filter, p view.Page) view.Part {
	part := view.Part{Page: p, Total: tally.Wanted()}
	if len(f.States) > 0 {
		part.Total = 0
		for _, st := range f.States {
			part.Total += tally[st]
		}
	}
	return part
}

func transitions(rows []api.Transition) []view.Transition {
	out := make([]view.Transition, 0, len(rows))
	for _, r := range rows {
		out = append(out, view.Transition{At: r.At, Environment: r.Environment, Cluster: r.Cluster,
			ClusterType: r.ClusterType, Class: r.Folder, Ring: r.Ring, Workload: r.Workload,
			Target: r.Target,
			Was:    r.Was, State: r.State, Version: r.Version, Commit: r.Commit, Message: r.Message})
	}
	return out
}

// decodeCursor decodes a cursor, and returns 0 for "".
func decodeCursor(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	n, bad := strconv.ParseInt(string(text), 10, 64)
	if err != nil || bad != nil || n <= 0 {
		return 0, missing("there is no such part of the list")
	}
	return n, nil
}

func cursorOf(n int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(n, 10)))
}

// History returns a page of changes.
func (s *Source) History(ctx context.Context, of view.Selection, cursor string) (*view.History,
	error) {
	f, err := s.filter(ctx, of)
	if err != nil {
		return nil, err
	}
	from, err := decodeCursor(cursor)
	if err != nil {
		return nil, err
	}
	selected := store.Filter{Filter: f, Before: from}
	if !of.At.IsZero() {
		selected.Until = of.At.Add(time.Millisecond)
	}
	rows, next, err := s.Hub.Store().History(ctx, selected, listed)
	if err != nil {
		return nil, err
	}
	out := &view.History{Of: of}
	if next > 0 {
		out.Next = cursorOf(next)
	}
	out.Rows = transitions(rows)
	if len(rows) == 0 && next == 0 && cursor == "" {
		out.Warning = s.unknown(f)
	}
	return out, nil
}

// Audit returns a page of the audit, if the caller may see it.
func (s *Source) Audit(ctx context.Context, cursor string) (*view.Audit, error) {
	if i := access.From(ctx); i == nil || !i.Audits() {
		return nil, missing("only an admin of all environments may see who did what")
	}
	from, err := decodeCursor(cursor)
	if err != nil {
		return nil, err
	}
	rows, err := s.Hub.Store().Events(ctx, from, listed+1)
	if err != nil {
		return nil, err
	}
	out := &view.Audit{}
	if len(rows) > listed {
		rows = rows[:listed]
		out.Next = cursorOf(rows[listed-1].Number)
	}
	for _, r := range rows {
		out.Rows = append(out.Rows, view.AuditEntry{At: r.At, Who: r.Who, Action: r.Action,
			Subject: r.Subject, Detail: r.Detail})
	}
	return out, nil
}
