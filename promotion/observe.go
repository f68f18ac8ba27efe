package promotion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/status"
)

// reported is what statuses say of the rollout of what a stage has.
type reported struct {
	course
	known    bool       // something was reported
	run      []git.Hash // the commits that have it, newest first
	deployed git.Hash   // the commit that brought it
	// ignored is why a report of this run would not count; "" where it would.
	ignored string
}

// reported reads what was reported of the rollout of what a stage has; nil where it has nothing.
func (ob *observer) reported(ctx context.Context, st *stop) (*reported, error) {
	if st.out.repository == nil || st.has() == (tree.Source{}) {
		return nil, nil
	}
	run, err := st.out.history.landed(ctx, st.ringName())
	if err != nil || len(run) == 0 {
		return nil, err
	}
	r := &reported{run: run, deployed: run[len(run)-1]}
	if err := ob.courseNow(ctx, st, r); err != nil {
		return nil, err
	}
	r.ignored, err = ob.mute(ctx, st)
	return r, err
}

// courseNow reads the statuses of the commit that brought what a stage has.
func (ob *observer) courseNow(ctx context.Context, st *stop, r *reported) error {
	statuses, err := st.out.repository.ledger().of(ctx, r.deployed)
	r.course, r.known = courseOf(statuses, st.id(), st.rolloutGate().By)
	return err
}

// observe finds out how far the rollout of what a stage has is; nil where it has nothing. It
// writes nothing.
func (ob *observer) observe(ctx context.Context, st *stop) (*Rollout, error) {
	r, err := ob.reported(ctx, st)
	if err != nil || r == nil {
		return nil, err
	}
	return ob.rollout(ctx, st, r)
}

// rollout asks all sources how far a rollout is. A success that was reported stays one.
func (ob *observer) rollout(ctx context.Context, st *stop, was *reported) (*Rollout, error) {
	r, err := ob.judge(ctx, st, was)
	if err != nil {
		return nil, err
	}
	if was.known && was.state == forge.Success { // the counts are those of now all the same
		return &Rollout{State: was.state, Since: was.since, Reason: was.reason, Counts: r.Counts}, nil
	}
	if r.Since = was.since; !was.known || r.State != was.state {
		r.Since = ob.state.now
	}
	if was.ignored != "" && r.State != forge.Pending && r.State != was.state {
		r.State, r.Reason = forge.Pending, r.Reason+"; "+was.ignored
	}
	return r, nil
}

// mute is why what this run says of a rollout would not count; "" where it does. It
// then says nothing: nobody would believe it, and the next run would say it again.
func (ob *observer) mute(ctx context.Context, st *stop) (string, error) {
	g := st.rolloutGate()
	if len(g.By) == 0 {
		return "", nil
	}
	for _, l := range []*ledger{ob.state.ledger(st.out), st.out.repository.ledger()} {
		viewer, err := l.forge.Viewer(ctx)
		if err != nil {
			return "", err
		}
		if !slices.Contains(g.By, viewer) {
			return fmt.Sprintf("what became of it is not told, as gates.rollout.by of %s does not name %s", st.id(), cmp.Or(terminal.Line(viewer), "who runs this")), nil
		}
	}
	return "", nil
}

// judge asks all sources of the policy, and says how far the rollout is.
func (ob *observer) judge(ctx context.Context, st *stop, was *reported) (*Rollout, error) {
	g := st.rolloutGate()
	r := &Rollout{State: forge.Success, Reason: "it is in the tree, and the policy asks for no reports"}
	switch {
	case !g.AllowEmpty && !ob.wantsAny(st.out.record, st.covers):
		r.State, r.Reason = forge.Pending, rollout.Empty
	case g.Source != "none":
		assignments, err := ob.wanted(st.out.record, st.covers)
		if broken := (*tree.RecordError)(nil); errors.As(err, &broken) {
			return &Rollout{State: forge.Pending, Reason: err.Error()}, nil
		}
		if err != nil {
			return nil, err
		}
		wanted := &rollout.Wanted{Environment: st.stage.Name, Commits: was.run, Assignments: assignments}
		if err := ob.count(ctx, st, &g, wanted, r); err != nil {
			return nil, err
		}
	}
	if r.State == forge.Success && was.state != forge.Success {
		if err := ob.wantStatuses(ctx, st, &g, r); err != nil {
			return nil, err
		}
	}
	if r.State == forge.Pending && g.Timeout > 0 && !was.entered.IsZero() && ob.state.now.Sub(was.entered) >= g.Timeout {
		r.State, r.Reason = forge.Failure, fmt.Sprintf("not far enough within %s: %s", g.Timeout, r.Reason)
	}
	return r, nil
}

