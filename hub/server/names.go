package server

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/question"
	"github.com/kalypso-io/kalypso/hub/state"
)

// caveats returns what a reader must know of an answer about some environments.
func (s *server) caveats(of state.Environments) api.Caveats {
	return api.Caveats{Problem: question.Problem(s.Hub.Fleet(), of.Has, s.Problem)}
}

// nothing is caveats for an answer that has nothing. The error is of a name that nothing has. Of an
// earlier moment, that is a warning: something may have had it then.
func (s *server) nothing(ctx context.Context, environment string, f state.Filter, past bool) (api.Caveats, error) {
	out := s.caveats(f.Environments)
	err := s.environment(ctx, environment)
	if err != nil {
		return out, err
	}
	if out.Warning, err = question.Names(s.Hub.Fleet(), f); err != nil && past {
		out.Warning, err = err.Error(), nil
	}
	return out, named(err)
}

// nothingAt is nothing for an answer about an earlier moment, of which something is known already.
func (s *server) nothingAt(ctx context.Context, environment string, f state.Filter, about string) (api.Caveats, error) {
	out, err := s.nothing(ctx, environment, f, true)
	out.Warning = question.Join(about, out.Warning)
	return out, err
}

// environment returns an error where there is no environment of a name, of some with commas between;
// "" is for all.
func (s *server) environment(ctx context.Context, names string) (err error) {
	sees := who(ctx).Sees
	for name := range strings.SplitSeq(names, ",") {
		err = cmp.Or(err, question.Environment(s.Hub.Fleet(), name, sees))
	}
	if why := question.Problem(s.Hub.Fleet(), sees, s.Problem); err != nil && why != "" {
		return huma.Error404NotFound(err.Error() + "; what is wanted may be older than the branches: " + why)
	}
	return named(err)
}

// named is an error of package question as an answer.
func named(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*question.UnknownError)):
		return huma.Error404NotFound(err.Error())
	}
	return huma.Error422UnprocessableEntity(err.Error())
}

// unknown is the error of a cluster that who asks has none of.
func (s *server) unknown(i *access.Identity, cluster string) error {
	err := unlisted(cluster)
	if hint := question.Cluster(s.Hub.Fleet(), i.Scope(access.Viewer), cluster); hint != "" {
		return huma.Error404NotFound(err.Error() + "; " + hint)
	}
	return err
}
