package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// GitlabGitea is the common part of the fakes of GitLab and of Gitea. It is an HTTP server on
// loopback before a bare git repository, with changes that it can merge, and their settings. Set
// the fields before the first request.
type GitlabGitea struct {
	URL string // of the instance
	Dir string // of the bare repository
	// Users are the users, by their tokens.
	Users map[string]string
	// Now is the clock of the server and of its commits.
	Now func() time.Time
	// PageSize is the largest length of a page. Lag is the number of lists of changes that still
	// lack the newest one.
	PageSize, Lag int

	t        testing.TB
	mu       sync.Mutex
	faults   []*GitlabGiteaFault
	requests []string
	changes  []*gitlabGiteaChange
	statuses []*gitlabGiteaStatus
	said     map[string]string
}

// GitlabGiteaFault is something that goes wrong with a request.
type GitlabGiteaFault struct {
	Method, Path string // Path is a part of it
	// Times is the number of faults; 0 for one.
	Times int
	// Status, Header and Body are the answer. With the status 0 the server does not answer, as if
	// the connection had been cut.
	Status int
	Header map[string]string
	Body   string
	// Done is true if the request is obeyed before it fails.
	Done bool
}

type gitlabGiteaChange struct {
	number                         int
	title, body, head, base, state string
	author                         string
	labels, reviewers, teams       []string
	fork, auto                     bool
	blocked                        string // why it cannot be merged yet, as the server names it
	merged, headWhenMerged         string
	notes                          []gitlabGiteaNote
	approvals                      []gitlabGiteaReview
	versions                       []gitlabGiteaVersion
}

type gitlabGiteaNote struct{ by, body string }

// gitlabGiteaNoteID returns the id of a comment, which is unique among the comments of all
// changes.
func gitlabGiteaNoteID(c *gitlabGiteaChange, i int) int { return c.number*1000 + i }

// noteOf returns the comment of an id, or nil.
func (g *GitlabGitea) noteOf(id string) *gitlabGiteaNote {
	for _, c := range g.changes {
		for i := range c.notes {
			if strconv.Itoa(gitlabGiteaNoteID(c, i)) == id {
				return &c.notes[i]
			}
		}
	}
	return nil
}

type gitlabGiteaVersion struct {
	head string
	at   time.Time
}

type gitlabGiteaReview struct {
	by, state, commit string
	at                time.Time
	dismissed         bool
}

type gitlabGiteaStatus struct {
	id                                        int
	commit, name, state, description, url, by string
	created, finished                         time.Time
}

// start makes the repository and serves.
func (g *GitlabGitea) start(t testing.TB, path, prefix string, mux *http.ServeMux) {
	g.t, g.PageSize, g.said = t, 100, map[string]string{}
	g.Dir = filepath.Join(t.TempDir(), "project.git")
	g.Users = map[string]string{"token-of-kalypso": "kalypso", "token-of-ann": "ann", "token-of-bob": "bob"}
	now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	g.Now = func() time.Time { return now }
	// The files that git init makes, without the time that git init takes.
	for file, content := range map[string]string{
		"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsync = none\n",
		"objects/info/alternates": "", "refs/heads/.none.lock": "",
	} {
		file = filepath.Join(g.Dir, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.requests = append(g.requests, r.Method+" "+strings.TrimPrefix(r.URL.RequestURI(), prefix))
		g.serve(w, r, mux)
	}))
	t.Cleanup(server.Close)
	g.URL = server.URL
}

func (g *GitlabGitea) serve(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	fault := g.fault(r)
	if fault != nil && fault.Done {
		mux.ServeHTTP(httptest.NewRecorder(), r)
	}
	switch {
	case fault == nil:
		mux.ServeHTTP(w, r)
	case fault.Status == 0:
		panic(http.ErrAbortHandler)
	default:
		for name, value := range fault.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(fault.Status)
		_, _ = fmt.Fprint(w, fault.Body)
	}
}

// fault returns the fault for a request, or nil.
func (g *GitlabGitea) fault(r *http.Request) *GitlabGiteaFault {
	for i, f := range g.faults {
		if f.Method == r.Method && strings.Contains(r.URL.EscapedPath(), f.Path) {
			if f.Times--; f.Times <= 0 {
				g.faults = slices.Delete(g.faults, i, i+1)
			}
			return f
		}
	}
	return nil
}

