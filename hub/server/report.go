package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// body is the body of a request or an answer.
type body[T any] struct{ Body T }

// reportInput is a report with an optional signature.
type reportInput struct {
	Signature string `header:"Kalypso-Signature" doc:"A JWS (RFC 7515) with the body as its detached content, by the key of a token, EdDSA, which is named as kid. It says who reports, whoever sends it."`
	RawBody   []byte
	Body      api.Report
}

// reporter returns the signer of a report, or its sender if it is not signed.
func (s *server) reporter(ctx context.Context, in *reportInput) (*access.Identity, error) {
	if in.Signature == "" || s.Tokens == nil {
		return who(ctx), nil
	}
	i, err := s.Tokens.Signer(ctx, &api.SignedReport{Report: in.RawBody, Signature: in.Signature})
	switch {
	case errors.Is(err, access.ErrTooMany):
		return nil, retry(http.StatusTooManyRequests, err.Error())
	case errors.Is(err, access.ErrUnknown):
		return nil, huma.Error401Unauthorized("the report is signed, and " + err.Error())
	case errors.Is(err, api.ErrSignature):
		return nil, huma.Error401Unauthorized(err.Error())
	case err != nil:
		return nil, retry(http.StatusServiceUnavailable,
			"who signed the report cannot be found out now: send it again")
	}
	return i, nil
}

// observed registers the operations of reporters.
func (s *server) observed() {
	huma.Register(s.api, huma.Operation{
		OperationID: "report", Method: http.MethodPost, Path: "/v1/reports",
		Summary: "Report what a cluster runs", MaxBodyBytes: maxBody,
		Description: "Once it is answered with success, the report is stored. A report that arrives " +
			"twice, or late, changes nothing.",
		Errors: []int{401, 403, 404, 409, 413, 422, 429, 503},
	}, func(ctx context.Context, in *reportInput) (*body[api.Taken], error) {
		i, err := s.reporter(ctx, in)
		if err != nil {
			return nil, err
		}
		return s.report(ctx, i, &in.Body)
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "enroll", Method: http.MethodPost, Path: "/v1/enroll",
		Summary:     "Get the token of a cluster",
		Description: "It needs a token of role enroll. Tokens that the cluster had before end.",
		Errors:      []int{401, 403, 404, 429},
	}, func(ctx context.Context, in *body[api.Enrollment]) (*body[api.Token], error) {
		i, err := allow(ctx, access.Enroll)
		if err != nil {
			if i, _ = allow(ctx, access.Admin); i == nil {
				return nil, err
			}
		}
		news, listed := s.Hub.Fleet().News(in.Body.Cluster)
		environment, within := enrolled(i, news.Environments)
		if !listed || !within {
			return nil, unlisted(in.Body.Cluster)
		}
		if s.Tokens == nil {
			return nil, huma.Error422UnprocessableEntity(
				"this hub is for this machine alone, and knows no tokens")
		}
		// The audit comes first: a token that is created and not answered would be lost.
		if err := s.audit(ctx, "enroll", in.Body.Cluster, ""); err != nil {
			return nil, unavailable()
		}
		made, err := s.Tokens.Rotate(ctx,
			api.Token{Cluster: in.Body.Cluster, Environment: environment, MadeBy: i.Name})
		if err != nil {
			return nil, unavailable()
		}
		return &body[api.Token]{made}, nil
	})
}

func unlisted(cluster string) error {
	return huma.Error404NotFound(fmt.Sprintf("no environment has a cluster %s: the platform does "+
		"not list it, or its GitOps branch was not read yet", terminal.Line(cluster)))
}

// enrolled returns the environment of a new token for a cluster that is in some environments. It
// returns "" if the token is for all environments, and false if the caller may not enroll the
// cluster.
func enrolled(i *access.Identity, of []string) (string, bool) {
	scope := i.Scope(access.Enroll)
	if i.May(access.Admin) {
		scope = i.Scope(access.Admin)
	}
	if scope == nil {
		return "", true
	}
	n := slices.IndexFunc(of, scope.Has)
	if n < 0 {
		return "", false
	}
	return of[n], true
}

// reports reports whether i may report about any environment, and scope returns the environments.
func reports(i *access.Identity) bool { return i.May(access.Cluster) || i.May(access.Operator) }

func scope(i *access.Identity) state.Environments {
	if i.May(access.Cluster) {
		return i.Scope(access.Cluster)
	}
	return i.Scope(access.Operator)
}

