package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Hydrate compiles the platform's head for the environments of the request, and pushes it to the
// branches that GitOps Promoter takes proposals from. Such a branch is <branch>-next. If several
// environments share a branch, it is <branch>-next/<path>. Promoter makes the decisions, so
// Hydrate checks no gates. If only the record changes, Hydrate only adds a note that names the
// commit.
func (a *Applier) Hydrate(ctx context.Context) ([]*plan.StageStatus, error) {
	return each(a.state.RequestedEnvironments(), (*session.Environment).Name,
		func(env *session.Environment) (*plan.StageStatus, error) {
			return a.hydrate(ctx, &session.Stage{Policy: env.Policy, Environment: env})
		})
}

// hydrate hydrates one environment.
func (a *Applier) hydrate(ctx context.Context, st *session.Stage) (*plan.StageStatus, error) {
	out, at, err := a.planner.Hydrate(ctx, st)
	if err != nil || at == nil {
		return out, err
	}
	next, step := at.Environment, out.Step
	tip := next.Tip
	if !step.NoOp && !step.Prepared.Commit.IsZero() {
		update := remote.Update{Ref: session.BranchRef(next.Branch),
			Old: next.Repository.Refs[session.BranchRef(next.Branch)], New: step.Prepared.Commit}
		if err := next.Repository.Remote.Push(ctx, []remote.Update{update}, step.Prepared.Packs,
			false); err != nil {
			err = explainPush(at, err)
			if refused := (*RefusedError)(nil); errors.As(err, &refused) {
				return refusedStatus(at, out, refused), nil
			}
			return nil, err
		}
		tip = step.Prepared.Commit
		out.State, out.Reason = plan.Proposed, "branch "+next.Branch+" proposes "+step.Source.Describe()
	}
	notes, err := a.state.PlainForge(next.Repository)
	if err != nil {
		return nil, err
	}
	out.Tip = tip.String()
	return out, notes.Annotate(ctx, ledger.HydratorNotes, tip,
		fmt.Sprintf(`{"drySha":%q}`, a.state.Platform.Head))
}
