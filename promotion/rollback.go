package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/tree"
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

// rollback says how a stage goes back, with the step that does it.
func (pl *planner) rollback(ctx context.Context, st *stop, to RollbackTo, d Decision) (*Stop, error) {
	target, err := pl.earlier(ctx, st, to)
	if err != nil {
		return nil, err
	}
	has := st.has()
	stop := statusOf(st)
	stop.State = Ready
	if _, _, err := pl.drifted(ctx, st, stop); err != nil || stop.State == Blocked {
		return stop, err
	}
	if err := pl.recordGone(ctx, st, stop); err != nil || stop.State == Blocked {
		return stop, err
	}
	hold := &tree.Hold{Reason: d.Reason, By: pl.state.request.By, Until: d.until(), Base: has.Base}
	before, _, err := pl.records.held(ctx, st)
	if err != nil {
		return nil, err
	}
	if before != nil && before.Base != "" {
		hold.Base = before.Base // a second step back is still from there
	}
	step := &Step{Kind: RollBack, Source: tree.Source{Base: st.out.sourceIn(target.record, st.ringName()).Base, Environment: tree.RevisionOf(st.out.own.Commit)}}
	c := change{hold: hold, trailers: pl.decided(d), decided: pl.state.now}
	if to.Exact {
		step.Source = st.out.sourceIn(target.record, st.ringName())
		err = pl.maker.prepareExact(st, step, target, c)
	} else {
		err = pl.maker.prepare(ctx, st, step, c)
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
		stop.State, stop.Reason = Blocked, fmt.Sprintf("%s does not compile with the environment's own files of today: %s with errors; --exact brings the files back as they were", step.Source.Base.Short(), count(step.Change.Errors, pl.state.platform.subject.Form().unit()))
		return stop, nil
	}
	if step.prepared.report != nil {
		pl.maker.describe(st, step)
	} else {
		step.Title, step.Body = pl.maker.title(st, step), pl.maker.title(st, step)+"\n\n"+d.Reason+"\n"
	}
	return stop, nil
}

// decided are the trailers of what a person decided.
func (pl *planner) decided(d Decision) []string {
	out := []string{"Kalypso-Reason: " + folded(d.Reason)}
	if pl.state.request.By != "" {
		out = append(out, "Promoted-By: "+firstLine(pl.state.request.By))
	}
	return out
}

// until is the time as records have it; "" for ever.
func (d Decision) until() string {
	if d.Until.IsZero() {
		return ""
	}
	return d.Until.UTC().Format(time.RFC3339)
}

// earlier finds the state of the environment to go back to.
func (pl *planner) earlier(ctx context.Context, st *stop, to RollbackTo) (past, error) {
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
	b, err := pl.state.platform.resolve(to.Commit)
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

// restate makes a commit with another hold in the record of a stage. There is none where the
// status is blocked, or the record says that already.
func (pl *planner) restate(ctx context.Context, st *stop, hold *tree.Hold, title string, d Decision) (*Stop, *prepared, error) {
	stop := statusOf(st)
	stop.Hold = hold
	before, _, err := pl.records.held(ctx, st)
	if err != nil {
		return nil, nil, err
	}
	if err := pl.recordGone(ctx, st, stop); err != nil || stop.State == Blocked {
		return stop, nil, err
	}
	if edited, err := pl.records.edited(ctx, st.out); err != nil || edited != "" {
		stop.State, stop.Reason = Blocked, fmt.Sprintf("%s; `kalypso promote --overwrite` restores what was, and `kalypso freeze %s` stops promotion at once", edited, st.stage.Name)
		return stop, nil, err
	}
	if st.has() == (tree.Source{}) && st.out.hold(st.ringName()) == nil {
		return nil, nil, fmt.Errorf("branch %s has nothing of it yet, so there is nothing to hold: `kalypso freeze %s` stops promotion to it", st.out.branch, st.stage.Name)
	}
	stop.State, stop.Reason = Held, "it was held already"
	if hold == nil {
		stop.State, stop.Reason = Current, "nothing held it"
	}
	c := change{hold: hold, title: title, trailers: pl.decided(d), decided: pl.state.now}
	if hold == nil {
		c.trailers = append(c.trailers, releaseTrailer+": "+st.id())
	}
	p, err := pl.maker.restate(st, c, hold == nil && before != nil) // also of one that the record does not have
	return stop, p, err
}