// report stores a report if the caller may make it.
func (s *server) report(ctx context.Context, i *access.Identity, r *api.Report) (*body[api.Taken],
	error) {
	switch {
	case i == nil:
		return nil, huma.Error401Unauthorized("say who you are")
	case i.May(access.Cluster) && i.Cluster != r.Cluster:
		return nil, huma.Error403Forbidden(fmt.Sprintf("the token is that of cluster %s", i.Cluster))
	case !reports(i):
		return nil, huma.Error403Forbidden(
			fmt.Sprintf("%s has the role %s, which reports nothing", i.Name, i.Roles()))
	}
	out := &state.Report{
		Cluster: r.Cluster, Environments: scope(i), At: r.At, Received: s.Hub.Now(),
		By: terminal.Line(r.By), Snapshot: r.Snapshot, Digest: r.Digest,
		Same: r.Snapshot && r.Items == nil && r.Digest != "", UID: r.UID,
	}
	if out.By == "" {
		out.By = i.Name
	}
	for n := range r.Items {
		item, err := itemOf(&r.Items[n])
		if err != nil {
			return nil, huma.Error422UnprocessableEntity("validation failed",
				&huma.ErrorDetail{Message: err.Error(), Location: fmt.Sprintf("body.items[%d]", n)})
		}
		if environment, _, _ := strings.Cut(item.Assignment, "/"); item.Assignment != "" &&
			!out.Environments.Has(environment) {
			return nil, huma.Error403Forbidden(fmt.Sprintf("%s is for environment %s", i.Name,
				strings.Join(out.Environments, ", ")))
		}
		out.Items = append(out.Items, item)
	}
	taken, err := s.give(ctx, out)
	if err != nil {
		return nil, err
	}
	return &body[api.Taken]{*taken}, nil
}

// maxAhead is how far in the future a Since may be.
const maxAhead = time.Minute

// give applies a report. Its errors are answers.
func (s *server) give(ctx context.Context, r *state.Report) (*api.Taken, error) {
	for n := range r.Items {
		if r.Items[n].Since.Sub(r.Received) > maxAhead {
			r.Items[n].Since = time.Time{}
		}
	}
	begun := time.Now()
	outcome, err := s.Hub.Report(ctx, r)
	s.meters.Report(outcome, err, time.Since(begun))
	switch {
	case errors.Is(err, hub.ErrText):
		return nil, huma.Error422UnprocessableEntity(err.Error())
	case errors.Is(err, hub.ErrBusy):
		return nil, retry(http.StatusTooManyRequests, err.Error())
	case err != nil:
		return nil, retry(http.StatusServiceUnavailable, "the report could not be stored: send it again")
	case outcome.Elsewhere:
		return nil, huma.Error403Forbidden(fmt.Sprintf("cluster %s is in other environments than %s, "+
			"too: report with a token for all of them", terminal.Line(r.Cluster),
			strings.Join(r.Environments, ", ")))
	case outcome.Early:
		return &api.Taken{Early: true}, nil
	case outcome.Unlisted:
		return nil, unlisted(r.Cluster)
	case outcome.Resend:
		return nil, huma.Error409Conflict("the last snapshot had another digest: send the items")
	}
	return &api.Taken{Unknown: outcome.Unknown}, nil
}

// retry is an error after which the client should send the same request again.
func retry(status int, detail string) error {
	return huma.ErrorWithHeaders(huma.NewError(status, detail), http.Header{"Retry-After": {"5"}})
}

const maxMessage = 1024

var id = regexp.MustCompile(`^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})?$`)

// isID reports whether a text is a git id or "".
func isID(text string) bool { return id.MatchString(text) }

func itemOf(it *api.Item) (state.Item, error) {
	reported, ok := state.ParseReportedState(it.State)
	switch {
	case !ok:
		return state.Item{}, fmt.Errorf("%.40q is no state that is reported", it.State)
	case it.Assignment == "" && it.Object == "":
		return state.Item{}, errors.New("neither assignment nor object says what it is about")
	case !isID(it.Commit), !isID(it.Before), !isID(it.Digest):
		return state.Item{}, errors.New("commit, before and digest are ids as git has them in full: 40 " +
			"or 64 hexadecimal digits")
	case !isID(it.Applied) && it.Applied != state.Unknown:
		return state.Item{},
			fmt.Errorf("%.70q is no commit as git has its id in full, and not unknown", it.Applied)
	case slices.Contains(strings.Split(it.Path, "/"), ".."):
		return state.Item{}, fmt.Errorf("%.70q is no path in a repository", it.Path)
	// it may fail before it applies anything
	case it.Commit == "" && it.Digest == "" && reported != state.ReportedFailed:
		return state.Item{}, errors.New("neither commit nor digest says what runs")
	}
	message := terminal.Line(it.Message)
	if len(message) > maxMessage {
		message = message[:maxMessage] + "..."
	}
	return state.Item{
		Assignment: it.Assignment, Object: it.Object, Commit: strings.ToLower(it.Commit),
		Before: strings.ToLower(it.Before), Applied: strings.ToLower(it.Applied),
		Digest: strings.ToLower(it.Digest),
		Origin: origin.Origin{Repository: terminal.Line(it.Repository), Branch: terminal.Line(it.Branch),
			Path: terminal.Line(it.Path)},
		State: reported, Message: strings.ToValidUTF8(message, ""), Since: it.Since,
	}, nil
}

func quote(text string) string {
	data, _ := json.Marshal(text) // a string has JSON
	return string(data)
}
