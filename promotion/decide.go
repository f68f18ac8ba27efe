package promotion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Decision is what a person decides about stops, with the reason.
type Decision struct {
	Reason string
	Until  time.Time // the zero Time for ever
}

// RollbackTo says where to go back to.
type RollbackTo struct {
	// Commit is an earlier base commit, as git names it; "" for Steps back.
	Commit string
	Steps  int
	// Exact brings the very files back that were there, without compiling.
	Exact bool
}

// Rollback brings stops back to an earlier base commit, compiled with the environment's
// own files of today or, exactly, as it was. Each gets a hold, so that no run promotes
// what was rolled back from. Gates are not asked.
func (s *Session) Rollback(ctx context.Context, to RollbackTo, d Decision) ([]*Stop, error) {
	return s.forEach(func(st *stop) (*Stop, error) { return s.rollback(ctx, st, to, d) })
}

// forEach decides about each stop that was asked for.
func (s *Session) forEach(decide func(*stop) (*Stop, error)) ([]*Stop, error) {
	var out []*Stop
	var errs []error
	for _, st := range s.asked() {
		if st.out.repository == nil {
			errs = append(errs, fmt.Errorf("%s: %s", st.id(), st.out.absent))
			continue
		}
		stop, err := decide(st)
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			stop, err = s.refused(st, stop, refused), nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", st.id(), err))
			continue
		}
		out = append(out, stop)
	}
	return out, errors.Join(errs...)
}

func (s *Session) rollback(ctx context.Context, st *stop, to RollbackTo, d Decision) (*Stop, error) {
	target, err := s.earlier(ctx, st, to)
	if err != nil {
		return nil, err
	}
	has := st.has()
	stop := &Stop{Environment: st.stage.Name, Ring: st.ringName(), State: Ready, Has: has, Branch: st.out.branch, Tip: string(tree.RevisionOf(st.out.tip))}
	if _, _, err := s.drifted(ctx, st, stop); err != nil || stop.State == Blocked {
		return stop, err
	}
	if err := s.recordGone(ctx, st, stop); err != nil || stop.State == Blocked {
		return stop, err
	}
	hold := &tree.Hold{Reason: d.Reason, By: s.request.By, Until: until(d), Base: has.Base}
	before, _, err := s.held(ctx, st)
	if err != nil {
		return nil, err
	}
	if before != nil && before.Base != "" {
		hold.Base = before.Base // a second step back is still from there
	}
	step := &Step{Kind: RollBack, Source: tree.Source{Base: st.out.sourceIn(target.record, st.ringName()).Base, Environment: tree.RevisionOf(st.out.own.Commit)}}
	c := change{hold: hold, trailers: s.decided(d), decided: s.now}
	if to.Exact {
		step.Source = st.out.sourceIn(target.record, st.ringName())
		err = s.prepareExact(st, step, target, c)
	} else {
		err = s.prepare(ctx, st, step, c)
	}
	if err != nil {
		return nil, err
	}
	stop.Step = step
	if o := step.prepared.obstacle; o != "" {
		stop.State, stop.Reason = Blocked, o+"; --exact brings the files back as they were"
		return stop, nil
	}
	if step.Change != nil && step.Change.Errors > 0 && !st.stage.Promotion.AllowErrors {
		stop.State, stop.Reason = Blocked, fmt.Sprintf("%s does not compile with the environment's own files of today: %s with errors; --exact brings the files back as they were", step.Source.Base.Short(), count(step.Change.Errors, s.subject.Form().unit()))
		return stop, nil
	}
	if step.prepared.report != nil {
		s.describe(st, step)
	} else {
		step.Title, step.Body = s.title(st, step), s.title(st, step)+"\n\n"+d.Reason+"\n"
	}
	err = s.carryOut(ctx, st, stop, Intent{})
	if err == nil && stop.State == Promoted {
		stop.Reason = "it is back at " + stop.Has.Base.Short() + ", and held until " + cmp.Or(hold.Until, "somebody releases it")
	}
	return stop, err
}

// decided are the trailers of what a person decided.
func (s *Session) decided(d Decision) []string {
	out := []string{"Kalypso-Reason: " + folded(d.Reason)}
	if s.request.By != "" {
		out = append(out, "Promoted-By: "+firstLine(s.request.By))
	}
	return out
}

func until(d Decision) string {
	if d.Until.IsZero() {
		return ""
	}
	return d.Until.UTC().Format(time.RFC3339)
}

