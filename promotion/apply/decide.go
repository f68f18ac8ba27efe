package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Rollback rolls the stages of the request back to an earlier base commit. It is compiled with
// the environment's own files of today or, exactly, as it was. Each stage gets a hold, so that no
// run promotes the former commit again. Rollback ignores gates.
func (a *Applier) Rollback(ctx context.Context, to plan.RollbackTo,
	d plan.Decision) ([]*plan.StageStatus, error) {
	return a.forEach(
		func(st *session.Stage) (*plan.StageStatus, error) { return a.rollback(ctx, st, to, d) })
}

// each calls a function for each element of a list, and returns the results of the successful
// calls. The error joins the errors of the other calls, with the names of their elements.
func each[T, R any](of []T, name func(T) string, do func(T) (R, error)) ([]R, error) {
	var out []R
	var errs []error
	for _, t := range of {
		r, err := do(t)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name(t), err))
			continue
		}
		out = append(out, r)
	}
	return out, errors.Join(errs...)
}

// forEach decides about each stage of the request.
func (a *Applier) forEach(
	decide func(*session.Stage) (*plan.StageStatus, error)) ([]*plan.StageStatus, error) {
	return each(a.state.Requested(), (*session.Stage).ID,
		func(st *session.Stage) (*plan.StageStatus, error) {
			if st.Environment.Repository == nil {
				return nil, errors.New(st.Environment.Absent)
			}
			status, err := decide(st)
			if refused := (*RefusedError)(nil); errors.As(err, &refused) {
				return refusedStatus(st, status, refused), nil
			}
			return status, err
		})
}

// Hold keeps the stages of the request at their commits. Release ends that, also after a
// rollback.
func (a *Applier) Hold(ctx context.Context, d plan.Decision) ([]*plan.StageStatus, error) {
	hold := &tree.Hold{Reason: d.Reason, By: a.state.Request.By, Until: d.Deadline()}
	return a.forEach(func(st *session.Stage) (*plan.StageStatus, error) {
		status, err := a.restate(ctx, st, hold, "Hold "+st.ID(), d)
		if err == nil {
			err = a.stopProposal(ctx, st, gate.CommitFacts{Hold: a.order(d)})
		}
		return status, err
	})
}

// Release ends the holds of the stages of the request.
func (a *Applier) Release(ctx context.Context, d plan.Decision) ([]*plan.StageStatus, error) {
	return a.forEach(func(st *session.Stage) (*plan.StageStatus, error) {
		return a.restate(ctx, st, nil, "Release "+st.ID(), d)
	})
}

// rollback carries out the rollback of a stage.
func (a *Applier) rollback(ctx context.Context, st *session.Stage, to plan.RollbackTo,
	d plan.Decision) (*plan.StageStatus, error) {
	status, err := a.planner.Rollback(ctx, st, to, d)
	if err != nil || status.State == plan.Blocked {
		return status, err
	}
	err = a.carryOut(ctx, st, status, plan.Intent{})
	if err == nil && status.State == plan.Promoted {
		at := status.Has.Base.Short()
		if to.Own {
			at = "its own files of " + status.Has.Environment.Short()
		}
		status.Reason = "it is back at " + at + ", and held until " +
			cmp.Or(d.Deadline(), "somebody releases it") + a.comesBack(st, status.Hold)
	}
	return status, err
}

// comesBack returns a warning that the former commit is promoted again after the hold, and the
// way to prevent that. It returns "" if there is no such risk.
func (a *Applier) comesBack(st *session.Stage, hold *tree.Hold) string {
	if hold != nil && hold.Environment != "" {
		return fmt.Sprintf("; own files of %s then come again: revert their commit to keep them away",
			hold.Environment.Short())
	}
	if hold == nil || hold.Base == "" || hold.Base == st.Has().Base ||
		st.Environment.Orders.Rejected[hold.Base.Hash()] != nil {
		return ""
	}
	return fmt.Sprintf("; %s may then come again: `kalypso reject %[1]s` keeps it from that",
		hold.Base.Short())
}

// restate pushes another hold of a stage.
func (a *Applier) restate(ctx context.Context, st *session.Stage, hold *tree.Hold, title string,
	d plan.Decision) (*plan.StageStatus, error) {
	before := st.Environment.Hold(st.RingName())
	status, p, err := a.planner.Restate(ctx, st, hold, title, d)
	if err != nil || p == nil {
		return status, err
	}
	update := remote.Update{Ref: session.BranchRef(st.Environment.Branch), Old: st.Environment.Tip,
		New: p.Commit}
	if err := st.Environment.Repository.Remote.Push(ctx, []remote.Update{update}, p.Packs,
		false); err != nil {
		if refused := (*remote.RejectedError)(nil); errors.As(err, &refused) {
			status.State, status.Reason = plan.Blocked,
				fmt.Sprintf("branch %s takes no push: %v", st.Environment.Branch, refused)
			if hold != nil {
				status.Reason += fmt.Sprintf("; `kalypso freeze %s` stops promotion without one",
					st.Policy.Name)
			}
			return status, nil
		}
		return nil, err
	}
	if err := a.pusher.pushed(ctx, st, status, p.Commit); err != nil {
		return nil, err
	}
	status.State, status.Reason = plan.Held, "it is held at "+st.Has().Base.Short()
	if hold == nil {
		status.State, status.Reason = plan.Current, "it is released"+a.comesBack(st, before)
	}
	return status, nil
}

