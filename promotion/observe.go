package promotion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/status"
)

// observe finds out what became of what a stop has; nil where it has nothing. With
// write, what is new is said: in statuses of the base commit and of the GitOps commit
// that brought it. A success that was said stays one.
func (s *Session) observe(ctx context.Context, st *stop, write bool) (*Rollout, error) {
	if st.out.repository == nil || st.has() == (tree.Source{}) {
		return nil, nil
	}
	run, err := st.out.history.landed(ctx, st.ringName())
	if err != nil || len(run) == 0 {
		return nil, err
	}
	landed := run[len(run)-1]
	g := st.rolloutGate()
	ledger := st.out.repository.ledger()
	said, err := ledger.of(ctx, landed)
	if err != nil {
		return nil, err
	}
	c, told := courseOf(said, st.id(), g.By)
	mute, err := s.mute(ctx, st, &g)
	if err != nil {
		return nil, err
	}
	write = write && mute == ""
	if !told && write {
		if err := s.sayEntered(ctx, st, landed); err != nil {
			return nil, err
		}
		if said, err = ledger.of(ctx, landed); err != nil {
			return nil, err
		}
		c, told = courseOf(said, st.id(), g.By)
	}
	r, err := s.judge(ctx, st, &g, run, c)
	if err != nil {
		return nil, err
	}
	if told && c.state == forge.Success { // the counts are those of now all the same
		return &Rollout{State: c.state, Since: c.since, Reason: c.reason, Counts: r.Counts}, nil
	}
	if r.Since = c.since; !told || r.State != c.state {
		r.Since = s.now
	}
	if mute != "" && r.State != forge.Pending && r.State != c.state {
		r.State, r.Reason = forge.Pending, r.Reason+"; "+mute
	}
	if write && r.State != forge.Pending && r.State != c.state {
		return r, s.sayOutcome(ctx, st, landed, r)
	}
	return r, nil
}

