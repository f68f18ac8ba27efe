package promotion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// proposable says whether a step is good enough for people to look at: nothing speaks
// against it but what a change request is for, or what time will solve.
func proposable(step *Step) bool {
	for _, v := range step.Verdicts {
		switch v.Gate {
		case "approvals", "http", "policy", "budget":
		default:
			if v.State != gate.Passed {
				return false
			}
		}
	}
	return true
}

// propose pushes the prepared commit to the promotion's own branch, opens a change
// request or brings it up to date, and merges it where the policy says so and all gates
// are passed.
func (pr *proposer) propose(ctx context.Context, st *stop, stop *Stop, intent Intent) error {
	o, step := st.out, stop.Step
	if gives, err := pr.giveWay(ctx, st, stop); err != nil || gives {
		return err
	}
	before := o.repository.refs[branchRef(st.promotionBranch())]
	if err := pr.pushProposal(ctx, st, step); err != nil {
		return err
	}
	stop.State = Proposed
	if o.repository.plain {
		accepts := fmt.Sprintf("`git push origin %s:refs/heads/%s` accepts it", step.Commit, o.branch)
		if gate.Overall(step.Verdicts) == gate.Passed {
			stop.Reason = "branch " + st.promotionBranch() + " proposes it: " + accepts
			return nil
		}
		if err := pr.wantTags(st, stop); err != nil {
			return err
		}
		stop.Reason += ", and then " + accepts
		return nil
	}
	change, err := pr.saveChange(ctx, st, step, before)
	if err != nil {
		return pr.raced(ctx, st, step, err)
	}
	step.URL = change.URL
	return pr.raced(ctx, st, step, pr.merge(ctx, st, stop, change, intent))
}

// raced is an error of a forge about what was proposed; a lost race where that is not
// there any more, or the branch has moved: forges have many words for it.
func (pr *proposer) raced(ctx context.Context, st *stop, step *Step, err error) error {
	o := st.out
	if err == nil || errors.Is(err, git.ErrLostRace) || o.tip == step.prepared.commit || stopsForAll(err) {
		return err
	}
	refs, asked := o.repository.remote.Refs(ctx)
	if asked != nil || refs[branchRef(st.promotionBranch())] == step.prepared.commit && refs[branchRef(o.branch)] == o.tip {
		return err
	}
	return fmt.Errorf("%w: %w", git.ErrLostRace, err)
}

// stopsForAll says whether an error is about the server, and not about what was asked.
func stopsForAll(err error) bool {
	return errors.As(err, new(*forge.AuthError)) || errors.As(err, new(*forge.UnavailableError)) || errors.Is(err, context.Canceled)
}

// pushProposal brings the promotion's own branch to the prepared commit.
func (pr *proposer) pushProposal(ctx context.Context, st *stop, step *Step) error {
	o, ref := st.out, branchRef(st.promotionBranch())
	before := o.repository.refs[ref]
	if before == step.prepared.commit {
		return nil
	}
	updates := append(inTheWay(st), remote.Update{Ref: ref, Old: before, New: step.prepared.commit})
	if len(updates) > 1 { // a ref cannot be made in the push that removes its folder's
		if err := o.repository.remote.Push(ctx, updates[:len(updates)-1], nil, false); err != nil {
			return err
		}
	}
	if err := o.repository.remote.Push(ctx, updates[len(updates)-1:], step.prepared.packs, false); err != nil {
		return pr.pusher.explainPush(st, err)
	}
	o.repository.refs[ref] = step.prepared.commit
	return nil
}

// inTheWay are branches of earlier promotions whose names do not go together with that
// of the stop's: kalypso/promote/prod and kalypso/promote/prod/eu.
func inTheWay(st *stop) []remote.Update {
	var out []remote.Update
	mine := branchRef(st.promotionBranch())
	for _, ref := range slices.Sorted(maps.Keys(st.out.repository.refs)) {
		id := st.out.repository.refs[ref]
		if !id.IsZero() && (isFolderOf(ref, mine) || isFolderOf(mine, ref)) && isFolderOf(branchRef("kalypso/promote"), ref) {
			out = append(out, remote.Update{Ref: ref, Old: id})
		}
	}
	return out
}

func isFolderOf(dir, ref string) bool { return len(ref) > len(dir) && ref[:len(dir)+1] == dir+"/" }

// saveChange opens the change request of a step, or brings it up to date.
func (pr *proposer) saveChange(ctx context.Context, st *stop, step *Step, before git.Hash) (*forge.Change, error) {
	o := st.out
	p := &st.stage.Promotion
	change, err := o.repository.forge.SaveChange(ctx, forge.ChangeSpec{
		Head: st.promotionBranch(), Base: o.branch, Title: step.Title, Body: step.Body,
		Labels: append([]string{ownLabel}, p.Labels...), Reviewers: p.Reviewers,
	})
	if err != nil {
		return nil, err
	}
	if superseded := baseOf(o.repository, before); superseded != "" && superseded != step.Source.Base {
		text := fmt.Sprintf("%s is superseded by %s. Approvals of %[1]s do not count for %[2]s.", superseded.Short(), step.Source.Base.Short())
		if err := o.repository.forge.Comment(ctx, change.Number, text); err != nil {
			return nil, err
		}
	}
	return change, nil
}

