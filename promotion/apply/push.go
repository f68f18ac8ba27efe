package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/verify"
)

// pusher pushes to the branches of environments.
type pusher struct {
	state    *session.State
	records  *verify.Records
	reporter *reporter
}

// refusedStatus returns the status of a stage whose server rejects its push. Somebody has to
// allow the push, or to choose another way to write.
func refusedStatus(st *session.Stage, status *plan.StageStatus,
	why *RefusedError) *plan.StageStatus {
	if status == nil {
		status = plan.StatusOf(st)
	}
	status.State, status.Reason = plan.Blocked, why.Error()
	return status
}

// push pushes the prepared commit to the environment's branch.
func (pu *pusher) push(ctx context.Context, st *session.Stage, status *plan.StageStatus) error {
	env, p := st.Environment, status.Step.Prepared
	update := remote.Update{Ref: session.BranchRef(env.Branch), Old: env.Tip, New: p.Commit}
	still := func(refs map[string]git.Hash) error {
		return unordered(st, status.Step.Source.Base,
			refs)
	}
	if err := env.Repository.Remote.PushWhile(ctx, []remote.Update{update}, p.Packs, false,
		still); err != nil {
		return explainPush(st, err)
	}
	err := pu.pushed(ctx, st, status, p.Commit)
	status.Reason += status.Step.Ending()
	return err
}

// unordered returns git.ErrLostRace if somebody has frozen the environment or rejected the commit
// since the state was read. The step was decided without this order. now are the refs right
// before the write.
func unordered(st *session.Stage, base tree.Revision, now map[string]git.Hash) error {
	if ref := st.Environment.Repository.NewOrder(st.Policy.Name, string(base), now); ref != "" {
		return fmt.Errorf("%w: %s is new", git.ErrLostRace, ref)
	}
	return nil
}

// pushed takes note of the environment's branch being at a new commit, and observes its
// rollout.
func (pu *pusher) pushed(ctx context.Context, st *session.Stage, status *plan.StageStatus,
	commit git.Hash) error {
	env := st.Environment
	env.Repository.Refs[session.BranchRef(env.Branch)] = commit
	if err := env.MoveTo(ctx, commit); err != nil {
		return err
	}
	for _, other := range pu.state.Environments { // the environments in the same branch
		if other != env && other.Repository == env.Repository && other.Branch == env.Branch {
			if err := errors.Join(other.MoveTo(ctx, commit), pu.records.Restore(ctx, other)); err != nil {
				return err
			}
		}
	}
	status.State, status.Has, status.Tip = plan.Promoted, st.Has(), commit.String()
	status.Deployed, status.Landed = status.Tip, status.Tip
	status.Hold = env.Hold(st.RingName())
	var err error
	status.Rollout, err = pu.reporter.observe(ctx, st)
	status.Reason = "it got " + st.Has().Describe()
	return err
}

// explainPush returns the error of a push, with the steps to take if a server rejects it.
func explainPush(st *session.Stage, err error) error {
	if refused := (*remote.RejectedError)(nil); errors.As(err, &refused) {
		return &RefusedError{
			Environment: st.Policy.Name, Branch: st.Environment.Branch, Err: refused,
			First: st.Environment.Tip.IsZero(), Direct: st.Writes() == model.WritePush,
		}
	}
	return err
}

// RefusedError is the error of a server that does not take a push to an environment's branch.
type RefusedError struct {
	Environment, Branch string
	Err                 error
	First               bool // the branch does not exist yet
	Direct              bool // to propose the step would be another way
}

// Error returns the server's answer, and a remedy.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("branch %s takes no push: %v", e.Branch, e.Err)
	switch {
	case e.First:
		return text + "; nothing can be proposed to a branch that is not there: make it, from a commit " +
			"without files, and promote again"
	case e.Direct:
		return text + "; if it is protected, set environments." + e.Environment +
			`.promotion.write to "pull-request"`
	}
	return text
}

// Unwrap returns the server's error.
func (e *RefusedError) Unwrap() error { return e.Err }