// earlier finds the state of the environment to go back to.
func (s *Session) earlier(ctx context.Context, st *stop, to RollbackTo) (past, error) {
	if to.Commit == "" {
		had, err := st.out.history.basesBefore(ctx, st.ringName())
		had = slices.DeleteFunc(had, func(p past) bool { // a rejected commit comes nowhere
			return st.out.orders.rejected[st.out.sourceIn(p.record, st.ringName()).Base.Hash()] != nil
		})
		steps := max(1, to.Steps)
		switch {
		case err != nil:
			return past{}, err
		case len(had) == 0:
			return past{}, errors.New("it had no other base commit before what it has, so there is nothing to go back to")
		case steps > len(had):
			return past{}, fmt.Errorf("it had %s before what it has, so there is nothing %s back", count(len(had), "base commit"), count(steps, "step"))
		}
		return had[steps-1], nil
	}
	had, err := st.out.history.basesOf(ctx, st.ringName())
	if err != nil {
		return past{}, err
	}
	b, err := s.platform.resolve(to.Commit)
	if err != nil && !tree.Revision(to.Commit).IsCommit() {
		return past{}, err
	}
	wanted := tree.RevisionOf(b.Commit)
	if err != nil {
		wanted = tree.Revision(to.Commit) // it may not be in the branch's history any more
	}
	for _, p := range had {
		if st.out.sourceIn(p.record, st.ringName()).Base != wanted {
			continue
		}
		if o := st.out.orders.rejected[wanted.Hash()]; o != nil {
			return past{}, fmt.Errorf("%s is rejected: %s; `kalypso reject %s --undo` takes that back", wanted.Short(), terminal.Line(o.Reason), wanted.Short())
		}
		return p, nil
	}
	return past{}, fmt.Errorf("it never had %s: `kalypso audit --env %s` lists what it had", to.Commit, st.stage.Name)
}

// prepareExact makes a commit with the tree of an earlier one.
func (s *Session) prepareExact(st *stop, step *Step, target past, c change) error {
	if st.ring != nil && len(st.stage.Promotion.Rings) > 1 {
		return errors.New("--exact brings the files of the whole environment back, and it has several rings: leave it out, so that the ring alone is compiled")
	}
	view, err := st.out.repository.view(st.out.branch, target.ID)
	if err != nil {
		return err
	}
	message := s.message(st, step, &c)
	pack := st.out.repository.staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	result, err := st.out.at.Restore(st.out.folder, view, func(r *tree.Record) error {
		r.Clock = s.clock()
		s.setHold(r, st, c.hold)
		return nil
	}, pack, s.commitInfo(st, step.Source, message, c.decided))
	if err != nil {
		return err
	}
	if err := pack.Finish(); err != nil {
		return err
	}
	step.prepared = &prepared{commit: tree.Revision(result.Commit).Hash(), packs: packsOf(pack), message: result.Message}
	step.Commit, step.Tree = string(result.Commit), target.record.Tree
	return nil
}

// setHold sets the hold of a stop in a record, in which there may be rings that are not in
// the policy any more.
func (s *Session) setHold(r *tree.Record, st *stop, hold *tree.Hold) {
	if st.ring == nil {
		for i := range r.Rings {
			r.Rings[i].Hold = nil
		}
		r.Hold = hold
		return
	}
	if r.Hold != nil || r.Ring(st.ring.Name) == nil {
		r.Rings, r.Hold = st.out.ringsIn(r), nil
	}
	if ring := r.Ring(st.ring.Name); ring != nil {
		ring.Hold = hold
	}
}

// Hold keeps stops at what they have; Release ends that, also after a rollback.
func (s *Session) Hold(ctx context.Context, d Decision) ([]*Stop, error) {
	hold := &tree.Hold{Reason: d.Reason, By: s.request.By, Until: until(d)}
	return s.forEach(func(st *stop) (*Stop, error) { return s.restate(ctx, st, hold, "Hold "+st.id(), d) })
}

// Release ends the holds of stops.
func (s *Session) Release(ctx context.Context, d Decision) ([]*Stop, error) {
	return s.forEach(func(st *stop) (*Stop, error) { return s.restate(ctx, st, nil, "Release "+st.id(), d) })
}

