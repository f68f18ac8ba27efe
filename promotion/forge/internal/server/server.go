// Package server is the HTTP client that the packages of forges share, for one server that
// is not trusted: credentials are sent to that server only and in a header only, answers
// are bounded, and requests are retried as the server asks, for a minute at most.
//
// Methods of forges read before they write, and run within Do: a method whose answer was
// lost is run again, and then finds what it has written.
package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

const (
	// patience is how long one method waits in total.
	patience = time.Minute
	// repeats is how often a request or a method is retried, and firstWait the wait before
	// the first retry; each later one is twice as long.
	repeats   = 3
	firstWait = time.Second
	// parallel is how many requests of one method are made at once.
	parallel = 4
)

// Options describe a server and the access to it.
type Options struct {
	Base *url.URL // URL of the instance
	// Header is the name of the header for the credentials, and Credentials its value; ""
	// for none.
	Header, Credentials string
	// Hint is the hint of a *forge.AuthError: the credentials that are needed.
	Hint string
	// Hidden is a part of the body of a 404 for a whole repository, which servers send to
	// users who may not see it.
	Hidden string
	Clock
}

// Clock is for tests; nil functions are the real clock.
type Clock struct {
	Now  func() time.Time
	Wait func(context.Context, time.Duration) error
}

// Server is one server. Any number of goroutines may use it.
type Server struct {
	o    Options
	base http.RoundTripper // without credentials
}

// New returns a server. The error for credentials that cannot be a header is a
// *forge.AuthError without them.
func New(o Options) (*Server, error) {
	if strings.ContainsFunc(o.Credentials, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, &forge.AuthError{Host: o.Base.Host, Problem: "the token has characters that no " +
			"token has, such as a line break", Hint: o.Hint}
	}
	o.Now, o.Wait = httpclient.Clock(o.Now, o.Wait)
	return &Server{o: o, base: httpclient.Transport(httpclient.Options{Dial: 10 * time.Second, Answer: time.Minute})}, nil
}

// Host returns the name of the server, with its port if any.
func (s *Server) Host() string { return s.o.Base.Host }

// Client returns a client for the server's API. Redirections are followed within the
// server, and for reads only: a redirected write would become a read, and look successful.
func (s *Server) Client() *http.Client {
	return &http.Client{Transport: &transport{s}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > repeats || !isRead(via[0]) || !s.owns(r.URL) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// owns reports whether a request to a URL may have the credentials.
func (s *Server) owns(to *url.URL) bool {
	return to.Scheme == s.o.Base.Scheme && strings.EqualFold(to.Host, s.o.Base.Host)
}

// LostError is that a write was sent, and that its result is not known.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }

// Do runs a method, again where the answer to one of its writes was lost: it must read
// before it writes. A Do within a Do is a part of the outer one.
//
// The error is a *forge.AuthError or a *forge.UnavailableError without what wraps it, or
// the error of the method.
func (s *Server) Do(ctx context.Context, method func(context.Context) error) error {
	if ctx.Value(budgetKey{}) != nil {
		return method(ctx)
	}
	ctx = context.WithValue(ctx, budgetKey{}, &budget{left: patience})
	for attempt := 0; ; attempt++ {
		err := method(ctx)
		lost := (*LostError)(nil)
		if !errors.As(err, &lost) {
			return s.unwrap(ctx, err)
		}
		if attempt == repeats {
			return &forge.UnavailableError{Host: s.Host(), Err: lost.Err}
		}
		if err := s.Wait(ctx, firstWait<<attempt); err != nil {
			return s.unwrap(ctx, err)
		}
	}
}

// Ask is Do for a method with a result.
func Ask[T any](ctx context.Context, s *Server, method func(context.Context) (T, error)) (T, error) {
	var answer T
	err := s.Do(ctx, func(ctx context.Context) (err error) {
		answer, err = method(ctx)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return answer, nil
}

// Statuses implements forge.Forge with a function that returns the statuses of one commit.
func (s *Server) Statuses(ctx context.Context, commits []git.Hash,
	ask func(context.Context, git.Hash) ([]forge.Status, error)) (map[git.Hash][]forge.Status, error) {
	return Ask(ctx, s, func(ctx context.Context) (map[git.Hash][]forge.Status, error) {
		return Statuses(ctx, parallel, commits, ask)
	})
}

// unwrap removes what libraries wrap errors into, such as URLs.
func (s *Server) unwrap(ctx context.Context, err error) error {
	auth, unavailable := (*forge.AuthError)(nil), (*forge.UnavailableError)(nil)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &auth):
		return auth
	case errors.As(err, &unavailable):
		return unavailable
	}
	return err
}

// Wait waits within a Do. The error for a wait beyond patience is a *forge.UnavailableError
// with the time at which it would end.
func (s *Server) Wait(ctx context.Context, d time.Duration) error {
	until := s.o.Now().Add(d)
	if b, ok := ctx.Value(budgetKey{}).(*budget); ok && !b.take(d) {
		return &forge.UnavailableError{Host: s.Host(), Until: until, Err: fmt.Errorf("waiting for more than %s", patience)}
	}
	return s.o.Wait(ctx, d)
}

type budgetKey struct{}

// budget is how long a method may still wait; its requests may be concurrent.
type budget struct {
	mu   sync.Mutex
	left time.Duration
}

func (b *budget) take(d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d > b.left {
		return false
	}
	b.left -= d
	return true
}