// mute is why what this run says of a rollout would not count; "" where it does. It
// then says nothing: nobody would believe it, and the next run would say it again.
func (s *Session) mute(ctx context.Context, st *stop, g *model.RolloutGate) (string, error) {
	if len(g.By) == 0 {
		return "", nil
	}
	for _, l := range []*ledger{s.ledger(st.out), st.out.repository.ledger()} {
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

// sayEntered says that a commit rolls out: of the base commit, if it is what is new, and
// then of the GitOps commit. A run that is killed in between says both again.
func (s *Session) sayEntered(ctx context.Context, st *stop, landed git.Hash) error {
	has := st.has()
	v, err := st.out.history.visitOf(ctx, st.ringName(), has.Base)
	if err != nil {
		return err
	}
	if len(v.landings) > 0 && v.landings[0] == landed {
		if err := s.say(ctx, st, s.ledger(st.out), has.Base.Hash(), forge.Pending, "rolling out, as GitOps commit "+git.Short(landed)); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("rolling out %s", has.Describe())
	return s.say(ctx, st, st.out.repository.ledger(), landed, forge.Pending, text)
}

// sayOutcome says how a rollout went: of the base commit, unless an earlier rollout of
// it went well and only the environment's own files are new, and then of the GitOps
// commit.
func (s *Session) sayOutcome(ctx context.Context, st *stop, landed git.Hash, r *Rollout) error {
	base := st.has().Base.Hash()
	ledger := s.ledger(st.out)
	said, err := ledger.of(ctx, base)
	if err != nil {
		return err
	}
	if c, told := courseOf(said, st.id(), st.rolloutGate().By); !told || c.state != forge.Success {
		if err := s.say(ctx, st, ledger, base, r.State, r.Reason); err != nil {
			return err
		}
	}
	return s.say(ctx, st, st.out.repository.ledger(), landed, r.State, r.Reason)
}

// say says something of a commit, and mirrors what is said of a GitOps commit as a
// deployment, where the forge has such a thing.
func (s *Session) say(ctx context.Context, st *stop, l *ledger, commit git.Hash, state forge.State, text string) error {
	if err := l.say(ctx, commit, forge.Status{Name: statusName(st.id()), State: state, Description: text}); err != nil {
		return err
	}
	if l != st.out.repository.ledger() || st.out.repository.plain {
		return nil
	}
	err := l.forge.Deploy(ctx, forge.Deployment{
		Environment: st.id(), Commit: commit, State: state, Description: text, Production: s.isLast(st.stage.Name),
		Payload: map[string]string{"base": string(st.has().Base), "environment": string(st.has().Environment)},
	})
	if errors.Is(err, forge.ErrUnsupported) {
		return nil
	}
	return err
}

// isLast says whether no environment comes after one: what people call production.
func (s *Session) isLast(environment string) bool {
	return !slices.ContainsFunc(s.platform.stages, func(other evaluate.Stage) bool { return slices.Contains(other.After, environment) })
}

// judge asks all sources of the policy, and says how far the rollout is.
func (s *Session) judge(ctx context.Context, st *stop, g *model.RolloutGate, run []git.Hash, c course) (*Rollout, error) {
	r := &Rollout{State: forge.Success, Reason: "it is in the tree, and the policy asks for no reports"}
	switch {
	case !g.AllowEmpty && !s.wantsAny(st.out.record, st.covers):
		r.State, r.Reason = forge.Pending, rollout.Empty
	case g.Source != "none":
		assignments, err := s.wanted(st.out.record, st.covers)
		if broken := (*tree.RecordError)(nil); errors.As(err, &broken) {
			return &Rollout{State: forge.Pending, Reason: err.Error()}, nil
		}
		if err != nil {
			return nil, err
		}
		wanted := &rollout.Wanted{Environment: st.stage.Name, Commits: run, Assignments: assignments}
		if err := s.count(ctx, st, g, wanted, r); err != nil {
			return nil, err
		}
	}
	if r.State == forge.Success && c.state != forge.Success {
		if err := s.wantStatuses(ctx, st, g, r); err != nil {
			return nil, err
		}
	}
	if r.State == forge.Pending && g.Timeout > 0 && !c.entered.IsZero() && s.now.Sub(c.entered) >= g.Timeout {
		r.State, r.Reason = forge.Failure, fmt.Sprintf("not far enough within %s: %s", g.Timeout, r.Reason)
	}
	return r, nil
}

// count counts the reports.
func (s *Session) count(ctx context.Context, st *stop, g *model.RolloutGate, wanted *rollout.Wanted, r *Rollout) error {
	var err error
	if wanted.Commits, err = s.untouched(ctx, st, wanted.Commits); err != nil {
		return err
	}
	sources := s.sources(st, g)
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
	r.Counts = rollout.Count(wanted, reports, rollout.Options{Now: s.now, StaleAfter: g.StaleAfter, Unreachable: unreachable})
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
func (s *Session) untouched(ctx context.Context, st *stop, run []git.Hash) ([]git.Hash, error) {
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
func (s *Session) wanted(record *tree.Record, in func(clusterType string) bool) ([]rollout.Assignment, error) {
	if s.subject.Form().Targets {
		return rollout.TargetsOf(record, in), nil
	}
	return rollout.WantedOf(record, in, record.ClustersOf)
}

// wantsAny says whether wanted would return anything, by the record alone.
func (s *Session) wantsAny(record *tree.Record, in func(clusterType string) bool) bool {
	return slices.ContainsFunc(record.ClusterTypes, func(e tree.ClusterTypeEntry) bool {
		return in(e.Name) && (e.Assignments > 0 || s.subject.Form().Targets)
	})
}

// sources are where the policy of a stop takes reports from.
func (s *Session) sources(st *stop, g *model.RolloutGate) []rollout.Source {
	var out []rollout.Source
	if g.Source == "any" || g.Source == "status" {
		out = append(out, status.New(st.out.repository.forge.Statuses, status.Options{By: g.By}))
	}
	for _, given := range s.request.Sources {
		if g.Source == "any" || g.Source == given.Kind {
			out = append(out, given.Source)
		}
	}
	return out
}

// wantStatuses makes a rollout wait for statuses of the base commit.
func (s *Session) wantStatuses(ctx context.Context, st *stop, g *model.RolloutGate, r *Rollout) error {
	if len(g.Status) == 0 {
		return nil
	}
	commit := st.has().Base.Hash()
	said, err := s.platform.repository.statusesOf(ctx, s.ledger(st.out), commit)
	if err != nil {
		return err
	}
	verdicts := gate.Commit(
		gate.Policy{Environment: st.stage.Name, Ring: st.ringName(), Gates: []model.Gates{{Status: g.Status}}},
		gate.CommitFacts{Now: s.now, Commit: commit, Reachable: true, Statuses: said, StatusesKnown: true}, gate.Skip{})
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
