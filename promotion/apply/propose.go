package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// proposer proposes steps to people, and merges approved ones.
type proposer struct {
	state   *session.State
	planner *plan.Planner
	pusher  *pusher
}

// foreignCommit returns the commit that somebody else has pushed to the stage's promotion
// branch, or nil. A forge's merge that updates a change request does not count.
func (pr *proposer) foreignCommit(ctx context.Context, st *session.Stage) (*git.Link, error) {
	r := st.Environment.Repository
	head := r.Refs[session.BranchRef(st.PromotionBranch())]
	if head.IsZero() {
		return nil, nil
	}
	if err := r.Remote.Fetch(ctx, []git.Hash{head}, 2); err != nil {
		return nil, err
	}
	own := func(id git.Hash) (*git.Commit, bool, error) {
		c, err := r.Staging.Commit(id)
		if err != nil {
			return nil, false, err
		}
		return c, message.Trailer(c.Message, "Kalypso-Environment") != "" &&
			c.Author.Name == c.Committer.Name && c.Author.Email == c.Committer.Email, nil
	}
	c, is, err := own(head)
	if err != nil || is {
		return nil, err
	}
	if len(c.Parents) == 2 {
		if _, is, err = own(c.Parents[0]); err != nil || is {
			return nil, err
		}
	}
	return &git.Link{ID: head, Commit: c}, nil
}

// blockedByOther blocks a stage with such a commit, and reports whether it did.
func (pr *proposer) blockedByOther(ctx context.Context, st *session.Stage,
	status *plan.StageStatus) (bool, error) {
	c, err := pr.foreignCommit(ctx, st)
	if err != nil || c == nil {
		return false, err
	}
	status.State = plan.Blocked
	status.Reason = fmt.Sprintf("branch %s has commit %s of %s, %q, which would be lost: remove "+
		"that branch, or merge it", st.PromotionBranch(), git.Short(c.ID), terminal.Line(c.Author.Name),
		message.FirstLine(c.Message))
	return true, nil
}

// propose pushes the prepared commit to the promotion's own branch, and opens or updates a change
// request. It merges the request if the policy allows that and the change passes all gates.
func (pr *proposer) propose(ctx context.Context, st *session.Stage, status *plan.StageStatus,
	intent plan.Intent) error {
	env, step := st.Environment, status.Step
	if blocked, err := pr.blockedByOther(ctx, st, status); err != nil || blocked {
		return err
	}
	before := st.ProposalHead()
	if err := pr.pushProposal(ctx, st, step); err != nil {
		return err
	}
	status.State = plan.Proposed
	if env.Repository.Plain {
		if err := pr.reportGates(ctx, st, step.Prepared.Commit,
			gatesStatusOf(step.Verdicts)); err != nil {
			return err
		}
		accepts := fmt.Sprintf("`git push origin %s:refs/heads/%s` accepts it", step.Commit, env.Branch)
		if gate.Overall(step.Verdicts) == gate.Passed {
			status.Reason = "branch " + st.PromotionBranch() + " proposes it: " + accepts
			return nil
		}
		if err := pr.explainApproval(st, status); err != nil {
			return err
		}
		status.Reason += ", and then " + accepts
		return nil
	}
	change, err := pr.saveChange(ctx, st, step, before)
	if err != nil {
		return pr.asLostRace(ctx, st, step, err)
	}
	step.URL = change.URL
	return pr.asLostRace(ctx, st, step, pr.merge(ctx, st, status, change, intent))
}

// asLostRace returns an error of a forge about a proposal. The error is git.ErrLostRace if the
// proposal is gone or the branch has moved, because forges have different errors for that.
func (pr *proposer) asLostRace(ctx context.Context, st *session.Stage, step *plan.Step,
	err error) error {
	env := st.Environment
	if err == nil || errors.Is(err, git.ErrLostRace) || env.Tip == step.Prepared.Commit ||
		session.ServerFailed(err) {
		return err
	}
	refs, asked := env.Repository.Remote.Refs(ctx)
	if asked != nil || refs[session.BranchRef(st.PromotionBranch())] == step.Prepared.Commit &&
		refs[session.BranchRef(env.Branch)] == env.Tip {
		return err
	}
	return fmt.Errorf("%w: %w", git.ErrLostRace, err)
}

// pushProposal pushes the prepared commit to the promotion's own branch.
func (pr *proposer) pushProposal(ctx context.Context, st *session.Stage, step *plan.Step) error {
	env, ref := st.Environment, session.BranchRef(st.PromotionBranch())
	before := env.Repository.Refs[ref]
	if before == step.Prepared.Commit {
		return nil
	}
	updates := append(conflicting(st), remote.Update{Ref: ref, Old: before, New: step.Prepared.Commit})
	if len(updates) > 1 { // a ref cannot be made in the push that removes its folder's
		if err := env.Repository.Remote.Push(ctx, updates[:len(updates)-1], nil, false); err != nil {
			return err
		}
	}
	if err := env.Repository.Remote.Push(ctx, updates[len(updates)-1:], step.Prepared.Packs,
		false); err != nil {
		return explainPush(st, err)
	}
	env.Repository.Refs[ref] = step.Prepared.Commit
	return nil
}

// conflicting returns the removals of branches of earlier promotions whose names exclude the name
// of the stage's branch, such as kalypso/promote/prod and kalypso/promote/prod/eu.
func conflicting(st *session.Stage) []remote.Update {
	var out []remote.Update
	mine := session.BranchRef(st.PromotionBranch())
	for _, ref := range slices.Sorted(maps.Keys(st.Environment.Repository.Refs)) {
		id := st.Environment.Repository.Refs[ref]
		if !id.IsZero() && (isFolderOf(ref, mine) || isFolderOf(mine, ref)) &&
			isFolderOf(session.BranchRef("kalypso/promote"), ref) {
			out = append(out, remote.Update{Ref: ref, Old: id})
		}
	}
	return out
}