// baseOf returns the base commit that an earlier proposal was about; "" for none that is
// known.
func baseOf(r *repository, proposal git.Hash) tree.Revision {
	if proposal.IsZero() {
		return ""
	}
	c, err := r.staging.Commit(proposal)
	if err != nil {
		return ""
	}
	return tree.Revision(trailerOf(c.Message, "Kalypso-Source-Commit"))
}

// gatesStatus is the name of the status of a change request's head that says what the
// gates say: to be required by the rules of the branch.
const gatesStatus = "kalypso/gates"

// gatesStatusOf is what the gates say, as a status of the head of a change request.
func gatesStatusOf(verdicts []gate.Verdict) forge.Status {
	status := forge.Status{Name: gatesStatus, State: forge.Pending, Description: gate.Reason(verdicts)}
	switch gate.Overall(verdicts) {
	case gate.Passed:
		status.State = forge.Success
	case gate.Blocked:
		status.State = forge.Failure
	}
	return status
}

// merge asks the gates again, now that there is something to approve, says what they
// say, and merges where that is what the policy wants.
func (pr *proposer) merge(ctx context.Context, st *stop, stop *Stop, change *forge.Change, intent Intent) error {
	o, step := st.out, stop.Step
	if step.Kind != RollBack { // which asks no gate
		if err := pr.planner.askAgain(ctx, st, step, intent.Skip); err != nil {
			return err
		}
	}
	state, status := gate.Overall(step.Verdicts), gatesStatusOf(step.Verdicts)
	if err := pr.sayGates(ctx, st, step.prepared.commit, status); err != nil {
		return err
	}
	stop.State, stop.Reason = Proposed, fmt.Sprintf("change request %d is open, %s: %s", change.Number, change.URL, status.Description)
	if state == gate.Blocked {
		stop.State = Blocked
	}
	if state != gate.Passed || !st.stage.Promotion.AutoMerge {
		return nil
	}
	now, err := st.out.repository.remote.Refs(ctx)
	if err != nil {
		return err
	}
	if err := pr.pusher.stillOrdered(st, step.Source.Base, now); err != nil {
		return err
	}
	done, err := o.repository.forge.Merge(ctx, change.Number, step.prepared.commit, forge.MergeOptions{
		Method: st.stage.Promotion.MergeMethod, Title: step.Title, Message: withoutTitle(step.prepared.message), WhenAllowed: true,
	})
	if err != nil {
		return err
	}
	switch is := fmt.Sprintf("change request %d is open, %s: every gate is passed, and", change.Number, change.URL); done {
	case forge.MergeWaiting:
		stop.Reason = is + " the forge merges it when its own rules allow that"
		return nil
	case forge.MergeRefused:
		stop.Reason = is + " the forge's own rules do not allow to merge it yet"
		return nil
	}
	return pr.merged(ctx, st, stop)
}

// merged looks at the branch after the forge has merged.
func (pr *proposer) merged(ctx context.Context, st *stop, stop *Stop) error {
	refs, err := st.out.repository.remote.Refs(ctx)
	if err != nil {
		return err
	}
	st.out.repository.refs = refs
	tip := refs[branchRef(st.out.branch)]
	if tip == st.out.tip {
		stop.Reason = "the forge has merged, and does not show it yet"
		return nil
	}
	if err := pr.pusher.landed(ctx, st, stop, tip); err != nil {
		return err
	}
	return pr.tidy(ctx, st)
}

// show pushes the commit of a step to the promotion's own branch, so that people who
// approve by tags have something to tag.
func (pr *proposer) show(ctx context.Context, st *stop, stop *Stop) error {
	if gives, err := pr.giveWay(ctx, st, stop); err != nil || gives {
		return err
	}
	if err := pr.pushProposal(ctx, st, stop.Step); err != nil {
		return err
	}
	return pr.wantTags(st, stop)
}

// wantTags says how a commit is approved of where there is no forge.
func (pr *proposer) wantTags(st *stop, stop *Stop) error {
	stop.Reason = gate.Reason(stop.Step.Verdicts)
	tag, err := plain.ApprovalTag(st.stage.Name, stop.Step.Commit)
	if err != nil {
		return err
	}
	stop.Reason += fmt.Sprintf("; branch %s proposes it, and `git tag -s %s %s && git push origin %[2]s` approves it", st.promotionBranch(), tag, stop.Step.Commit)
	return nil
}