// Freeze stops promotion to the environments of the request, without writing to their
// branches, and returns their names. Thaw ends that.
func (a *Applier) Freeze(ctx context.Context, d plan.Decision) ([]string, error) {
	return a.orderEach(func(environment string, r *session.Repository) error {
		if err := r.Give(ctx, &ledger.Order{Kind: "freeze", About: environment, Reason: d.Reason,
			By: a.state.Request.By, Until: d.Until}, a.state.Request.Author(a.state.Now)); err != nil {
			return err
		}
		for _, st := range a.state.StagesOf(environment) {
			if err := a.stopProposal(ctx, st, gate.CommitFacts{Freeze: a.order(d)}); err != nil {
				return fmt.Errorf("it is frozen, and the proposal that is open could not be marked: %w", err)
			}
		}
		return nil
	})
}

// stopProposal marks the open proposal of a stage as not to be merged because of a new order.
// Rollbacks stay.
func (a *Applier) stopProposal(ctx context.Context, st *session.Stage,
	decided gate.CommitFacts) error {
	// a rollback ignores gates
	if p, err := a.planner.Proposed(ctx, st); err != nil || p == nil || p.RollsBack() {
		return err
	}
	decided.Now, decided.Reachable = a.state.Now, true
	verdicts := gate.Commit(gate.Policy{Environment: st.Policy.Name, Ring: st.RingName()}, decided,
		gate.Skip{})
	a.reporter.hold(st)
	_, err := a.proposer.stop(ctx, st, gatesStatusOf(verdicts))
	return errors.Join(err, a.reporter.flush(ctx, st))
}

// order returns a decision in the form for gates.
func (a *Applier) order(d plan.Decision) *gate.Freeze {
	return &gate.Freeze{Reason: d.Reason, By: a.state.Request.By, At: a.state.Now, Until: d.Until}
}

// Thaw ends the freezes of the environments of the request. It returns the names of all of them,
// including environments that were not frozen.
func (a *Applier) Thaw(ctx context.Context) ([]string, error) {
	return a.orderEach(func(environment string, r *session.Repository) error {
		thaw := &ledger.Order{Kind: "thaw", About: environment, By: a.state.Request.By}
		for _, st := range a.state.StagesOf(environment)[:1] {
			move, err := a.state.Moved(ctx, st)
			if err == nil && move.Carries() { // it may be frozen in its old place
				err = move.Former.Repository.TakeBack(ctx, thaw, "freeze", a.state.Request.Author(a.state.Now))
			}
			if err != nil {
				return err
			}
		}
		return r.TakeBack(ctx, thaw, "freeze", a.state.Request.Author(a.state.Now))
	})
}

// orderEach writes orders about the environments of the request, and returns their names.
func (a *Applier) orderEach(f func(environment string, r *session.Repository) error) ([]string,
	error) {
	return each(a.state.RequestedEnvironments(), (*session.Environment).Name,
		func(env *session.Environment) (string, error) {
			if env.Repository == nil {
				return "", errors.New(env.Absent)
			}
			return env.Name(), f(env.Name(), env.Repository)
		})
}

// Reject makes sure that a base commit is promoted nowhere, and returns it. Environments
// that have it keep it. Unreject ends that.
func (a *Applier) Reject(ctx context.Context, commit string, d plan.Decision) (string, error) {
	return a.rejection(commit, func(r *session.Repository, id string) error {
		return r.Give(ctx, &ledger.Order{Kind: "reject", About: id, Reason: d.Reason,
			By: a.state.Request.By}, a.state.Request.Author(a.state.Now))
	})
}

// Unreject takes a rejection back.
func (a *Applier) Unreject(ctx context.Context, commit string) (string, error) {
	return a.rejection(commit, func(r *session.Repository, id string) error {
		return r.TakeBack(ctx, &ledger.Order{Kind: "readmit", About: id, By: a.state.Request.By},
			"reject", a.state.Request.Author(a.state.Now))
	})
}

// rejection writes orders about a base commit to all GitOps repositories, and returns it.
func (a *Applier) rejection(commit string, f func(r *session.Repository, id string) error) (string,
	error) {
	b, err := a.state.Platform.Resolve(commit)
	if err != nil {
		return "", err
	}
	var errs []error
	done := map[*session.Repository]bool{}
	for _, env := range a.state.Environments {
		if env.Repository != nil && !done[env.Repository] {
			done[env.Repository] = true
			errs = append(errs, f(env.Repository, b.Commit.String()))
		}
	}
	return b.Commit.String(), errors.Join(errs...)
}

// Abort calls off the proposals of the stages of the request: change requests are closed,
// their branches removed, and their commits promoted only by name.
func (a *Applier) Abort(ctx context.Context, d plan.Decision) ([]*plan.StageStatus, error) {
	return a.forEach(func(st *session.Stage) (*plan.StageStatus, error) {
		status := plan.StatusOf(st)
		status.State = plan.Current
		proposal := st.ProposalHead()
		if proposal.IsZero() {
			status.Reason = "nothing was proposed"
			return status, nil
		}
		if blocked, err := a.proposer.blockedByOther(ctx, st, status); err != nil || blocked {
			return status, err
		}
		off := baseOf(st.Environment.Repository, proposal)
		if off.IsCommit() {
			if err := st.Environment.Repository.Give(ctx, &ledger.Order{Kind: "abort",
				About: st.AbortName() + "/" + string(off), Reason: d.Reason, By: a.state.Request.By},
				a.state.Request.Author(a.state.Now)); err != nil {
				return nil, err
			}
		}
		status.Reason = "the proposal of " + off.Short() + " is called off"
		text := "Called off"
		if a.state.Request.By != "" {
			text += " by " + message.Markdown(a.state.Request.By)
		}
		return status, a.proposer.close(ctx, st, text+": "+message.Markdown(d.Reason))
	})
}
