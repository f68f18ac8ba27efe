// Package ocitest runs an OCI registry on the loopback interface for tests: the reference
// implementation, github.com/distribution/distribution, in this process and in memory. Only tests
// import it, so kalypso does not contain it.
package ocitest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd" // the access controller that it is named
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory" // the storage that it is named
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

// A Proxy is called in place of a registry. It answers a request itself, or lets next answer.
type Proxy func(w http.ResponseWriter, r *http.Request, next http.Handler)

// A Registry runs until its test ends. Any number of goroutines may use it.
type Registry struct {
	Host string // 127.0.0.1:PORT

	server *httptest.Server
	mu     sync.Mutex
	proxy  Proxy
	counts map[string]int
}

// quiet silences the registry's log, which is the process's.
var quiet = sync.OnceFunc(func() { logrus.SetOutput(io.Discard) })

// New runs an empty registry. With users, names with their passwords, only they may read or
// write.
func New(t testing.TB, users map[string]string) *Registry {
	t.Helper()
	quiet()
	config := &configuration.Configuration{Storage: configuration.Storage{
		"inmemory":    {},
		"maintenance": {"uploadpurging": map[any]any{"enabled": false}},
	}}
	config.HTTP.Secret = "of the tests"
	if len(users) > 0 {
		config.Auth = configuration.Auth{"htpasswd": {"realm": "kalypso", "path": passwords(t, users)}}
	}
	app := handlers.NewApp(context.Background(), config)
	r := &Registry{counts: map[string]int{}}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		r.counts[request.Method]++
		proxy := r.proxy
		r.mu.Unlock()
		if proxy == nil {
			app.ServeHTTP(w, request)
			return
		}
		proxy(w, request, app)
	}))
	r.Host = r.server.Listener.Addr().String()
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
		if err := app.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// passwords writes a file as htpasswd does.
func passwords(t testing.TB, users map[string]string) string {
	var lines strings.Builder
	for name, password := range users {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		lines.WriteString(name + ":" + string(hash) + "\n")
	}
	file := filepath.Join(t.TempDir(), "htpasswd")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Reference is a repository of the registry as kalypso names it.
func (r *Registry) Reference(repository string) string { return "oci://" + r.Host + "/" + repository }

// Behind puts a proxy in front of the registry. nil removes the proxy.
func (r *Registry) Behind(p Proxy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.proxy = p
}

// Requests returns the number of requests with one of the methods. Without methods, it returns the
// number of all requests. It includes requests that a proxy answered.
func (r *Registry) Requests(methods ...string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for method, count := range r.counts {
		if len(methods) == 0 {
			n += count
		}
		for _, m := range methods {
			if m == method {
				n += count
			}
		}
	}
	return n
}

// Writes returns the number of requests that may change something.
func (r *Registry) Writes() int {
	return r.Requests(http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
}

// Stop ends the registry. Its address no longer answers.
func (r *Registry) Stop() {
	r.server.CloseClientConnections()
	r.server.Close()
}