// pendingApprovals says whether a step waits for people, and for nothing else.
func pendingApprovals(step *Step) bool {
	return !slices.ContainsFunc(step.Verdicts, func(v gate.Verdict) bool { return v.Gate != "approvals" && v.State != gate.Passed })
}

// doubt takes back that all gates are passed, of a change request that is open while
// nothing may come: else people merge it, or the forge does, what was rejected or frozen
// since. What a person decided, and others have merged, is removed.
func (pr *proposer) doubt(ctx context.Context, st *stop, stop *Stop) error {
	if st.out.repository == nil || !slices.Contains([]State{Waiting, Blocked, Held}, stop.State) {
		return nil
	}
	head := st.out.repository.refs[branchRef(st.promotionBranch())]
	if head.IsZero() || stop.Step != nil && stop.Step.prepared != nil && stop.Step.prepared.commit == head && proposable(stop.Step) {
		return nil // propose has said what its own gates say
	}
	switch p, err := pr.planner.proposed(ctx, st); {
	case err != nil:
		return err
	case p.decided && p.arrived:
		return pr.tidy(ctx, st)
	}
	if st.out.repository.plain {
		return nil
	}
	status := forge.Status{Name: gatesStatus, State: forge.Pending, Description: "not to be merged now: " + st.id() + " is " + string(stop.State)}
	if stop.State == Blocked {
		status.State = forge.Failure
	}
	if stop.Step != nil && gate.Overall(stop.Step.Verdicts) != gate.Passed {
		status = gatesStatusOf(stop.Step.Verdicts)
	}
	return pr.sayGates(ctx, st, head, status)
}

// sayGates says of the head of a stop's change request what the gates say. Where they do
// not all pass, the forge is first kept from merging by itself what it was asked to when
// they did: it knows nothing but its own rules, and some forges take a newer head for the
// one that they were asked to merge.
func (pr *proposer) sayGates(ctx context.Context, st *stop, head git.Hash, status forge.Status) error {
	r := st.out.repository
	if status.State != forge.Success {
		said, err := r.ledger().of(ctx, head)
		if err != nil {
			return err
		}
		said = slices.DeleteFunc(slices.Clone(said), func(s forge.Status) bool { return s.Name != gatesStatus })
		if len(said) == 0 || said[len(said)-1].State == forge.Success {
			if err := pr.cancelMerge(ctx, st); err != nil {
				return err
			}
		}
	}
	return r.ledger().say(ctx, head, status)
}

func (pr *proposer) cancelMerge(ctx context.Context, st *stop) error {
	open, err := st.out.repository.forge.FindChange(ctx, st.promotionBranch(), st.out.branch)
	if err != nil || open == nil {
		return err
	}
	return st.out.repository.forge.CancelMerge(ctx, open.Number)
}

// withdraw closes the change request of a stop for which there is nothing to do any
// more, unless something stops it only for now, and removes its branch.
func (pr *proposer) withdraw(ctx context.Context, st *stop, stop *Stop) error {
	if stop == nil || stop.State != Current || st.out.repository == nil || st.out.repository.refs[branchRef(st.promotionBranch())].IsZero() {
		return nil
	}
	return pr.close(ctx, st, "What it proposed is there, or nothing is left to propose: "+markdown(stop.Reason)+".")
}

// ownLabel is the label of change requests that kalypso opens, or has taken up.
const ownLabel = "kalypso/promotion"

// close closes the change request of a stop, if kalypso opened one, and removes the
// branch.
func (pr *proposer) close(ctx context.Context, st *stop, comment string) error {
	if !st.out.repository.plain {
		open, err := st.out.repository.forge.FindChange(ctx, st.promotionBranch(), st.out.branch)
		if err != nil {
			return err
		}
		if open != nil {
			viewer, err := st.out.repository.forge.Viewer(ctx)
			if err != nil {
				return err
			}
			if open.Author != viewer && !slices.Contains(open.Labels, ownLabel) {
				return nil // others have opened it, from the branch that is left
			}
			if err := st.out.repository.forge.CloseChange(ctx, open.Number, comment); err != nil {
				return err
			}
		}
	}
	return pr.tidy(ctx, st)
}

// tidy removes the promotion's branch once what it proposed is there.
func (pr *proposer) tidy(ctx context.Context, st *stop) error {
	ref := branchRef(st.promotionBranch())
	id := st.out.repository.refs[ref]
	if id.IsZero() {
		return nil
	}
	if c, err := pr.intruder(ctx, st); err != nil || c != nil {
		return err
	}
	err := st.out.repository.remote.Push(ctx, []remote.Update{{Ref: ref, Old: id}}, nil, false)
	if err == nil {
		delete(st.out.repository.refs, ref)
	}
	if errors.Is(err, git.ErrLostRace) { // the forge removes it as well, or somebody proposes something new
		return nil
	}
	return err
}
