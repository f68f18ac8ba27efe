package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cli/go-gh/v2/pkg/api"
	"github.com/cli/go-gh/v2/pkg/auth"
	"github.com/cli/go-gh/v2/pkg/config"

	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// client calls the APIs of a host. Any number of goroutines may use it.
type client struct {
	*server.Server
	http    *http.Client
	base    *url.URL // of the REST API, with a slash at its end
	graphql *url.URL
}

type values = map[string]string

// Token returns the token for a host, as HOST or HOST:PORT, as gh finds it: from the
// environment, else from gh's configuration or keyring.
func Token(host string) (string, bool) {
	_, name := namesOf(host)
	token, _ := auth.TokenForHost(name)
	return token, token != ""
}

// namesOf returns a host as it is called, and as go-gh, which compares hosts without
// ports, knows it.
func namesOf(host string) (called, name string) {
	host = strings.ToLower(host)
	if bare, _, err := net.SplitHostPort(host); err == nil {
		return host, bare
	}
	host = auth.NormalizeHostname(host)
	return host, host
}

func newClient(host string, o Options) (*client, error) {
	host, name := namesOf(host)
	token := o.Token
	if token == "" {
		token, _ = Token(host)
	}
	if token == "" {
		return nil, &forge.AuthError{Host: host, Problem: "there is no token", Hint: tokenHint(name)}
	}
	c := &client{}
	if err := c.locate(host, name); err != nil {
		return nil, err
	}
	// Package server wraps gh's client: a transport in gh's options would disable the socket of
	// gh's configuration. gh's cache would keep answers of POST /graphql, mutations as well, so
	// it stays off.
	gh, err := api.NewHTTPClient(api.ClientOptions{
		Host: name, AuthToken: token, UnixDomainSocket: o.Socket,
		Headers: map[string]string{"Accept": "application/vnd.github+json", "User-Agent": "kalypso"},
	})
	if err != nil {
		return nil, errors.New(terminal.Line(strings.ReplaceAll(err.Error(), token, "[token]")))
	}
	c.Server, err = server.New(server.Options{
		Base: c.base, Name: host, Transport: paced(gh.Transport, c, o), OnePatience: true,
		Header: "Authorization", Credentials: "token " + token, Hint: tokenHint(name), Refusal: c.refusal,
		Clock: server.Clock{Now: o.Now, Wait: o.Wait},
	})
	if err != nil {
		return nil, err
	}
	c.http = c.Client()
	return c, nil
}

// locate sets the URLs of a host's APIs. As in gh, api_host of its hosts.yml has priority.
func (c *client) locate(host, name string) error {
	api := "api." + host
	rest, graphQL := "/", "/graphql"
	if auth.IsEnterprise(name) {
		api, rest, graphQL = host, "/api/v3/", "/api/graphql"
	}
	if configuration, err := config.Read(nil); err == nil && configuration != nil {
		if other, err := configuration.Get([]string{"hosts", name, "api_host"}); err == nil &&
			other != "" {
			api = other
		}
	}
	u, err := url.Parse("https://" + api)
	if err != nil || u.Host != api || u.Hostname() == "" {
		return fmt.Errorf("%s is not the name of a host", terminal.Line(api))
	}
	c.base = &url.URL{Scheme: "https", Host: api, Path: rest}
	c.graphql = &url.URL{Scheme: "https", Host: api, Path: graphQL}
	return nil
}

// urlOf returns the URL of a call of the REST API. The path's parts are escaped.
func (c *client) urlOf(path string, query values) *url.URL {
	q := url.Values{}
	for key, value := range query {
		q.Set(key, value)
	}
	u := *c.base
	u.RawQuery = q.Encode()
	return u.JoinPath(path)
}

// call makes one call of a kind. The error is a *refusal, a *forge.AuthError, or an error of
// package server.
func (c *client) call(
	ctx context.Context, k server.Kind, method string, u *url.URL, in, out any,
) (http.Header, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(server.WithKind(ctx, k), method, u.String(), body)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	data, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, &refusal{host: c.Host(), method: method, path: u.Path, status: response.StatusCode,
			message: c.message(response, data)}
	}
	if out == nil || len(data) == 0 {
		return response.Header, nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, errors.New(
			c.Line(fmt.Sprintf("%s answers %s %s with something else than is documented: %v",
				c.Host(), method, u.Path, err)))
	}
	return response.Header, nil
}

// failure returns the error of a request without the additions of net/http, such as the URL.
// Errors of net/http itself may quote the server.
func (c *client) failure(ctx context.Context, err error) error {
	auth, unavailable, lost := (*forge.AuthError)(nil), (*forge.UnavailableError)(nil),
		(*server.LostError)(nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &auth):
		return auth
	case errors.As(err, &unavailable):
		return unavailable
	case errors.As(err, &lost):
		return lost
	}
	return errors.New(c.Line(err.Error()))
}

// maxPages is the largest number of pages of a hundred to read from one list. GitHub keeps fewer
// entries in all lists of this package.
const maxPages = 100

