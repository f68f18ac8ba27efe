package promotion

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
)

// Apply does what can be done now for what was asked, stop by stop, and returns what
// became of each. A stop that fails does not hinder the others: the error is those of
// all of them. One whose server does not take it is blocked. With a plan, nothing is done
// unless everything is as it was when the plan was made, and then only what the plan says.
func (a *applier) Apply(ctx context.Context, intent Intent, plan *Plan) ([]*Stop, error) {
	if plan != nil {
		if err := a.planner.check(plan); err != nil {
			return nil, err
		}
		intent = Intent{Commit: plan.Commit, Skip: plan.Skip}
		for _, p := range plan.Stops {
			if !slices.ContainsFunc(a.state.stops, func(st *stop) bool { return st.id() == p.ID() }) {
				return nil, fmt.Errorf("%w (there is no %s)", ErrPlanMoved, p.ID())
			}
		}
	}
	var out []*Stop
	var errs []error
	for _, st := range a.state.asked() {
		wanted := planned(plan, st)
		if plan != nil && wanted == nil {
			continue
		}
		stop, err := a.apply(ctx, st, intent, wanted)
		err = errors.Join(err, a.reporter.flush(ctx, st))
		if refused := (*RefusedError)(nil); errors.As(err, &refused) && ctx.Err() == nil {
			stop, err = refusedStatus(st, stop, refused), nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", st.id(), err))
			continue
		}
		out = append(out, stop)
	}
	return out, errors.Join(errs...)
}

// apply does what can be done for one stop.
func (a *applier) apply(ctx context.Context, st *stop, intent Intent, wanted *Step) (*Stop, error) {
	a.reporter.hold(st)
	stop, err := a.planAndReport(ctx, st, intent)
	if err == nil {
		err = a.reporter.flush(ctx, st) // what goes on rests on it
	}
	if err != nil {
		return stop, err
	}
	a.reporter.hold(st)
	if stop.Step == nil {
		return stop, errors.Join(a.proposer.withdraw(ctx, st, stop), a.proposer.doubt(ctx, st, stop))
	}
	if wanted != nil && (wanted.Source != stop.Step.Source || wanted.Commit != stop.Step.Commit) {
		return nil, fmt.Errorf("%w: it would be %s, and was %s", ErrPlanMoved, stop.Step.Source.Describe(), wanted.Source.Describe())
	}
	if st.out.tip.IsZero() && st.writes() == model.WritePullRequest && proposable(stop.Step) {
		if err := a.begin(ctx, st, stop.Step.Source); err != nil {
			return nil, err
		}
		if stop, err = a.planAndReport(ctx, st, intent); err != nil || stop.Step == nil {
			return stop, err
		}
	}
	if base := stop.Step.Source.Base; intent.Commit != "" && st.aborted(base.Hash()) != nil {
		if err := st.out.repository.takeBack(ctx, &order{Kind: "resume", About: st.abortName() + "/" + string(base), By: a.state.request.By}, "abort", a.state.request.author(a.state.now)); err != nil {
			return nil, err
		}
	}
	return stop, errors.Join(a.carryOut(ctx, st, stop, intent), a.proposer.doubt(ctx, st, stop))
}

// planAndReport says what could be done for a stage, after it has reported how far the
// rollout of what it has is.
func (a *applier) planAndReport(ctx context.Context, st *stop, intent Intent) (*Stop, error) {
	l, err := a.planner.look(ctx, st)
	if err != nil {
		return nil, err
	}
	if l.recorded {
		if l.status.Rollout, err = a.reporter.observeAndReport(ctx, st); err != nil {
			return nil, err
		}
	}
	return l.status, a.planner.decide(ctx, st, l, intent)
}

// refused is a stop whose server does not take what it is to get: somebody has to let it,
// or to write in another way.
func refusedStatus(st *stop, stop *Stop, why *RefusedError) *Stop {
	if stop == nil {
		stop = statusOf(st)
	}
	stop.State, stop.Reason = Blocked, why.Error()
	return stop
}

// begin makes the branch of an environment, with nothing in it: approvals are wanted for
// the first tree as well, and only to a branch that is there can one be proposed.
func (a *applier) begin(ctx context.Context, st *stop, of tree.Source) error {
	o := st.out
	by := a.state.request.author(a.state.commitTime(st, of, time.Time{}))
	first, packs, err := o.repository.withoutFiles(by, "Begin the branch of "+st.stage.Name+"\n", git.Hash{})
	if err != nil {
		return err
	}
	update := remote.Update{Ref: branchRef(o.branch), New: first}
	if err := o.repository.remote.Push(ctx, []remote.Update{update}, packs, false); err != nil {
		return a.pusher.explainPush(st, err)
	}
	if o.repository.refs, err = o.repository.remote.Refs(ctx); err != nil {
		return err
	}
	return o.moved(ctx, first)
}

