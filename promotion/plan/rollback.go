package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/verify"
)

// Decision is a person's decision about stages, with the reason.
type Decision struct {
	Reason string
	Until  time.Time // the zero Time for ever
}

// RollbackTo is the target of a rollback.
type RollbackTo struct {
	// Commit is an earlier base commit, as git names it; "" for Steps back.
	Commit string
	Steps  int
	// Exact brings the very files back that were there, without compiling.
	Exact bool
	// Own goes back with the environment's own files and keeps the base commit: Commit and Steps
	// are about own files.
	Own bool
}

// noneEarlier is the error if a stage never had the commit to go back to: the reason, and the
// possible commits.
type noneEarlier string

// Error returns the reason.
func (e noneEarlier) Error() string { return string(e) }

// Rollback returns the status of a rollback, with its step. It ignores gates.
func (pl *Planner) Rollback(ctx context.Context, st *session.Stage, to RollbackTo,
	d Decision) (*StageStatus, error) {
	has := st.Has()
	earlier := pl.earlier
	if to.Own {
		earlier = pl.earlierOwn
	}
	status := StatusOf(st)
	status.State = Ready
	target, err := earlier(ctx, st, to)
	if none := noneEarlier(""); errors.As(err, &none) {
		status.State, status.Reason = Blocked, string(none)
		return status, nil
	}
	if err != nil {
		return nil, err
	}
	if _, _, err := pl.drifted(ctx, st, status); err != nil || status.State == Blocked {
		return status, err
	}
	if err := pl.recordGone(ctx, st, status); err != nil || status.State == Blocked {
		return status, err
	}
	hold := &tree.Hold{Reason: d.Reason, By: pl.state.Request.By, Until: d.Deadline(), Base: has.Base}
	before, _, err := pl.records.Held(ctx, st)
	if err != nil {
		return nil, err
	}
	if before != nil && before.Base != "" {
		hold.Base = before.Base // a second step back is still from there
	}
	step := &Step{Kind: RollBack, Source: tree.Source{Base: st.Environment.SourceIn(target.Record,
		st.RingName()).Base, Environment: tree.RevisionOf(st.Environment.Own.Commit)}}
	if before != nil && before.Environment != "" { // it is back from newer own files
		step.Source.Environment, hold.Environment = has.Environment, before.Environment
	}
	if st.TakesPairs() { // the rings before may not have had the present ones
		step.Source.Environment = has.Environment
	}
	if to.Own {
		step.Source = tree.Source{Base: has.Base,
			Environment: st.Environment.SourceIn(target.Record, st.RingName()).Environment}
		hold.Environment = has.Environment
		if before != nil && before.Environment != "" {
			hold.Environment = before.Environment
		}
	}
	c := extra{hold: hold, trailers: pl.decided(d), decided: pl.state.Now}
	if to.Exact {
		if target, err = pl.asLeft(ctx, st, target); err != nil {
			return nil, err
		}
		step.Source = st.Environment.SourceIn(target.Record, st.RingName())
		err = pl.maker.prepareExact(st, step, target, c)
	} else {
		err = pl.maker.prepare(ctx, st, step, c)
	}
	if err != nil {
		return nil, err
	}
	status.Step = step
	if o := step.Prepared.obstacle; o != "" {
		status.State, status.Reason = Blocked, o+"; --exact brings the files back as they were"
		return status, nil
	}
	if step.Change != nil && step.Change.Errors > 0 && !st.Policy.Promotion.AllowErrors {
		status.State, status.Reason = Blocked,
			fmt.Sprintf("%s does not compile with the environment's own files of today: %s with errors; "+
				"--exact brings the files back as they were", step.Source.Base.Short(),
				message.Count(step.Change.Errors, pl.state.Platform.Subject.Form().Unit()))
		return status, nil
	}
	if step.Prepared.report != nil {
		pl.maker.describe(st, step)
	} else {
		step.Title, step.Body = pl.maker.title(st, step), pl.maker.title(st, step)+"\n\n"+d.Reason+"\n"
	}
	return status, nil
}

