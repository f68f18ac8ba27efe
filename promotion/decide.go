package promotion

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git/remote"
)

// Rollback brings stops back to an earlier base commit, compiled with the environment's
// own files of today or, exactly, as it was. Each gets a hold, so that no run promotes
// what was rolled back from. Gates are not asked.
func (de *decider) Rollback(ctx context.Context, to RollbackTo, d Decision) ([]*Stop, error) {
	return de.forEach(func(st *stop) (*Stop, error) { return de.rollback(ctx, st, to, d) })
}

// forEach decides about each stop that was asked for.
func (de *decider) forEach(decide func(*stop) (*Stop, error)) ([]*Stop, error) {
	var out []*Stop
	var errs []error
	for _, st := range de.state.asked() {
		if st.out.repository == nil {
			errs = append(errs, fmt.Errorf("%s: %s", st.id(), st.out.absent))
			continue
		}
		stop, err := decide(st)
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
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

// Hold keeps stops at what they have; Release ends that, also after a rollback.
func (de *decider) Hold(ctx context.Context, d Decision) ([]*Stop, error) {
	hold := &tree.Hold{Reason: d.Reason, By: de.state.request.By, Until: d.until()}
	return de.forEach(func(st *stop) (*Stop, error) { return de.restate(ctx, st, hold, "Hold "+st.id(), d) })
}

// Release ends the holds of stops.
func (de *decider) Release(ctx context.Context, d Decision) ([]*Stop, error) {
	return de.forEach(func(st *stop) (*Stop, error) { return de.restate(ctx, st, nil, "Release "+st.id(), d) })
}

// Freeze stops promotion to the environments that were asked for, without writing to
// their branches, and returns which these are; Thaw ends that.
func (de *decider) Freeze(ctx context.Context, d Decision) ([]string, error) {
	return de.orderEach(func(environment string, r *repository) error {
		return r.give(ctx, &order{Kind: "freeze", About: environment, Reason: d.Reason, By: de.state.request.By, Until: d.Until}, de.state.request.author(de.state.now))
	})
}

// Thaw ends the freezes of environments, and returns which these are. One that is not
// frozen stays so.
func (de *decider) Thaw(ctx context.Context) ([]string, error) {
	return de.orderEach(func(environment string, r *repository) error {
		return r.takeBack(ctx, &order{Kind: "thaw", About: environment, By: de.state.request.By}, "freeze", de.state.request.author(de.state.now))
	})
}

func (de *decider) orderEach(f func(environment string, r *repository) error) ([]string, error) {
	var names []string
	var errs []error
	for _, out := range de.state.askedOutputs() {
		name := out.stage.Name
		if out.repository == nil {
			errs = append(errs, fmt.Errorf("%s: %s", name, out.absent))
			continue
		}
		if err := f(name, out.repository); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		names = append(names, name)
	}
	return names, errors.Join(errs...)
}

// Reject makes sure that a base commit comes nowhere. Environments that have it keep it.
// It returns the commit. Unreject ends that.
func (de *decider) Reject(ctx context.Context, commit string, d Decision) (string, error) {
	return de.rejection(commit, func(r *repository, id string) error {
		return r.give(ctx, &order{Kind: "reject", About: id, Reason: d.Reason, By: de.state.request.By}, de.state.request.author(de.state.now))
	})
}

// Unreject takes a rejection back.
func (de *decider) Unreject(ctx context.Context, commit string) (string, error) {
	return de.rejection(commit, func(r *repository, id string) error {
		return r.takeBack(ctx, &order{Kind: "readmit", About: id, By: de.state.request.By}, "reject", de.state.request.author(de.state.now))
	})
}

func (de *decider) rejection(commit string, f func(r *repository, id string) error) (string, error) {
	b, err := de.state.platform.resolve(commit)
	if err != nil {
		return "", err
	}
	var errs []error
	done := map[*repository]bool{}
	for _, out := range de.state.outputs {
		if out.repository != nil && !done[out.repository] {
			done[out.repository] = true
			errs = append(errs, f(out.repository, b.Commit.String()))
		}
	}
	return b.Commit.String(), errors.Join(errs...)
}

// Abort calls off what is proposed for stops: change requests are closed, their branches
// removed, and their commits come only if somebody asks for them by name.
func (de *decider) Abort(ctx context.Context, d Decision) ([]*Stop, error) {
	return de.forEach(func(st *stop) (*Stop, error) {
		stop := statusOf(st)
		stop.State = Current
		proposal := st.out.repository.refs[branchRef(st.promotionBranch())]
		if proposal.IsZero() {
			stop.Reason = "nothing was proposed"
			return stop, nil
		}
		if gives, err := de.proposer.giveWay(ctx, st, stop); err != nil || gives {
			return stop, err
		}
		off := baseOf(st.out.repository, proposal)
		if off.IsCommit() {
			if err := st.out.repository.give(ctx, &order{Kind: "abort", About: st.abortName() + "/" + string(off), Reason: d.Reason, By: de.state.request.By}, de.state.request.author(de.state.now)); err != nil {
				return nil, err
			}
		}
		stop.Reason = "the proposal of " + off.Short() + " is called off"
		text := "Called off"
		if de.state.request.By != "" {
			text += " by " + markdown(de.state.request.By)
		}
		return stop, de.proposer.close(ctx, st, text+": "+markdown(d.Reason))
	})
}

func (de *decider) rollback(ctx context.Context, st *stop, to RollbackTo, d Decision) (*Stop, error) {
	stop, err := de.planner.rollback(ctx, st, to, d)
	if err != nil || stop.State == Blocked {
		return stop, err
	}
	err = de.applier.carryOut(ctx, st, stop, Intent{})
	if err == nil && stop.State == Promoted {
		stop.Reason = "it is back at " + stop.Has.Base.Short() + ", and held until " + cmp.Or(d.until(), "somebody releases it")
	}
	return stop, err
}

// restate pushes another hold.
func (de *decider) restate(ctx context.Context, st *stop, hold *tree.Hold, title string, d Decision) (*Stop, error) {
	stop, p, err := de.planner.restate(ctx, st, hold, title, d)
	if err != nil || p == nil {
		return stop, err
	}
	update := remote.Update{Ref: branchRef(st.out.branch), Old: st.out.tip, New: p.commit}
	if err := st.out.repository.remote.Push(ctx, []remote.Update{update}, p.packs, false); err != nil {
		if refused := (*remote.RejectedError)(nil); errors.As(err, &refused) {
			stop.State, stop.Reason = Blocked, fmt.Sprintf("branch %s takes no push: %v", st.out.branch, refused)
			if hold != nil {
				stop.Reason += fmt.Sprintf("; `kalypso freeze %s` stops promotion without one", st.stage.Name)
			}
			return stop, nil
		}
		return nil, err
	}
	if err := de.pusher.landed(ctx, st, stop, p.commit); err != nil {
		return nil, err
	}
	stop.State, stop.Reason = Held, "it is held at "+st.has().Base.Short()
	if hold == nil {
		stop.State, stop.Reason = Current, "it is released"
	}
	return stop, nil
}
