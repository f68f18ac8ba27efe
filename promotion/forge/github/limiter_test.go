package github_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/github"
)

// limit is an answer that a limit is used up.
func limit(status int, times int, header ...string) forgetest.Fault {
	f := forgetest.Fault{Status: status, Times: times, Header: map[string]string{}, Body: `{"message":"API rate limit exceeded"}`}
	for i := 0; i < len(header); i += 2 {
		f.Header[header[i]] = header[i+1]
	}
	return f
}

// The server's waits are kept, up to a minute; for longer ones, the error has their end.
func TestLimits(t *testing.T) {
	noon := forgetest.NewClock().Now()
	at := func(d time.Duration) string { return strconv.FormatInt(noon.Add(d).Unix(), 10) }
	for _, c := range []struct {
		name   string
		fault  forgetest.Fault
		waited time.Duration
		until  time.Duration // 0 if it works in the end
	}{
		{name: "seconds", fault: limit(429, 1, "Retry-After", "20"), waited: 20 * time.Second},
		{name: "seconds, 403", fault: limit(403, 1, "Retry-After", "20"), waited: 20 * time.Second},
		{name: "no seconds", fault: limit(403, 1, "Retry-After", "0"), waited: time.Second},
		{name: "again and again", fault: limit(429, 3, "Retry-After", "20"), waited: time.Minute},
		{name: "too often", fault: limit(429, 9, "Retry-After", "1"), waited: 3 * time.Second, until: 4 * time.Second},
		{name: "too long", fault: limit(429, 9, "Retry-After", "61"), until: 61 * time.Second},
		{name: "too long in all", fault: limit(403, 9, "Retry-After", "25"), waited: 50 * time.Second, until: 75 * time.Second},
		{name: "reset", fault: limit(403, 1, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", at(30*time.Second)), waited: 31 * time.Second},
		{name: "reset in an hour", fault: limit(403, 1, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", at(time.Hour)), until: time.Hour + time.Second},
		{name: "nothing said", fault: limit(429, 1), waited: time.Minute},
		{name: "both", fault: limit(429, 1, "Retry-After", "5", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", at(2*time.Second)), waited: 5 * time.Second},
		{name: "used up by a good answer", fault: forgetest.Fault{Status: 200, Body: "[]", Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": at(40 * time.Second)}}, waited: 41 * time.Second},
		{name: "of GraphQL", fault: forgetest.Fault{Path: "/graphql/Viewer", Status: 200, Body: `{"errors":[{"type":"RATE_LIMITED","message":"x"}]}`,
			Header: map[string]string{"X-RateLimit-Reset": at(time.Minute)}}, until: time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, "github.com")
			w.Inject(c.fault)
			var err error
			if c.fault.Path == "" {
				_, err = w.forge.Statuses(t.Context(), []git.Hash{w.head})
			} else {
				_, err = w.forge.Viewer(t.Context())
			}
			unavailable := (*forge.UnavailableError)(nil)
			switch {
			case w.Clock.Waited() != c.waited:
				t.Errorf("waited %s", w.Clock.Waited())
			case c.until == 0 && err != nil:
				t.Error(err)
			case c.until != 0 && (!errors.As(err, &unavailable) || !unavailable.Until.Equal(noon.Add(c.until))):
				t.Errorf("%v, want until %s", err, noon.Add(c.until))
			}
		})
	}
}

// After a limit is used up, no requests are sent until its window ends.
func TestLimitIsKept(t *testing.T) {
	w := start(t, "github.com")
	w.Inject(limit(403, 1, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strconv.FormatInt(w.Clock.Now().Add(time.Hour).Unix(), 10)))
	for range 3 {
		if _, err := w.forge.FindChange(t.Context(), "promote", "prod"); err == nil {
			t.Error("it waits for an hour")
		}
	}
	if len(w.Log()) != 1 {
		t.Error(w.Log())
	}
	if _, err := w.forge.Viewer(t.Context()); err != nil { // GraphQL has a limit of its own
		t.Error(err)
	}
	w.Clock.Advance(time.Hour + time.Second)
	if _, err := w.forge.FindChange(t.Context(), "promote", "prod"); err != nil {
		t.Error(err)
	}
}

// A secondary limit is one for both APIs.
func TestSecondaryLimit(t *testing.T) {
	w := start(t, "github.com")
	w.Inject(limit(403, 1, "Retry-After", "3600"))
	unavailable := (*forge.UnavailableError)(nil)
	if _, err := w.forge.FindChange(t.Context(), "promote", "prod"); !errors.As(err, &unavailable) {
		t.Error(err)
	}
	if _, err := w.forge.Viewer(t.Context()); !errors.As(err, &unavailable) || len(w.Log()) != 1 {
		t.Error(err)
	}
}

// Those who wait at the same time wait once.
func TestPatienceTogether(t *testing.T) {
	w := start(t, "github.com")
	w.Inject(limit(429, 1, "Retry-After", "40"))
	stands := func(context.Context, time.Duration) error { return nil }
	f, err := github.New(w.Host, "acme", "fleet", github.Options{Token: w.Token, Socket: w.Socket, Now: w.Clock.Now, Wait: stands})
	for range 3 {
		if err == nil {
			_, err = f.FindChange(t.Context(), "promote", "prod")
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// A request to a failing server is repeated a few times, with increasing pauses.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  forgetest.Fault
		waited time.Duration
		ok     bool
	}{
		{"closed once", forgetest.Fault{}, time.Second, true},
		{"500", forgetest.Fault{Status: 500, Times: 2}, 3 * time.Second, true},
		{"502", forgetest.Fault{Status: 502, Times: 3}, 7 * time.Second, true},
		{"503", forgetest.Fault{Status: 503, Header: map[string]string{"Retry-After": "30"}}, 30 * time.Second, true},
		{"504", forgetest.Fault{Status: 504, Times: 4}, 7 * time.Second, false},
		{"closed", forgetest.Fault{Times: 4}, 7 * time.Second, false},
		{"503 for long", forgetest.Fault{Status: 503, Header: map[string]string{"Retry-After": "3600"}}, 0, false},
	} {
		w := start(t, "github.com")
		w.Inject(c.fault)
		_, err := w.forge.FindChange(t.Context(), "promote", "prod")
		unavailable := (*forge.UnavailableError)(nil)
		if (err == nil) != c.ok || !c.ok && (!errors.As(err, &unavailable) || unavailable.Host != "github.com" || !unavailable.Until.IsZero()) {
			t.Errorf("%s: %v", c.name, err)
		}
		if w.Clock.Waited() != c.waited {
			t.Errorf("%s: waited %s", c.name, w.Clock.Waited())
		}
	}
}

// Writes come one after the other, and after the first of them a second apart; reads
// do not wait.
func TestWritesAreApart(t *testing.T) {
	w := start(t, "github.com")
	var group sync.WaitGroup
	for i := range 25 {
		group.Go(func() {
			if err := w.forge.SetStatus(t.Context(), w.head, forge.Status{Name: fmt.Sprint(i), State: forge.Success}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	converted := w.repo.Statuses()
	for i := 20; i < len(converted); i++ {
		if apart := converted[i].At.Sub(converted[i-1].At); apart < time.Second {
			t.Errorf("%d: %s apart", i, apart)
		}
	}
	if len(converted) != 25 || w.Clock.Waited() != 5*time.Second {
		t.Errorf("%d, waited %s", len(converted), w.Clock.Waited())
	}
}

// A new token of an app is unknown for a moment. A missing object stays missing.
func TestFreshToken(t *testing.T) {
	w := start(t, "github.com")
	w.Inject(refused(404, "", "", "Not Found"))
	if _, err := w.forge.FindChange(t.Context(), "promote", "prod"); err != nil || w.Clock.Waited() != 2*time.Second {
		t.Errorf("%v, waited %s", err, w.Clock.Waited())
	}
	w.Inject(refused(404, "", "/repos/acme/fleet/pulls", "Not Found"))
	if _, err := w.forge.FindChange(t.Context(), "promote", "prod"); err == nil || !strings.Contains(err.Error(), "404: Not Found") || w.Clock.Waited() != 2*time.Second {
		t.Errorf("%v, waited %s", err, w.Clock.Waited())
	}
}

// An error about a token names the problem and a way to solve it, without the token.
func TestAuth(t *testing.T) {
	for _, c := range []struct {
		name, host    string
		fault         forgetest.Fault
		problem, hint string
	}{
		{"unknown", "github.com", refused(401, "", "", "Bad credentials"), "Bad credentials", "GH_TOKEN"},
		{"unknown", "github.corp.example", refused(401, "", "", "Bad credentials"), "Bad credentials", "GH_ENTERPRISE_TOKEN"},
		{"permission", "github.com", forgetest.Fault{Status: 403, Header: map[string]string{"X-Accepted-GitHub-Permissions": "pull_requests=read"}, Body: `{"message":"Resource not accessible by integration"}`},
			"Resource not accessible", "pull_requests=read"},
		{"scope", "github.com", forgetest.Fault{Status: 403, Header: map[string]string{"X-Accepted-OAuth-Scopes": "repo"}, Body: `{}`}, "GET /repos/acme/fleet/pulls", "scopes repo"},
		{"sso", "github.com", forgetest.Fault{Status: 403, Header: map[string]string{"X-GitHub-SSO": "required; url=https://github.com/orgs/x/sso?authorization_request=SECRET"}, Body: `{}`}, "", "single sign-on"},
		{"plain", "github.com", refused(403, "", "", "no"), "no", "write access"},
	} {
		w := start(t, c.host)
		w.Inject(c.fault)
		_, err := w.forge.FindChange(t.Context(), "promote", "prod")
		auth := (*forge.AuthError)(nil)
		if !errors.As(err, &auth) || auth.Host != c.host || !strings.Contains(auth.Problem, c.problem) || !strings.Contains(auth.Hint, c.hint) || strings.Contains(auth.Hint, "SECRET") {
			t.Errorf("%s: %v, %+v", c.name, err, auth)
		}
	}
	w := start(t, "github.com")
	w.repo.Hide("kalypso[bot]")
	_, err := w.forge.FindChange(t.Context(), "promote", "prod")
	if auth := (*forge.AuthError)(nil); !errors.As(err, &auth) || !strings.Contains(auth.Problem, "no repository acme/fleet") {
		t.Errorf("hidden: %v", err)
	}
}

// A request ends when its context is cancelled.
func TestCanceled(t *testing.T) {
	w := start(t, "github.com")
	w.Inject(forgetest.Fault{Status: 500, Times: 9})
	ctx, cancel := context.WithCancel(t.Context())
	f, err := github.New(w.Host, "acme", "fleet", github.Options{Token: w.Token, Socket: w.Socket, Now: w.Clock.Now, Wait: func(context.Context, time.Duration) error {
		cancel()
		return ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := f.FindChange(ctx, "promote", "prod"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if err := f.SetStatus(ctx, w.head, forge.Status{Name: "x", State: forge.Success}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