// decided returns the trailers of a person's decision.
func (pl *Planner) decided(d Decision) []string {
	out := []string{message.ReasonTrailer + ": " + message.Fold(d.Reason)}
	if pl.state.Request.By != "" {
		out = append(out, message.ByTrailer+": "+message.FirstLine(pl.state.Request.By))
	}
	return out
}

// Deadline returns Until as records have it, or "".
func (d Decision) Deadline() string {
	if d.Until.IsZero() {
		return ""
	}
	return d.Until.UTC().Format(time.RFC3339)
}

// earlier returns the state of the environment to go back to.
func (pl *Planner) earlier(ctx context.Context, st *session.Stage, to RollbackTo) (session.Past,
	error) {
	if to.Commit == "" {
		had, err := st.Environment.History.BasesBefore(ctx, st.RingName())
		had = slices.DeleteFunc(had, func(p session.Past) bool { // a rejected commit comes nowhere
			return st.Environment.Orders.Rejected[st.Environment.SourceIn(p.Record,
				st.RingName()).Base.Hash()] != nil
		})
		steps := max(1, to.Steps)
		switch {
		case err != nil:
			return session.Past{}, err
		case len(had) == 0:
			return session.Past{}, noneEarlier("it had no other base commit before what it has, so there " +
				"is nothing to go back to; " + pl.remains(st))
		case steps > len(had):
			return session.Past{},
				noneEarlier(fmt.Sprintf("it had %s before what it has (%s), so there is nothing %s back",
					message.Count(len(had), "base commit"), pl.names(st, had), message.Count(steps, "step")))
		}
		return had[steps-1], nil
	}
	had, err := st.Environment.History.BasesOf(ctx, st.RingName())
	if err != nil {
		return session.Past{}, err
	}
	b, err := pl.state.Platform.Resolve(to.Commit)
	if err != nil && !tree.Revision(to.Commit).IsCommit() {
		return session.Past{}, err
	}
	wanted := tree.RevisionOf(b.Commit)
	if err != nil {
		wanted = tree.Revision(to.Commit) // it may not be in the branch's history any more
	}
	for _, p := range had {
		if st.Environment.SourceIn(p.Record, st.RingName()).Base != wanted {
			continue
		}
		if o := st.Environment.Orders.Rejected[wanted.Hash()]; o != nil {
			return session.Past{}, fmt.Errorf(
				"%s is rejected: %s; `kalypso reject %s --undo` takes that back", wanted.Short(),
				terminal.Line(o.Reason), wanted.Short())
		}
		return p, nil
	}
	return session.Past{},
		noneEarlier(fmt.Sprintf("it never had %s, but %s; `kalypso audit --env %s` lists what it had",
			to.Commit, cmp.Or(pl.names(st, had), "nothing else"), st.Policy.Name))
}

// maxNames is the largest number of commits that a message lists.
const maxNames = 5

// names lists the base commits of states of a stage, the newest first.
func (pl *Planner) names(st *session.Stage, states []session.Past) string {
	var out []string
	for _, p := range states {
		if name := st.Environment.SourceIn(p.Record, st.RingName()).Base.Short(); !slices.Contains(out,
			name) {
			out = append(out, name)
		}
	}
	if len(out) > maxNames {
		out = append(out[:maxNames], fmt.Sprintf("and %d more", len(out)-maxNames))
	}
	return strings.Join(out, ", ")
}

// remains describes the possible steps of a stage that has no commit to go back to.
func (pl *Planner) remains(st *session.Stage) string {
	name := st.Policy.Name
	if ring := st.RingName(); ring != "" {
		name += " --ring " + ring
	}
	return fmt.Sprintf("`kalypso hold %s` keeps it at what it has, and a commit that reverts the "+
		"change can be promoted", name)
}

