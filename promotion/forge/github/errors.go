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

// refusal is an answer that refuses a request.
type refusal struct {
	host, method, path string
	status             int
	message            string // of the server, one printable line
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s answers %s %s with %d: %s", r.host, r.method, r.path, r.status, r.message)
}

// isRefusal reports whether an error is a refusal with a status, and with one of some words
// in its message; none for any message.
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

// refused returns the error for an answer.
func (c *client) refused(request *http.Request, got *answer) error {
	message := ""
	parsed := (*api.HTTPError)(nil)
	response := &http.Response{StatusCode: got.status, Status: http.StatusText(got.status),
		Header: got.header, Request: request, Body: io.NopCloser(bytes.NewReader(got.body))}
	if errors.As(api.HandleHTTPError(response), &parsed) {
		message = c.printable(parsed.Message)
	}
	path := request.URL.Path
	switch got.status {
	case http.StatusUnauthorized:
		return &forge.AuthError{
			Host:    c.host,
			Problem: fmt.Sprintf("it does not accept the token for %s %s: %s", request.Method, path, message),
			Hint:    tokenHint(c.base.Hostname()),
		}
	case http.StatusForbidden:
		return &forge.AuthError{
			Host:    c.host,
			Problem: fmt.Sprintf("it does not allow %s %s: %s", request.Method, path, message),
			Hint:    c.printable(permissionHint(got.header)),
		}
	}
	return &refusal{host: c.host, method: request.Method, path: path, status: got.status, message: message}
}

// permissionHint returns which permission a token lacks. Fine-grained tokens and apps have
// permissions, classic tokens have scopes; organisations may require single sign-on for
// both.
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

// tokenHint returns how to give gh, and with it kalypso, a token for a host.
func tokenHint(host string) string {
	if auth.IsEnterprise(host) {
		return "set GH_ENTERPRISE_TOKEN, in GitHub Actions to ${{ github.token }}, or run: gh auth " +
			"login --hostname " + terminal.Line(host)
	}
	return "set GH_TOKEN, in GitHub Actions to ${{ github.token }}, or run: gh auth login"
}

// printable returns a text of the server as one line without the token.
func (c *client) printable(text string) string {
	if c.token != "" {
		text = strings.ReplaceAll(text, c.token, "***")
	}
	return terminal.Line(text)
}

// cleaned returns an error with a printable text: net/http quotes what servers send.
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

// Is matches the original error without showing it.
func (e *cleanedError) Is(target error) bool { return errors.Is(e.err, target) }
