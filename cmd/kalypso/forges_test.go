package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
)

// forgeCommand is `forge COMMAND ...`. It plays a forge for the script, with the repositories
// acme/platform and acme/gitops, which git's own server has as well.
//
//	start KIND DIR          play github, gitlab or gitea; DIR is a clone of acme/platform
//	commit DIR SUBJECT      commit everything in the clone, and push it
//	open HEAD BASE TITLE    open a change request in acme/gitops as ann, from a branch,
//	                        which is created if it does not exist; fork:HEAD is a fork's
//	review N USER STATE     approved, requested_changes or dismissed
//	merge N METHOD          merge as ann
//	set SETTING             a setting of acme/gitops: see settings
//	protect BRANCH          refuse pushes to the branch of acme/gitops
//	label N NAME            add a label as somebody else
//	status COMMIT NAME STATE USER [TEXT]
//	                        set a status of a commit of acme/platform; @FILE reads the
//	                        commit from a file
//	fault METHOD PATH STATUS [HEADER=VALUE...]
//	                        answer a request of acme/gitops with a fault; with "done" the
//	                        server obeys it first and loses the answer, with "lost" it
//	                        does neither
//	lag N                   leave new entries out of lists, N times
//	lose N                  break the connections of the next N pushes, once done
//	clock DURATION          move the clock of the forge
//	show REPOSITORY         print the repository's refs, and its state on the forge
//	body N                  print the body of a change request
//	writes                  print the requests that wrote since the last time
//	mask FILE               print a file with names for the ids of commits: S1, S2 ... for
//	                        commits of the platform, and G for others
//	secrets                 fail if a token is in a wrong place: in a request of git,
//	                        in a repository or in a file of kalypso
func forgeCommand(ts *testscript.TestScript, neg bool, args []string, repository string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: forge COMMAND ...")
	}
	playedMu.Lock()
	f := played[ts]
	playedMu.Unlock()
	if args[0] == "start" {
		f = startForge(ts, args[1], args[2], repository)
		playedMu.Lock()
		played[ts] = f
		playedMu.Unlock()
		ts.Defer(func() {
			playedMu.Lock()
			defer playedMu.Unlock()
			delete(played, ts)
		})
		return
	}
	if f == nil {
		ts.Fatalf("forge start comes first")
	}
	f.ts = ts
	f.command(args[0], args[1:])
	if problems := f.problems(); problems != "" {
		ts.Fatalf("the fake has had problems:\n%s", problems)
	}
}

// played are the forges of the running scripts.
var (
	playedMu sync.Mutex
	played   = map[*testscript.TestScript]*scriptForge{}
)

// playedForge is the set of operations that the fakes of all kinds offer to a script, with one
// repository.
type playedForge interface {
	Show() string
	Body(number int) string
	review(number int, by, state string)
	open(head, base, title string, fork bool)
	set(name, value string) bool
	say(commit git.Hash, name, state, by, text string)
	fault(method, path string, status int, header map[string]string, done bool)
	lag(n int)
	label(number int, name string)
	merge(number int, method string) (status int, said string)
	writes() []string
}

// scriptForge is a forge with both repositories, and git's own server.
type scriptForge struct {
	*scriptT
	ts     *testscript.TestScript
	repos  map[string]playedForge // platform and gitops
	dirs   map[string]string      // of the bare repositories
	tokens []string
	clock  *forgetest.Clock
	routes []route
	git    http.Handler

	mu    sync.Mutex
	lost  int
	asked []string // git's requests to its server, with headers
}

// route sends requests whose path begins with a prefix to a handler.
type route struct {
	prefix string
	to     http.Handler
}

// scriptT adapts a script to testing.TB, for fakes.
type scriptT struct {
	testing.TB
	dir    string
	defers func(func())
	mu     sync.Mutex
	failed []string
	n      int
}

func (t *scriptT) Helper()          {}
func (t *scriptT) Cleanup(f func()) { t.defers(f) }
func (t *scriptT) Error(args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = append(t.failed, fmt.Sprint(args...))
}
func (t *scriptT) Errorf(format string, args ...any) { t.Error(fmt.Sprintf(format, args...)) }
func (t *scriptT) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (t *scriptT) TempDir() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	dir := filepath.Join(t.dir, strconv.Itoa(t.n))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (t *scriptT) problems() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.failed, "\n")
}

