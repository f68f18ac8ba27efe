package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/performance"
)

// sinceDays is how many days back performance is of where nobody says.
const sinceDays = 30

// performance registers the question how well releases go.
func (s *server) performance() {
	huma.Register(s.api, huma.Operation{OperationID: "performance", Method: http.MethodGet,
		Path: "/v1/performance", Summary: "How well releases go, by environment",
		Description: "The measures of DORA: how often, how long until all of it was ok, how many " +
			"failed, and how long until the ring was ok again."},
		func(ctx context.Context, in *struct {
			Environment string    `query:"environment" doc:"Some environments, with commas between; all where it is absent."`
			Since       time.Time `query:"since" doc:"30 days ago where it is absent."`
		}) (*body[api.Performances], error) {
			environments, err := s.sees(ctx, in.Environment)
			if err != nil {
				return nil, err
			}
			now := s.Hub.Now()
			since := in.Since
			if since.IsZero() {
				since = now.AddDate(0, 0, -sinceDays)
			}
			if !since.Before(now) {
				return nil, huma.Error422UnprocessableEntity("since is not in the past")
			}
			if err := s.environment(ctx, in.Environment); err != nil {
				return nil, err
			}
			rows, err := s.Hub.Store().ReleasesSince(ctx, environments, since)
			if err != nil {
				return nil, unavailable()
			}
			return &body[api.Performances]{api.Performances{Since: since, Until: now,
				Environments: performance.Of(rows, since, now), Caveats: s.caveats(environments)}}, nil
		})
}
