package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/server"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

var releasedAt = time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)

// withReleases serves a hub with a release in prod and one in dev, both complete after 10 minutes.
// The header Test-Environment gives its clients a role in an environment.
func withReleases(t *testing.T) *httptest.Server {
	db := hubtest.Open(t, hubtest.SQLite(t)())
	h, err := hub.Open(t.Context(), hub.Options{Store: db, StaleAfter: time.Hour, Now: func() time.Time { return releasedAt }, Problem: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { h.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	for i, name := range []string{"dev", "prod"} {
		w := &state.DesiredState{Environment: name, Commits: []state.Commit{{ID: "a", Time: releasedAt.Add(-time.Hour), Rings: []state.Ring{{Base: "s"}}}}}
		if err := h.Want(t.Context(), i, w); err != nil {
			t.Fatal(err)
		}
		err := h.Do(t.Context(), func(ctx context.Context, tx *store.Tx) (*state.Changes, error) {
			_, err := tx.Complete(ctx, name, "", "a", releasedAt.Add(-50*time.Minute))
			return nil, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	people := func(r *http.Request) (*access.Identity, error) {
		if environment, is := r.Header["Test-Environment"]; is {
			return &access.Identity{Name: "ann", Grants: []access.Grant{{Role: access.Viewer, Environment: environment[0]}}}, nil
		}
		return nil, nil
	}
	signIn := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "sign in") })
	s := httptest.NewServer(server.New(server.Options{Hub: h, Tokens: access.NewTokens(db, h.Now), People: people, SignIn: signIn, Version: "v1"}))
	t.Cleanup(s.Close)
	return s
}

// fetch returns the status, the text and a header of an answer.
func fetch(t *testing.T, address, header string, headers map[string]string) (int, string, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header[name] = []string{value}
	}
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, strings.TrimSpace(string(body)), a.Header.Get(header)
}

func TestPerformance(t *testing.T) {
	s := withReleases(t)
	as := func(environment string) map[string]string { return map[string]string{"Test-Environment": environment} }
	prod := `{"environment":"prod","releases":1,"perWeek":0.23333333333333334,"completed":1,"leadMedianSeconds":600,"leadP90Seconds":600,"failed":0,"failureRate":0,"restored":0}`
	for _, c := range []struct {
		query, as string
		status    int
		want      string
	}{
		{"?environment=prod", "", 200, `{"since":"2026-10-26T09:00:00Z","until":"2026-11-25T09:00:00Z","environments":[` + prod + `]}`},
		{"", "prod", 200, `{"since":"2026-10-26T09:00:00Z","until":"2026-11-25T09:00:00Z","environments":[` + prod + `]}`},
		{"?since=2026-11-25T08:30:00Z", "", 200, `{"since":"2026-11-25T08:30:00Z","until":"2026-11-25T09:00:00Z","environments":[]}`},
		{"?environment=dev", "prod", 403, "ann may not see environment dev"},
		{"?since=2027-01-01T00:00:00Z", "", 422, "since is not in the past"},
		{"?since=monday", "", 422, "invalid date/time"},
	} {
		if status, text, _ := fetch(t, s.URL+"/v1/performance"+c.query, "", as(c.as)); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s as of %q: %d %s", c.query, c.as, status, text)
		}
	}
	if _, text, _ := fetch(t, s.URL+"/metrics", "", as("prod")); !strings.Contains(text, `kalypso_release_lead_time_seconds_sum{environment="prod"} 600`) || strings.Contains(text, `"dev"`) {
		t.Errorf("the metrics are %s", text)
	}
}

// Releases since a time are the releases that the hub read then or later: here, at 8:00.
func TestReleasesSince(t *testing.T) {
	s := withReleases(t)
	for query, want := range map[string]int{
		"": 2, "?since=2026-11-25T08:00:00Z": 2, "?since=2026-11-25T08:00:00Z&limit=1": 1, "?since=2026-11-25T08:00:00.001Z": 0,
	} {
		status, text, _ := fetch(t, s.URL+"/v1/releases"+query, "", map[string]string{"Test-Environment": ""})
		if n := strings.Count(text, `"commit":`); status != http.StatusOK || n != want {
			t.Errorf("%s: %d, %d releases, and should be %d: %s", query, status, n, want, text)
		}
	}
}

// The hub redirects a person without a session to the sign-in, which leads back to the requested
// page.
func TestSignIn(t *testing.T) {
	s := withReleases(t)
	wanted := "/rollouts/prod?ring=a%2Fb&x=//evil.example.com"
	to := "/sign-in/?" + url.Values{"to": {wanted}}.Encode()
	if status, _, location := fetch(t, s.URL+wanted, "Location", map[string]string{"Accept": "text/html"}); status != http.StatusSeeOther || location != to {
		t.Errorf("a browser gets %d, %s", status, location)
	}
	if status, _, location := fetch(t, s.URL+wanted, "Hx-Redirect", map[string]string{"Hx-Request": "true"}); status != http.StatusUnauthorized || location != to {
		t.Errorf("a script of a page gets %d, %s", status, location)
	}
	if status, text, location := fetch(t, s.URL+"/v1/environments", "Location", map[string]string{"Accept": "text/html"}); status != http.StatusUnauthorized || location != "" || !strings.Contains(text, "by a token") {
		t.Errorf("of the API, it gets %d, %s: %s", status, location, text)
	}
	if status, text, _ := fetch(t, s.URL+"/sign-in/", "", nil); status != http.StatusOK || text != "sign in" {
		t.Errorf("the sign-in is %d: %s", status, text)
	}
}