// startForge plays a forge, makes a clone of the platform and sets the environment.
func startForge(ts *testscript.TestScript, kind, clone, repository string) *scriptForge {
	f := &scriptForge{
		scriptT: &scriptT{dir: ts.MkAbs(".forge"), defers: ts.Defer}, ts: ts, clock: forgetest.NewClock(),
		repos: map[string]playedForge{}, dirs: map[string]string{},
	}
	server := httptest.NewServer(f)
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
	})
	address := server.URL
	switch kind {
	case "github":
		s := forgetest.GitHub(f, "github.com")
		f.clock = s.Clock
		for _, name := range repositoryNames {
			r := s.AddRepository("acme", name, "")
			f.repos[name], f.dirs[name] = &playedGitHub{r, s}, r.Dir
		}
		for _, v := range s.Env() {
			name, value, _ := strings.Cut(v, "=")
			ts.Setenv(name, value)
		}
		f.tokens = []string{s.Token}
		address = "https://github.com"
		f.configure("url."+server.URL+"/.insteadOf", address+"/")
	case "gitlab":
		for _, name := range repositoryNames {
			g := forgetest.NewGitLab(f, "acme/"+name)
			f.route("/api/v4/projects/acme%2F"+name, g.URL)
			f.add(name, &playedGitLab{g, playedOther{&g.GitlabGitea, "/projects/acme%2F" + name}}, &g.GitlabGitea, server.URL)
		}
		ts.Setenv("GITLAB_TOKEN", "token-of-kalypso")
		ts.Setenv("CI_SERVER_URL", server.URL)
	case "gitea":
		for _, name := range repositoryNames {
			g := forgetest.NewGitea(f, "acme/"+name)
			f.route("/api/v1/repos/acme/"+name, g.URL)
			f.add(name, &playedGitea{g, playedOther{&g.GitlabGitea, "/repos/acme/" + name}}, &g.GitlabGitea, server.URL)
		}
		ts.Setenv("GITEA_TOKEN", "token-of-kalypso")
		ts.Setenv("GITEA_ACTIONS", "true")
		ts.Setenv("GITHUB_SERVER_URL", server.URL)
	default:
		ts.Fatalf("forge start github, gitlab or gitea")
	}
	f.serveGit()
	ts.Setenv("GITHUB_STEP_SUMMARY", "")
	ts.Setenv("FORGE", address)
	f.now()
	f.clone(clone, address, repository)
	return f
}

var repositoryNames = []string{"platform", "gitops"}

// add adds a repository of GitLab or Gitea.
func (f *scriptForge) add(name string, played playedForge, g *forgetest.GitlabGitea, address string) {
	f.route("/api/", g.URL) // users are the same in both
	g.URL, g.Now = address, f.clock.Now
	f.repos[name], f.dirs[name] = played, g.Dir
	f.tokens = []string{"token-of-kalypso"}
}

// configure adds to git's configuration in the environment.
func (f *scriptForge) configure(name, value string) {
	n, _ := strconv.Atoi(f.ts.Getenv("GIT_CONFIG_COUNT"))
	f.ts.Setenv(fmt.Sprintf("GIT_CONFIG_KEY_%d", n), name)
	f.ts.Setenv(fmt.Sprintf("GIT_CONFIG_VALUE_%d", n), value)
	f.ts.Setenv("GIT_CONFIG_COUNT", strconv.Itoa(n+1))
}

// now gives kalypso the time of the forge.
func (f *scriptForge) now() { f.ts.Setenv(nowEnv, f.clock.Now().Format(time.RFC3339)) }

// serveGit has git's own server answer for the repositories.
func (f *scriptForge) serveGit() {
	root := f.TempDir()
	path, err := exec.LookPath("git")
	f.ts.Check(err)
	f.ts.Check(os.Mkdir(filepath.Join(root, "acme"), 0o777))
	for name, dir := range f.dirs {
		f.ts.Check(os.Symlink(dir, filepath.Join(root, "acme", name)))
	}
	f.git = &cgi.Handler{
		Path: path, Args: []string{"http-backend"}, Dir: root, Stderr: io.Discard,
		Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + root, "PATH=" + os.Getenv("PATH"),
			"GIT_CONFIG_COUNT=4", "GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true",
			"GIT_CONFIG_KEY_1=receive.unpackLimit", "GIT_CONFIG_VALUE_1=100000",
			"GIT_CONFIG_KEY_2=uploadpack.allowFilter", "GIT_CONFIG_VALUE_2=true",
			"GIT_CONFIG_KEY_3=uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_3=true",
		},
	}
}

