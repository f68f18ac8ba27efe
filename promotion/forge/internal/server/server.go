// Package server is the HTTP client that the packages of forges share, for one server that is not
// trusted. It sends credentials only to that server and only in a header, and limits the size of
// answers. It retries requests as the server requests, for a minute at most.
//
// Methods of forges read before they write, and run within Do or Run. If the answer to a method
// was lost, Do or Run calls it again, and it then finds the objects that it has written.
//
// For example, SaveChange of a forge lists the pull requests from promote to prod, gets none, and
// sends POST .../pulls. The server answers 502. The transport returns a *LostError, because the
// pull request may have been opened. Run waits a second and runs SaveChange again, which finds
// the pull request in the list. If the answer is a 429 with Retry-After: 20, Run does not see it.
// The transport itself waits 20 seconds and sends the same request again.
package server

import (
	"cmp"
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
	// patience is the longest time that one method waits in total.
	patience = time.Minute
	// repeats is the number of retries of a request or a method, and firstWait the wait before the
	// first retry. Each later wait is twice as long.
	repeats      = 3
	firstWait    = time.Second
	maxRedirects = 5
	// parallel is the number of concurrent requests of one method.
	parallel = 4
)

// Options describe a server and the access to it.
type Options struct {
	Base *url.URL // URL of the instance
	// Name is the name of the server in errors; "" for the host of Base.
	Name string
	// Transport makes the requests; nil for one that also refuses lists with a null in them, which
	// the libraries of GitLab and Gitea would return as nil pointers. A *forge.UnavailableError of
	// a Transport is not retried.
	Transport http.RoundTripper
	// Refusal returns the error for an answer with 401 or 403, whose body can be read; nil for an
	// error with the message of the server and the Hint.
	Refusal func(*http.Response) *forge.AuthError
	// OnePatience is true if all methods together wait a minute at most, and false if each of them
	// does.
	OnePatience bool
	// Header is the name of the header for the credentials, and Credentials its value; "" if the
	// server requires no credentials.
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
	o      Options
	base   http.RoundTripper // without credentials
	budget *budget           // of all methods; nil for one of each
}

// New returns a server. The error for credentials that cannot be a header is a
// *forge.AuthError without them.
func New(o Options) (*Server, error) {
	if strings.ContainsFunc(o.Credentials, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, &forge.AuthError{Host: o.Base.Host, Problem: "the token has characters that no " +
			"token has, such as a line break", Hint: o.Hint}
	}
	o.Now, o.Wait = httpclient.Clock(o.Now, o.Wait)
	s := &Server{o: o, base: o.Transport}
	if s.base == nil {
		s.base = noNulls{httpclient.Transport(
			httpclient.Options{Dial: 10 * time.Second, Answer: time.Minute})}
	}
	if o.OnePatience {
		s.budget = &budget{left: patience}
	}
	return s, nil
}

// Host returns the name of the server, with its port if any.
func (s *Server) Host() string { return cmp.Or(s.o.Name, s.o.Base.Host) }

// Now returns the time of the server's clock.
func (s *Server) Now() time.Time { return s.o.Now() }

// Client returns a client for the server's API. It follows redirects that keep the server and the
// method, such as redirects of renamed repositories. If a POST was redirected as a GET, it would
// have no effect and look successful.
func (s *Server) Client() *http.Client {
	return &http.Client{Transport: &transport{s},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects || r.Method != via[0].Method || !s.owns(r.URL) {
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

// Run runs a method, and runs it again if the answer to one of its writes was lost. The method
// must read before it writes. A Run within a Run is a part of the outer one.
func (s *Server) Run(ctx context.Context, method func(context.Context) error) error {
	if ctx.Value(budgetKey{}) != nil {
		return method(ctx)
	}
	ctx = context.WithValue(ctx, budgetKey{}, cmp.Or(s.budget, &budget{left: patience}))
	for attempt := 0; ; attempt++ {
		err := method(ctx)
		lost := (*LostError)(nil)
		if !errors.As(err, &lost) {
			return err
		}
		if attempt == repeats {
			return &forge.UnavailableError{Host: s.Host(), Err: lost.Err}
		}
		if err := s.Wait(ctx, firstWait<<attempt); err != nil {
			return err
		}
	}
}

// Do is Run for methods that use a library. If the error contains a *forge.AuthError or a
// *forge.UnavailableError, Do returns only that, without additions of the library such as URLs.
// Otherwise it returns the error of the method.
func (s *Server) Do(ctx context.Context, method func(context.Context) error) error {
	err := s.Run(ctx, method)
	auth, unavailable := (*forge.AuthError)(nil), (*forge.UnavailableError)(nil)
	switch {
	case err == nil || ctx.Value(budgetKey{}) != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &auth):
		return auth
	case errors.As(err, &unavailable):
		return unavailable
	}
	return err
}

// Ask is Do for a method with a result.
func Ask[T any](ctx context.Context, s *Server, method func(context.Context) (T, error)) (T,
	error) {
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

// Wait waits. All waits within a Do share its patience; a wait outside of one has patience of its
// own. The error for a wait beyond it is a *forge.UnavailableError with the time at which it would
// end.
func (s *Server) Wait(ctx context.Context, d time.Duration) error {
	now := s.o.Now()
	until := now.Add(d)
	b, within := ctx.Value(budgetKey{}).(*budget)
	if within && !b.take(now, until) || !within && d > patience {
		return &forge.UnavailableError{Host: s.Host(), Until: until,
			Err: fmt.Errorf("waiting for more than %s", patience)}
	}
	return s.o.Wait(ctx, d)
}

type budgetKey struct{}

// budget is the remaining time that a method may wait. Its requests may be concurrent, and then
// wait at the same time, which counts once.
type budget struct {
	mu    sync.Mutex
	left  time.Duration
	until time.Time // the end of the waits that were taken
}

// take subtracts a wait, if enough is left.
func (b *budget) take(from, until time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.After(from) {
		from = b.until
	}
	cost := max(0, until.Sub(from))
	if cost > b.left {
		return false
	}
	b.left -= cost
	if until.After(b.until) {
		b.until = until
	}
	return true
}
