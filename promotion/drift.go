package promotion

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// drifted says whether what somebody else did to the environment's tree is to be written
// over. Unless that is asked for, it blocks the stop. recorded says that the record is not
// among what was changed.
func (pl *planner) drifted(ctx context.Context, st *stop, out *Stop) (over, recorded bool, err error) {
	has := st.has() != (tree.Source{})
	if !st.out.restored.IsZero() {
		return has, true, nil
	}
	drift, err := st.out.at.Drift(st.out.folder)
	if err != nil {
		return false, false, err
	}
	recorded = !slices.ContainsFunc(drift, func(d tree.Drift) bool {
		return strings.HasPrefix(d.Path, path.Dir(tree.RecordPath)+"/") && d.Kind != tree.Spaced
	})
	if pl.state.request.Adopt {
		drift = slices.DeleteFunc(drift, func(d tree.Drift) bool { return d.Kind == tree.Added })
	}
	var edited string
	if len(drift) == 0 {
		if edited, err = pl.records.edited(ctx, st.out); err != nil || edited == "" {
			return false, true, err
		}
		recorded = false
	}
	if pl.state.request.Overwrite { // there is no commit in which it was good: it is compiled over it
		return has, recorded, nil
	}
	out.State = Blocked
	if edited != "" {
		out.Drift = []string{edited}
		out.Reason = "drift: " + edited + "; --overwrite restores what was"
		return false, false, nil
	}
	var names []string
	adopts := "" // where nothing else is wrong
	if !slices.ContainsFunc(drift, func(d tree.Drift) bool { return d.Kind != tree.Added }) && !has {
		adopts = ", --adopt takes over what was added"
	}
	for _, d := range drift {
		out.Drift = append(out.Drift, d.String())
		names = append(names, d.Path+driftWords[d.Kind])
	}
	out.Reason = fmt.Sprintf("drift: branch %s is not what was promoted in %s: %s; --overwrite restores what was%s, and `git log -- FILE` says who changed it",
		st.out.branch, count(len(drift), "file"), list(names, 5), adopts)
	return false, recorded, nil
}

// driftWords are what a reason says of a file that is not just changed.
var driftWords = map[tree.DriftKind]string{tree.Gone: " (gone)", tree.Added: " (added)", tree.Spaced: " (spaces)"}

// foreign blocks a stop whose branch has a record that cannot be read, or another
// environment's, and says whether it does.
func foreign(st *stop, out *Stop) bool {
	switch o := st.out; {
	case len(o.problems) > 0:
		out.Reason = fmt.Sprintf("%s; revert the commit of branch %s that broke it, or restore what was there with --overwrite", o.problems[0].Message, o.branch)
	case o.record != nil && o.record.Environment != o.stage.Name:
		out.Reason = fmt.Sprintf("the record of branch %s is that of environment %s: push what was there again, restore it with --overwrite, or remove the branch and begin anew with --adopt", o.branch, terminal.Line(o.record.Environment))
	default:
		return false
	}
	out.State = Blocked
	return true
}

// recordGone finds an environment whose branch had a record, and has none: as good as a
// branch that is gone.
func (pl *planner) recordGone(ctx context.Context, st *stop, out *Stop) error {
	if foreign(st, out) || st.out.tip.IsZero() || st.out.record != nil || pl.state.request.Adopt {
		return nil
	}
	var by past
	gone := false
	err := st.out.history.each(ctx, func(p past) bool {
		if gone = p.record != nil; !gone {
			by = p
		}
		return !gone
	})
	if err != nil {
		return err
	}
	if !gone { // nor had it any: somebody may have replaced the branch
		reason, err := pl.state.gone(ctx, st)
		if reason != "" {
			out.State, out.Reason = Blocked, reason+"; push that again, or begin anew with --adopt"
		}
		return err
	}
	out.State = Blocked
	out.Reason = fmt.Sprintf("the record of branch %s is gone: commit %s removed it; revert that, restore it with --overwrite, or begin anew with --adopt", st.out.branch, git.Short(by.ID))
	return nil
}
