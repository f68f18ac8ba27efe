//go:build unix

package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// server is git's own HTTP server, on loopback, with repositories that anybody may write to. It
// counts the traffic.
type server struct {
	url, root string
	listener  net.Listener
	handler   http.Handler

	mu sync.Mutex
	wire
}

// wire is the traffic between a command and servers, without the heads of messages.
type wire struct {
	Requests int   `json:"requests"`
	Sent     int64 `json:"sentBytes"` // by the command
	Received int64 `json:"receivedBytes"`
}

func (w wire) bytes() int64 { return w.Sent + w.Received }

// serve starts a server of the repositories in a folder.
func serve(root string) (*server, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	s := &server{root: root}
	s.handler = &cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Dir: root, Stderr: io.Discard,
		Env: append(cleanEnvironment(), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=bench", "HOME="+root),
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.url = "http://" + s.listener.Addr().String()
	go func() { _ = http.Serve(s.listener, s) }() //nolint:gosec // it is for loopback, and ends with close
	return s, nil
}

func (s *server) close() error { return s.listener.Close() }

// repository makes an empty repository with the same features as the servers of forges.
func (s *server) repository(name string) (*served, error) {
	r := &served{url: s.url + "/" + name, dir: filepath.Join(s.root, name)}
	if _, err := output(git(s.root, "init", "-q", "--bare", "-b", "main", r.dir)); err != nil {
		return nil, err
	}
	for _, setting := range []string{"http.receivepack", "uploadpack.allowFilter",
		"uploadpack.allowReachableSHA1InWant", "uploadpack.allowTipSHA1InWant"} {
		if _, err := output(git(r.dir, "config", setting, "true")); err != nil {
			return nil, err
		}
	}
	_, err := output(git(r.dir, "config", "receive.autogc", "false")) // it would continue during the next measurement
	return r, err
}

// served is a repository of a server.
type served struct{ url, dir string }

// at returns the commit of a ref, or "".
func (r *served) at(ref string) string {
	id, err := output(git(r.dir, "rev-parse", "--verify", "-q", ref))
	if err != nil {
		return ""
	}
	return string(id[:len(id)-1])
}

// counted returns the traffic since its last call.
func (s *server) counted() wire {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.wire
	s.wire = wire{}
	return out
}

// ServeHTTP answers a request. It copies bodies into files first, because CGI accepts no bodies
// of unknown length. In memory, the bodies would count as the peak memory of the measured process
// (see stepVariable).
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := os.CreateTemp(s.root, "body-")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = errors.Join(body.Close(), os.Remove(body.Name())) }()
	size, err := io.Copy(body, r.Body)
	if err == nil {
		_, err = body.Seek(0, io.SeekStart)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r.Body, r.ContentLength, r.TransferEncoding = body, size, nil
	answer := &countedAnswer{ResponseWriter: w}
	s.handler.ServeHTTP(answer, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Requests++
	s.Sent += size
	s.Received += answer.size
}

type countedAnswer struct {
	http.ResponseWriter
	size int64
}

func (c *countedAnswer) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.size += int64(n)
	return n, err
}