// route lets requests whose path begins so go to a fake.
func (f *scriptForge) route(prefix, to string) {
	target, err := url.Parse(to)
	f.ts.Check(err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	f.routes = append(f.routes, route{prefix, proxy})
}

// ServeHTTP answers for the forge and for git.
func (f *scriptForge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, route := range f.routes {
		if strings.HasPrefix(r.URL.EscapedPath(), route.prefix) && !(route.prefix == "/api/" && strings.Contains(r.URL.EscapedPath(), "acme")) {
			route.to.ServeHTTP(w, r)
			return
		}
	}
	// Go's CGI accepts no bodies of unknown length, and git sends large bodies in this way.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	f.mu.Lock()
	f.asked = append(f.asked, fmt.Sprint(r.Method, r.URL, r.Header))
	lose := f.lost > 0 && strings.HasSuffix(r.URL.Path, "/git-receive-pack") && r.Method == http.MethodPost
	if lose {
		f.lost--
	}
	f.mu.Unlock()
	if lose {
		f.git.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	f.git.ServeHTTP(w, r)
}

// clone makes the platform that scripts begin with, with two environments in
// acme/gitops, and pushes it.
func (f *scriptForge) clone(dir, address, repository string) {
	dir = f.ts.MkAbs(dir)
	f.ts.Check(os.CopyFS(dir, os.DirFS(filepath.Join(repository, "testdata", "platform"))))
	policy := fmt.Sprintf(`package platform

// Nobody reports rollouts: what is in the tree counts as running.
environments: {
	dev: {
		gitops: {repo: %[1]q, branch: "dev"}
		gates: rollout: source: "none"
	}
	prod: {
		gitops: {repo: %[1]q, branch: "prod"}
		gates: rollout: source: "none"
	}
}
`, address+"/acme/gitops")
	f.ts.Check(os.WriteFile(filepath.Join(dir, "gitops.cue"), []byte(policy), 0o666))
	f.run(dir, "git", "init", "-q")
	f.run(dir, "git", "remote", "add", "origin", address+"/acme/platform")
	f.commit(dir, "Begin")
}

func (f *scriptForge) commit(dir, subject string) {
	f.run(dir, "git", "add", "-A")
	f.run(dir, "git", "commit", "-q", "--allow-empty", "-m", subject)
	f.run(dir, "git", "push", "-q", "origin", "HEAD:refs/heads/main")
}

// run runs a command with the script's environment, in a folder.
func (f *scriptForge) run(dir string, command ...string) {
	f.ts.Check(f.ts.Exec(command[0], slices.Concat([]string{"-C", dir}, command[1:])...))
}

// command is one of a script.
func (f *scriptForge) command(name string, args []string) {
	gitops := f.repos["gitops"]
	number := func() int {
		n, err := strconv.Atoi(args[0])
		f.ts.Check(err)
		return n
	}
	print := func(text string) { fmt.Fprint(f.ts.Stdout(), text) }
	switch {
	case name == "commit" && len(args) == 2:
		f.commit(f.ts.MkAbs(args[0]), args[1])
	case name == "open" && len(args) == 3:
		head, fork := strings.CutPrefix(args[0], "fork:")
		gitops.open(head, args[1], args[2], fork)
	case name == "label" && len(args) == 2:
		gitops.label(number(), args[1])
	case name == "review" && len(args) == 3:
		gitops.review(number(), args[1], args[2])
	case name == "merge" && len(args) == 2:
		if status, said := gitops.merge(number(), args[1]); status > 299 {
			f.ts.Fatalf("merging: %d %s", status, said)
		}
	case name == "set" && len(args) == 1:
		setting, value, _ := strings.Cut(args[0], "=")
		if !gitops.set(setting, value) {
			f.ts.Fatalf("there is no setting %s", setting)
		}
	case name == "protect" && len(args) == 1:
		f.protect(args[0])
	case name == "status" && (len(args) == 4 || len(args) == 5):
		f.repos["platform"].say(f.commitOf(args[0]), args[1], args[2], args[3], strings.Join(args[4:], ""))
	case name == "fault" && len(args) >= 3:
		f.fault(args)
	case name == "lag" && len(args) == 1:
		gitops.lag(number())
	case name == "lose" && len(args) == 1:
		f.mu.Lock()
		f.lost = number()
		f.mu.Unlock()
	case name == "clock" && len(args) == 1:
		d, err := time.ParseDuration(args[0])
		f.ts.Check(err)
		f.clock.Advance(d)
		f.now()
	case name == "show" && len(args) == 1:
		out, err := exec.Command("git", "-C", f.dirs[args[0]], "for-each-ref", "--format=%(refname)", "--sort=refname").Output()
		f.ts.Check(err)
		print(string(out) + f.masked(f.repos[args[0]].Show()))
	case name == "body" && len(args) == 1:
		print(f.masked(gitops.Body(number())))
	case name == "writes" && len(args) == 0:
		print("") // so that no output is the output
		for _, name := range repositoryNames {
			for _, w := range f.repos[name].writes() {
				print(f.masked(name + " " + w + "\n"))
			}
		}
	case name == "mask" && len(args) == 1:
		print(f.masked(f.ts.ReadFile(args[0])))
	case name == "secrets" && len(args) == 0:
		f.secrets()
	default:
		f.ts.Fatalf("forge %s %v: there is no such command", name, args)
	}
}

// protect makes git refuse pushes to a branch, as forges do.
func (f *scriptForge) protect(branch string) {
	hook := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = refs/heads/%s ]; then\n\techo 'GH006: Protected branch update failed for '$1'.' >&2\n\texit 1\nfi\n", branch)
	dir := filepath.Join(f.dirs["gitops"], "hooks")
	f.ts.Check(os.MkdirAll(dir, 0o777))
	f.ts.Check(os.WriteFile(filepath.Join(dir, "update"), []byte(hook), 0o777))
}

// commitOf reads the id of a commit, or the file that has one.
func (f *scriptForge) commitOf(text string) git.Hash {
	if file, ok := strings.CutPrefix(text, "@"); ok {
		text = strings.TrimSpace(f.ts.ReadFile(file))
	}
	return plumbing.NewHash(text)
}

func (f *scriptForge) fault(args []string) {
	status, done := 0, args[2] == "done"
	if !done && args[2] != "lost" {
		var err error
		status, err = strconv.Atoi(args[2])
		f.ts.Check(err)
	}
	header := map[string]string{}
	for _, h := range args[3:] {
		name, value, _ := strings.Cut(h, "=")
		header[name] = value
	}
	repo, path := "gitops", args[1]
	if rest, ok := strings.CutPrefix(path, "platform:"); ok {
		repo, path = "platform", rest
	}
	f.repos[repo].fault(args[0], path, status, header, done)
}

var ids = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)

