package people

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func TestSignOutEnds(t *testing.T) { signOutEnds(t, hubtest.SQLite(t)()) }

func TestSlowSignOutEnds(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL")
	signOutEnds(t, hubtest.Postgres(t)())
}

// signOutEnds has somebody sign out at one of two hubs of a database, of whose cookie there is a
// copy.
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
	// A hub that has begun since knows it as well.
	c := newHubOn(t, database, f, rulesText)
	ask(c, copied, http.StatusUnauthorized)
	ask(c, other, http.StatusOK)
	// Without the database, what was read holds for a while, and then nobody gets in.
	if err := b.db.Close(); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(believeFor - time.Second)
	ask(b, other, http.StatusOK)
	ask(b, copied, http.StatusUnauthorized)
	b.now = b.now.Add(time.Second)
	ask(b, other, http.StatusServiceUnavailable)
	// When the sessions would have ended by themselves, nothing is kept of them.
	if ended, err := a.db.EndedSessions(t.Context(), a.now); err != nil || len(ended) != 1 {
		t.Errorf("%v, %v", ended, err)
	}
	if ended, err := a.db.EndedSessions(t.Context(), a.now.Add(3*time.Hour)); err != nil || len(ended) != 0 {
		t.Errorf("%v, %v", ended, err)
	}
}
