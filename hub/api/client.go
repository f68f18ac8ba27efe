package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// Client speaks to a hub. Any number of goroutines may use it.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// NewClient returns the client of a hub at an address, such as https://hub.example.com. token is
// "" for none: it is sent over https, and to this machine, alone.
func NewClient(address, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%q is no address of a hub, such as https://hub.example.com", address)
	}
	if u.User != nil {
		return nil, errors.New("the address of the hub has a password in it: give a token instead")
	}
	if host := u.Hostname(); token != "" && u.Scheme == "http" && host != "localhost" && host != "127.0.0.1" && host != "::1" {
		return nil, fmt.Errorf("%s would get the token unencrypted: use https", u.Host)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0)} // a third of the time of a handshake
	client := &http.Client{Transport: transport, Timeout: 2 * time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Client{strings.TrimSuffix(u.String(), "/"), token, client}, nil
}

// CloseIdle closes the connections that are not in use. Who asks again in a minute makes a new one:
// a hub that holds one for each of 100,000 clusters takes 2 GB of memory for them.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Error is an answer of a hub that is none of success: RFC 9457.
type Error struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Message  string `json:"message"`
		Location string `json:"location"`
	} `json:"errors"`
	RetryAfter time.Duration `json:"-"`
}

// Error returns the status and all that the hub says is wrong.
func (e *Error) Error() string {
	text := e.Detail
	if text == "" {
		text = e.Title
	}
	for _, more := range e.Errors {
		text += "; " + strings.TrimSpace(more.Location+" "+more.Message)
	}
	return fmt.Sprintf("the hub says %d: %s", e.Status, text)
}

// UnavailableError is a hub that does not answer.
type UnavailableError struct {
	Host string
	Err  error
}

// Error names the hub and says what went wrong.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the hub %s does not answer: %v", e.Host, e.Err)
}

// Unwrap returns what went wrong.
func (e *UnavailableError) Unwrap() error { return e.Err }

// IsAuth reports whether a hub wants another token.
func IsAuth(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden)
}

// IsUnavailable reports whether a hub does not answer, or has too much to do.
func IsUnavailable(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, new(*UnavailableError)) ||
		errors.As(err, &e) && (e.Status == http.StatusTooManyRequests || e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusGatewayTimeout)
}

// IsResend reports whether a hub needs the items of a snapshot that had only a digest.
func IsResend(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && e.Status == http.StatusConflict
}

// maxAnswer bounds an answer that is no stream.
const maxAnswer = 256 << 20

func (c *Client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var reader io.Reader
	signed, isSigned := body.(*Signed)
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		if isSigned {
			data = signed.Report
		}
		reader = bytes.NewReader(data)
	}
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json, application/problem+json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if isSigned {
		r.Header.Set(SignatureHeader, signed.Signature)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err // the rest is said
		}
		return nil, &UnavailableError{r.URL.Host, err}
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	e := &Error{}
	data, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if json.Unmarshal(data, e) != nil || e.Title == "" {
		e.Title = answer.Status
	}
	e.Status = answer.StatusCode
	if seconds, err := time.ParseDuration(answer.Header.Get("Retry-After") + "s"); err == nil {
		e.RetryAfter = seconds
	}
	return nil, e
}

// do asks, and reads the answer; into is nil for none.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body, into any) error {
	answer, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if into == nil || answer.StatusCode == http.StatusNoContent {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return err
	}
	if len(data) > maxAnswer {
		return fmt.Errorf("the hub's answer has more than %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the hub's answer: %w", err)
	}
	return nil
}

// Report reports about a cluster.
func (c *Client) Report(ctx context.Context, r *Report) (*Taken, error) {
	out := &Taken{}
	return out, c.do(ctx, http.MethodPost, "/v1/reports", nil, r, out)
}

// Carry brings a report that somebody else has signed.
func (c *Client) Carry(ctx context.Context, s *Signed) (*Taken, error) {
	out := &Taken{}
	return out, c.do(ctx, http.MethodPost, "/v1/reports", nil, s, out)
}

// Enroll returns the token of a cluster.
func (c *Client) Enroll(ctx context.Context, cluster string) (*Token, error) {
	out := &Token{}
	return out, c.do(ctx, http.MethodPost, "/v1/enroll", nil, Enrollment{cluster}, out)
}

// Environments returns all environments.
func (c *Client) Environments(ctx context.Context) (*Environments, error) {
	out := &Environments{}
	return out, c.do(ctx, http.MethodGet, "/v1/environments", nil, nil, out)
}

// Query selects assignments on clusters, of one environment or of all, and of these as the rest of
// state.Filter; At is a moment, zero for now.
type Query struct {
	Environment string
	state.Filter
	At time.Time
}

func (q *Query) values() url.Values {
	out := url.Values{}
	for name, value := range map[string]string{
		"environment": q.Environment, "ring": q.Ring, "clusterType": q.ClusterType, "class": q.Class, "cluster": q.Cluster, "workload": q.Workload,
		"workspace": q.Workspace, "deploymentTarget": q.Target, "version": q.Version, "base": q.Base,
	} {
		if value != "" {
			out.Set(name, value)
		}
	}
	var states []string
	for _, s := range q.States {
		states = append(states, s.String())
	}
	if len(states) > 0 {
		out.Set("state", strings.Join(states, ","))
	}
	if !q.At.IsZero() {
		out.Set("at", q.At.UTC().Format(time.RFC3339Nano))
	}
	return out
}

