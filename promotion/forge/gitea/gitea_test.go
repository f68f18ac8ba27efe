package gitea_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/gitea"
)

const (
	path  = "acme/gitops"
	token = "token-of-kalypso"
)

// clock is a clock that waiting moves.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	waited time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Wait(_ context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.waited = c.now.Add(d), c.waited+d
	return nil
}

// setup serves a repository in which the branch promote/prod has a commit more than
// prod.
func setup(t *testing.T) (*forgetest.Gitea, *gitea.Forge, *clock) {
	t.Helper()
	server, c := forgetest.NewGitea(t, path), &clock{now: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)}
	server.Now = c.Now
	server.Commit("prod", "", "a", "1")
	server.Commit("promote/prod", "prod", "a", "2")
	f, err := gitea.New(t.Context(), server.URL, path, token, gitea.Options{Now: c.Now, Wait: c.Wait})
	if err != nil {
		t.Fatal(err)
	}
	server.Requests()
	return server, f, c
}

var spec = forge.ChangeSpec{
	Head: "promote/prod", Base: "prod", Title: "Promote 4f2a9c1 to prod", Body: "why",
	Labels: []string{"kalypso"}, Reviewers: []string{"ann", "acme/sre", "kalypso"}, Draft: true,
}

func save(t *testing.T, f *gitea.Forge, s forge.ChangeSpec) *forge.Change {
	t.Helper()
	c, err := f.SaveChange(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ready(t *testing.T, f *gitea.Forge) *forge.Change {
	t.Helper()
	s := spec
	s.Draft = false
	return save(t, f, s)
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func TestSave(t *testing.T) {
	server, f, _ := setup(t)
	server.PageSize = 1
	c := save(t, f, spec)
	expect(t, "the change", c, &forge.Change{
		Number: 1, URL: server.URL + "/acme/gitops/pulls/1", Head: server.Tip("promote/prod"), Base: "prod",
		Title: spec.Title, Body: "why", Labels: spec.Labels, Author: "kalypso", Draft: true, State: forge.ChangeOpen,
	})
	expect(t, "the title", server.State(1).Title, "WIP: Promote 4f2a9c1 to prod")
	expect(t, "writes", server.Writes(), []string{
		"POST /repos/acme/gitops/pulls", "POST /repos/acme/gitops/labels", "POST /repos/acme/gitops/issues/1/labels",
		"POST /repos/acme/gitops/pulls/1/requested_reviewers",
	})
	save(t, f, spec)
	expect(t, "writes of the same again", server.Writes(), []string(nil))
	server.Review(1, "bob", "approved")
	more := spec
	more.Draft, more.Body, more.Labels, more.Reviewers = false, "because", []string{"urgent", "kalypso"}, []string{"bob", "ann"}
	c = save(t, f, more)
	expect(t, "labels", c.Labels, []string{"kalypso", "urgent"})
	expect(t, "draft", c.Draft, false)
	expect(t, "writes", server.Writes(), []string{"PATCH /repos/acme/gitops/pulls/1", "POST /repos/acme/gitops/labels", "POST /repos/acme/gitops/issues/1/labels"})
	found, err := f.FindChange(t.Context(), "promote/prod", "prod")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "what is found", found, c)
}

// Those of forks and of others are not found, on any page.
func TestFind(t *testing.T) {
	server, f, _ := setup(t)
	server.PageSize = 1
	for range 3 {
		server.Open("promote/prod", "prod", "from a fork", true)
	}
	if c, err := f.FindChange(t.Context(), "promote/prod", "prod"); c != nil || err != nil {
		t.Fatal(c, err)
	}
	server.Open("promote/prod", "prod", "[wip] WIP: one", false)
	c, err := f.FindChange(t.Context(), "promote/prod", "prod")
	if err != nil || c == nil || c.Number != 4 || c.Title != "one" || !c.Draft {
		t.Fatalf("%+v, %v", c, err)
	}
}

// Every write with a fault happens exactly once, and the client never waits in vain.
func TestFaults(t *testing.T) {
	busy := map[string]string{"Retry-After": "7"}
	for name, fault := range map[string]forgetest.GitlabGiteaFault{
		"lost":           {},
		"lost and done":  {Done: true},
		"500":            {Status: 500},
		"502 and done":   {Status: 502, Done: true},
		"429":            {Status: 429, Header: busy},
		"403 of a limit": {Status: 403, Header: busy},
	} {
		for _, write := range []string{"/pulls", "/labels", "/issues/1/labels", "/requested_reviewers", "/statuses/", "/comments", "/merge"} {
			t.Run(name+write, func(t *testing.T) {
				server, f, clock := setup(t)
				head := server.Tip("promote/prod")
				if write == "/merge" || write == "/comments" {
					ready(t, f)
				}
				fault := fault
				fault.Method, fault.Path = "POST", write
				server.Fail(fault)
				var err error
				switch write {
				default:
					c := ready(t, f)
					expect(t, "labels", c.Labels, spec.Labels)
					server.Requests()
					ready(t, f)
					expect(t, "writes", server.Writes(), []string(nil))
				case "/statuses/":
					err = f.SetStatus(t.Context(), head, forge.Status{Name: "kalypso/prod", State: forge.Success})
					if all, err := f.Statuses(t.Context(), []git.Hash{head}); err != nil || len(all[head]) != 1 {
						t.Error(all, err)
					}
				case "/comments":
					err = f.Comment(t.Context(), 1, "hello")
					expect(t, "comments", server.State(1).Comments, []string{"kalypso: hello"})
				case "/merge":
					_, err = f.Merge(t.Context(), 1, head, forge.MergeOptions{})
					expect(t, "tree", server.Tree(server.Tip("prod")), server.Tree(head))
				}
				if err != nil {
					t.Fatal(err)
				}
				if clock.waited == 0 || clock.waited > time.Minute {
					t.Errorf("waited %s", clock.waited)
				}
			})
		}
	}
}

// A list may lack a change request that another process has just opened.
func TestExists(t *testing.T) {
	server, f, _ := setup(t)
	server.Open("promote/prod", "prod", "by another", false)
	server.Lag = 2
	c := save(t, f, spec)
	expect(t, "number", c.Number, 1)
	expect(t, "title", server.State(1).Title, "WIP: "+spec.Title)
}

func TestErrors(t *testing.T) {
	some := func(err error) bool { return err != nil }
	for name, test := range map[string]struct {
		fault forgetest.GitlabGiteaFault
		times int
		check func(error) bool
	}{
		"401":          {forgetest.GitlabGiteaFault{Status: 401, Body: `{"message":"` + token + `"}`}, 1, isAuth},
		"403":          {forgetest.GitlabGiteaFault{Status: 403, Body: `{"message":"token does not have at least one of required scope(s): [write:repository]\u001b[31m"}`}, 1, isAuth},
		"429 for long": {forgetest.GitlabGiteaFault{Status: 429, Header: map[string]string{"Retry-After": "3600"}}, 1, isUnavailable},
		"500":          {forgetest.GitlabGiteaFault{Status: 500, Body: token}, 9, isUnavailable},
		"lost":         {forgetest.GitlabGiteaFault{}, 9, isUnavailable},
		"null":         {forgetest.GitlabGiteaFault{Status: 200, Body: `[null]`}, 9, isUnavailable},
		"hollow":       {forgetest.GitlabGiteaFault{Status: 200, Body: `[{}]`}, 1, func(err error) bool { return err == nil }},
		"no list":      {forgetest.GitlabGiteaFault{Status: 200, Body: `null`}, 1, func(err error) bool { return err == nil }},
		"no JSON":      {forgetest.GitlabGiteaFault{Status: 200, Body: "<html>" + token}, 1, some},
		"plain text":   {forgetest.GitlabGiteaFault{Status: 422, Body: "\x1b[31m" + token}, 1, some},
		"elsewhere":    {forgetest.GitlabGiteaFault{Status: 302, Header: map[string]string{"Location": "http://example.com/"}}, 1, some},
	} {
		t.Run(name, func(t *testing.T) {
			server, f, clock := setup(t)
			fault := test.fault
			fault.Method, fault.Path, fault.Times = "GET", "/pulls", test.times
			server.Fail(fault)
			_, err := f.FindChange(t.Context(), "promote/prod", "prod")
			if !test.check(err) {
				t.Errorf("%T: %v", err, err)
			}
			if text := fmt.Sprintf("%v %#v", err, err); strings.Contains(text, token) || strings.Contains(text, "\x1b") {
				t.Error(text)
			}
			if clock.waited > time.Minute {
				t.Errorf("waited %s", clock.waited)
			}
		})
	}
}

func isAuth(err error) bool {
	auth := (*forge.AuthError)(nil)
	return errors.As(err, &auth) && strings.Contains(auth.Hint, "write:repository")
}

func isUnavailable(err error) bool {
	_, ok := err.(*forge.UnavailableError)
	return ok
}

// A repository that is hidden is one that needs other credentials, for commits too.
func TestHidden(t *testing.T) {
	server, _, clock := setup(t)
	f, err := gitea.New(t.Context(), server.URL, "acme/other", token, gitea.Options{Now: clock.Now, Wait: clock.Wait})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Statuses(t.Context(), []git.Hash{server.Tip("prod")}); !isAuth(err) {
		t.Error(err)
	}
	if _, err := f.FindChange(t.Context(), "a", "b"); !isAuth(err) {
		t.Error(err)
	}
}

func TestCloseAndComment(t *testing.T) {
	server, f, _ := setup(t)
	save(t, f, spec)
	for _, text := range []string{"one", "one", "two", "one"} {
		if err := f.Comment(t.Context(), 1, text); err != nil {
			t.Fatal(err)
		}
	}
	server.Say(1, "ann", "hm")
	for range 2 {
		if err := f.CloseChange(t.Context(), 1, "superseded"); err != nil {
			t.Fatal(err)
		}
	}
	state := server.State(1)
	expect(t, "comments", state.Comments, []string{"kalypso: one", "kalypso: two", "kalypso: one", "ann: hm", "kalypso: superseded"})
	expect(t, "open", state.Open, false)
	if _, err := f.Merge(t.Context(), 1, server.Tip("promote/prod"), forge.MergeOptions{}); err == nil {
		t.Error("a closed one was merged")
	}
}

func TestMerge(t *testing.T) {
	merge := forge.MergeOptions{Title: "Promote", Message: "Kalypso-Environment: prod"}
	with := func(method string, auto bool) forge.MergeOptions {
		o := merge
		o.Method, o.WhenAllowed = method, auto
		return o
	}
	only := func(styles ...string) func(*forgetest.Gitea) { return func(g *forgetest.Gitea) { g.Allowed = styles } }
	for name, test := range map[string]struct {
		prepare     func(*forgetest.Gitea)
		options     forge.MergeOptions
		state       forge.MergeState
		lost, wrong bool
	}{
		"squash first": {options: merge, state: forge.MergeDone},
		"merge":        {options: with("merge", false), state: forge.MergeDone},
		"rebase":       {only("fast-forward-only", "rebase"), merge, forge.MergeDone, false, false},
		"no rebase":    {options: with("rebase", false), wrong: true},
		"blocked":      {func(g *forgetest.Gitea) { g.Block(1, "checks") }, merge, forge.MergeRefused, false, false},
		"when allowed": {func(g *forgetest.Gitea) { g.Block(1, "checks") }, with("", true), forge.MergeWaiting, false, false},
		"head moved":   {func(g *forgetest.Gitea) { g.Commit("promote/prod", "", "a", "3") }, merge, "", true, false},
		"base moved":   {func(g *forgetest.Gitea) { g.Commit("prod", "", "b", "3") }, merge, "", true, false},
		"409":          {fails(409), merge, "", true, false},
		"405":          {fails(405), merge, forge.MergeRefused, false, false},
		"404":          {fails(404), merge, "", false, true},
		"405, merged": {func(g *forgetest.Gitea) {
			g.Fail(forgetest.GitlabGiteaFault{Method: "POST", Path: "/merge", Status: 405, Done: true})
		}, merge, forge.MergeDone, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			server, f, _ := setup(t)
			head := ready(t, f).Head
			if test.prepare != nil {
				test.prepare(server)
			}
			for range 2 { // the second call finds the result of the first
				state, err := f.Merge(t.Context(), 1, head, test.options)
				if state != test.state || (err != nil) != (test.lost || test.wrong) || errors.Is(err, git.ErrLostRace) != test.lost {
					t.Fatal(state, err)
				}
				if strings.HasPrefix(name, "40") {
					break
				}
			}
			expect(t, "asked to merge later", server.State(1).Auto, test.state == forge.MergeWaiting)
			if test.state == forge.MergeDone {
				expect(t, "tree", server.Tree(server.Tip("prod")), server.Tree(head))
				if name != "rebase" {
					expect(t, "message", server.Message(server.Tip("prod")), "Promote\n\nKalypso-Environment: prod")
				}
			}
		})
	}
}

// CancelMerge cancels a scheduled merge, and does not change a pull request without one.
func TestCancelMerge(t *testing.T) {
	server, f, _ := setup(t)
	s := spec
	s.Draft = false
	head := save(t, f, s).Head
	server.Block(1, "ci_still_running")
	for _, waits := range []bool{true, false} {
		if waits {
			state, err := f.Merge(t.Context(), 1, head, forge.MergeOptions{WhenAllowed: true})
			if state != forge.MergeWaiting || err != nil {
				t.Fatal(state, err)
			}
		}
		if err := f.CancelMerge(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if is := server.State(1); is.Auto || !is.Open {
			t.Errorf("it is %+v", is)
		}
	}
}

func fails(code int) func(*forgetest.Gitea) {
	return func(g *forgetest.Gitea) {
		g.Fail(forgetest.GitlabGiteaFault{Method: "POST", Path: "/merge", Status: code, Body: `{"message":"no"}`})
	}
}

func TestDraftIsNotMerged(t *testing.T) {
	server, f, _ := setup(t)
	head := save(t, f, spec).Head
	server.Requests()
	if state, err := f.Merge(t.Context(), 1, head, forge.MergeOptions{WhenAllowed: true}); state != forge.MergeRefused || err != nil {
		t.Error(state, err)
	}
	expect(t, "writes", server.Writes(), []string(nil))
}

func TestReviews(t *testing.T) {
	server, f, clock := setup(t)
	first := save(t, f, spec).Head
	at := clock.Now()
	server.PageSize, server.Required = 1, 1
	required := func(want forge.Requirement) *forge.Reviews {
		t.Helper()
		reviews, err := f.Reviews(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "required", reviews.Required, want)
		return reviews
	}
	required(forge.Unsatisfied)
	server.Review(1, "ann", "requested_changes")
	server.Review(1, "ann", "approved")
	server.Review(1, "ann", "comment")
	server.Review(1, "dora", "approved")
	server.Review(1, "dora", "dismissed")
	required(forge.Satisfied)
	second := server.Commit("promote/prod", "", "a", "3")
	required(forge.Unknown) // the forge does not report whether the stale one counts
	_ = clock.Wait(t.Context(), time.Minute)
	server.Review(1, "carol", "approved")
	required(forge.Satisfied)
	server.Review(1, "bob", "requested_changes")
	expect(t, "reviews", required(forge.Unknown).Reviews, []forge.Review{
		{By: "ann", Approved: true, Commit: first, At: at},
		{By: "bob", Commit: second, At: clock.Now()},
		{By: "carol", Approved: true, Commit: second, At: clock.Now()},
	})
}

func TestStatuses(t *testing.T) {
	server, f, clock := setup(t)
	head, base, unknown := server.Tip("promote/prod"), server.Tip("prod"), git.ID(git.BlobKind, nil)
	start := clock.Now()
	server.PageSize = 2
	for _, s := range []forge.Status{
		{State: forge.Pending, Description: "0/2"}, {State: forge.Pending, Description: "1/2"},
		{State: forge.Success, Description: "2/2"}, {State: forge.Success, Description: "2/2"}, {State: forge.Failure, Description: "1/2"},
	} {
		s.Name, s.URL = "kalypso/prod", "https://hub.example.com"
		if err := f.SetStatus(t.Context(), head, s); err != nil {
			t.Fatal(err)
		}
		_ = clock.Wait(t.Context(), time.Minute)
	}
	got, err := f.Statuses(t.Context(), []git.Hash{head, base, unknown, head})
	if err != nil {
		t.Fatal(err)
	}
	status := func(state forge.State, description string, minute int) forge.Status {
		return forge.Status{Name: "kalypso/prod", State: state, Description: description, URL: "https://hub.example.com", By: "kalypso", At: start.Add(time.Duration(minute) * time.Minute)}
	}
	expect(t, "statuses", got, map[git.Hash][]forge.Status{head: {
		status(forge.Pending, "0/2", 0), status(forge.Pending, "1/2", 1), status(forge.Success, "2/2", 2), status(forge.Failure, "1/2", 4),
	}})
}

// The library prints nothing, whatever the fault is.
func TestSilence(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = w, w
	server, f, _ := setup(t)
	server.Fail(forgetest.GitlabGiteaFault{Method: "GET", Path: "/pulls", Status: 500, Times: 9})
	_, _ = f.FindChange(t.Context(), "a", "b")
	os.Stdout, os.Stderr = stdout, stderr
	_ = w.Close()
	if text, _ := io.ReadAll(r); len(text) > 0 {
		t.Errorf("%s", text)
	}
}

func TestNew(t *testing.T) {
	server, f, _ := setup(t)
	viewer, _ := f.Viewer(t.Context())
	expect(t, "viewer", viewer, "kalypso")
	expect(t, "repository", f.Repository(), server.URL+"/acme/gitops")
	if err := f.Deploy(t.Context(), forge.Deployment{}); !errors.Is(err, forge.ErrUnsupported) {
		t.Error(err)
	}
	// A token that may not ask who it belongs to can still be good for the rest.
	server.Fail(forgetest.GitlabGiteaFault{Method: "GET", Path: "/user", Status: 403})
	narrow, err := gitea.New(t.Context(), server.URL, path, token, gitea.Options{})
	if err != nil {
		t.Fatal(err)
	}
	viewer, _ = narrow.Viewer(t.Context())
	expect(t, "viewer", viewer, "")
	for name, test := range map[string]struct{ base, path, token string }{
		"unknown token": {server.URL, path, "secret-token"},
		"line break":    {server.URL, path, "secret-token\nX-Evil: 1"},
		"group":         {server.URL, "a/b/c", ""},
		"dots":          {server.URL, "../admin", ""},
		"query":         {server.URL, "acme/gitops?x", ""},
	} {
		if _, err := gitea.New(t.Context(), test.base, test.path, test.token, gitea.Options{}); err == nil || strings.Contains(err.Error(), "secret-token") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestToken(t *testing.T) {
	for _, test := range []struct {
		env  map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{"GITEA_TOKEN": "a", "GITHUB_TOKEN": "b"}, "a"},
		{map[string]string{"FORGEJO_TOKEN": "a", "GITEA_TOKEN": "b"}, "a"},
		{map[string]string{"GITEA_TOKEN": "a", "GITEA_SERVER_URL": "https://codeberg.org/"}, "a"},
		{map[string]string{"GITEA_TOKEN": "a", "GITEA_SERVER_URL": "https://elsewhere.example.com"}, ""},
		{map[string]string{"GITHUB_TOKEN": "b"}, ""},
		{map[string]string{"GITHUB_TOKEN": "b", "GITEA_ACTIONS": "true", "GITHUB_SERVER_URL": "https://codeberg.org"}, "b"},
		{map[string]string{"GITHUB_TOKEN": "b", "FORGEJO_ACTIONS": "true", "GITHUB_SERVER_URL": "https://elsewhere.example.com"}, ""},
	} {
		for _, name := range []string{"GITEA_TOKEN", "FORGEJO_TOKEN", "GITEA_SERVER_URL", "GITHUB_TOKEN", "GITEA_ACTIONS", "FORGEJO_ACTIONS", "GITHUB_SERVER_URL"} {
			t.Setenv(name, test.env[name])
		}
		if got, ok := gitea.Token("codeberg.org"); got != test.want || ok != (test.want != "") {
			t.Errorf("%v: %q, %v", test, got, ok)
		}
	}
}