func isFolderOf(dir, ref string) bool { return len(ref) > len(dir) && ref[:len(dir)+1] == dir+"/" }

// saveChange opens or updates the change request of a step.
func (pr *proposer) saveChange(ctx context.Context, st *session.Stage, step *plan.Step,
	before git.Hash) (*forge.Change, error) {
	env := st.Environment
	p := &st.Policy.Promotion
	change, err := env.Repository.Forge.SaveChange(ctx, forge.ChangeSpec{
		Head: st.PromotionBranch(), Base: env.Branch, Title: step.Title, Body: step.Body,
		Labels: append([]string{ownLabel}, p.Labels...), Reviewers: p.Reviewers,
	})
	if err != nil {
		return nil, err
	}
	if superseded := baseOf(env.Repository, before); superseded != "" &&
		superseded != step.Source.Base {
		text := fmt.Sprintf("%s is superseded by %s. Approvals of %[1]s do not count for %[2]s.",
			superseded.Short(), step.Source.Base.Short())
		if err := env.Repository.Forge.Comment(ctx, change.Number, text); err != nil {
			return nil, err
		}
	}
	return change, nil
}

// baseOf returns the base commit of an earlier proposal; "" if it is not known.
func baseOf(r *session.Repository, proposal git.Hash) tree.Revision {
	if proposal.IsZero() {
		return ""
	}
	c, err := r.Staging.Commit(proposal)
	if err != nil {
		return ""
	}
	return tree.Revision(message.Trailer(c.Message, "Kalypso-Source-Commit"))
}

// merge evaluates the gates again, now that there is something to approve. It reports their
// verdicts, and merges if the policy allows that.
func (pr *proposer) merge(ctx context.Context, st *session.Stage, status *plan.StageStatus,
	change *forge.Change, intent plan.Intent) error {
	env, step := st.Environment, status.Step
	if step.Kind != plan.RollBack { // a rollback ignores gates
		if err := pr.planner.AskAgain(ctx, st, step, intent.Skip); err != nil {
			return err
		}
	}
	state, gates := gate.Overall(step.Verdicts), gatesStatusOf(step.Verdicts)
	if err := pr.reportGates(ctx, st, step.Prepared.Commit, gates); err != nil {
		return err
	}
	status.State, status.Reason = plan.Proposed,
		fmt.Sprintf("change request %d is open, %s: %s", change.Number, change.URL, gates.Description)
	if state == gate.Blocked {
		status.State = plan.Blocked
	}
	if state != gate.Passed || !st.Policy.Promotion.AutoMerge {
		return nil
	}
	now, err := st.Environment.Repository.Remote.Refs(ctx)
	if err != nil {
		return err
	}
	if err := unordered(st, step.Source.Base, now); err != nil {
		return err
	}
	done, err := env.Repository.Forge.Merge(ctx, change.Number, step.Prepared.Commit,
		forge.MergeOptions{
			Method: st.Policy.Promotion.MergeMethod, Title: step.Title,
			Message: message.Body(step.Prepared.Message), WhenAllowed: true,
		})
	if err != nil {
		return err
	}
	switch is := fmt.Sprintf("change request %d is open, %s: every gate is passed, and", change.Number,
		change.URL); done {
	case forge.MergeWaiting:
		status.Reason = is + " the forge merges it when its own rules allow that"
		return nil
	case forge.MergeRefused:
		status.Reason = is + " the forge's own rules do not allow to merge it yet"
		return nil
	}
	return pr.merged(ctx, st, status)
}

// merged reads the branch after the forge has merged.
func (pr *proposer) merged(ctx context.Context, st *session.Stage, status *plan.StageStatus) error {
	refs, err := st.Environment.Repository.Remote.Refs(ctx)
	if err != nil {
		return err
	}
	st.Environment.Repository.Refs = refs
	tip := refs[session.BranchRef(st.Environment.Branch)]
	if tip == st.Environment.Tip {
		status.Reason = "the forge has merged, and does not show it yet"
		return nil
	}
	if err := pr.pusher.pushed(ctx, st, status, tip); err != nil {
		return err
	}
	return pr.removeBranch(ctx, st)
}

// publish pushes the commit of a step to the promotion's own branch, for people who
// approve by tags.
func (pr *proposer) publish(ctx context.Context, st *session.Stage,
	status *plan.StageStatus) error {
	if blocked, err := pr.blockedByOther(ctx, st, status); err != nil || blocked {
		return err
	}
	if err := pr.pushProposal(ctx, st, status.Step); err != nil {
		return err
	}
	if err := pr.reportGates(ctx, st, status.Step.Prepared.Commit,
		gatesStatusOf(status.Step.Verdicts)); err != nil {
		return err
	}
	return pr.explainApproval(st, status)
}

// explainApproval sets the reason of a stage: how its step is approved without a forge.
func (pr *proposer) explainApproval(st *session.Stage, status *plan.StageStatus) error {
	status.Reason = gate.Reason(status.Step.Verdicts)
	tag, err := plain.ApprovalTag(st.Policy.Name, status.Step.Commit)
	if err != nil {
		return err
	}
	status.Reason += fmt.Sprintf("; branch %s proposes it, and `git tag -s %s %s && git push origin "+
		"%[2]s` approves it", st.PromotionBranch(), tag, status.Step.Commit)
	return nil
}

// pendingApprovals reports whether a step waits only for approvals.
func pendingApprovals(step *plan.Step) bool {
	return !slices.ContainsFunc(step.Verdicts,
		func(v gate.Verdict) bool { return v.Gate != model.GateApprovals && v.State != gate.Passed })
}