// count counts the reports.
func (ob *observer) count(ctx context.Context, st *stop, g *model.RolloutGate, wanted *rollout.Wanted, r *Rollout) error {
	var err error
	if wanted.Commits, err = ob.untouched(ctx, st, wanted.Commits); err != nil {
		return err
	}
	sources := ob.sources(st, g)
	if len(sources) == 0 && len(wanted.Assignments) > 0 {
		how := map[string]string{"report": "the reports with --report", "kubernetes": "the clusters with --kubeconfig"}[g.Source]
		r.State, r.Reason = forge.Pending, "nobody was asked: give "+how
		return nil
	}
	var reports []rollout.Report
	var failed []string
	for _, source := range sources {
		more, err := source.Reports(ctx, wanted)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, git.ErrLostRace) {
				return err
			}
			failed = append(failed, fmt.Sprintf("%s: %v", source.Name(), err))
			continue
		}
		reports = append(reports, more...)
	}
	unreachable := rollout.Block
	if g.Exclude {
		unreachable = rollout.Exclude
	}
	r.Counts = rollout.Count(wanted, reports, rollout.Options{Now: ob.state.now, StaleAfter: g.StaleAfter, Unreachable: unreachable})
	verdict, reason := r.Counts.Verdict(rollout.Policy{Min: g.Min, MaxFailed: g.MaxFailed, AllowEmpty: g.AllowEmpty})
	r.State = map[rollout.Verdict]forge.State{rollout.Passed: forge.Success, rollout.Pending: forge.Pending, rollout.Blocked: forge.Failure}[verdict]
	r.Reason = reason
	if len(failed) > 0 {
		r.Reason += "; not asked: " + strings.Join(failed, "; ")
	}
	return nil
}

// untouched are the commits in which the generated files of a stop are what was promoted:
// what clusters say of others is about what somebody has made of it.
func (ob *observer) untouched(ctx context.Context, st *stop, run []git.Hash) ([]git.Hash, error) {
	var out []git.Hash
	for _, commit := range run {
		view, err := st.out.repository.view(st.out.branch, commit)
		if err != nil {
			return nil, err
		}
		record, _, err := view.Record(st.out.folder)
		if err != nil {
			return nil, err
		}
		drift, err := st.out.driftIn(ctx, view, record)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(drift, func(d tree.Drift) bool { return st.coversFile(d.Path) }) {
			out = append(out, commit)
		}
	}
	return out, nil
}

// wanted is what a record wants of some cluster types.
func (ob *observer) wanted(record *tree.Record, in func(clusterType string) bool) ([]rollout.Assignment, error) {
	if ob.state.platform.subject.Form().Targets {
		return rollout.TargetsOf(record, in), nil
	}
	return rollout.WantedOf(record, in, record.ClustersOf)
}

// wantsAny says whether wanted would return anything, by the record alone.
func (ob *observer) wantsAny(record *tree.Record, in func(clusterType string) bool) bool {
	return slices.ContainsFunc(record.ClusterTypes, func(e tree.ClusterTypeEntry) bool {
		return in(e.Name) && (e.Assignments > 0 || ob.state.platform.subject.Form().Targets)
	})
}

// sources are where the policy of a stop takes reports from.
func (ob *observer) sources(st *stop, g *model.RolloutGate) []rollout.Source {
	var out []rollout.Source
	if g.Source == "any" || g.Source == "status" {
		out = append(out, status.New(st.out.repository.forge.Statuses, status.Options{By: g.By}))
	}
	for _, given := range ob.state.request.Sources {
		if g.Source == "any" || g.Source == given.Kind {
			out = append(out, given.Source)
		}
	}
	return out
}

// wantStatuses makes a rollout wait for statuses of the base commit.
func (ob *observer) wantStatuses(ctx context.Context, st *stop, g *model.RolloutGate, r *Rollout) error {
	if len(g.Status) == 0 {
		return nil
	}
	commit := st.has().Base.Hash()
	said, err := ob.state.platform.repository.statusesOf(ctx, ob.state.ledger(st.out), commit)
	if err != nil {
		return err
	}
	verdicts := gate.Commit(
		gate.Policy{Environment: st.stage.Name, Ring: st.ringName(), Gates: []model.Gates{{Status: g.Status}}},
		gate.CommitFacts{Now: ob.state.now, Commit: commit, Reachable: true, Statuses: said, StatusesKnown: true}, gate.Skip{})
	for _, v := range verdicts {
		switch v.State {
		case gate.Blocked:
			r.State, r.Reason = forge.Failure, v.Reason
			return nil
		case gate.Pending:
			r.State, r.Reason = forge.Pending, r.Reason+"; "+v.Reason
		}
	}
	return nil
}
