// Package remotetest runs git's own servers for tests: over SSH, and over HTTP behind a proxy.
// The proxy requires credentials, counts requests, and loses answers. Only loopback is used.
package remotetest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/gitserver"
)

// The user whom servers of this package let in.
const (
	Username = "somebody"
	Password = "hunter2-hunter2"
)

// Server serves git repositories over HTTP, as `git http-backend` does.
type Server struct {
	URL string // http://HOST:PORT
	// Close ends the server before the test ends. It does not answer from then on.
	Close func()

	t       testing.TB
	root    string
	handler http.Handler

	mu       sync.Mutex
	guarded  bool
	before   func(http.ResponseWriter, *http.Request) bool
	after    func()
	lost     int
	requests []*Request
}

// Request is one that a Server got.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	Answer       int64 // number of its bytes; 0 until it is over
}

// Serve runs a server until the test ends. The user's own configuration is away:
// Isolate was called.
func Serve(t testing.TB) *Server {
	t.Helper()
	Isolate(t)
	return ServeFolder(t, t.TempDir())
}

// ServeFolder runs a server of the repositories in a folder until the test ends. The server
// ignores git's variables in the environment.
func ServeFolder(t testing.TB, root string) *Server {
	t.Helper()
	handler, err := gitserver.New(root, Username)
	must(t, err)
	s := &Server{t: t, root: root, handler: handler}
	server := httptest.NewServer(s)
	s.URL = server.URL
	s.Close = sync.OnceFunc(func() {
		server.CloseClientConnections()
		server.Close()
	})
	t.Cleanup(s.Close)
	return s
}

// Guard rejects everybody from now on except Username with Password.
func (s *Server) Guard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guarded = true
}

// Before has a function see each request before the server, which it may answer
// instead: it returns true then.
func (s *Server) Before(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// Lose breaks the connections of the next n pushes after the server has done them, and before it
// sends its answer. If then is not nil, it is called after each.
func (s *Server) Lose(n int, then func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost, s.after = n, then
}

// Asked returns the requests since it was called last.
func (s *Server) Asked() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))

	isPush := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
	s.mu.Lock()
	asked := &Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body}
	s.requests = append(s.requests, asked)
	before, guarded, after := s.before, s.guarded, s.after
	lose := isPush && s.lost > 0
	if lose {
		s.lost--
	}
	s.mu.Unlock()

	if name, pass, _ := r.BasicAuth(); guarded && (name != Username || pass != Password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="tests"`)
		http.Error(w, "who are you? not "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	if before != nil && before(w, r) {
		return
	}
	if lose {
		s.handler.ServeHTTP(httptest.NewRecorder(), r)
		if after != nil {
			after()
		}
		panic(http.ErrAbortHandler)
	}
	counted := &counter{ResponseWriter: w}
	s.handler.ServeHTTP(counted, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	asked.Answer = counted.n
}

type counter struct {
	http.ResponseWriter
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n += int64(n)
	return n, err
}

// Repository is a bare repository of a server. Its URL is the URL on the server that created it.
type Repository struct {
	URL string
	Dir string
	testing.TB
}

// Repository makes an empty repository that may be pushed to. config are settings of
// it: names and values in turn.
func (s *Server) Repository(name string, config ...string) *Repository {
	s.t.Helper()
	r := NewRepository(s.t, filepath.Join(s.root, name), append([]string{"http.receivepack", "true"}, config...)...)
	r.URL = s.URL + "/" + name
	return r
}

// NewRepository makes an empty bare repository in a folder. Its URL is the folder's.
func NewRepository(t testing.TB, dir string, config ...string) *Repository {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o777))
	r := &Repository{URL: "file://" + filepath.ToSlash(dir), Dir: dir, TB: t}
	r.Git("init", "-q", "--bare", "-b", "main")
	for i := 0; i < len(config); i += 2 {
		r.Git("config", config[i], config[i+1])
	}
	return r
}

// Git runs git in the repository, and returns its output.
func (r *Repository) Git(args ...string) string {
	r.Helper()
	return r.GitWith("", args...)
}

// GitWith runs git with input.
func (r *Repository) GitWith(stdin string, args ...string) string {
	r.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.Dir}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Commit commits files to a branch, which are paths and texts in turn, and returns
// the commit. Other files stay as they are.
func (r *Repository) Commit(branch string, files ...string) string {
	r.Helper()
	var stream strings.Builder
	text := func(s string) { stream.WriteString("data " + strconv.Itoa(len(s)) + "\n" + s + "\n") }
	stream.WriteString("commit refs/heads/" + branch + "\ncommitter someone <someone@example.com> 981173106 +0000\n")
	text("a commit")
	if cmd := exec.Command("git", "-C", r.Dir, "rev-parse", "-q", "--verify", "refs/heads/"+branch); cmd.Run() == nil {
		stream.WriteString("from refs/heads/" + branch + "^0\n")
	}
	for i := 0; i < len(files); i += 2 {
		stream.WriteString("M 100644 inline " + files[i] + "\n")
		text(files[i+1])
	}
	r.GitWith(stream.String(), "fast-import", "--quiet")
	return r.Git("rev-parse", "refs/heads/"+branch)
}

// Hook makes a program of the repository's hooks.
func (r *Repository) Hook(name, script string) {
	r.Helper()
	must(r, os.MkdirAll(filepath.Join(r.Dir, "hooks"), 0o777))
	must(r, os.WriteFile(filepath.Join(r.Dir, "hooks", name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
}

// Isolate keeps the user's own configuration away from git, ssh and this process:
// the home folder that it returns is empty.
func Isolate(t testing.TB) (home string) {
	t.Helper()
	unset := func(name string) {
		t.Setenv(name, "") // so that it is restored
		must(t, os.Unsetenv(name))
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "XDG_") ||
			strings.HasSuffix(strings.ToLower(name), "_proxy") {
			unset(name)
		}
	}
	for _, name := range []string{"NETRC", "SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_KNOWN_HOSTS", "SOURCE_DATE_EPOCH"} {
		unset(name)
	}
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+role+"_NAME", "someone")
		t.Setenv("GIT_"+role+"_EMAIL", "someone@example.com")
		t.Setenv("GIT_"+role+"_DATE", "2001-02-03T04:05:06Z")
	}
	return home
}

// Login lets git know the credentials that guarded servers take, by ~/.netrc.
func Login(t testing.TB) {
	t.Helper()
	name := filepath.Join(os.Getenv("HOME"), ".netrc")
	must(t, os.WriteFile(name, []byte("machine 127.0.0.1 login "+Username+" password "+Password+"\n"), 0o600))
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