// Fail lets something go wrong.
func (g *GitlabGitea) Fail(f GitlabGiteaFault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = append(g.faults, &f)
}

// Requests returns the requests since the last call, as METHOD PATH?QUERY below the
// API's own path.
func (g *GitlabGitea) Requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.requests
	g.requests = nil
	return all
}

// Writes returns Requests without requests that only read, and without queries.
func (g *GitlabGitea) Writes() []string {
	var writes []string
	for _, r := range g.Requests() {
		if !strings.HasPrefix(r, "GET ") {
			path, _, _ := strings.Cut(r, "?")
			writes = append(writes, path)
		}
	}
	return writes
}

// headOf returns the head of a change, and records it if it is new.
func (g *GitlabGitea) headOf(c *gitlabGiteaChange) string {
	head := c.headWhenMerged
	if head == "" {
		head = g.tip(c.head)
	}
	if n := len(c.versions); n == 0 || c.versions[n-1].head != head {
		c.versions = append(c.versions, gitlabGiteaVersion{head: head, at: g.Now()})
	}
	return head
}

// shown are the changes that lists show by now.
func (g *GitlabGitea) shown() []*gitlabGiteaChange {
	if g.Lag > 0 && len(g.changes) > 0 {
		g.Lag--
		return g.changes[:len(g.changes)-1]
	}
	return g.changes
}

// GitlabGiteaState is the result of a change.
type GitlabGiteaState struct {
	Open     bool
	Title    string
	Comments []string
	Auto     bool
}

// State returns the result of a change.
func (g *GitlabGitea) State(number int) GitlabGiteaState {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.changes[number-1]
	s := GitlabGiteaState{Open: c.state == "opened", Title: c.title, Auto: c.auto}
	for _, n := range c.notes {
		s.Comments = append(s.Comments, n.by+": "+n.body)
	}
	return s
}

// Block sets the reason why a change cannot be merged yet, as the server names it, or "".
func (g *GitlabGitea) Block(number int, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changes[number-1].blocked = why
}

// Review lets somebody review a change's head: with the state approved or
// requested_changes, or dismissed, which is an approval that was dismissed.
func (g *GitlabGitea) Review(number int, by, state string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.changes[number-1]
	r := gitlabGiteaReview{by: by, state: state, commit: g.headOf(c), at: g.Now()}
	if state == "dismissed" {
		r.state, r.dismissed = "approved", true
	}
	c.approvals = append(c.approvals, r)
}

// Say lets somebody comment on a change.
func (g *GitlabGitea) Say(number int, by, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.changes[number-1]
	c.notes = append(c.notes, gitlabGiteaNote{by: by, body: text})
}

// Open opens a change, as somebody else does, and returns its number.
func (g *GitlabGitea) Open(head, base, title string, fork bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open(&gitlabGiteaChange{head: head, base: base, title: title, author: "ann", fork: fork}).number
}

func (g *GitlabGitea) open(c *gitlabGiteaChange) *gitlabGiteaChange {
	c.number, c.state = len(g.changes)+1, "opened"
	g.headOf(c)
	g.changes = append(g.changes, c)
	return c
}

// opened returns the open change between two branches, or nil.
func (g *GitlabGitea) opened(head, base string) *gitlabGiteaChange {
	for _, c := range g.changes {
		if c.state == "opened" && !c.fork && c.head == head && c.base == base {
			return c
		}
	}
	return nil
}

// gitlabGiteaJSON writes an answer.
func gitlabGiteaJSON(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// gitlabGiteaPage cuts a page out of a list, and returns the number of the next one.
func gitlabGiteaPage[T any](all []T, r *http.Request, size string, most int) (page []T, next int) {
	number, per := 1, 20
	if n, err := strconv.Atoi(r.URL.Query().Get("page")); err == nil && n > 0 {
		number = n
	}
	if n, err := strconv.Atoi(r.URL.Query().Get(size)); err == nil && n > 0 {
		per = n
	}
	per = min(per, most)
	from, to := min((number-1)*per, len(all)), min(number*per, len(all))
	if to < len(all) {
		next = number + 1
	}
	return append([]T{}, all[from:to]...), next
}
