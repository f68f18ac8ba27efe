package github

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// The bounds, and those of GitHub's best practices for the REST API: one write at a time, a
// second apart where there are many, and a pause of a minute where a limit has no end time.
// The first burst of writes is not delayed: with it, no minute has more than the 80 that
// GitHub allows.
const (
	patience     = time.Minute // for all waiting of a forge
	gap          = time.Second
	burst        = 20
	defaultPause = time.Minute
	attempts     = 4
	perAttempt   = time.Minute
	longestBody  = 16 << 20
	// tokenDelay is how long a new token of an app takes until all of GitHub knows it.
	tokenDelay = 2 * time.Second
)

// kind is how a request is handled whose answer is lost.
type kind uint8

const (
	read  kind = iota // it changes nothing
	again             // a write that is idempotent
	write             // a write that is repeated only if a read does not find it
)

// limiter sends requests at the rate that a server wants, and retries them. Any number of
// goroutines may use it.
type limiter struct {
	host string
	send func(*http.Request) (*http.Response, error)
	now  func() time.Time
	wait func(context.Context, time.Duration) error
	turn chan struct{} // has one element during a write

	mu        sync.Mutex
	due       time.Time            // when the next write would be if all were a gap apart
	exhausted map[string]time.Time // the ends of exhausted limits
	waited    time.Duration        // the used part of patience
	until     time.Time            // the end of the waits that waited contains
	known     bool                 // whether the server has answered before
	clean     func(error) error    // without secrets
}

// answer is a response that was read completely.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request, whose body can be read again, until it has an answer that a retry
// would not change. The error is a *forge.UnavailableError, that of the context, or a
// *httpclient.TooLongError.
func (l *limiter) do(ctx context.Context, request *http.Request, k kind) (*answer, error) {
	if k != read {
		if err := l.takeTurn(ctx); err != nil {
			return nil, err
		}
		defer l.endTurn()
	}
	limit := limitOf(request)
	for try := 1; ; try++ {
		if err := l.whenOpen(ctx, limit); err != nil {
			return nil, err
		}
		got, err := l.once(ctx, request)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if tooLong := (*httpclient.TooLongError)(nil); errors.As(err, &tooLong) {
			return nil, err
		}
		after, lost := failure(got, err)
		switch {
		case err == nil && l.limited(limit, got) && try < attempts:
			continue
		case err == nil && got.limited():
			return nil, l.unavailable(l.shutUntil(limit), errors.New("too many requests"))
		case lost != nil && (k == write || try == attempts):
			return nil, l.unavailable(time.Time{}, lost)
		case lost != nil:
			err = l.pause(ctx, max(after, backoff(try)), lost)
		case got.status == http.StatusNotFound && l.first():
			err = l.pause(ctx, tokenDelay, errors.New(http.StatusText(got.status)))
		default:
			return got, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// once sends a request and reads the answer, in bounded time and space.
func (l *limiter) once(ctx context.Context, request *http.Request) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, perAttempt)
	defer cancel()
	request = request.Clone(ctx)
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		request.Body = body
	}
	response, err := l.send(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := httpclient.ReadAll(response.Body, longestBody)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		l.first()
	}
	l.note(limitOf(request), response.Header)
	return &answer{status: response.StatusCode, header: response.Header, body: body}, nil
}

// failure returns why there is no answer, and how long the server asks to wait; nil where
// there is an answer.
func failure(got *answer, err error) (rest time.Duration, lost error) {
	if err != nil {
		return 0, err
	}
	switch got.status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(got.header.Get("Retry-After"))
		return time.Duration(seconds) * time.Second,
			errors.New("it answers " + strconv.Itoa(got.status) + " " + http.StatusText(got.status))
	}
	return 0, nil
}

