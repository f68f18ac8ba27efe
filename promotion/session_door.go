package promotion

import (
	"context"
	"errors"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// Session is a platform's promotion as it was read, and what can be done with it. It is for
// one goroutine. What others change meanwhile is found when something is written, which
// then fails with git.ErrLostRace: a new Session sees it.
type Session struct {
	state    *sessionState
	records  *records
	planner  *planner
	applier  *applier
	decider  *decider
	hydrator *hydrator
}

// Open reads the state: the platform's head with its policies, and the records of all
// environments that have a GitOps tree. Close ends it.
func Open(ctx context.Context, r Request) (*Session, error) {
	state, err := openState(ctx, r)
	if err != nil {
		return nil, err
	}
	records := newRecords(state)
	if err := records.restoreAll(ctx); err != nil {
		return nil, errors.Join(err, state.Close())
	}
	observer := &observer{state, records}
	planner := newPlanner(state, records, observer)
	reporter := &reporter{state, observer}
	pusher := &pusher{state, records, reporter}
	proposer := &proposer{state, planner, pusher}
	applier := &applier{state, planner, reporter, pusher, proposer}
	return &Session{
		state: state, records: records, planner: planner, applier: applier,
		decider:  &decider{state, planner, pusher, proposer, applier},
		hydrator: &hydrator{state, planner, pusher},
	}, nil
}

// Close releases the repositories.
func (s *Session) Close() error { return s.state.Close() }

// Diagnostics are what the base of the platform's head has to say.
func (s *Session) Diagnostics() []diag.Diagnostic { return s.state.Diagnostics }

func (s *Session) By() string { return s.state.request.By }

func (s *Session) CheckSkip(skip gate.Skip) error { return s.planner.CheckSkip(skip) }
func (s *Session) Plan(ctx context.Context, intent Intent) (*Plan, error) {
	return s.planner.Plan(ctx, intent)
}
func (s *Session) Status(ctx context.Context, most int) (*Status, error) {
	return s.planner.Status(ctx, most)
}
func (s *Session) Apply(ctx context.Context, intent Intent, plan *Plan) ([]*Stop, error) {
	return s.applier.Apply(ctx, intent, plan)
}
func (s *Session) Hydrate(ctx context.Context) ([]*Stop, error) { return s.hydrator.Hydrate(ctx) }
func (s *Session) Audit(ctx context.Context, since time.Time) ([]Event, error) {
	return (&auditor{s.state, s.records}).Audit(ctx, since)
}
func (s *Session) Verify(ctx context.Context, head string) ([]*Verification, error) {
	return s.records.Verify(ctx, head)
}
func (s *Session) Vet(ctx context.Context) ([]diag.Diagnostic, []string, error) {
	return Vet(ctx, s.state)
}
func (s *Session) Rollback(ctx context.Context, to RollbackTo, d Decision) ([]*Stop, error) {
	return s.decider.Rollback(ctx, to, d)
}
func (s *Session) Hold(ctx context.Context, d Decision) ([]*Stop, error) {
	return s.decider.Hold(ctx, d)
}
func (s *Session) Release(ctx context.Context, d Decision) ([]*Stop, error) {
	return s.decider.Release(ctx, d)
}
func (s *Session) Abort(ctx context.Context, d Decision) ([]*Stop, error) {
	return s.decider.Abort(ctx, d)
}
func (s *Session) Freeze(ctx context.Context, d Decision) ([]string, error) {
	return s.decider.Freeze(ctx, d)
}
func (s *Session) Thaw(ctx context.Context) ([]string, error) { return s.decider.Thaw(ctx) }
func (s *Session) Reject(ctx context.Context, commit string, d Decision) (string, error) {
	return s.decider.Reject(ctx, commit, d)
}
func (s *Session) Unreject(ctx context.Context, commit string) (string, error) {
	return s.decider.Unreject(ctx, commit)
}
