// Package apply carries out the plans of package plan, and the decisions of people. It makes all
// writes of promotion: pushes, change requests, statuses and orders.
//
// Every push moves a ref from the commit at which it was read, or fails with git.ErrLostRace. So
// any number of runs may work at once, and any of them may be killed.
//
// For example, the State is of the first commit of examples/promotion, before any promotion. The
// Step of the stage dev has the Kind first. Apply pushes its commit to the new branch dev of
// https://git.example.com/shop/gitops. It returns a [plan.StageStatus] of dev with the State
// promoted and this commit as its Tip. The status of stage is waiting, until dev's rollout
// succeeds.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/observe"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/verify"
)

// Applier carries out plans and decisions.
type Applier struct {
	state    *session.State
	planner  *plan.Planner
	reporter *reporter
	pusher   *pusher
	proposer *proposer
	upstream map[*session.Stage]bool // the stages that reportUpstream has reported
}

// New returns an Applier of a state.
func New(state *session.State, records *verify.Records, observer *observe.Observer,
	planner *plan.Planner) *Applier {
	reporter := &reporter{state, observer}
	pusher := &pusher{state, records, reporter}
	return &Applier{state, planner, reporter, pusher, &proposer{state, planner, pusher},
		map[*session.Stage]bool{}}
}

// Apply takes the steps that are possible now for the stages of the request, one after
// the other, and returns their statuses. A stage that fails does not hinder the others:
// the error joins the errors of all of them. After a lost race the state is out of date,
// so the stages that are left have to wait for the next run. A stage whose server refuses
// the push is blocked. With a saved plan, it takes only the steps of the plan, and fails
// if anything has changed since the plan was made.
func (a *Applier) Apply(ctx context.Context, intent plan.Intent,
	saved *plan.Plan) ([]*plan.StageStatus, error) {
	if saved != nil {
		if err := a.planner.Check(saved); err != nil {
			return nil, err
		}
		intent = plan.Intent{Commit: saved.Commit, Reason: saved.Reason, By: saved.By, Skip: saved.Skip}
		for _, p := range saved.Stages {
			if !slices.ContainsFunc(a.state.Stages,
				func(st *session.Stage) bool { return st.ID() == p.ID() }) {
				return nil, fmt.Errorf("%w (there is no %s)", plan.ErrMoved, p.ID())
			}
		}
	}
	var out []*plan.StageStatus
	var errs []error
	for _, st := range a.state.Requested() {
		wanted := plan.StepOf(saved, st)
		if saved != nil && wanted == nil {
			continue
		}
		status, err := a.applyTo(ctx, st, intent, wanted)
		err = errors.Join(err, a.reporter.flush(ctx, st))
		if refused := (*RefusedError)(nil); errors.As(err, &refused) && ctx.Err() == nil {
			status, err = refusedStatus(st, status, refused), nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", st.ID(), err))
			if errors.Is(err, git.ErrLostRace) {
				break
			}
			continue
		}
		out = append(out, status)
	}
	return out, errors.Join(errs...)
}

// applyTo takes the possible steps for one stage.
func (a *Applier) applyTo(ctx context.Context, st *session.Stage, intent plan.Intent,
	wanted *plan.Step) (*plan.StageStatus, error) {
	if err := a.reportUpstream(ctx, st); err != nil {
		return nil, err
	}
	a.reporter.hold(st)
	status, err := a.reportAndPlan(ctx, st, intent)
	if err == nil {
		err = a.reporter.flush(ctx, st) // the next steps depend on it
	}
	if err != nil {
		return status, err
	}
	a.reporter.hold(st)
	if status.Resumes != nil {
		intent = *status.Resumes
	}
	if err := a.bring(ctx, st); err != nil {
		return nil, err
	}
	if status.Step == nil {
		return status,
			errors.Join(a.proposer.withdraw(ctx, st, status), a.proposer.retractGates(ctx, st, status))
	}
	if wanted != nil && (wanted.Source != status.Step.Source || wanted.Commit != status.Step.Commit) {
		return nil, fmt.Errorf("%w: it would be %s, and was %s", plan.ErrMoved,
			status.Step.Source.Describe(), wanted.Source.Describe())
	}
	if st.Environment.Tip.IsZero() && st.Writes() == model.WritePullRequest &&
		plan.Proposable(status.Step) {
		if err := a.begin(ctx, st, status.Step.Source); err != nil {
			return nil, err
		}
		if status, err = a.reportAndPlan(ctx, st, intent); err != nil || status.Step == nil {
			return status, err
		}
	}
	if base := status.Step.Source.Base; intent.Commit != "" && st.Aborted(base.Hash()) != nil {
		if err := st.Environment.Repository.TakeBack(ctx, &ledger.Order{Kind: "resume",
			About: st.AbortName() + "/" + string(base), By: a.state.Request.By}, "abort",
			a.state.Request.Author(a.state.Now)); err != nil {
			return nil, err
		}
	}
	err = a.carryOut(ctx, st, status, intent)
	if status.Resumes != nil && (status.State == plan.Proposed || status.State == plan.Waiting) {
		status.Reason += "; " + status.Resumes.Decision(status.Environment)
	}
	return status, errors.Join(err, a.proposer.retractGates(ctx, st, status))
}

