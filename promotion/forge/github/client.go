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
)

// client calls the APIs of a host. Any number of goroutines may use it.
type client struct {
	*limiter
	host    string
	token   string
	base    *url.URL // of the REST API, with a slash at its end
	graphql *url.URL
	cache   cache
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
	c := &client{host: host, token: token}
	if err := c.locate(host, name); err != nil {
		return nil, err
	}
	// The retries wrap the client: a transport in the options would disable the socket of
	// gh's configuration. gh's cache would keep answers of POST /graphql, mutations as
	// well, so it stays off.
	sender, err := api.NewHTTPClient(api.ClientOptions{
		Host: name, AuthToken: token, UnixDomainSocket: o.Socket, CheckRedirect: sameHost,
		Headers: map[string]string{"Accept": "application/vnd.github+json", "User-Agent": "kalypso"},
	})
	if err != nil {
		return nil, c.cleaned(err)
	}
	c.limiter = &limiter{
		host: host, send: sender.Do, now: o.Now, wait: o.Wait,
		turn: make(chan struct{}, 1), exhausted: map[string]time.Time{}, clean: c.cleaned,
	}
	return c, nil
}

// locate sets the URLs of a host's APIs, as gh does: api_host of its hosts.yml comes first.
func (c *client) locate(host, name string) error {
	api := "api." + host
	rest, graphQL := "/", "/graphql"
	if auth.IsEnterprise(name) {
		api, rest, graphQL = host, "/api/v3/", "/api/graphql"
	}
	if configuration, err := config.Read(nil); err == nil && configuration != nil {
		if other, err := configuration.Get([]string{"hosts", name, "api_host"}); err == nil && other != "" {
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

// sameHost follows redirects, such as those of renamed repositories, that keep the method
// and the host: a POST that is redirected as a GET has no effect.
func sameHost(request *http.Request, via []*http.Request) error {
	if len(via) > 5 || request.Method != via[0].Method || request.URL.Host != via[0].URL.Host ||
		request.URL.Scheme != via[0].URL.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// rest makes one call of the REST API. The error is a *refusal, an *forge.AuthError, or one
// of limiter.do.
func (c *client) rest(ctx context.Context, k kind, method, path string, query values, in, out any) error {
	_, err := c.call(ctx, k, method, c.at(path, query), in, out)
	return err
}

// at returns the URL of a call. The path's parts are escaped.
func (c *client) at(path string, query values) *url.URL {
	q := url.Values{}
	for key, value := range query {
		q.Set(key, value)
	}
	u := *c.base
	u.RawQuery = q.Encode()
	return u.JoinPath(path)
}

// call makes one call. Reads are cached with their ETag, so that unchanged answers do not
// count for rate limits.
func (c *client) call(ctx context.Context, k kind, method string, u *url.URL, in, out any) (http.Header, error) {
	request, err := newRequest(ctx, method, u, in)
	if err != nil {
		return nil, err
	}
	before, seen := c.cache.get(u.String())
	if seen && method == http.MethodGet {
		request.Header.Set("If-None-Match", before.header.Get("Etag"))
	}
	got, err := c.do(ctx, request, k)
	if err != nil {
		return nil, err
	}
	if got.status == http.StatusNotModified && seen {
		got = before
	} else if method == http.MethodGet && got.status == http.StatusOK && got.header.Get("Etag") != "" {
		c.cache.put(u.String(), got)
	}
	if got.status < 200 || got.status > 299 {
		return nil, c.refused(request, got)
	}
	if out == nil || len(got.body) == 0 {
		return got.header, nil
	}
	if err := json.Unmarshal(got.body, out); err != nil {
		return nil, c.cleaned(fmt.Errorf("%s answers %s %s with something else than is documented: %w",
			c.host, method, u.Path, err))
	}
	return got.header, nil
}

func newRequest(ctx context.Context, method string, u *url.URL, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	return http.NewRequestWithContext(ctx, method, u.String(), body)
}

// maxPages is how many pages of a hundred are read of one list: more than GitHub keeps of
// anything that is listed here.
const maxPages = 100

// pages reads a list, page by page, until each returns false.
func pages[P any](ctx context.Context, r *repo, path string, query values, each func(P) bool) error {
	c := r.client
	all := values{"per_page": "100"}
	for key, value := range query {
		all[key] = value
	}
	next := c.at(r.path+"/"+path, all)
	for range maxPages {
		var page P
		header, err := c.call(ctx, read, http.MethodGet, next, nil, &page)
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
	return fmt.Errorf("%s has more than %d pages of %s", c.host, maxPages, path)
}

// next returns the URL of the next page in the Link header of this one; nil for none. It
// gets the token, so it must be on the same server.
func (c *client) next(header http.Header) (*url.URL, error) {
	for _, link := range strings.Split(header.Get("Link"), ",") {
		address, rest, ok := strings.Cut(link, ";")
		if !ok || !strings.Contains(rest, `rel="next"`) {
			continue
		}
		u, err := url.Parse(strings.Trim(strings.TrimSpace(address), "<>"))
		if err != nil || u.Scheme != c.base.Scheme || u.Host != c.base.Host || u.User != nil {
			return nil, c.cleaned(errors.New(c.host + " continues a list on another server"))
		}
		return u, nil
	}
	return nil, nil
}
