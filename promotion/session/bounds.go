package session

import (
	"context"
	"crypto/sha256"

	"github.com/kalypso-io/kalypso/compiler/supervisor"
)

// Bounded calls a function that reads records of an environment, within the bounds of the
// request's supervisor. It returns a *supervisor.Trip if the function exceeded a bound before the
// program started again.
func (s *State) Bounded(ctx context.Context, env *Environment, read func() error) error {
	e := s.Request.Supervisor.Evaluation("the records of environment "+env.Name(),
		sha256.Sum256([]byte(env.Tip.String())), supervisor.Bounds{})
	if trip := e.Tripped(); trip != nil {
		return trip
	}
	part, err := e.Begin(ctx)
	if err != nil {
		return err
	}
	defer part.End()
	// of no part of them it is known that the others are well
	part.SetPlace(supervisor.Place{Files: 1})
	return read()
}
