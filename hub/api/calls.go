package api

import (
	"bufio"
	"context"
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

// call sends a request, and returns the decoded answer.
func call[T any](ctx context.Context, c *Client, method, path string, query url.Values,
	body any) (*T, error) {
	out := new(T)
	return out, c.do(ctx, method, path, query, body, out)
}

// Report reports about a cluster.
func (c *Client) Report(ctx context.Context, r *Report) (*Taken, error) {
	return call[Taken](ctx, c, http.MethodPost, "/v1/reports", nil, r)
}

// Carry sends a report that another client has signed.
func (c *Client) Carry(ctx context.Context, s *SignedReport) (*Taken, error) {
	return call[Taken](ctx, c, http.MethodPost, "/v1/reports", nil, s)
}

// Enroll returns the token of a cluster.
func (c *Client) Enroll(ctx context.Context, cluster string) (*Token, error) {
	return call[Token](ctx, c, http.MethodPost, "/v1/enroll", nil, Enrollment{cluster})
}

// Environments returns all environments.
func (c *Client) Environments(ctx context.Context) (*Environments, error) {
	return call[Environments](ctx, c, http.MethodGet, "/v1/environments", nil, nil)
}

// Query selects assignments on clusters, in one environment or in all, by the fields of
// state.Filter. At is an earlier moment; zero means now.
type Query struct {
	Environment string
	state.Filter
	At time.Time
}

func (q *Query) values() url.Values {
	out := url.Values{}
	for name, value := range map[string]string{
		"environment": q.Environment, "ring": q.Ring, "clusterType": q.ClusterType, "class": q.Class,
		"cluster": q.Cluster, "workload": q.Workload,
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
	setTime(out, "at", q.At)
	return out
}

// setTime sets a parameter, unless the time is zero.
func setTime(values url.Values, name string, at time.Time) {
	if !at.IsZero() {
		values.Set(name, at.UTC().Format(time.RFC3339Nano))
	}
}

// setPage sets the parameters of a page of a list. For the first page, cursor is "".
func setPage(values url.Values, cursor string, limit int) {
	values.Set("limit", fmt.Sprint(limit))
	if cursor != "" {
		values.Set("cursor", cursor)
	}
}

// Counts returns counts by some dimensions.
func (c *Client) Counts(ctx context.Context, q Query, by ...state.Dimension) (*Groups, error) {
	values := q.values()
	var names []string
	for _, d := range by {
		names = append(names, string(d))
	}
	values.Set("by", strings.Join(names, ","))
	return call[Groups](ctx, c, http.MethodGet, "/v1/counts", values, nil)
}

// Assignments returns a page of assignments on clusters; cursor is "" for the first.
func (c *Client) Assignments(ctx context.Context, q Query, cursor string, limit int) (*Assignments,
	error) {
	values := q.values()
	setPage(values, cursor, limit)
	return call[Assignments](ctx, c, http.MethodGet, "/v1/assignments", values, nil)
}

// Cluster returns a cluster.
func (c *Client) Cluster(ctx context.Context, name string) (*Cluster, error) {
	return call[Cluster](ctx, c, http.MethodGet, "/v1/clusters/"+url.PathEscape(name), nil, nil)
}

// HistoryQuery selects changes. Zero values match any change. The history ignores At and Workspace.
type HistoryQuery struct {
	Query
	Since, Until time.Time
}

// History returns a page of changes, the newest first.
func (c *Client) History(ctx context.Context, q HistoryQuery, cursor string, limit int) (*History,
	error) {
	values := q.values()
	setPage(values, cursor, limit)
	setTime(values, "since", q.Since)
	setTime(values, "until", q.Until)
	return call[History](ctx, c, http.MethodGet, "/v1/history", values, nil)
}

// Releases returns a page of the releases to an environment, the newest first. If environment is
// "", it returns the releases to all environments.
func (c *Client) Releases(ctx context.Context, environment, cursor string, limit int) (*Releases,
	error) {
	values := url.Values{}
	setPage(values, cursor, limit)
	if environment != "" {
		values.Set("environment", environment)
	}
	return call[Releases](ctx, c, http.MethodGet, "/v1/releases", values, nil)
}

// Performance returns the measures of the releases to an environment since a time. If environment
// is "", it covers all environments. The zero Time means 30 days ago.
func (c *Client) Performance(ctx context.Context, environment string,
	since time.Time) (*Performances, error) {
	values := url.Values{}
	if environment != "" {
		values.Set("environment", environment)
	}
	setTime(values, "since", since)
	return call[Performances](ctx, c, http.MethodGet, "/v1/performance", values, nil)
}

// Rollout calls f with each assignment that an environment wants on a cluster, and returns the
// commit of the GitOps branch. If ring is not "", it includes only that ring. All rows are from the
// same moment.
func (c *Client) Rollout(ctx context.Context, environment, ring string,
	f func(*state.Row) error) (commit string, err error) {
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

// NewToken creates a token.
func (c *Client) NewToken(ctx context.Context, of NewToken) (*Token, error) {
	return call[Token](ctx, c, http.MethodPost, "/v1/tokens", nil, of)
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

// Audit returns a page of the audit, the newest first.
func (c *Client) Audit(ctx context.Context, cursor string, limit int) (*Events, error) {
	values := url.Values{}
	setPage(values, cursor, limit)
	return call[Events](ctx, c, http.MethodGet, "/v1/audit", values, nil)
}