// bring writes the files that move along to the place that a stage's environment moved to: the
// history of another branch, or the orders of another repository.
func (a *Applier) bring(ctx context.Context, st *session.Stage) error {
	env := st.Environment
	if !a.state.Request.Adopt || env.Repository == nil {
		return nil
	}
	if env.Begins {
		ref := session.BranchRef(env.Branch)
		if err := env.Repository.Remote.Push(ctx, []remote.Update{{Ref: ref, New: env.Tip}}, nil,
			false); err != nil {
			return explainPush(st, err)
		}
		env.Repository.Refs[ref], env.Begins = env.Tip, false
	}
	move, err := a.state.Moved(ctx, st)
	if err != nil || !move.Carries() {
		return err
	}
	orders := []*ledger.Order{env.Orders.Frozen}
	for _, o := range env.Orders.Rejected {
		orders = append(orders, o)
	}
	slices.SortFunc(orders[1:], func(a, b *ledger.Order) int { return a.At.Compare(b.At) })
	for _, o := range orders {
		if o != nil {
			if err := env.Repository.Give(ctx, o, a.state.Request.Author(a.state.Now)); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportUpstream reports the rollouts that a stage waits for, of stages outside of the request.
// The next run may soak them from the time of their success. If the run may not write the
// reports, it uses the sources' answers without recording them.
func (a *Applier) reportUpstream(ctx context.Context, st *session.Stage) error {
	requested := a.state.Requested()
	for _, up := range a.state.UpstreamAndSoaking(st) {
		if slices.Contains(requested, up) || a.upstream[up] {
			continue
		}
		a.upstream[up] = true
		a.reporter.hold(up)
		_, err := a.reporter.observe(ctx, up)
		for _, err := range []error{err, a.reporter.flush(ctx, up)} {
			switch {
			case errors.As(err, new(*forge.AuthError)), errors.As(err, new(*remote.RejectedError)):
				a.reporter.observer.NotRecorded(up)
			case err != nil:
				return fmt.Errorf("%s: %w", up.ID(), err)
			}
		}
	}
	return nil
}

// reportAndPlan plans a stage, after it has reported the rollout of its commit: the
// plan rests on that.
func (a *Applier) reportAndPlan(ctx context.Context, st *session.Stage,
	intent plan.Intent) (*plan.StageStatus, error) {
	l, err := a.planner.Look(ctx, st)
	if err != nil {
		return nil, err
	}
	if l.Recorded {
		if l.Status.Rollout, err = a.reporter.observe(ctx, st); err != nil {
			return nil, err
		}
	}
	return l.Status, a.planner.Decide(ctx, st, l, intent)
}

// begin makes the branch of an environment, without files. The first tree needs approvals as
// well, and a change request needs an existing branch.
func (a *Applier) begin(ctx context.Context, st *session.Stage, of tree.Source) error {
	env := st.Environment
	by := a.state.Request.Author(a.state.CommitTime(st, of, time.Time{}))
	first, packs, err := env.Repository.WithoutFiles(by, "Begin the branch of "+st.Policy.Name+"\n",
		git.Hash{})
	if err != nil {
		return err
	}
	update := remote.Update{Ref: session.BranchRef(env.Branch), New: first}
	if err := env.Repository.Remote.Push(ctx, []remote.Update{update}, packs, false); err != nil {
		return explainPush(st, err)
	}
	if env.Repository.Refs, err = env.Repository.Remote.Refs(ctx); err != nil {
		return err
	}
	return env.MoveTo(ctx, first)
}

// carryOut pushes or proposes the step of a stage, as far as its gates let it.
func (a *Applier) carryOut(ctx context.Context, st *session.Stage, status *plan.StageStatus,
	intent plan.Intent) error {
	step := status.Step
	direct := st.Writes() == model.WritePush || step.NoOp
	if !direct && !plan.Proposable(step) || step.Prepared == nil || step.Prepared.Commit.IsZero() {
		return nil
	}
	switch {
	case direct && status.State == plan.Ready:
		if st.ProposalHead() == step.Prepared.Commit { // it was proposed to people
			if err := a.proposer.reportGates(ctx, st, step.Prepared.Commit,
				gatesStatusOf(step.Verdicts)); err != nil {
				return err
			}
		}
		err := a.pusher.push(ctx, st, status)
		if err == nil && !st.ProposalHead().IsZero() {
			err = a.proposer.close(ctx, st,
				"There is nothing left to propose: "+message.Markdown(status.Reason)+".")
		}
		if refused := (*remote.RejectedError)(nil); errors.As(err, &refused) && step.NoOp &&
			st.Writes() != model.WritePush {
			return a.proposer.propose(ctx, st, status, intent) // the branch takes only change requests
		}
		return err
	case direct && plan.Proposable(step) && st.Environment.Repository.Plain &&
		status.State == plan.Waiting && pendingApprovals(step):
		return a.proposer.publish(ctx, st, status)
	case direct:
		return nil
	}
	return a.proposer.propose(ctx, st, status, intent)
}
