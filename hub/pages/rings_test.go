package pages_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/compiled"
	"github.com/kalypso-io/kalypso/hub/pages"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/view"
)

// baseEnv makes the test program act as the process that has compiled an environment at a commit.
const baseEnv = "KALYPSO_TEST_COMPILED"

// base is a platform that has one policy and one config, with the name of its commit.
type base struct {
	view.Source
	name string
}

func (b base) Policies(_ context.Context, environment, _ string) (*view.Policies, error) {
	if b.name == "broken" {
		return nil, errors.New("the platform does not compile")
	}
	return &view.Policies{Environment: environment, Rows: []view.Policy{{Name: "policy-of-" + b.name}}}, nil
}

func (b base) Configs(_ context.Context, environment, _ string) (*view.Configs, error) {
	return &view.Configs{Environment: environment, Rows: []view.Config{{Name: "config-of-" + b.name}}}, nil
}

func (b base) Assignment(context.Context, string, string, string) (*view.Assignment, error) {
	return nil, errors.New("the platform is not here")
}

// bases returns a pool of processes. Each has compiled the commit in its question.
func bases() *compiled.Pool {
	return &compiled.Pool{Most: 3, Idle: time.Hour, Limit: time.Minute, Start: func(at compiled.At) (*exec.Cmd, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), baseEnv+"="+at.Environment+" "+at.Base)
		return cmd, nil
	}}
}

// TestRings checks that pages of compiled data name their ring, and link to the other rings.
func TestRings(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "hub.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	h, err := hub.Open(t.Context(), hub.Options{Store: db, StaleAfter: time.Hour, Now: time.Now, Problem: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { h.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	rings := map[string][]state.Ring{
		"dev":   {{Base: "d0", Own: "d0"}},
		"prod":  {{Name: "canary", Base: "p2", Own: "own2"}, {Name: "stores & kiosks", Base: "p1", Own: "p1"}},
		"test":  {{Name: "canary", Base: "broken", Own: "broken"}, {Name: "main", Base: "t1", Own: "t1"}},
		"empty": nil,
	}
	for i, name := range []string{"dev", "prod", "test", "empty"} {
		w := &state.DesiredState{Environment: name}
		if rings[name] != nil {
			w.Commits = []state.Commit{{ID: newer, Rings: rings[name]}}
		}
		if err := h.Want(t.Context(), i, w); err != nil {
			t.Fatal(err)
		}
	}
	pool := bases()
	t.Cleanup(pool.Close)
	feed := &view.Feed{}
	feed.Set(&pages.Source{Hub: h, Title: "retail", Compiled: pool}, nil)
	handler := view.ObserverHandler(feed)
	for _, c := range []struct {
		page    string
		status  int
		has     []string
		without string
	}{
		{"/policies/dev", 200, []string{"policy-of-d0"}, "ring"},
		{"/configs/dev", 200, []string{"config-of-d0"}, "ring"},
		{"/policies/prod", 200, []string{"policy-of-p2", "This is what ring canary has.", `<a href="?ring=canary" aria-current="page">`, `<a href="?ring=stores%20%26%20kiosks">`, "<code>p2</code> with own files of <code>own2</code>", "<code>p1</code></span>"}, "of-p1"},
		{"/policies/prod?ring=stores+%26+kiosks", 200, []string{"policy-of-p1", "This is what ring stores &amp; kiosks has.", `<a href="?ring=canary">`}, "of-p2"},
		{"/configs/prod?ring=canary", 200, []string{"config-of-p2", "This is what ring canary has."}, "of-p1"},
		{"/configs/prod?ring=stores+%26+kiosks", 200, []string{"config-of-p1", "This is what ring stores &amp; kiosks has."}, "of-p2"},
		{"/configs/prod?ring=nowhere", 404, []string{"environment prod has no ring nowhere, or nothing was promoted to it yet"}, "of-p"},
		{"/configs/prod?ring=nowhere", 404, []string{`<a href="?ring=canary">`, `<a href="?ring=stores%20%26%20kiosks">`, `<a href="/environments/prod">`}, "This is what ring"},
		{"/policies/test", 500, []string{"the platform does not compile", `<a href="?ring=canary" aria-current="page">`, `<a href="?ring=main">`, `<a href="/environments/test">`}, "This is what ring"},
		{"/policies/test?ring=main", 200, []string{"policy-of-t1"}, "does not compile"},
		{"/policies/empty", 404, []string{"nothing was promoted to environment empty yet"}, "of-p"},
	} {
		r := httptest.NewRequest(http.MethodGet, c.page, nil)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r.WithContext(access.With(r.Context(), &access.Identity{Grants: []access.Grant{{Role: access.Viewer}}})))
		if w.Code != c.status {
			t.Errorf("%s: status %d", c.page, w.Code)
		}
		_, main, _ := strings.Cut(w.Body.String(), "<main")
		for _, want := range c.has {
			if !strings.Contains(main, want) {
				t.Errorf("%s does not have %s: %s", c.page, want, main)
			}
		}
		if strings.Contains(main, c.without) {
			t.Errorf("%s has %s", c.page, c.without)
		}
	}
}
