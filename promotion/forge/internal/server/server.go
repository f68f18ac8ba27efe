// Package server is how the packages of forges speak with one server that they do
// not trust: the credentials go to that server only and in a header only, what it
// says is bounded, and what it asks to repeat is repeated, for a minute at most.
//
// Packages of forges write their methods so that each looks before it writes, and
// hand them to Do: a method whose answer was lost is begun anew, and finds then what
// was written.
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
	// patience is how long one method waits in total, for whatever reason.
	patience = time.Minute
	// repeats is how often a request or a method is begun anew, and first how long
	// after the first time; each later wait is twice the one before.
	repeats = 3
	first   = time.Second
	// parallel is how many requests of one method are made at once.
	parallel = 4
)

// Options describe a server, and how to speak with it.
type Options struct {
	Base *url.URL // scheme, host and path of the instance
	// Header is the name of the header that has the credentials, and Credentials its
	// value; "" for none.
	Header, Credentials string
	// Hint says what credentials are needed, for a *forge.AuthError.
	Hint string
	// Hidden is in the body of an answer 404 that speaks of the whole repository,
	// which servers say to those who may not know of it.
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

// New returns a server. Credentials that cannot be a header are a *forge.AuthError,
// which does not show them.
func New(o Options) (*Server, error) {
	if strings.ContainsFunc(o.Credentials, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, &forge.AuthError{Host: o.Base.Host, Problem: "the token has characters that no token has, such as a line break", Hint: o.Hint}
	}
	o.Now, o.Wait = httpclient.Clock(o.Now, o.Wait)
	return &Server{o: o, base: httpclient.Transport(httpclient.Options{Dial: 10 * time.Second, Answer: time.Minute})}, nil
}

// Host is the server's name, with the port where it has one.
func (s *Server) Host() string { return s.o.Base.Host }

// Client returns a client for the server's API. Redirections are followed within the
// server, and for reading only: a write that is sent elsewhere becomes a read on the
// way, and would look done.
func (s *Server) Client() *http.Client {
	return &http.Client{Transport: &transport{s}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > repeats || !reads(via[0]) || !s.owns(r.URL) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// owns reports whether a request to an address may have the credentials.
func (s *Server) owns(to *url.URL) bool {
	return to.Scheme == s.o.Base.Scheme && strings.EqualFold(to.Host, s.o.Base.Host)
}

// LostError says that a write was sent, and that nobody knows what became of it.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }

// Do runs a method, again where the answer to one of its writes was lost: it must
// look before it writes. A Do within a Do is a part of the outer one.
//
// The error is a *forge.AuthError or a *forge.UnavailableError as such, or what the
// method returned.
func (s *Server) Do(ctx context.Context, method func(context.Context) error) error {
	if ctx.Value(budgetKey{}) != nil {
		return method(ctx)
	}
	ctx = context.WithValue(ctx, budgetKey{}, &budget{left: patience})
	for attempt := 0; ; attempt++ {
		err := method(ctx)
		lost := (*LostError)(nil)
		if !errors.As(err, &lost) {
			return s.plain(ctx, err)
		}
		if attempt == repeats {
			return &forge.UnavailableError{Host: s.Host(), Err: lost.Err}
		}
		if err := s.Wait(ctx, first<<attempt); err != nil {
			return s.plain(ctx, err)
		}
	}
}

// Ask is Do for a method that returns something.
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

// Statuses is the method of a forge that asks for the statuses of each commit.
func (s *Server) Statuses(ctx context.Context, commits []git.Hash, ask func(context.Context, git.Hash) ([]forge.Status, error)) (map[git.Hash][]forge.Status, error) {
	return Ask(ctx, s, func(ctx context.Context) (map[git.Hash][]forge.Status, error) {
		return Statuses(ctx, parallel, commits, ask)
	})
}

// plain leaves out what libraries wrap errors into, such as addresses.
func (s *Server) plain(ctx context.Context, err error) error {
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

// Wait waits within a Do. What would take longer than the Do may wait is a
// *forge.UnavailableError that says until when.
func (s *Server) Wait(ctx context.Context, d time.Duration) error {
	until := s.o.Now().Add(d)
	if b, ok := ctx.Value(budgetKey{}).(*budget); ok && !b.take(d) {
		return &forge.UnavailableError{Host: s.Host(), Until: until, Err: fmt.Errorf("waiting for more than %s", patience)}
	}
	return s.o.Wait(ctx, d)
}

type budgetKey struct{}

// budget is how long a method may still wait; its requests may be parallel.
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
