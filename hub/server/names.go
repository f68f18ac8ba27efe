package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/question"
	"github.com/kalypso-io/kalypso/hub/state"
)

// caveats returns the problem of the environments that an answer is about.
func (s *server) caveats(of state.Environments) api.Caveats {
	return api.Caveats{Problem: question.Problem(s.Hub.Fleet(), of.Has, s.Problem)}
}

// nothing is caveats for an empty answer. It returns an error if a name is unknown. For an earlier
// moment it returns a warning instead, because the name may have existed then.
func (s *server) nothing(ctx context.Context, environment string, f state.Filter,
	past bool) (api.Caveats, error) {
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

// nothingAt is nothing for an answer about an earlier moment, with the warning about that moment.
func (s *server) nothingAt(ctx context.Context, environment string, f state.Filter,
	about string) (api.Caveats, error) {
	out, err := s.nothing(ctx, environment, f, true)
	out.Warning = question.Join(about, out.Warning)
	return out, err
}

// environment returns an error if one of the environments in names does not exist. Commas separate
// the names, and "" means all environments.
func (s *server) environment(ctx context.Context, names string) (err error) {
	sees := who(ctx).Sees
	for name := range strings.SplitSeq(names, ",") {
		err = cmp.Or(err, question.Environment(s.Hub.Fleet(), name, sees))
	}
	if why := question.Problem(s.Hub.Fleet(), sees, s.Problem); err != nil && why != "" {
		return huma.Error404NotFound(err.Error() + "; what is wanted may be older than the branches: " +
			why)
	}
	return named(err)
}

// named converts an error of package question to an answer.
func named(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*question.UnknownError)):
		return huma.Error404NotFound(err.Error())
	}
	return huma.Error422UnprocessableEntity(err.Error())
}

// unknown returns the error if the caller sees no cluster with a name.
func (s *server) unknown(i *access.Identity, cluster string) error {
	err := unlisted(cluster)
	if hint := question.Cluster(s.Hub.Fleet(), i.Scope(access.Viewer), cluster); hint != "" {
		return huma.Error404NotFound(err.Error() + "; " + hint)
	}
	return err
}

// Fresh has the parameters of changing answers. A client that has seen the current version gets
// 304, or waits for the next one.
type Fresh struct {
	IfNoneMatch string `header:"If-None-Match" doc:"The ETag of the last answer: 304 where nothing has changed since. Some with commas between, and *, are as in RFC 9110."`
	Wait        int    `query:"wait" minimum:"0" maximum:"60" doc:"With If-None-Match: wait so many seconds for a change."`
}

// seen reports whether a client has seen a version, by the weak comparison of RFC 9110, section
// 8.8.3.2.
func (f *Fresh) seen(tag string) bool {
	for one := range strings.SplitSeq(f.IfNoneMatch, ",") {
		if one = strings.TrimSpace(one); one == "*" ||
			strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// answer is an answer with its version.
type answer[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// etag returns the tag of a version for one caller, because people see different parts. It is weak,
// because answers also contain the time.
func etag(version uint64, i *access.Identity) string {
	scope := ""
	if i != nil {
		scope = strings.Join(i.Scope(access.Viewer), "/")
	}
	return "W/" + strconv.Quote(versionName(version)+"-"+scope)
}

// versionName returns a version for clients: JavaScript would lose digits of a number.
func versionName(version uint64) string { return strconv.FormatUint(version, 36) }

// check returns the version for an answer, or an error that nothing has changed.
func (s *server) check(ctx context.Context, f Fresh) (string, error) {
	timer := time.NewTimer(time.Duration(f.Wait) * time.Second)
	defer timer.Stop()
	for {
		version, changed := s.Hub.Version()
		is := etag(version, who(ctx))
		if !f.seen(is) {
			return is, nil
		}
		unchanged := huma.ErrorWithHeaders(huma.Status304NotModified(), http.Header{"Etag": {is}})
		if f.Wait <= 0 {
			return "", unchanged
		}
		select {
		case <-changed:
		case <-timer.C:
			return "", unchanged
		case <-ctx.Done():
			return "", unchanged
		}
	}
}