// limited reports whether an answer is that a rate limit is exhausted. It is a 429 or a
// 403, which has other meanings too.
func (a *answer) limited() bool {
	if a.status != http.StatusForbidden {
		return a.status == http.StatusTooManyRequests
	}
	text := strings.ToLower(string(a.body[:min(len(a.body), 4096)]))
	return a.header.Get("Retry-After") != "" || a.header.Get("X-RateLimit-Remaining") == "0" ||
		strings.Contains(text, "secondary rate limit") || strings.Contains(text, "abuse detection") // of older servers
}

// limited also records the end of the limit: the server's Retry-After, else the end of its
// window, else a minute.
func (l *limiter) limited(limit string, got *answer) bool {
	if !got.limited() {
		return false
	}
	until := l.now().Add(defaultPause)
	if seconds, err := strconv.Atoi(got.header.Get("Retry-After")); err == nil {
		limit = "" // a secondary limit holds for all requests
		until = l.now().Add(max(time.Duration(seconds)*time.Second, time.Second))
	} else if reset, ok := reset(got.header); ok && got.header.Get("X-RateLimit-Remaining") == "0" {
		until = reset.Add(time.Second) // it is in whole seconds
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.exhausted[limit] = until
	return true
}

// note records that a limit is exhausted: GitHub penalizes further requests.
func (l *limiter) note(limit string, header http.Header) {
	if reset, ok := reset(header); ok && header.Get("X-RateLimit-Remaining") == "0" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.exhausted[limit] = reset.Add(time.Second)
	}
}

func reset(header http.Header) (time.Time, bool) {
	seconds, err := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// limitOf returns the limit that a request counts for: GraphQL has its own.
func limitOf(request *http.Request) string {
	if strings.HasSuffix(request.URL.Path, "/graphql") {
		return "graphql"
	}
	return "core"
}

// whenOpen waits until neither a request's own limit nor the one of all is exhausted, or
// returns an error with that time.
func (l *limiter) whenOpen(ctx context.Context, limit string) error {
	until := l.shutUntil(limit)
	d := until.Sub(l.now())
	if d <= 0 {
		return nil
	}
	if !l.spend(d) {
		return l.unavailable(until, errors.New("too many requests"))
	}
	return l.wait(ctx, d)
}

func (l *limiter) shutUntil(limit string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := l.exhausted[""]; until.After(l.exhausted[limit]) {
		return until
	}
	return l.exhausted[limit]
}

// pause waits before a retry, within patience.
func (l *limiter) pause(ctx context.Context, d time.Duration, why error) error {
	if !l.spend(d) {
		return l.unavailable(time.Time{}, why)
	}
	return l.wait(ctx, d)
}

// spend subtracts a wait from patience, if enough is left. Concurrent waits count once.
func (l *limiter) spend(d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	start := l.now()
	until := start.Add(d)
	if l.until.After(start) {
		start = l.until
	}
	cost := max(0, until.Sub(start))
	if l.waited+cost > patience {
		return false
	}
	l.waited += cost
	if until.After(l.until) {
		l.until = until
	}
	return true
}

func (l *limiter) unavailable(until time.Time, why error) error {
	return &forge.UnavailableError{Host: l.host, Until: until, Err: l.clean(why)}
}

// first reports whether the server has not answered anything yet, once.
func (l *limiter) first() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.known
	l.known = true
	return !known
}

// takeTurn waits until no other goroutine writes, and until the rate of writes allows
// another.
func (l *limiter) takeTurn(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	now := l.now()
	if l.due.Before(now) {
		l.due = now
	}
	d := l.due.Sub(now) - (burst-1)*gap
	l.due = l.due.Add(gap)
	l.mu.Unlock()
	if d > 0 {
		if err := l.wait(ctx, d); err != nil {
			<-l.turn
			return err
		}
	}
	return nil
}

func (l *limiter) endTurn() { <-l.turn }

// backoff returns the wait after the nth try.
func backoff(try int) time.Duration { return time.Second << (try - 1) }

// isLost reports whether an error means that the result of a write is not known.
func isLost(err error) bool {
	unavailable := (*forge.UnavailableError)(nil)
	return errors.As(err, &unavailable) && unavailable.Until.IsZero()
}
