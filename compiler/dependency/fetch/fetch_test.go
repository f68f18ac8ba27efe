package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/archive"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// isolate keeps the user's own configuration away: the home folder that it returns
// is empty.
func isolate(t testing.TB) (home string) {
	t.Helper()
	unset := func(name string) {
		t.Setenv(name, "") // so that it is restored
		must(t, os.Unsetenv(name))
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "HELM_") || strings.HasPrefix(name, "CUE_") ||
			strings.HasPrefix(name, "XDG_") || strings.HasSuffix(strings.ToLower(name), "_proxy") {
			unset(name)
		}
	}
	for _, name := range []string{"NETRC", "SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_KNOWN_HOSTS", "SOURCE_DATE_EPOCH"} {
		unset(name)
	}
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("DOCKER_CONFIG", filepath.Join(home, ".docker"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+role+"_NAME", "someone")
		t.Setenv("GIT_"+role+"_EMAIL", "someone@example.com")
		t.Setenv("GIT_"+role+"_DATE", "2001-02-03T04:05:06Z")
	}
	return home
}

// write writes a file, with its folders, which only its owner can read.
func write(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o600))
}

// quick is a Fetcher that waits little.
func quick(t testing.TB) *Fetcher {
	t.Helper()
	f, err := New(Options{wait: time.Millisecond})
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

// resolving resolves a source with a Fetcher of its own, and fetches the entry with
// another.
func resolving(t testing.TB, s dependency.Source) (dependency.Entry, []byte) {
	t.Helper()
	e, data, err := quick(t).Resolve(t.Context(), s)
	must(t, err)
	if e.Source != s || e.Content != dependency.DigestOf(data) || e.Size != int64(len(data)) {
		t.Errorf("%+v for %d bytes", e, len(data))
	}
	again, err := quick(t).Fetch(t.Context(), e)
	if err != nil || string(again) != string(data) {
		t.Errorf("%v: %d bytes, want %d", err, len(again), len(data))
	}
	return e, data
}

// files are the files of an archive, as "path: text".
func files(t testing.TB, data []byte) []string {
	t.Helper()
	tree, err := archive.Read(data)
	must(t, err)
	var out []string
	for name, f := range tree.Files {
		out = append(out, fmt.Sprintf("%s: %s", name, f.Data))
	}
	for name, reason := range tree.Refused {
		out = append(out, fmt.Sprintf("%s! %s", name, reason))
	}
	slices.Sort(out)
	return out
}

func wantFiles(t testing.TB, data []byte, want ...string) {
	t.Helper()
	if got := files(t, data); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// wantError checks the type of an error, its text, and that it is one line without a
// password.
func wantError[E error](t testing.TB, err error, want string) {
	t.Helper()
	var e E
	if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("got %T: %v\nwant %T with %s", err, err, e, want)
	}
	if err != nil && strings.Contains(err.Error(), password) {
		t.Errorf("a password is in %v", err)
	}
}

// The user of the servers in tests.
const (
	username = "somebody"
	password = "hunter2-hunter2"
)

// host is a server whose requests are counted. A proxy in front of it may answer them.
type host struct {
	*httptest.Server
	handler http.Handler

	mu       sync.Mutex
	before   func(w http.ResponseWriter, r *http.Request) (answered bool)
	requests []*http.Request
}

func serve(t testing.TB, handler http.Handler) *host {
	t.Helper()
	h := &host{handler: handler}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

func (h *host) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requests = append(h.requests, r.Clone(context.Background()))
	before := h.before
	h.mu.Unlock()
	if before == nil || !before(w, r) {
		h.handler.ServeHTTP(w, r)
	}
}

// behind puts a proxy in front of the server.
func (h *host) behind(before func(w http.ResponseWriter, r *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = before
}

// asked returns the requests since its last call.
func (h *host) asked() []*http.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.requests
	h.requests = nil
	return out
}

// guarded allows only the user of the tests.
func guarded(w http.ResponseWriter, r *http.Request) bool {
	if name, pass, ok := r.BasicAuth(); ok && name == username && pass == password {
		return false
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="tests"`)
	http.Error(w, "who are you? not "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	return true
}

// failing answers n requests with a status, or by breaking the connection with 0.
func failing(n, status int) func(http.ResponseWriter, *http.Request) bool {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if n--; n < 0 {
			return false
		}
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(status)
		return true
	}
}
