package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// gatesStatusOf returns the sum of verdicts, as a status of the head of a change request.
func gatesStatusOf(verdicts []gate.Verdict) forge.Status {
	status := forge.Status{Name: ledger.GatesStatus, State: forge.Pending,
		Description: gate.Reason(verdicts)}
	switch gate.Overall(verdicts) {
	case gate.Passed:
		status.State = forge.Success
	case gate.Blocked:
		if slices.ContainsFunc(verdicts,
			func(v gate.Verdict) bool { return v.State == gate.Blocked && v.Kind().Effect != gate.Holds }) {
			status.State = forge.Failure
		}
	}
	return status
}

// retractGates retracts the success of all gates of an open proposal while the stage may not get
// a commit. It also changes the text of the change request. Otherwise people, or the forge, would
// merge a commit that was rejected or frozen since. It removes a proposal that others have
// merged.
func (pr *proposer) retractGates(ctx context.Context, st *session.Stage,
	status *plan.StageStatus) error {
	if st.Environment.Repository == nil ||
		!slices.Contains([]plan.State{plan.Waiting, plan.Blocked, plan.Held}, status.State) {
		return nil
	}
	head := st.ProposalHead()
	if head.IsZero() || status.Step != nil && status.Step.Prepared != nil &&
		status.Step.Prepared.Commit == head && plan.Proposable(status.Step) {
		return nil // propose has reported its own gates
	}
	gates := forge.Status{Name: ledger.GatesStatus, State: forge.Pending,
		Description: "not to be merged now: " + st.ID() + " is " + string(status.State)}
	if status.State == plan.Blocked {
		gates.State = forge.Failure
	}
	if status.Step != nil && gate.Overall(status.Step.Verdicts) != gate.Passed {
		gates = gatesStatusOf(status.Step.Verdicts)
	}
	open, err := pr.stop(ctx, st, gates)
	if err == nil && open && st.Environment.Repository.Plain {
		status.Reason += "; branch " + st.PromotionBranch() + " is not to be merged now"
	}
	return err
}

// stop marks the open proposal of a stage as not to be merged now, in its status and its text, and
// reports whether a proposal is open. It removes the branch of a proposal that others have merged.
func (pr *proposer) stop(ctx context.Context, st *session.Stage, gates forge.Status) (open bool,
	err error) {
	head := st.ProposalHead()
	if head.IsZero() {
		return false, nil
	}
	p, err := pr.planner.Proposed(ctx, st)
	if err != nil {
		return false, err
	}
	if p.Arrived {
		return false, pr.removeBranch(ctx, st)
	}
	if err := pr.reportGates(ctx, st, head, gates); err != nil || st.Environment.Repository.Plain {
		return true, err
	}
	r := st.Environment.Repository
	change, err := r.Forge.FindChange(ctx, st.PromotionBranch(), st.Environment.Branch)
	if err != nil || change == nil || !slices.Contains(change.Labels, ownLabel) {
		return change != nil, err
	}
	body := warned(change.Body, gates.Description)
	if body == change.Body || r.Forge.Limits().Body > 0 &&
		utf8.RuneCountInString(body) > r.Forge.Limits().Body {
		return true, nil
	}
	_, err = r.Forge.SaveChange(ctx, forge.ChangeSpec{Head: st.PromotionBranch(),
		Base: st.Environment.Branch, Title: change.Title, Body: body, Labels: change.Labels})
	return true, err
}

// warning begins the line of a change request that is not to be merged now.
const warning = "> **Not to be merged now**: "

// warned returns the body of a change request with a warning below the marker, instead of an
// earlier one.
func warned(body, why string) string {
	var lines []string
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, warning) {
			lines = append(lines, line)
		}
	}
	at := min(1, len(lines))
	if at == 1 && !strings.HasPrefix(lines[0], "<!--") {
		at = 0
	}
	return strings.Join(slices.Insert(lines, at, warning+message.Markdown(why)+"\n"), "")
}

// reportGates reports the sum of the gates for the head of a stage's change request. If they do
// not all pass, it first cancels a scheduled merge of the forge. A forge knows only its own
// rules, and some forges merge a newer head instead of the requested one.
func (pr *proposer) reportGates(ctx context.Context, st *session.Stage, head git.Hash,
	status forge.Status) error {
	r := st.Environment.Repository
	if status.State != forge.Success {
		statuses, err := r.Statuses().Of(ctx, head)
		if err != nil {
			return err
		}
		statuses = slices.DeleteFunc(slices.Clone(statuses),
			func(s forge.Status) bool { return s.Name != ledger.GatesStatus })
		if !r.Plain && (len(statuses) == 0 || statuses[len(statuses)-1].State == forge.Success) {
			if err := pr.cancelMerge(ctx, st); err != nil {
				return err
			}
		}
	}
	return r.Statuses().Report(ctx, head, status)
}

// cancelMerge cancels a scheduled merge of the forge for a stage.
func (pr *proposer) cancelMerge(ctx context.Context, st *session.Stage) error {
	open, err := st.Environment.Repository.Forge.FindChange(ctx, st.PromotionBranch(),
		st.Environment.Branch)
	if err != nil || open == nil {
		return err
	}
	return st.Environment.Repository.Forge.CancelMerge(ctx, open.Number)
}

// withdraw closes the change request of a stage that may not get a commit any more, and removes
// its branch. If the stage is only blocked for now, it keeps its change request.
func (pr *proposer) withdraw(ctx context.Context, st *session.Stage,
	status *plan.StageStatus) error {
	if status == nil || status.State != plan.Current || st.Environment.Repository == nil ||
		st.ProposalHead().IsZero() {
		return nil
	}
	return pr.close(ctx, st, "What it proposed is there, or nothing is left to propose: "+
		message.Markdown(status.Reason)+".")
}

// ownLabel is the label of change requests that kalypso opens, or has taken up.
const ownLabel = "kalypso/promotion"

// close closes the change request of a stage, if kalypso opened it, and removes the
// branch.
func (pr *proposer) close(ctx context.Context, st *session.Stage, comment string) error {
	if !st.Environment.Repository.Plain {
		open, err := st.Environment.Repository.Forge.FindChange(ctx, st.PromotionBranch(),
			st.Environment.Branch)
		if err != nil {
			return err
		}
		if open != nil {
			viewer, err := st.Environment.Repository.Forge.Viewer(ctx)
			if err != nil {
				return err
			}
			if open.Author != viewer && !slices.Contains(open.Labels, ownLabel) {
				return nil // others have opened it, from the branch that is left
			}
			if err := st.Environment.Repository.Forge.CloseChange(ctx, open.Number, comment); err != nil {
				return err
			}
		}
	}
	return pr.removeBranch(ctx, st)
}

// removeBranch removes the promotion branch of a stage, unless somebody else has pushed to
// it.
func (pr *proposer) removeBranch(ctx context.Context, st *session.Stage) error {
	ref := session.BranchRef(st.PromotionBranch())
	id := st.Environment.Repository.Refs[ref]
	if id.IsZero() {
		return nil
	}
	if c, err := pr.foreignCommit(ctx, st); err != nil || c != nil {
		return err
	}
	err := st.Environment.Repository.Remote.Push(ctx, []remote.Update{{Ref: ref, Old: id}}, nil, false)
	if err == nil {
		delete(st.Environment.Repository.Refs, ref)
	}
	// the forge removes it as well, or somebody proposes something new
	if errors.Is(err, git.ErrLostRace) {
		return nil
	}
	return err
}
