package people

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func TestSignOutEnds(t *testing.T) { signOutEnds(t, hubtest.SQLite(t)()) }

func TestSignInOnce(t *testing.T) { signInOnce(t, hubtest.SQLite(t)()) }

func TestSlowEnded(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL")
	database := hubtest.Postgres(t)
	signOutEnds(t, database())
	signInOnce(t, database())
}

// signInOnce has somebody keep the cookie of a sign-in, and end it again and again with more codes
// of the issuer. The requests go to two hubs of a database, one after the other, and many at once.
func signInOnce(t *testing.T, database string) {
	f := newFake(t)
	a := newHubOn(t, database, f, rulesText)
	b := newHubOn(t, database, f, rulesText)
	b.people.jar = a.people.jar // two hubs of one address
	b.people.URL = a.people.URL
	// begin begins a sign-in, and returns a function that ends it at a hub.
	begin := func() (end func(h *hub) (int, string)) {
		c := a.browser()
		callback, err := url.Parse(a.begin(c, "/"))
		if err != nil {
			t.Fatal(err)
		}
		cookies := c.Jar.Cookies(callback)
		return func(h *hub) (int, string) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+callback.RequestURI(), nil)
			if err != nil {
				t.Error(err)
				return 0, ""
			}
			for _, cookie := range cookies {
				r.AddCookie(cookie)
			}
			answer := httptest.NewRecorder()
			h.people.Handler().ServeHTTP(answer, r)
			for _, cookie := range answer.Result().Cookies() {
				if cookie.Name == sessionCookie && answer.Code != http.StatusSeeOther {
					t.Errorf("%d gives a session", answer.Code)
				}
			}
			return answer.Code, answer.Body.String()
		}
	}
	end := begin()
	if status, text := end(a); status != http.StatusSeeOther {
		t.Fatalf("the first: %d %s", status, text)
	}
	for _, h := range []*hub{a, b, a} {
		if status, text := end(h); status != http.StatusBadRequest || !strings.Contains(text, "or was done before") {
			t.Errorf("once more: %d %s", status, text)
		}
	}
	end = begin()
	var first atomic.Int32
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			switch status, text := end([]*hub{a, b}[i%2]); status {
			case http.StatusSeeOther:
				first.Add(1)
			case http.StatusBadRequest:
			default:
				t.Errorf("one of many: %d %s", status, text)
			}
		})
	}
	if wait.Wait(); first.Load() != 1 {
		t.Errorf("one sign-in gave %d sessions", first.Load())
	}
	// The hub writes nothing for an answer that the issuer did not give.
	end = begin()
	before, err := a.db.EndedSessions(t.Context(), a.now)
	if err != nil {
		t.Fatal(err)
	}
	f.nonce = "another"
	if status, text := end(a); status != http.StatusForbidden {
		t.Errorf("an answer that cannot be trusted: %d %s", status, text)
	}
	if after, err := a.db.EndedSessions(t.Context(), a.now); err != nil || len(after) != len(before) || len(before) != 2 {
		t.Errorf("%v, %v, and before that %v", after, err, before)
	}
}

// signOutEnds has a person sign out at one of two hubs of a database, while another person has a
// copy of the cookie.
func signOutEnds(t *testing.T, database string) {
	f := newFake(t)
	a, b := newHubOn(t, database, f, rulesText), newHubOn(t, database, f, rulesText)
	ids, other := a.browser(), a.browser()
	a.get(ids, a.begin(ids, "/"))
	a.get(other, a.begin(other, "/")) // of the same person
	u, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(h *hub, of *http.Client, want int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, cookie := range of.Jar.Cookies(u) {
			r.AddCookie(cookie)
		}
		if status, text, _ := h.do(&http.Client{}, r); status != want {
			t.Errorf("%d %s, and should be %d", status, text, want)
		}
	}
	copied := a.browser()
	copied.Jar.SetCookies(u, ids.Jar.Cookies(u))
	for _, h := range []*hub{a, b} {
		ask(h, copied, http.StatusOK)
		ask(h, other, http.StatusOK)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL+"/sign-in/out", nil)
	if err != nil {
		t.Fatal(err)
	}
	if status, text, _ := a.do(ids, r); status != http.StatusOK {
		t.Fatalf("signing out: %d %s", status, text)
	}
	ask(a, copied, http.StatusUnauthorized)
	b.now = b.now.Add(readEvery)
	ask(b, copied, http.StatusUnauthorized)
	for _, h := range []*hub{a, b} {
		ask(h, other, http.StatusOK)
		h.now = h.now.Add(readEvery)
		ask(h, copied, http.StatusUnauthorized)
	}
	// A hub that starts later knows it as well.
	c := newHubOn(t, database, f, rulesText)
	ask(c, copied, http.StatusUnauthorized)
	ask(c, other, http.StatusOK)
	// Without the database, the last known sessions stay valid for a while, and then nobody gets
	// in.
	if err := b.db.Close(); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(believeFor - time.Second)
	ask(b, other, http.StatusOK)
	ask(b, copied, http.StatusUnauthorized)
	b.now = b.now.Add(time.Second)
	ask(b, other, http.StatusServiceUnavailable)
	// After the sessions' and the sign-ins' own end, no record of them remains.
	if ended, err := a.db.EndedSessions(t.Context(), a.now); err != nil || len(ended) != 3 {
		t.Errorf("%v, %v", ended, err)
	}
	if ended, err := a.db.EndedSessions(t.Context(), a.now.Add(3*time.Hour)); err != nil || len(ended) != 0 {
		t.Errorf("%v, %v", ended, err)
	}
}
