// Package gitlab implements forge.Forge for projects on gitlab.com and on self-managed GitLab
// instances, with GitLab's REST API, version 4 (https://docs.gitlab.com/api/rest/).
//
// Change requests are merge requests. A title that begins with "Draft: " makes a merge request a
// draft, and the package adds this prefix to titles and removes it. Reviewers are users: groups
// review by GitLab's approval rules.
//
// GitLab's default merge method also merges into a base that has moved. Merge refuses that, but a
// merge that GitLab makes by itself later does not. The project's merge method should be a
// semi-linear history or fast-forward.
package gitlab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Options are the clock, for tests; the zero value is the real one.
type Options = server.Clock

// Forge is a project of a GitLab instance.
type Forge struct {
	server  *server.Server
	api     *gl.Client
	base    *url.URL
	project string
	viewer  string
}

var _ forge.Forge = (*Forge)(nil)

const hint = "set GITLAB_TOKEN to a token with the scope api of a user, a project or a group " +
	"that has at least the role Developer in the project, and one that may merge into the branch " +
	"(in a job, CI_JOB_TOKEN is used without it, which may do less)"

// New returns a project: base is the instance's URL, with its path if any, and project the
// project's path with its groups. The token is sent to that server only; without one,
// public projects can be read.
//
// It requests the user of the token: the error for an invalid one is a *forge.AuthError.
func New(ctx context.Context, base, project, token string, o Options) (*Forge, error) {
	address, err := server.Base(base)
	if err != nil {
		return nil, err
	}
	segments, err := server.Path(project)
	if err != nil {
		return nil, err
	}
	project = strings.Join(segments, "/")
	header, credentials := credentials(token)
	s, err := server.New(server.Options{
		Base: address, Header: header, Credentials: credentials, Hint: hint, Hidden: "Project Not Found",
		Clock: o,
	})
	if err != nil {
		return nil, err
	}
	// The library gets no token, so that it cannot print it, and neither retries nor waits:
	// package server does.
	api, err := gl.NewAuthSourceClient(gl.Unauthenticated{},
		gl.WithBaseURL(address.String()), gl.WithHTTPClient(s.Client()), gl.WithoutRetries(),
		gl.WithCustomLimiter(noLimiter{}), gl.WithURLWarningLogger(slog.New(slog.DiscardHandler)),
		gl.WithUserAgent("kalypso"))
	if err != nil {
		return nil, fmt.Errorf("GitLab at %s: %w", terminal.Line(address.Host), err)
	}
	f := &Forge{server: s, api: api, base: address, project: project}
	if token != "" {
		f.viewer, err = server.Ask(ctx, s,
			func(ctx context.Context) (string, error) { return f.whoami(ctx, header) })
	}
	return f, err
}

type noLimiter struct{}

func (noLimiter) Wait(context.Context) error { return nil }

const jobHeader = "JOB-TOKEN"

// credentials returns the header for a token: tokens of jobs have one of their own. Since
// GitLab 16.9 they have a prefix (https://docs.gitlab.com/security/tokens/#token-prefixes).
func credentials(token string) (header, value string) {
	switch {
	case token == "":
		return "", ""
	case strings.HasPrefix(token, "glcbt-"):
		return jobHeader, token
	}
	return "Authorization", "Bearer " + token
}

// Token returns the token for a host, as HOST or HOST:PORT, from the environment:
// GITLAB_TOKEN, unless GITLAB_HOST names another host, or, in a job on that host,
// CI_JOB_TOKEN.
func Token(host string) (string, bool) {
	if token := os.Getenv("GITLAB_TOKEN"); token != "" &&
		server.Same(os.Getenv("GITLAB_HOST"), host, true) {
		return token, true
	}
	if token := os.Getenv("CI_JOB_TOKEN"); token != "" &&
		server.Same(os.Getenv("CI_SERVER_URL"), host, false) {
		return token, true
	}
	return "", false
}

// Kind is gitlab.
func (f *Forge) Kind() string { return "gitlab" }

// Repository returns the URL of the project's page.
func (f *Forge) Repository() string { return f.base.JoinPath(f.project).String() }

// Limits returns the limits of GitLab (https://docs.gitlab.com/administration/instance_limits/
// and the columns of its database). The prefix of a draft is part of a title.
func (f *Forge) Limits() forge.Limits {
	return forge.Limits{Title: 255 - len(drafts.Prefix), Body: 1 << 20, StatusDescription: 255}
}

// Viewer returns the name of the token's user; "" for a token without that permission.
func (f *Forge) Viewer(context.Context) (string, error) { return f.viewer, nil }

func (f *Forge) whoami(ctx context.Context, header string) (string, error) {
	if header == jobHeader {
		job, _, err := f.api.Jobs.GetJobTokensJob(nil, gl.WithContext(ctx))
		if err != nil || job.User == nil {
			return "", f.fail("ask whose job this is", err)
		}
		return job.User.Username, nil
	}
	user, _, err := f.api.Users.CurrentUser(gl.WithContext(ctx))
	if server.Refused(err) {
		return "", nil
	}
	if err != nil {
		return "", f.fail("ask who the token belongs to", err)
	}
	return user.Username, nil
}

// fail returns an error with the operation, and without the request that the library adds.
func (f *Forge) fail(doing string, err error) error {
	answer := (*gl.ErrorResponse)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return fmt.Errorf("%s: %s answers %d: %s", doing, f.server.Host(), answer.StatusCode,
			terminal.Line(answer.Message))
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// code returns the status code of an error. It returns 0 if the error has no code.
func code(err error) int {
	answer := (*gl.ErrorResponse)(nil)
	switch {
	case errors.As(err, &answer):
		return answer.StatusCode
	case errors.Is(err, gl.ErrNotFound):
		return http.StatusNotFound
	}
	return 0
}

// page returns the options for a page of a list; next is 0 for the last one.
func page(number int) gl.ListOptions { return gl.ListOptions{Page: int64(number), PerPage: 100} }

func next(r *gl.Response) int {
	if r == nil {
		return 0
	}
	return int(r.NextPage)
}