// Counts returns counts by some dimensions.
func (c *Client) Counts(ctx context.Context, q Query, by ...state.Dimension) (*Groups, error) {
	values := q.values()
	var names []string
	for _, d := range by {
		names = append(names, string(d))
	}
	values.Set("by", strings.Join(names, ","))
	out := &Groups{}
	return out, c.do(ctx, http.MethodGet, "/v1/counts", values, nil, out)
}

// Assignments returns a page of assignments on clusters; cursor is "" for the first.
func (c *Client) Assignments(ctx context.Context, q Query, cursor string, limit int) (*Assignments, error) {
	values := q.values()
	values.Set("limit", fmt.Sprint(limit))
	if cursor != "" {
		values.Set("cursor", cursor)
	}
	out := &Assignments{}
	return out, c.do(ctx, http.MethodGet, "/v1/assignments", values, nil, out)
}

// Cluster returns a cluster.
func (c *Client) Cluster(ctx context.Context, name string) (*Cluster, error) {
	out := &Cluster{}
	return out, c.do(ctx, http.MethodGet, "/v1/clusters/"+url.PathEscape(name), nil, nil, out)
}

// HistoryQuery selects what changed; zero values stand for any, and its At and Workspace are none
// of it.
type HistoryQuery struct {
	Query
	Since, Until time.Time
}

// History returns a page of what changed, the newest first.
func (c *Client) History(ctx context.Context, q HistoryQuery, cursor string, limit int) (*History, error) {
	values := q.values()
	values.Set("limit", fmt.Sprint(limit))
	if cursor != "" {
		values.Set("cursor", cursor)
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			values.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	out := &History{}
	return out, c.do(ctx, http.MethodGet, "/v1/history", values, nil, out)
}

// Releases returns a page of what was released to an environment, "" for all, the newest first.
func (c *Client) Releases(ctx context.Context, environment, cursor string, limit int) (*Releases, error) {
	values := url.Values{"limit": {fmt.Sprint(limit)}}
	if cursor != "" {
		values.Set("cursor", cursor)
	}
	if environment != "" {
		values.Set("environment", environment)
	}
	out := &Releases{}
	return out, c.do(ctx, http.MethodGet, "/v1/releases", values, nil, out)
}

// Performance returns how well releases to an environment went since a time, "" for all; the zero
// Time is 30 days ago.
func (c *Client) Performance(ctx context.Context, environment string, since time.Time) (*Performances, error) {
	values := url.Values{}
	if environment != "" {
		values.Set("environment", environment)
	}
	if !since.IsZero() {
		values.Set("since", since.UTC().Format(time.RFC3339Nano))
	}
	out := &Performances{}
	return out, c.do(ctx, http.MethodGet, "/v1/performance", values, nil, out)
}

// Rollout calls f with each assignment on a cluster that an environment wants, of a ring where
// that is not "", and returns the commit of the GitOps branch that it is about. All of it is of
// one moment.
func (c *Client) Rollout(ctx context.Context, environment, ring string, f func(*state.Row) error) (commit string, err error) {
	values := url.Values{"environment": {environment}}
	if ring != "" {
		values.Set("ring", ring)
	}
	answer, err := c.request(ctx, http.MethodGet, "/v1/rollout", values, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := json.NewDecoder(bufio.NewReaderSize(answer.Body, 1<<16))
	var end RolloutEnd
	for {
		var line struct {
			*state.Row
			RolloutEnd
		}
		if err := lines.Decode(&line); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return "", fmt.Errorf("the hub's answer: %w", err)
		}
		if line.End {
			end = line.RolloutEnd
			break
		}
		if line.Row == nil {
			continue
		}
		if err := f(line.Row); err != nil {
			return "", err
		}
	}
	return end.GitOps, nil
}

// RolloutEnd is the last line of a rollout: without it, the answer is cut off.
type RolloutEnd struct {
	End    bool   `json:"end,omitempty"`
	GitOps string `json:"gitops,omitempty"` // the commit
}

// NewToken makes a token.
func (c *Client) NewToken(ctx context.Context, of NewToken) (*Token, error) {
	out := &Token{}
	return out, c.do(ctx, http.MethodPost, "/v1/tokens", nil, of, out)
}

// Tokens returns all tokens, without their secrets.
func (c *Client) Tokens(ctx context.Context) (*Tokens, error) {
	all := &Tokens{Tokens: []Token{}}
	for values := (url.Values{"limit": {"1000"}}); ; {
		page := Tokens{}
		if err := c.do(ctx, http.MethodGet, "/v1/tokens", values, nil, &page); err != nil {
			return nil, err
		}
		all.Tokens = append(all.Tokens, page.Tokens...)
		if page.Next == "" {
			return all, nil
		}
		values.Set("cursor", page.Next)
	}
}

// Forget forgets a cluster that the platform does not list.
func (c *Client) Forget(ctx context.Context, cluster string) error {
	return c.do(ctx, http.MethodDelete, "/v1/clusters/"+url.PathEscape(cluster), nil, nil, nil)
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v1/tokens/"+url.PathEscape(id), nil, nil, nil)
}

// Audit returns who did what, the newest first.
func (c *Client) Audit(ctx context.Context, cursor string, limit int) (*Events, error) {
	values := url.Values{"limit": {fmt.Sprint(limit)}}
	if cursor != "" {
		values.Set("cursor", cursor)
	}
	out := &Events{}
	return out, c.do(ctx, http.MethodGet, "/v1/audit", values, nil, out)
}