// masked replaces ids of commits with names by position, because ids change with every version of
// the compiler.
func (f *scriptForge) masked(text string) string {
	platform := f.commits("platform", "refs/heads/main", "--reverse")
	gitops := f.commits("gitops", "--all")
	address := f.ts.Getenv("FORGE")
	text = strings.ReplaceAll(text, address, "$FORGE")
	if _, host, _ := strings.Cut(address, "://"); host != "github.com" { // it has a port
		text = strings.ReplaceAll(text, host, "$HOST")
	}
	return ids.ReplaceAllStringFunc(text, func(id string) string {
		is := func(commit string) bool { return strings.HasPrefix(commit, id) }
		if n := slices.IndexFunc(platform, is); n >= 0 {
			return "S" + strconv.Itoa(n+1)
		}
		if slices.ContainsFunc(gitops, is) {
			return "G"
		}
		if len(id) == 40 || len(id) == 12 {
			return "ID"
		}
		return id
	})
}

func (f *scriptForge) commits(repository string, args ...string) []string {
	out, err := exec.Command("git", append([]string{"-C", f.dirs[repository], "rev-list"}, args...)...).Output()
	f.ts.Check(err)
	return strings.Fields(string(out))
}

// secrets fails if a token is in a place where it does not belong.
func (f *scriptForge) secrets() {
	f.mu.Lock()
	asked := strings.Join(f.asked, "\n")
	f.mu.Unlock()
	for _, token := range f.tokens {
		if strings.Contains(asked, token) {
			f.ts.Fatalf("git was given the token of the API")
		}
		f.ts.Check(filepath.WalkDir(f.ts.MkAbs("."), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(name)
			if err == nil && bytes.Contains(data, []byte(token)) {
				return fmt.Errorf("%s has the token", name)
			}
			return err
		}))
	}
}