// pages reads a list, page by page, until each returns false.
func pages[P any](ctx context.Context, r *repo, path string, query values,
	each func(P) bool) error {
	c := r.client
	all := values{"per_page": "100"}
	for key, value := range query {
		all[key] = value
	}
	next := c.urlOf(r.path+"/"+path, all)
	for range maxPages {
		var page P
		header, err := c.call(ctx, server.Read, http.MethodGet, next, nil, &page)
		if err != nil {
			return r.explain(ctx, err)
		}
		if !each(page) {
			return nil
		}
		if next, err = c.next(header); next == nil || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s has more than %d pages of %s", c.Host(), maxPages, path)
}

// next returns the URL of the next page in the Link header of this one. It returns nil for the
// last page. The URL gets the token, so it must be on the same server.
func (c *client) next(header http.Header) (*url.URL, error) {
	for link := range strings.SplitSeq(header.Get("Link"), ",") {
		address, rest, ok := strings.Cut(link, ";")
		if !ok || !strings.Contains(rest, `rel="next"`) {
			continue
		}
		u, err := url.Parse(strings.Trim(strings.TrimSpace(address), "<>"))
		if err != nil || u.Scheme != c.base.Scheme || u.Host != c.base.Host || u.User != nil {
			return nil, errors.New(c.Host() + " continues a list on another server")
		}
		return u, nil
	}
	return nil, nil
}

// unprocessable is the kind of GraphQL's errors if the current state does not allow an operation.
const unprocessable = "UNPROCESSABLE"

// graphQL runs one operation, by its name in the text.
func (c *client) graphQL(
	ctx context.Context, k server.Kind, operation, text string, variables map[string]any, out any,
) error {
	in := map[string]any{"operationName": operation, "query": text, "variables": variables}
	got := struct {
		Data   any `json:"data"`
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}{Data: out}
	header, err := c.call(ctx, k, http.MethodPost, c.graphql, in, &got)
	if err != nil {
		return err
	}
	if len(got.Errors) == 0 {
		return nil
	}
	first, message := got.Errors[0], c.Line(got.Errors[0].Message)
	switch first.Type {
	case "RATE_LIMITED":
		until, ok := resetOf(header)
		if !ok {
			until = c.Now().Add(defaultPause)
		}
		return &forge.UnavailableError{Host: c.Host(), Until: until.Truncate(time.Second),
			Err: errors.New(message)}
	case "INSUFFICIENT_SCOPES", "FORBIDDEN":
		if k != server.Read {
			return &forge.AuthError{Host: c.Host(), Hint: permissionHint(header),
				Problem: fmt.Sprintf("it does not allow %s: %s", operation, message)}
		}
	}
	return &graphQLError{host: c.Host(), operation: operation, kind: first.Type, message: message}
}

// graphQLError is an error of GraphQL, which has the status 200.
type graphQLError struct {
	host, operation string
	kind            string // FORBIDDEN, NOT_FOUND, unprocessable ...
	message         string // one printable line
}

func (e *graphQLError) Error() string {
	return fmt.Sprintf("%s refuses %s: %s", e.host, e.operation, e.message)
}

// isGraphQL reports whether an error has a kind, and one of some texts in its message. Without
// texts, any message matches.
func isGraphQL(err error, kind string, words ...string) bool {
	e := (*graphQLError)(nil)
	return errors.As(err, &e) && e.kind == kind && hasOneOf(e.message, words)
}

// refusal is an answer that refuses a request.
type refusal struct {
	host, method, path string
	status             int
	message            string // of the server, one printable line
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s answers %s %s with %d: %s", r.host, r.method, r.path, r.status, r.message)
}

// isRefusal reports whether an error is a refusal with a status, and with one of some texts in
// its message. Without texts, any message matches.
func isRefusal(err error, status int, words ...string) bool {
	r := (*refusal)(nil)
	return errors.As(err, &r) && r.status == status && hasOneOf(r.message, words)
}

func hasOneOf(message string, words []string) bool {
	for _, word := range words {
		if strings.Contains(strings.ToLower(message), word) {
			return true
		}
	}
	return len(words) == 0
}

// message returns the message of an answer, as gh has it.
func (c *client) message(response *http.Response, data []byte) string {
	response.Body = io.NopCloser(bytes.NewReader(data))
	parsed := (*api.HTTPError)(nil)
	if errors.As(api.HandleHTTPError(response), &parsed) {
		return c.Line(parsed.Message)
	}
	return ""
}

// refusal returns the error for a 401 or a 403.
func (c *client) refusal(response *http.Response) *forge.AuthError {
	data, _ := io.ReadAll(response.Body)
	what := response.Request.Method + " " + response.Request.URL.Path + ": " +
		c.message(response, data)
	if response.StatusCode == http.StatusUnauthorized {
		return &forge.AuthError{Host: c.Host(), Problem: "it does not accept the token for " + what,
			Hint: tokenHint(c.base.Hostname())}
	}
	return &forge.AuthError{Host: c.Host(), Problem: "it does not allow " + what,
		Hint: c.Line(permissionHint(response.Header))}
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
	return "give the token write access to contents, pull requests, statuses and deployments of the " +
		"repository"
}

// tokenHint returns how to give gh, and with it kalypso, a token for a host.
func tokenHint(host string) string {
	if auth.IsEnterprise(host) {
		return "set GH_ENTERPRISE_TOKEN, in GitHub Actions to ${{ github.token }}, or run: gh auth " +
			"login --hostname " + terminal.Line(host)
	}
	return "set GH_TOKEN, in GitHub Actions to ${{ github.token }}, or run: gh auth login"
}
