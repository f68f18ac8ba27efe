package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/observe"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// reporter writes the progress of rollouts to statuses.
type reporter struct {
	state    *session.State
	observer *observe.Observer
}

// observe returns the progress of the rollout of a stage's commit, and reports changes:
// in statuses of the base commit and of the GitOps commit that deployed it.
func (re *reporter) observe(ctx context.Context, st *session.Stage) (*observe.Rollout, error) {
	was, err := re.observer.Reports(ctx, st)
	if err != nil || was == nil {
		return nil, err
	}
	if !was.OwnKnown && was.Ignored == "" {
		if err := re.reportEntered(ctx, st, was.Deployed); err != nil {
			return nil, err
		}
		if err := re.observer.Reread(ctx, st, was); err != nil {
			return nil, err
		}
	}
	r, err := re.observer.Rollout(ctx, st, was)
	if err == nil && was.Ignored == "" && r.State != forge.Pending && r.State != was.Own.State {
		err = re.reportOutcome(ctx, st, was.Deployed, r)
	}
	if err == nil && was.Ignored == "" {
		err = re.reportHealth(ctx, st, was, r)
	}
	return r, err
}

// reportHealth reports that a stage fails although its rollout succeeded, if another stage soaks
// the same source. It also reports when the stage is ok again.
func (re *reporter) reportHealth(ctx context.Context, st *session.Stage, was *observe.Reports,
	r *observe.Rollout) error {
	status := forge.Status{Name: ledger.HealthName(st.ID()), State: forge.Success,
		Description: "ok again"}
	switch {
	case was.Health.Failing && r.Failing == nil && r.State == forge.Success:
	case !was.Health.Failing && r.Failing != nil:
		soaks, err := re.state.Soaks(st)
		if err != nil || !soaks {
			return err
		}
		status.State, status.Description = forge.Failure, r.Failing.Reason
	default:
		return nil
	}
	return st.Environment.Repository.Statuses().Report(ctx, was.Deployed, status)
}

// reportEntered reports that a commit rolls out: of the base commit, if that is new, and
// then of the GitOps commit. A run that is killed in between reports both again.
func (re *reporter) reportEntered(ctx context.Context, st *session.Stage, deployed git.Hash) error {
	has := st.Has()
	v, err := st.Environment.History.VisitOf(ctx, st.RingName(), has.Base)
	if err != nil {
		return err
	}
	if len(v.Deployed) > 0 && v.Deployed[0] == deployed {
		if err := re.report(ctx, st, re.state.Statuses(st.Environment), has.Base.Hash(), forge.Pending,
			"rolling out, as GitOps commit "+git.Short(deployed)); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("rolling out %s", has.Describe())
	return re.report(ctx, st, st.Environment.Repository.Statuses(), deployed, forge.Pending, text)
}

// reportOutcome reports the end of a rollout: of the base commit, unless it has succeeded
// before and only the environment's own files are new, and then of the GitOps commit.
func (re *reporter) reportOutcome(ctx context.Context, st *session.Stage, deployed git.Hash,
	r *observe.Rollout) error {
	base := st.Has().Base.Hash()
	statuses := re.state.Statuses(st.Environment)
	ofBase, err := statuses.Of(ctx, base)
	if err != nil {
		return err
	}
	if c, reported := ledger.CourseOf(ofBase, st.ID(), st.RolloutGate().By); !reported ||
		c.State != forge.Success {
		if err := re.report(ctx, st, statuses, base, r.State, r.Reason); err != nil {
			return err
		}
	}
	return re.report(ctx, st, st.Environment.Repository.Statuses(), deployed, r.State, r.Reason)
}

// report writes a status of a commit. If the forge has deployments, report mirrors the status of
// a GitOps commit as a deployment.
func (re *reporter) report(ctx context.Context, st *session.Stage, l *ledger.Statuses,
	commit git.Hash, state forge.State, text string) error {
	if err := l.Report(ctx, commit,
		forge.Status{Name: ledger.StatusName(st.ID()), State: state, Description: text}); err != nil {
		return err
	}
	if l != st.Environment.Repository.Statuses() || st.Environment.Repository.Plain {
		return nil
	}
	err := l.Forge.Deploy(ctx, forge.Deployment{
		Environment: st.ID(), Commit: commit, State: state, Description: text,
		Production: re.state.IsLast(st.Policy.Name),
		Payload: map[string]string{"base": string(st.Has().Base),
			"environment": string(st.Has().Environment)},
	})
	if errors.Is(err, forge.ErrUnsupported) {
		return nil
	}
	return err
}

// notes returns the git notes in which the statuses of a stage are.
func (re *reporter) notes(st *session.Stage) (out []*plain.Forge) {
	if st.Environment.Repository == nil {
		return nil
	}
	for _, l := range []*ledger.Statuses{re.state.Statuses(st.Environment),
		st.Environment.Repository.Statuses()} {
		if f, ok := l.Forge.(*plain.Forge); ok && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// hold keeps statuses of a stage in git notes back until flush pushes them at once.
func (re *reporter) hold(st *session.Stage) {
	for _, f := range re.notes(st) {
		f.Hold()
	}
}

// flush pushes the statuses of a stage that hold kept back.
func (re *reporter) flush(ctx context.Context, st *session.Stage) error {
	var errs []error
	for _, f := range re.notes(st) {
		errs = append(errs, f.Flush(ctx))
	}
	return errors.Join(errs...)
}