// playedGitHub is a repository of GitHub's fake.
type playedGitHub struct {
	*forgetest.GitHubRepository
	server *forgetest.GitHubServer
}

func (p *playedGitHub) review(number int, by, state string) {
	p.Review(number, by, map[string]string{"approved": "APPROVED", "requested_changes": "CHANGES_REQUESTED", "dismissed": "DISMISSED"}[state])
}

func (p *playedGitHub) open(head, base, title string, fork bool) {
	if p.Branch(head).IsZero() && !fork {
		p.Commit(head, base, "theirs.txt", title)
	}
	p.AddPull(forgetest.GitHubPull{Head: head, Base: base, Title: title, Author: "ann", Fork: fork})
}

// set knows squash, merge, rebase, auto-merge and queue, which are on or off, and for
// the branch prod approvals=N and status=NAME.
func (p *playedGitHub) set(name, value string) bool {
	known := true
	p.Change(func(r *forgetest.GitHubRepository) {
		on := value == "on"
		rules := r.Rules["prod"]
		switch name {
		case "squash":
			r.Squash = on
		case "merge":
			r.MergeCommit = on
		case "rebase":
			r.Rebase = on
		case "auto-merge":
			r.AutoMerge = on
		case "queue":
			r.MergeQueue = on
		case "approvals":
			rules.Approvals, _ = strconv.Atoi(value)
		case "status":
			rules.Statuses = []string{value}
		default:
			known = name == "run-queue"
		}
		r.Rules["prod"] = rules
	})
	if name == "run-queue" {
		p.RunQueue()
	}
	if name == "hide" {
		p.Hide("kalypso[bot]")
		known = true
	}
	return known
}

func (p *playedGitHub) say(commit git.Hash, name, state, by, text string) {
	p.AddStatus(forgetest.GitHubStatus{Commit: commit, Context: name, State: state, Description: text, Creator: by})
}

func (p *playedGitHub) fault(method, path string, status int, header map[string]string, done bool) {
	if !strings.HasPrefix(path, "/graphql") {
		path = "/repos/" + p.Owner + "/" + p.Name + path
	}
	p.server.Inject(forgetest.Fault{Method: method, Path: path, Status: status, Header: header, Body: faultBody(status), Done: done})
}

// faultBody returns the body of a server's answer. It returns "" if the connection breaks.
func faultBody(status int) string {
	if status == 0 {
		return ""
	}
	return fmt.Sprintf(`{"message": "%s"}`, http.StatusText(status))
}

func (p *playedGitHub) label(number int, name string) {
	p.ChangePull(number, func(pull *forgetest.GitHubPull) { pull.Labels = append(pull.Labels, name) })
}

func (p *playedGitHub) lag(n int) { p.server.Lag(n) }

func (p *playedGitHub) merge(number int, method string) (int, string) {
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.server.Socket)
	}}}
	defer client.CloseIdleConnections()
	return ask(&client, http.MethodPut, fmt.Sprintf("http://api.github.com/repos/%s/%s/pulls/%d/merge", p.Owner, p.Name, number),
		"token "+p.server.AddUser("ann"), map[string]any{"merge_method": method, "commit_title": "Merged by hand"})
}

func (p *playedGitHub) writes() []string {
	var out []string
	for _, r := range p.server.Log() {
		if path, ok := strings.CutPrefix(r.Path, "/repos/"+p.Owner+"/"+p.Name); ok && r.Method != http.MethodGet {
			out = append(out, r.Method+" "+path)
		}
	}
	if p.Name == "gitops" {
		for _, r := range p.server.Log() {
			if strings.HasPrefix(r.Path, "/graphql/") && r.Path != "/graphql/Viewer" && r.Path != "/graphql/ReviewDecision" && r.Path != "/graphql/Waits" {
				out = append(out, r.Method+" "+r.Path)
			}
		}
		p.server.Forget()
	}
	return out
}

// ask makes one request of an API as somebody, and returns the status and the answer.
func ask(client *http.Client, method, address, authorization string, in any) (int, string) {
	body, err := json.Marshal(in)
	if err != nil {
		return 599, err.Error()
	}
	r, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		return 599, err.Error()
	}
	r.Header.Set("Authorization", authorization)
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return 599, err.Error()
	}
	defer response.Body.Close()
	said, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(said)
}