// asLeft returns the newest state of an environment with the same commit in a stage as in the
// given state, and without edits of generated files. If there is no such state, it returns the
// given one.
func (pl *Planner) asLeft(ctx context.Context, st *session.Stage,
	target session.Past) (session.Past, error) {
	out, found := target, false
	var failed error
	err := st.Environment.History.Each(ctx, func(p session.Past) bool {
		if found = found || p.ID == target.ID; !found {
			return true
		}
		if st.Environment.SourceIn(p.Record, st.RingName()) != st.Environment.SourceIn(target.Record,
			st.RingName()) {
			return false
		}
		view, err := st.Environment.Repository.View(st.Environment.Branch, p.ID)
		if err == nil {
			var drift []tree.Drift
			if drift, err = st.Environment.DriftIn(ctx, view, p.Record); err == nil && len(drift) == 0 {
				out = p
				return false
			}
		}
		failed = err
		return err == nil
	})
	return out, cmp.Or(err, failed)
}

// earlierOwn returns the newest state with each of the earlier own files that a stage had, and of
// these the one to go back to.
func (pl *Planner) earlierOwn(ctx context.Context, st *session.Stage, to RollbackTo) (session.Past,
	error) {
	states, err := st.Environment.History.All(ctx)
	if err != nil {
		return session.Past{}, err
	}
	has := st.Has()
	if has.Base == "" {
		return session.Past{}, noneEarlier("it has nothing yet, so there is nothing to go back to")
	}
	var had []session.Past
	seen := map[tree.Revision]bool{}
	for _, p := range states {
		is := st.Environment.SourceIn(p.Record, st.RingName())
		if is == (tree.Source{}) || seen[is.Environment] {
			continue
		}
		seen[is.Environment] = true
		older, err := pl.state.OwnNewer(ctx, st, has.Environment, is.Environment)
		switch {
		case err != nil:
			return session.Past{}, err
		case !older:
		case to.Commit != "" && len(to.Commit) >= 7 &&
			strings.HasPrefix(string(is.Environment), to.Commit):
			return p, nil
		default:
			had = append(had, p)
		}
	}
	steps := max(1, to.Steps)
	switch {
	case to.Commit != "":
		return session.Past{}, noneEarlier(fmt.Sprintf("it never had earlier own files of %s: --to "+
			"takes the id of a commit, or its first 7 digits or more, and `kalypso audit --env %s` lists "+
			"what it had",
			to.Commit, st.Policy.Name))
	case len(had) == 0:
		return session.Past{}, noneEarlier("it had no earlier own files, so there is nothing to go " +
			"back to; " + pl.remains(st))
	case steps > len(had):
		return session.Past{}, noneEarlier(fmt.Sprintf("it had %s of own files before what it has, so "+
			"there is nothing %s back",
			message.Count(len(had), "commit"), message.Count(steps, "step")))
	}
	return had[steps-1], nil
}

// Restate makes a commit with another hold in the record of a stage. It returns nil if
// the status is blocked, or the record has that hold.
func (pl *Planner) Restate(ctx context.Context, st *session.Stage, hold *tree.Hold, title string,
	d Decision) (*StageStatus, *PreparedCommit, error) {
	status := StatusOf(st)
	status.Hold = hold
	before, _, err := pl.records.Held(ctx, st)
	if err != nil {
		return nil, nil, err
	}
	if err := pl.recordGone(ctx, st, status); err != nil || status.State == Blocked {
		return status, nil, err
	}
	if edited, err := pl.records.Edited(ctx, st.Environment); err != nil || edited != "" {
		status.State, status.Reason = Blocked,
			fmt.Sprintf("%s; `kalypso promote --overwrite` restores what was, and `kalypso freeze %s` "+
				"stops promotion at once", edited, st.Policy.Name)
		return status, nil, err
	}
	if st.Has() == (tree.Source{}) && st.Environment.Hold(st.RingName()) == nil {
		return nil, nil, fmt.Errorf("branch %s has nothing of it yet, so there is nothing to hold: "+
			"`kalypso freeze %s` stops promotion to it", st.Environment.Branch, st.Policy.Name)
	}
	status.State, status.Reason = Held, "it was held already"
	if hold == nil {
		status.State, status.Reason = Current, "nothing held it"
	}
	c := extra{hold: hold, title: title, trailers: pl.decided(d), decided: pl.state.Now}
	if hold == nil {
		c.trailers = append(c.trailers, verify.ReleaseTrailer+": "+st.ID())
	}
	// also of one that the record does not have
	p, err := pl.maker.restate(st, c, hold == nil && before != nil)
	return status, p, err
}