// carryOut pushes or proposes the step of a stop, as far as its gates let it.
func (a *applier) carryOut(ctx context.Context, st *stop, stop *Stop, intent Intent) error {
	step := stop.Step
	direct := st.writes() == model.WritePush || step.NoOp
	if !direct && !proposable(step) || step.prepared == nil || step.prepared.commit.IsZero() {
		return nil
	}
	switch {
	case direct && stop.State == Ready:
		err := a.pusher.land(ctx, st, stop)
		if err == nil && !st.out.repository.refs[branchRef(st.promotionBranch())].IsZero() {
			err = a.proposer.close(ctx, st, "There is nothing left to propose: "+markdown(stop.Reason)+".")
		}
		if refused := (*remote.RejectedError)(nil); errors.As(err, &refused) && step.NoOp && st.writes() != model.WritePush {
			return a.proposer.propose(ctx, st, stop, intent) // the branch takes nothing but change requests
		}
		return err
	case direct && proposable(step) && st.out.repository.plain && stop.State == Waiting && pendingApprovals(step):
		return a.proposer.show(ctx, st, stop)
	case direct:
		return nil
	}
	return a.proposer.propose(ctx, st, stop, intent)
}

// land pushes the prepared commit to the environment's branch.
func (pu *pusher) land(ctx context.Context, st *stop, stop *Stop) error {
	o, p := st.out, stop.Step.prepared
	update := remote.Update{Ref: branchRef(o.branch), Old: o.tip, New: p.commit}
	still := func(refs map[string]git.Hash) error { return pu.stillOrdered(st, stop.Step.Source.Base, refs) }
	if err := o.repository.remote.PushWhile(ctx, []remote.Update{update}, p.packs, false, still); err != nil {
		return pu.explainPush(st, err)
	}
	return pu.landed(ctx, st, stop, p.commit)
}

// stillOrdered is git.ErrLostRace where somebody has ordered something since the session
// was opened, a freeze or a rejection: what is about to happen was decided without it.
// now are the refs right before; servers hide some from those who write.
func (pu *pusher) stillOrdered(st *stop, base tree.Revision, now map[string]git.Hash) error {
	r := st.out.repository
	for _, name := range []string{"freeze/" + st.stage.Name, "reject/" + string(base)} {
		for _, prefix := range []string{ordersRefs, ordersTags} {
			if ref := prefix + name; !now[ref].IsZero() && now[ref] != r.refs[ref] {
				return fmt.Errorf("%w: %s is new", git.ErrLostRace, ref)
			}
		}
	}
	return nil
}

// landed takes note of the environment's branch being at a new commit.
func (pu *pusher) landed(ctx context.Context, st *stop, stop *Stop, commit git.Hash) error {
	o := st.out
	o.repository.refs[branchRef(o.branch)] = commit
	if err := o.moved(ctx, commit); err != nil {
		return err
	}
	for _, other := range pu.state.outputs { // that are beside it in the branch
		if other != o && other.repository == o.repository && other.branch == o.branch {
			if err := errors.Join(other.moved(ctx, commit), pu.records.restore(ctx, other)); err != nil {
				return err
			}
		}
	}
	stop.State, stop.Has, stop.Tip, stop.Landed = Promoted, st.has(), commit.String(), commit.String()
	stop.Hold = o.hold(st.ringName())
	var err error
	stop.Rollout, err = pu.reporter.observeAndReport(ctx, st)
	stop.Reason = "it got " + st.has().Describe()
	return err
}

// explainPush says what to do where a server does not take a push.
func (pu *pusher) explainPush(st *stop, err error) error {
	if refused := (*remote.RejectedError)(nil); errors.As(err, &refused) {
		return &RefusedError{
			Environment: st.stage.Name, Branch: st.out.branch, Err: refused, First: st.out.tip.IsZero(), Direct: st.writes() == model.WritePush,
		}
	}
	return err
}

// RefusedError says that a server does not take a push to an environment's branch.
type RefusedError struct {
	Environment, Branch string
	Err                 error
	First               bool // the branch is not there yet
	Direct              bool // to propose the step would be another way
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("branch %s takes no push: %v", e.Branch, e.Err)
	switch {
	case e.First:
		return text + "; nothing can be proposed to a branch that is not there: make it, from a commit without files, and promote again"
	case e.Direct:
		return text + "; if it is protected, set environments." + e.Environment + `.promotion.write to "pull-request"`
	}
	return text
}

func (e *RefusedError) Unwrap() error { return e.Err }