// playedOther is the common part of the fakes of GitLab and Gitea.
type playedOther struct {
	*forgetest.GitlabGitea
	path string // of the repository in the API
}

func (p *playedOther) review(number int, by, state string) { p.Review(number, by, state) }

func (p *playedOther) open(head, base, title string, fork bool) {
	if p.Tip(head).IsZero() && !fork {
		p.Commit(head, base, "theirs.txt", title)
	}
	p.Open(head, base, title, fork)
}

func (p *playedOther) say(commit git.Hash, name, state, by, text string) {
	p.SetStatus(commit, name, state, by, text)
}

func (p *playedOther) fault(method, path string, status int, header map[string]string, done bool) {
	p.Fail(forgetest.GitlabGiteaFault{Method: method, Path: p.path + path, Status: status, Header: header, Body: faultBody(status), Done: done})
}

func (p *playedOther) label(number int, name string) { p.Label(number, name) }

func (p *playedOther) lag(n int)        { p.Lag = n }
func (p *playedOther) writes() []string { return p.Writes() }

// playedGitLab is a project of GitLab's fake.
type playedGitLab struct {
	*forgetest.GitLab
	playedOther
}

func (p *playedGitLab) Show() string           { return p.playedOther.Show() }
func (p *playedGitLab) Body(number int) string { return p.playedOther.Body(number) }

// set supports method and squash of the project, left and block:N. left is the number of approvals
// that the rules still require. N is the reason why a merge request cannot be merged.
func (p *playedGitLab) set(name, value string) bool {
	switch name {
	case "method":
		p.MergeMethod = value
	case "squash":
		p.Squash = value
	case "left":
		p.Left, _ = strconv.Atoi(value)
	default:
		number, ok := strings.CutPrefix(name, "block:")
		n, _ := strconv.Atoi(number)
		p.playedOther.Block(n, value)
		return ok
	}
	return true
}

func (p *playedGitLab) merge(number int, method string) (int, string) {
	return ask(http.DefaultClient, http.MethodPut, fmt.Sprintf("%s/api/v4%s/merge_requests/%d/merge", p.playedOther.URL, p.path, number), "Bearer token-of-ann",
		map[string]any{"squash": method == "squash", "sha": p.head(number), "squash_commit_message": "Merged by hand", "merge_commit_message": "Merged by hand"})
}

func (p *playedGitLab) head(number int) string {
	_, said := ask(http.DefaultClient, http.MethodGet, fmt.Sprintf("%s/api/v4%s/merge_requests/%d", p.playedOther.URL, p.path, number), "Bearer token-of-ann", nil)
	var mr struct{ Sha string }
	_ = json.Unmarshal([]byte(said), &mr) // "" is refused
	return mr.Sha
}

// playedGitea is a repository of Gitea's fake.
type playedGitea struct {
	*forgetest.Gitea
	playedOther
}

func (p *playedGitea) Show() string           { return p.playedOther.Show() }
func (p *playedGitea) Body(number int) string { return p.playedOther.Body(number) }

// set supports these settings: methods, with commas between them, approvals, and block:N, the
// reason why a pull request cannot be merged.
func (p *playedGitea) set(name, value string) bool {
	switch name {
	case "methods":
		p.Allowed = strings.Split(value, ",")
	case "approvals":
		p.Required, _ = strconv.Atoi(value)
	default:
		number, ok := strings.CutPrefix(name, "block:")
		n, _ := strconv.Atoi(number)
		p.playedOther.Block(n, value)
		return ok
	}
	return true
}

func (p *playedGitea) merge(number int, method string) (int, string) {
	_, said := ask(http.DefaultClient, http.MethodGet, fmt.Sprintf("%s/api/v1%s/pulls/%d", p.playedOther.URL, p.path, number), "token token-of-ann", nil)
	var pr struct{ Head struct{ Sha string } }
	_ = json.Unmarshal([]byte(said), &pr) // "" is refused
	return ask(http.DefaultClient, http.MethodPost, fmt.Sprintf("%s/api/v1%s/pulls/%d/merge", p.playedOther.URL, p.path, number), "token token-of-ann",
		map[string]any{"Do": method, "head_commit_id": pr.Head.Sha, "MergeTitleField": "Merged by hand"})
}
