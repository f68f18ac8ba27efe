package github

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/cli/go-gh/v2/pkg/api"
	"github.com/cli/go-gh/v2/pkg/auth"

	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// refusal is an answer that says why something is not done.
type refusal struct {
	host, method, path string
	status             int
	message            string // of the server, one printable line
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s answers %s %s with %d: %s", r.host, r.method, r.path, r.status, r.message)
}

// isRefusal reports whether an error is an answer with a status, and with one of some
// words in its message; none for any message.
func isRefusal(err error, status int, words ...string) bool {
	r := (*refusal)(nil)
	if !errors.As(err, &r) || r.status != status {
		return false
	}
	for _, word := range words {
		if strings.Contains(strings.ToLower(r.message), word) {
			return true
		}
	}
	return len(words) == 0
}

// refused makes an error of an answer.
func (c *client) refused(request *http.Request, got *answer) error {
	said := ""
	parsed := (*api.HTTPError)(nil)
	response := &http.Response{StatusCode: got.status, Status: http.StatusText(got.status), Header: got.header, Request: request, Body: io.NopCloser(bytes.NewReader(got.body))}
	if errors.As(api.HandleHTTPError(response), &parsed) {
		said = c.printable(parsed.Message)
	}
	path := request.URL.Path
	switch got.status {
	case http.StatusUnauthorized:
		return &forge.AuthError{
			Host:    c.host,
			Problem: fmt.Sprintf("it does not accept the token for %s %s: %s", request.Method, path, said),
			Hint:    tokenHint(c.base.Hostname()),
		}
	case http.StatusForbidden:
		return &forge.AuthError{
			Host:    c.host,
			Problem: fmt.Sprintf("it does not allow %s %s: %s", request.Method, path, said),
			Hint:    c.printable(permissionHint(got.header)),
		}
	}
	return &refusal{host: c.host, method: request.Method, path: path, status: got.status, message: said}
}

// permissionHint says what a token lacks. Fine-grained tokens and apps have
// permissions, classic tokens have scopes; organisations can want single sign-on
// beside either.
func permissionHint(header http.Header) string {
	if strings.HasPrefix(header.Get("X-GitHub-SSO"), "required") {
		return "authorize the token for the organization's single sign-on, in the settings of your tokens"
	}
	if wanted := header.Get("X-Accepted-GitHub-Permissions"); wanted != "" {
		return "the token needs the permission " + wanted
	}
	if wanted := header.Get("X-Accepted-OAuth-Scopes"); wanted != "" {
		return "the token needs one of the scopes " + wanted
	}
	return "give the token write access to contents, pull requests, statuses and deployments of the repository"
}

// tokenHint says how to give gh, and with it kalypso, a token for a host.
func tokenHint(host string) string {
	if auth.IsEnterprise(host) {
		return "set GH_ENTERPRISE_TOKEN, in GitHub Actions to ${{ github.token }}, or run: gh auth login --hostname " + terminal.Line(host)
	}
	return "set GH_TOKEN, in GitHub Actions to ${{ github.token }}, or run: gh auth login"
}

// printable is a text of the server for people.
func (c *client) printable(text string) string {
	if c.token != "" {
		text = strings.ReplaceAll(text, c.token, "***")
	}
	return terminal.Line(text)
}

// cleaned is an error whose text is for people: net/http quotes what servers say.
func (c *client) cleaned(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &cleanedError{text: c.printable(err.Error()), err: err}
}

type cleanedError struct {
	text string
	err  error
}

func (e *cleanedError) Error() string { return e.text }

// Is tells which error it was, without showing it.
func (e *cleanedError) Is(target error) bool { return errors.Is(e.err, target) }
