package plan

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// drifted blocks a stage whose files somebody else has changed, unless the request overwrites
// them. over is true if the step overwrites them. recorded is true if the record is unchanged.
func (pl *Planner) drifted(ctx context.Context, st *session.Stage, out *StageStatus) (over,
	recorded bool, err error) {
	has := st.Has() != (tree.Source{})
	if !st.Environment.Restored.IsZero() {
		return has, true, nil
	}
	drift, err := st.Environment.Tree.Drift(st.Environment.Folder)
	if err != nil {
		return false, false, err
	}
	recorded = !slices.ContainsFunc(drift, func(d tree.Drift) bool {
		return strings.HasPrefix(d.Path, path.Dir(tree.RecordPath)+"/") && d.Kind != tree.Spaced
	})
	if pl.state.Request.Adopt {
		drift = slices.DeleteFunc(drift, func(d tree.Drift) bool { return d.Kind == tree.Added })
	}
	var edited string
	if len(drift) == 0 {
		if edited, err = pl.records.Edited(ctx, st.Environment); err != nil || edited == "" {
			return false, true, err
		}
		recorded = false
	}
	if pl.state.Request.Overwrite { // there is no commit in which it was good: it is compiled over it
		return has, recorded, nil
	}
	out.State = Blocked
	if edited != "" {
		out.Drift = []string{edited}
		out.Reason = "drift: " + edited + "; --overwrite restores what was"
		return false, false, nil
	}
	var names []string
	adopts := "" // if there is no other problem
	if !slices.ContainsFunc(drift, func(d tree.Drift) bool { return d.Kind != tree.Added }) && !has {
		adopts = ", --adopt takes over what was added"
	}
	for _, d := range drift {
		out.Drift = append(out.Drift, d.String())
		names = append(names, d.Path+driftWords[d.Kind])
	}
	out.Reason = fmt.Sprintf("drift: branch %s is not what was promoted in %s: %s; --overwrite "+
		"restores what was%s, and `git log -- FILE` says who changed it",
		st.Environment.Branch, message.Count(len(drift), "file"), message.List(names, 5), adopts)
	return false, recorded, nil
}

// driftWords are added to the names of files that are not just changed.
var driftWords = map[tree.DriftKind]string{tree.Gone: " (gone)", tree.Added: " (added)",
	tree.Spaced: " (spaces)"}

// foreign blocks a stage whose branch has a record that cannot be read, or the record of another
// environment. It reports whether it did.
func foreign(st *session.Stage, out *StageStatus) bool {
	switch env := st.Environment; {
	case len(env.Problems) > 0:
		out.Reason = fmt.Sprintf("%s; revert the commit of branch %s that broke it, or restore what "+
			"was there with --overwrite", env.Problems[0].Message, env.Branch)
	case env.Record != nil && !env.IsNamed(env.Record.Environment):
		out.Reason = fmt.Sprintf("the record of branch %s is that of environment %s: if it was "+
			"renamed, write environments: %s: formerly: %q; if not, give %[3]s a branch of its own, or "+
			"push what was there before", env.Branch, terminal.Line(env.Record.Environment), env.Policy.Name,
			terminal.Line(env.Record.Environment))
	default:
		return false
	}
	out.State = Blocked
	return true
}

// recordGone blocks a stage whose branch had a record, and has lost it.
func (pl *Planner) recordGone(ctx context.Context, st *session.Stage, out *StageStatus) error {
	if foreign(st, out) || st.Environment.Tip.IsZero() || st.Environment.Record != nil ||
		pl.state.Request.Adopt {
		return nil
	}
	var by session.Past
	gone := false
	err := st.Environment.History.Each(ctx, func(p session.Past) bool {
		if gone = p.Record != nil; !gone {
			by = p
		}
		return !gone
	})
	if err != nil {
		return err
	}
	if !gone { // nor had it any: somebody may have replaced the branch
		reason, err := pl.state.Gone(ctx, st)
		if reason != "" {
			out.State, out.Reason = Blocked, reason+"; push that again, or begin anew with --adopt"
		}
		return err
	}
	out.State = Blocked
	out.Reason = fmt.Sprintf("the record of branch %s is gone: commit %s removed it; revert that, "+
		"restore it with --overwrite, or begin anew with --adopt", st.Environment.Branch,
		git.Short(by.ID))
	return nil
}

// findMoved blocks a stage whose tree has a new place, until somebody adopts the new place.
func (pl *Planner) findMoved(ctx context.Context, st *session.Stage, out *StageStatus) error {
	move, err := pl.state.Moved(ctx, st)
	if move != nil && !pl.state.Request.Adopt {
		out.State, out.Reason = Blocked, move.Blocks()
	}
	return err
}

// findGone blocks a stage whose branch was there and is gone.
func (pl *Planner) findGone(ctx context.Context, st *session.Stage, out *StageStatus) error {
	if !st.Environment.Tip.IsZero() || pl.state.Request.Adopt {
		return nil
	}
	reason, err := pl.state.Gone(ctx, st)
	if reason != "" {
		out.State, out.Reason = Blocked, reason+"; push it again, or begin it anew with --adopt"
	}
	return err
}

// explainNothing sets the state of a stage that has no candidate, with the reason.
func (pl *Planner) explainNothing(ctx context.Context, st *session.Stage, out *StageStatus) error {
	has := st.Has()
	switch {
	case has.Base != "":
		if _, known, err := pl.state.Platform.Bases.Until(has.Base.Hash()); err == nil && !known {
			out.State = Blocked
			if !has.Base.IsCommit() {
				out.Reason = "what it has was built from files, and from no commit of the platform: name the " +
					"commit that comes next, with --commit"
				return nil
			}
			out.Reason = fmt.Sprintf("%s is not in the history of branch %s any more, which was "+
				"rewritten: name the commit that comes next, with --commit", has.Base.Short(),
				pl.state.Platform.Branch)
			return nil
		}
		out.State, out.Reason = Current, "it has "+has.Base.Short()
	default:
		out.State, out.Reason = Waiting, "there is no commit yet"
	}
	if held, err := pl.keptInPlace(ctx, st, out); err != nil || held {
		return err
	}
	refused := ""
	if i := slices.IndexFunc(out.Others, func(o Other) bool { return o.Refused }); i >= 0 {
		refused = fmt.Sprintf("; %s was %s", tree.Revision(out.Others[i].Commit).Short(),
			out.Others[i].Reason)
	}
	for _, o := range out.Others {
		if !o.Refused {
			out.State, out.Reason = Waiting,
				fmt.Sprintf("%s: %s", tree.Revision(o.Commit).Short(), o.Reason)+refused
			return nil
		}
	}
	if refused != "" && has.Base != "" {
		out.Reason += refused
	}
	if out.Rollout != nil {
		out.Since = out.Rollout.Since
	}
	return nil
}

// keptInPlace reports whether a hold or a freeze keeps the stage at its commit, and sets
// its state if so.
func (pl *Planner) keptInPlace(ctx context.Context, st *session.Stage, out *StageStatus) (bool,
	error) {
	hold, err := pl.judge.holdFacts(ctx, st)
	if err != nil {
		return false, err
	}
	orders := ordersAgainst(st, gate.CommitFacts{Now: pl.state.Now, Reachable: true, Hold: hold,
		Freeze: freezeOf(st.Environment.Orders.Frozen)})
	if len(orders) > 0 {
		v := orders[0]
		out.State, out.Reason, out.Since, out.Until = Held, v.Gate+": "+v.Reason, v.Since, v.Until
	}
	return len(orders) > 0, nil
}
