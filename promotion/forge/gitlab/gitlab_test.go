package gitlab_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/gitlab"
)

const (
	project = "acme/platform/gitops"
	token   = "token-of-kalypso"
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

// setup serves a project in which the branch promote/prod has a commit more than prod.
func setup(t *testing.T) (*forgetest.GitLab, *gitlab.Forge, *clock) {
	t.Helper()
	server, c := forgetest.NewGitLab(t, project), &clock{now: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)}
	server.Now = c.Now
	server.Commit("prod", "", "a", "1")
	server.Commit("promote/prod", "prod", "a", "2")
	f, err := gitlab.New(t.Context(), server.URL, project, token, gitlab.Options{Now: c.Now, Wait: c.Wait})
	if err != nil {
		t.Fatal(err)
	}
	server.Requests()
	return server, f, c
}

var spec = forge.ChangeSpec{
	Head: "promote/prod", Base: "prod", Title: "Promote 4f2a9c1 to prod", Body: "why\n\n/approve\n  /merge\n1/2",
	Labels: []string{"kalypso"}, Reviewers: []string{"ann"}, Draft: true,
}

func save(t *testing.T, f *gitlab.Forge, s forge.ChangeSpec) *forge.Change {
	t.Helper()
	c, err := f.SaveChange(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func TestSave(t *testing.T) {
	server, f, _ := setup(t)
	c := save(t, f, spec)
	expect(t, "the change", c, &forge.Change{
		Number: 1, URL: server.URL + "/acme/platform/gitops/-/merge_requests/1", Head: server.Tip("promote/prod"), Base: "prod",
		Title: spec.Title, Body: "why\n\n\\/approve\n  \\/merge\n1/2", Labels: spec.Labels, Author: "kalypso", Draft: true, State: forge.ChangeOpen,
	})
	expect(t, "the title", server.State(1).Title, "Draft: Promote 4f2a9c1 to prod")
	expect(t, "writes", server.Writes(), []string{"POST /projects/acme%2Fplatform%2Fgitops/merge_requests"})
	save(t, f, spec)
	expect(t, "writes of the same again", server.Writes(), []string(nil))
	more := spec
	more.Draft, more.Labels, more.Reviewers = false, []string{"urgent"}, []string{"carol"}
	c = save(t, f, more)
	expect(t, "labels", c.Labels, []string{"kalypso", "urgent"})
	expect(t, "draft", c.Draft, false)
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
	server.Open("promote/prod", "prod", "[draft] Draft: one", false)
	c, err := f.FindChange(t.Context(), "promote/prod", "prod")
	if err != nil || c == nil || c.Number != 4 || c.Title != "one" {
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
		"reset":          {Status: 429, Header: map[string]string{"RateLimit-Reset": "1793610010"}},
	} {
		for _, write := range []string{"/merge_requests", "/statuses/", "/notes", "/deployments", "/merge"} {
			t.Run(name+write, func(t *testing.T) {
				server, f, clock := setup(t)
				head := server.Tip("promote/prod")
				if write == "/merge" || write == "/notes" {
					s := spec
					s.Draft = false
					save(t, f, s)
				}
				fault.Method, fault.Path = "POST", write
				if write == "/merge" {
					fault.Method = "PUT"
				}
				server.Fail(fault)
				var err error
				switch write {
				case "/merge_requests":
					server.Lag = 0
					save(t, f, spec)
				case "/statuses/":
					err = f.SetStatus(t.Context(), head, forge.Status{Name: "kalypso/prod", State: forge.Success})
				case "/notes":
					err = f.Comment(t.Context(), 1, "hello")
				case "/deployments":
					err = f.Deploy(t.Context(), forge.Deployment{Environment: "prod/eu", Commit: head, State: forge.Success})
				case "/merge":
					_, err = f.Merge(t.Context(), 1, head, forge.MergeOptions{})
				}
				if err != nil {
					t.Fatal(err)
				}
				if clock.waited == 0 || clock.waited > time.Minute {
					t.Errorf("waited %s", clock.waited)
				}
				once(t, server, f, write, head)
			})
		}
	}
}

func once(t *testing.T, server *forgetest.GitLab, f *gitlab.Forge, write string, head git.Hash) {
	t.Helper()
	switch write {
	case "/merge_requests":
		server.Requests()
		save(t, f, spec)
		expect(t, "writes", server.Writes(), []string(nil))
	case "/statuses/":
		all, err := f.Statuses(t.Context(), []git.Hash{head})
		if err != nil || len(all[head]) != 1 {
			t.Error(all, err)
		}
	case "/notes":
		expect(t, "comments", server.State(1).Comments, []string{"kalypso: hello"})
	case "/deployments":
		deployments, _ := server.Deployments()
		expect(t, "deployments", deployments, []string{"prod/eu success " + head.String()})
	case "/merge":
		if got := server.Tree(server.Tip("prod")); got != server.Tree(head) {
			t.Error("the merge has another tree:", got)
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
	expect(t, "title", server.State(1).Title, "Draft: "+spec.Title)
}

func TestErrors(t *testing.T) {
	for name, test := range map[string]struct {
		fault forgetest.GitlabGiteaFault
		times int
		check func(error) bool
	}{
		"401":            {forgetest.GitlabGiteaFault{Status: 401, Body: `{"message":"401 ` + token + `"}`}, 1, isAuth},
		"403":            {forgetest.GitlabGiteaFault{Status: 403, Body: `{"error":"insufficient_scope","message":"\u001b[31m"}`}, 1, isAuth},
		"404 project":    {forgetest.GitlabGiteaFault{Status: 404, Body: `{"message":"404 Project Not Found"}`}, 1, isAuth},
		"429 for long":   {forgetest.GitlabGiteaFault{Status: 429, Header: map[string]string{"Retry-After": "3600"}}, 1, until(time.Hour)},
		"429 for ever":   {forgetest.GitlabGiteaFault{Status: 429, Header: map[string]string{"Retry-After": "9223372036854775807"}}, 1, until(366 * 24 * time.Hour)},
		"429 repeatedly": {forgetest.GitlabGiteaFault{Status: 429, Header: map[string]string{"Retry-After": "25"}}, 3, isUnavailable},
		"500":            {forgetest.GitlabGiteaFault{Status: 500, Body: token}, 9, isUnavailable},
		"lost":           {forgetest.GitlabGiteaFault{}, 9, isUnavailable},
		"elsewhere":      {forgetest.GitlabGiteaFault{Status: 302, Header: map[string]string{"Location": "http://example.com/"}}, 1, func(err error) bool { return err != nil }},
		"null":           {forgetest.GitlabGiteaFault{Status: 200, Body: `[null]`}, 9, isUnavailable},
		"no JSON":        {forgetest.GitlabGiteaFault{Status: 200, Body: "<html>" + token}, 1, func(err error) bool { return err != nil }},
		"another":        {forgetest.GitlabGiteaFault{Status: 422, Body: `{"message":"` + token + `\u001b[31m"}`}, 1, func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			server, f, clock := setup(t)
			fault := test.fault
			fault.Method, fault.Path, fault.Times = "GET", "/merge_requests", test.times
			server.Fail(fault)
			_, err := f.FindChange(t.Context(), "promote/prod", "prod")
			if !test.check(err) {
				t.Errorf("%T: %v", err, err)
			}
			if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, token) || strings.Contains(text, "\x1b") {
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
	return errors.As(err, &auth) && strings.Contains(auth.Hint, "api")
}

func isUnavailable(err error) bool {
	_, ok := err.(*forge.UnavailableError)
	return ok
}

func until(d time.Duration) func(error) bool {
	return func(err error) bool {
		u, ok := err.(*forge.UnavailableError)
		return ok && u.Until.Equal(time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC).Add(d))
	}
}

func TestCloseAndComment(t *testing.T) {
	server, f, _ := setup(t)
	save(t, f, spec)
	for _, text := range []string{"one", "one", "two", "/close\n", "one"} {
		if err := f.Comment(t.Context(), 1, text); err != nil {
			t.Fatal(err)
		}
		server.Say(1, "ann", "hm")
		server.Say(1, "system", "changed")
	}
	for range 2 {
		if err := f.CloseChange(t.Context(), 1, "superseded"); err != nil {
			t.Fatal(err)
		}
	}
	state, own := server.State(1), []string(nil)
	for _, c := range state.Comments {
		if strings.HasPrefix(c, "kalypso: ") {
			own = append(own, strings.TrimPrefix(c, "kalypso: "))
		}
	}
	expect(t, "comments", own, []string{"one", "two", "\\/close\n", "one", "superseded"})
	expect(t, "open", state.Open, false)
	if c, err := f.FindChange(t.Context(), "promote/prod", "prod"); c != nil || err != nil {
		t.Error(c, err)
	}
}

func TestMerge(t *testing.T) {
	merge := forge.MergeOptions{Title: "Promote", Message: "Kalypso-Environment: prod"}
	with := func(method string, auto bool) forge.MergeOptions {
		o := merge
		o.Method, o.WhenAllowed = method, auto
		return o
	}
	for name, test := range map[string]struct {
		prepare func(*forgetest.GitLab)
		options forge.MergeOptions
		state   forge.MergeState
		lost    bool
		wrong   bool
		parents int
	}{
		"squash first": {options: merge, state: forge.MergeDone, parents: 1},
		"merge":        {options: with("merge", false), state: forge.MergeDone, parents: 2},
		"never squash": {func(g *forgetest.GitLab) { g.Squash = "never" }, merge, forge.MergeDone, false, false, 2},
		"ff":           {func(g *forgetest.GitLab) { g.Squash, g.MergeMethod = "never", "ff" }, with("rebase", false), forge.MergeDone, false, false, 0},
		"no ff":        {options: with("rebase", false), wrong: true},
		"no squash":    {func(g *forgetest.GitLab) { g.Squash = "never" }, with("squash", false), "", false, true, 0},
		"blocked":      {func(g *forgetest.GitLab) { g.Block(1, "ci_still_running") }, merge, forge.MergeRefused, false, false, 0},
		"when allowed": {func(g *forgetest.GitLab) { g.Block(1, "ci_still_running") }, with("", true), forge.MergeWaiting, false, false, 0},
		"head moved":   {func(g *forgetest.GitLab) { g.Commit("promote/prod", "", "a", "3") }, merge, "", true, false, 0},
		"base moved":   {func(g *forgetest.GitLab) { g.Commit("prod", "", "b", "3") }, merge, "", true, false, 0},
		"409":          {fails(409), merge, "", true, false, 0},
		"405":          {fails(405), merge, forge.MergeRefused, false, false, 0},
		"406":          {fails(406), merge, forge.MergeRefused, false, false, 0},
		"405, merged": {func(g *forgetest.GitLab) {
			g.Fail(forgetest.GitlabGiteaFault{Method: "PUT", Path: "/merge", Status: 405, Done: true})
		}, merge, forge.MergeDone, false, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			server, f, _ := setup(t)
			s := spec
			s.Draft = false
			head := save(t, f, s).Head
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
			if test.state != forge.MergeDone {
				return
			}
			tip := server.Tip("prod")
			expect(t, "tree", server.Tree(tip), server.Tree(head))
			if test.parents > 0 {
				expect(t, "message", server.Message(tip), "Promote\n\nKalypso-Environment: prod")
			} else {
				expect(t, "tip", tip, head)
			}
		})
	}
}

// CancelMerge cancels a scheduled merge, and does not change a merge request without one.
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

func fails(code int) func(*forgetest.GitLab) {
	return func(g *forgetest.GitLab) {
		g.Fail(forgetest.GitlabGiteaFault{Method: "PUT", Path: "/merge", Status: code, Body: `{"message":"no"}`})
	}
}

// A merge request that GitLab still looks at is waited for, for a while.
func TestMergeUnchecked(t *testing.T) {
	server, f, clock := setup(t)
	s := spec
	s.Draft = false
	head := save(t, f, s).Head
	server.Block(1, "checking")
	if state, err := f.Merge(t.Context(), 1, head, forge.MergeOptions{}); state != forge.MergeRefused || err != nil || clock.waited == 0 {
		t.Error(state, err, clock.waited)
	}
}

func TestReviews(t *testing.T) {
	server, f, clock := setup(t)
	first := save(t, f, spec).Head
	tick := func() time.Time { _ = clock.Wait(t.Context(), time.Minute); return clock.Now() }
	early := tick()
	server.Review(1, "carol", "approved")
	tick()
	second := server.Commit("promote/prod", "", "a", "3")
	if _, err := f.FindChange(t.Context(), "promote/prod", "prod"); err != nil { // GitLab sees the push
		t.Fatal(err)
	}
	late := tick()
	server.Review(1, "ann", "approved")
	server.Review(1, "bob", "requested_changes")
	server.Review(1, "dora", "dismissed")
	for _, test := range []struct {
		left, required int
		blocked        string
		want           forge.Requirement
	}{
		{1, 2, "", forge.Unsatisfied}, {0, 2, "ci_must_pass", forge.Satisfied}, {0, 0, "", forge.Satisfied},
		{0, 0, "ci_must_pass", forge.Unknown}, {0, 2, "requested_changes", forge.Unsatisfied},
	} {
		server.Left, server.Required = test.left, test.required
		s := spec
		s.Draft = false
		save(t, f, s)
		server.Block(1, test.blocked)
		reviews, err := f.Reviews(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "required", reviews.Required, test.want)
		expect(t, "reviews", reviews.Reviews, []forge.Review{
			{By: "ann", Approved: true, Commit: second, At: late},
			{By: "bob"},
			{By: "carol", Approved: true, Commit: first, At: early},
		})
	}
}

func TestStatuses(t *testing.T) {
	server, f, clock := setup(t)
	head, base, unknown := server.Tip("promote/prod"), server.Tip("prod"), git.ID(git.BlobKind, nil)
	start := clock.Now()
	server.PageSize = 2
	server.Job(head.String(), "build", "skipped", "ann", start.Add(-time.Hour))
	set := func(state forge.State, description string) {
		t.Helper()
		if err := f.SetStatus(t.Context(), head, forge.Status{Name: "kalypso/prod", State: state, Description: description, URL: "https://hub.example.com"}); err != nil {
			t.Fatal(err)
		}
		_ = clock.Wait(t.Context(), time.Minute)
	}
	set(forge.Pending, "0/2")
	set(forge.Pending, "1/2") // GitLab keeps the old text
	set(forge.Success, "2/2")
	set(forge.Success, "2/2")
	set(forge.Failure, "1/2")
	got, err := f.Statuses(t.Context(), []git.Hash{head, base, unknown, head})
	if err != nil {
		t.Fatal(err)
	}
	url := "https://hub.example.com"
	expect(t, "statuses", got, map[git.Hash][]forge.Status{head: {
		{Name: "build", State: forge.Pending, By: "ann", At: start.Add(-time.Hour)},
		{Name: "kalypso/prod", State: forge.Success, Description: "2/2", URL: url, By: "kalypso", At: start.Add(2 * time.Minute)},
		{Name: "kalypso/prod", State: forge.Failure, Description: "1/2", URL: url, By: "kalypso", At: start.Add(4 * time.Minute)},
	}})
}

func TestDeploy(t *testing.T) {
	server, f, _ := setup(t)
	head, base := server.Tip("promote/prod"), server.Tip("prod")
	deploy := func(commit git.Hash, state forge.State, url string) {
		t.Helper()
		if err := f.Deploy(t.Context(), forge.Deployment{Environment: "prod/eu", Commit: commit, State: state, URL: url, Production: true}); err != nil {
			t.Fatal(err)
		}
	}
	deploy(base, forge.Pending, "")
	deploy(base, forge.Success, "")
	deploy(head, forge.Failure, "https://hub.example.com")
	server.Requests()
	deploy(head, forge.Failure, "https://hub.example.com")
	expect(t, "writes of the same again", server.Writes(), []string(nil))
	deployments, environments := server.Deployments()
	expect(t, "deployments", deployments, []string{"prod/eu success " + base.String(), "prod/eu failed " + head.String()})
	expect(t, "environments", environments, []string{"prod/eu production https://hub.example.com"})
}

func TestFreezes(t *testing.T) {
	server, f, _ := setup(t)
	server.PageSize = 1
	server.Freezes = [][3]string{{"0 16 * * 5", "0 6 * * 1", "Europe/Berlin"}, {"0 0 20 12 *", "0 6 4 1 *", "UTC"}}
	got, err := f.Freezes(t.Context())
	expect(t, "freezes", got, []gitlab.Freeze{{"0 16 * * 5", "0 6 * * 1", "Europe/Berlin"}, {"0 0 20 12 *", "0 6 4 1 *", "UTC"}})
	expect(t, "error", err, nil)
}

func TestNew(t *testing.T) {
	server, f, _ := setup(t)
	viewer, _ := f.Viewer(t.Context())
	expect(t, "viewer", viewer, "kalypso")
	expect(t, "repository", f.Repository(), server.URL+"/acme/platform/gitops")
	job, err := gitlab.New(t.Context(), server.URL+"/", project, "glcbt-job", gitlab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	viewer, _ = job.Viewer(t.Context())
	expect(t, "viewer of a job", viewer, "ann")
	// A token that may not ask who it belongs to can still be good for the rest.
	server.Fail(forgetest.GitlabGiteaFault{Method: "GET", Path: "/user", Status: 403})
	narrow, err := gitlab.New(t.Context(), server.URL, project, token, gitlab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	viewer, _ = narrow.Viewer(t.Context())
	expect(t, "viewer of a narrow token", viewer, "")
	for name, test := range map[string]struct{ base, project, token string }{
		"unknown token": {server.URL, project, "secret-token"},
		"line break":    {server.URL, project, "secret-token\nX-Evil: 1"},
		"credentials":   {"https://u:secret-token@gitlab.example.com", project, ""},
		"scheme":        {"ftp://gitlab.example.com", project, ""},
		"query":         {"https://gitlab.example.com?token=secret-token", project, ""},
		"no group":      {server.URL, "gitops", ""},
		"dots":          {server.URL, "acme/../gitops", ""},
	} {
		_, err := gitlab.New(t.Context(), test.base, test.project, test.token, gitlab.Options{})
		if err == nil || strings.Contains(err.Error(), "secret-token") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReviewers(t *testing.T) {
	server, f, _ := setup(t)
	for _, name := range []string{"nobody", "acme/sre"} {
		s := spec
		s.Reviewers = []string{name}
		if _, err := f.SaveChange(t.Context(), s); err == nil || !strings.Contains(err.Error(), name) {
			t.Error(err)
		}
	}
	expect(t, "writes", server.Writes(), []string(nil))
}

func TestToken(t *testing.T) {
	for _, test := range []struct {
		env  map[string]string
		host string
		want string
	}{
		{nil, "gitlab.com", ""},
		{map[string]string{"GITLAB_TOKEN": "a", "CI_JOB_TOKEN": "b", "CI_SERVER_URL": "https://gitlab.com"}, "gitlab.com", "a"},
		{map[string]string{"CI_JOB_TOKEN": "b", "CI_SERVER_URL": "https://gitlab.com"}, "gitlab.com", "b"},
		{map[string]string{"CI_JOB_TOKEN": "b", "CI_SERVER_URL": "https://gitlab.com"}, "gitlab.example.com", ""},
		{map[string]string{"CI_JOB_TOKEN": "b"}, "gitlab.com", ""},
		{map[string]string{"GITLAB_TOKEN": "a", "GITLAB_HOST": "https://gitlab.example.com:443/x"}, "gitlab.example.com", "a"},
		{map[string]string{"GITLAB_TOKEN": "a", "GITLAB_HOST": "gitlab.example.com"}, "evil.example.com", ""},
	} {
		for _, name := range []string{"GITLAB_TOKEN", "GITLAB_HOST", "CI_JOB_TOKEN", "CI_SERVER_URL"} {
			t.Setenv(name, test.env[name])
		}
		if got, ok := gitlab.Token(test.host); got != test.want || ok != (test.want != "") {
			t.Errorf("%v: %q, %v", test, got, ok)
		}
	}
}
