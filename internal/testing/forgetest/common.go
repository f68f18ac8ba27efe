// Package forgetest plays the servers of forges for tests. The servers have a state and a socket
// of their own, and have the faults of real servers. Tests prepare and check the state with
// methods of the servers. Everything else goes over HTTP, as it does in production.
package forgetest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Clock is a time that only tests move. Any number of goroutines may use it.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	waited time.Duration
}

// NewClock returns a clock that shows noon of some day and does not move by itself.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
}

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Wait moves the clock and returns at once: who waits by it does so in no time.
func (c *Clock) Wait(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.waited += d
	return ctx.Err()
}

// Waited returns the total time of all calls of Wait.
func (c *Clock) Waited() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waited
}

// Fault is a fault in the server's handling of requests. Without Status and Body, the connection
// is closed without an answer.
type Fault struct {
	// Method and Path select the requests. Method is a method, or "" for any. Path is a pattern of
	// path.Match. In it, "" matches any path, and a * at the end also matches slashes. An
	// operation of GraphQL has the path /graphql/NAME.
	Method, Path string
	Times        int // 0 is once
	Status       int
	Header       map[string]string
	Body         string
	// Done makes the server obey the request first, so that only the answer is lost.
	Done bool
}

func (f *Fault) matches(method, requested string) bool {
	if f.Times < 0 || f.Method != "" && f.Method != method {
		return false
	}
	if prefix, open := strings.CutSuffix(f.Path, "*"); open && strings.HasPrefix(requested, prefix) {
		return true
	}
	ok, err := path.Match(f.Path, requested)
	return f.Path == "" || ok && err == nil
}

// Request is one that a server got.
type Request struct {
	Method, Host string
	Path         string // as in Fault, below the API's root
	Query        url.Values
	Header       http.Header
	Body         string
	Status       int // of the answer; 0 if the connection was closed
}

// String is the method and the path.
func (r Request) String() string { return r.Method + " " + r.Path }

// Server is the common part of the servers of all forges: a socket, a log and faults.
type Server struct {
	Clock *Clock
	// Socket is the Unix socket that the server listens on. It takes requests for any
	// host, without TLS.
	Socket string
	// Dir is a folder for the test's files of the server.
	Dir string

	mu     sync.Mutex
	faults []*Fault
	log    []Request
}

// start listens until the test ends. Name gives requests their path in logs and
// faults.
func (s *Server) start(t testing.TB, handler http.Handler, name func(r *http.Request, body []byte) string) {
	t.Helper()
	// The folders of tests may be too long for the address of a socket.
	dir, err := os.MkdirTemp("", "forge")
	if err != nil {
		t.Fatal(err)
	}
	s.Clock, s.Dir, s.Socket = NewClock(), dir, filepath.Join(dir, "s.sock")
	listener, err := net.Listen("unix", s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		s.serve(w, r, handler, name)
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with the test
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
		_ = os.RemoveAll(dir)
	})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, handler http.Handler,
	name func(*http.Request, []byte) string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	entry := Request{Method: r.Method, Host: r.Host, Path: name(r, body), Query: r.URL.Query(),
		Header: r.Header.Clone(), Body: string(body)}
	fault := s.take(entry)
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	if fault == nil || fault.Done {
		handler.ServeHTTP(answer, r)
	}
	if fault != nil && fault.Status == 0 && fault.Body == "" {
		s.record(entry)
		panic(http.ErrAbortHandler)
	}
	if fault != nil {
		answer = &recorder{header: http.Header{"Content-Type": {"application/json"}},
			status: max(fault.Status, http.StatusOK)}
		answer.body.WriteString(fault.Body)
		for key, value := range fault.Header {
			answer.header.Set(key, value)
		}
	}
	entry.Status = answer.status
	s.record(entry)
	for key, value := range answer.header {
		w.Header()[key] = value
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body.Bytes()) // the client may have enough
}

// take returns the fault that a request has, which is used up by that.
func (s *Server) take(r Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.matches(r.Method, r.Path) {
			if f.Times--; f.Times <= 0 {
				f.Times = -1
			}
			return f
		}
	}
	return nil
}

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, r)
}

// Inject adds faults: a request has the first one that it matches and that is left.
func (s *Server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, &f)
	}
}

// Log is the requests so far, in the order of their answers.
func (s *Server) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.log...)
}

// Count returns the number of requests so far with a method and a path, as in Fault.
func (s *Server) Count(method, path string) int {
	n := 0
	for _, r := range s.Log() {
		if (&Fault{Method: method, Path: path}).matches(r.Method, r.Path) {
			n++
		}
	}
	return n
}

// Forget empties the log.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// recorder keeps an answer until it is known whether it is sent.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