// restate writes another hold into the record.
func (s *Session) restate(ctx context.Context, st *stop, hold *tree.Hold, title string, d Decision) (*Stop, error) {
	stop := &Stop{Environment: st.stage.Name, Ring: st.ringName(), Has: st.has(), Branch: st.out.branch, Tip: string(tree.RevisionOf(st.out.tip)), Hold: hold}
	before, _, err := s.held(ctx, st)
	if err != nil {
		return nil, err
	}
	if err := s.recordGone(ctx, st, stop); err != nil || stop.State == Blocked {
		return stop, err
	}
	if edited, err := s.edited(ctx, st.out); err != nil || edited != "" {
		stop.State, stop.Reason = Blocked, fmt.Sprintf("%s; `kalypso promote --overwrite` restores what was, and `kalypso freeze %s` stops promotion at once", edited, st.stage.Name)
		return stop, err
	}
	if st.has() == (tree.Source{}) && st.out.hold(st.ringName()) == nil {
		return nil, fmt.Errorf("branch %s has nothing of it yet, so there is nothing to hold: `kalypso freeze %s` stops promotion to it", st.out.branch, st.stage.Name)
	}
	c := change{hold: hold, title: title, trailers: s.decided(d), decided: s.now}
	if hold == nil {
		c.trailers = append(c.trailers, releaseTrailer+": "+st.id())
	}
	step := &Step{Kind: Configure, Source: st.has(), NoOp: true}
	message := s.message(st, step, &c)
	pack := st.out.repository.staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	info := s.commitInfo(st, st.has(), message, c.decided)
	info.Always = hold == nil && before != nil // also of one that the record does not have
	result, err := st.out.at.Restate(st.out.folder, func(r *tree.Record) error {
		if !sameHold(st.ownHold(), hold) {
			r.Clock = s.clock()
		}
		s.setHold(r, st, hold)
		return nil
	}, pack, info)
	if err != nil {
		return nil, err
	}
	stop.State, stop.Reason = Held, "it was held already"
	if hold == nil {
		stop.State, stop.Reason = Current, "nothing held it"
	}
	if result.Commit == "" {
		return stop, nil
	}
	if err := pack.Finish(); err != nil {
		return nil, err
	}
	commit := tree.Revision(result.Commit).Hash()
	update := remote.Update{Ref: branchRef(st.out.branch), Old: st.out.tip, New: commit}
	if err := st.out.repository.remote.Push(ctx, []remote.Update{update}, packsOf(pack), false); err != nil {
		if refused := (*remote.RejectedError)(nil); errors.As(err, &refused) {
			stop.State, stop.Reason = Blocked, fmt.Sprintf("branch %s takes no push: %v", st.out.branch, refused)
			if hold != nil {
				stop.Reason += fmt.Sprintf("; `kalypso freeze %s` stops promotion without one", st.stage.Name)
			}
			return stop, nil
		}
		return nil, err
	}
	if err := s.landed(ctx, st, stop, commit); err != nil {
		return nil, err
	}
	stop.State, stop.Reason = Held, "it is held at "+st.has().Base.Short()
	if hold == nil {
		stop.State, stop.Reason = Current, "it is released"
	}
	return stop, nil
}

// Freeze stops promotion to the environments that were asked for, without writing to
// their branches, and returns which these are; Thaw ends that.
func (s *Session) Freeze(ctx context.Context, d Decision) ([]string, error) {
	return s.orderEach(func(environment string, r *repository) error {
		return s.give(ctx, r, &order{Kind: "freeze", About: environment, Reason: d.Reason, By: s.request.By, Until: d.Until})
	})
}

// Thaw ends the freezes of environments, and returns which these are. One that is not
// frozen stays so.
func (s *Session) Thaw(ctx context.Context) ([]string, error) {
	return s.orderEach(func(environment string, r *repository) error {
		return s.takeBack(ctx, r, "freeze", environment, "thaw")
	})
}

func (s *Session) orderEach(f func(environment string, r *repository) error) ([]string, error) {
	var names []string
	var errs []error
	for _, out := range s.askedOutputs() {
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
func (s *Session) Reject(ctx context.Context, commit string, d Decision) (string, error) {
	return s.rejection(commit, func(r *repository, id string) error {
		return s.give(ctx, r, &order{Kind: "reject", About: id, Reason: d.Reason, By: s.request.By})
	})
}

// Unreject takes a rejection back.
func (s *Session) Unreject(ctx context.Context, commit string) (string, error) {
	return s.rejection(commit, func(r *repository, id string) error {
		return s.takeBack(ctx, r, "reject", id, "readmit")
	})
}

func (s *Session) rejection(commit string, f func(r *repository, id string) error) (string, error) {
	b, err := s.platform.resolve(commit)
	if err != nil {
		return "", err
	}
	var errs []error
	done := map[*repository]bool{}
	for _, out := range s.outputs {
		if out.repository != nil && !done[out.repository] {
			done[out.repository] = true
			errs = append(errs, f(out.repository, b.Commit.String()))
		}
	}
	return b.Commit.String(), errors.Join(errs...)
}

// Abort calls off what is proposed for stops: change requests are closed, their branches
// removed, and their commits come only if somebody asks for them by name.
func (s *Session) Abort(ctx context.Context, d Decision) ([]*Stop, error) {
	return s.forEach(func(st *stop) (*Stop, error) {
		stop := &Stop{Environment: st.stage.Name, Ring: st.ringName(), State: Current, Has: st.has(), Branch: st.out.branch, Tip: string(tree.RevisionOf(st.out.tip))}
		proposal := st.out.repository.refs[branchRef(st.promotionBranch())]
		if proposal.IsZero() {
			stop.Reason = "nothing was proposed"
			return stop, nil
		}
		if gives, err := s.giveWay(ctx, st, stop); err != nil || gives {
			return stop, err
		}
		off := baseOf(st.out.repository, proposal)
		if off.IsCommit() {
			if err := s.give(ctx, st.out.repository, &order{Kind: "abort", About: st.abortName() + "/" + string(off), Reason: d.Reason, By: s.request.By}); err != nil {
				return nil, err
			}
		}
		stop.Reason = "the proposal of " + off.Short() + " is called off"
		text := "Called off"
		if s.request.By != "" {
			text += " by " + markdown(s.request.By)
		}
		return stop, s.close(ctx, st, text+": "+markdown(d.Reason))
	})
}

// abortName is what the order that calls off a candidate of the stop is about.
func (st *stop) abortName() string {
	if st.ring == nil {
		return st.stage.Name
	}
	return st.stage.Name + "." + st.ringName()
}
