package promotion

import (
	"context"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/internal/git/remote"
)

// Hydrate compiles the platform's head for the environments that were asked for, and
// pushes it to the branches that GitOps Promoter takes proposals from: <branch>-next or,
// where several environments share a branch, <branch>-next/<path>. Promoter decides what
// goes on: no gates are asked. Where nothing but the record changes, only a note says
// which commit it is made of.
func (h *hydrator) Hydrate(ctx context.Context) ([]*Stop, error) {
	var out []*Stop
	var errs []error
	for _, o := range h.state.askedOutputs() {
		stop, err := h.hydrate(ctx, &stop{stage: o.stage, out: o})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.stage.Name, err))
			continue
		}
		out = append(out, stop)
	}
	return out, errors.Join(errs...)
}

func (h *hydrator) hydrate(ctx context.Context, st *stop) (*Stop, error) {
	out, at, err := h.planner.hydrate(ctx, st)
	if err != nil || at == nil {
		return out, err
	}
	next, step := at.out, out.Step
	tip := next.tip
	if !step.NoOp && !step.prepared.commit.IsZero() {
		update := remote.Update{Ref: branchRef(next.branch), Old: next.repository.refs[branchRef(next.branch)], New: step.prepared.commit}
		if err := next.repository.remote.Push(ctx, []remote.Update{update}, step.prepared.packs, false); err != nil {
			err = h.pusher.explainPush(at, err)
			if refused := (*RefusedError)(nil); errors.As(err, &refused) {
				return refusedStatus(at, out, refused), nil
			}
			return nil, err
		}
		tip = step.prepared.commit
		out.State, out.Reason = Proposed, "branch "+next.branch+" proposes "+step.Source.Describe()
	}
	notes, err := h.state.opener.plainForge(next.repository)
	if err != nil {
		return nil, err
	}
	out.Tip = tip.String()
	return out, notes.Annotate(ctx, hydratorNotes, tip, fmt.Sprintf(`{"drySha":%q}`, h.state.platform.head))
}
