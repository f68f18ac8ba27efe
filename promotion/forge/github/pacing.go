package github

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// paced returns the transport between the retries of package server and the transport of gh's
// client. It consists of wrappers that do one thing each. For example, a request "GET
// repos/acme/fleet/pulls" passes these steps:
//
//   - etags adds the ETag of the last answer.
//   - turns lets it pass, because only writes take turns.
//   - limits waits until the limit "core" is open.
//   - freshToken repeats it if GitHub does not know a new token yet.
//   - complete reads its whole answer.
//
// c has its Server only after this.
func paced(base http.RoundTripper, c *client, o Options) http.RoundTripper {
	base = &freshToken{base: complete{base}}
	// Waits for a limit count for the patience of package server, and waits for a turn do not.
	// Otherwise a run with many writes would never finish.
	base = &limits{base: base, now: o.Now, exhausted: map[string]time.Time{},
		wait: func(ctx context.Context, d time.Duration) error { return c.Wait(ctx, d) }}
	base = &turns{base: base, now: o.Now, wait: o.Wait, turn: make(chan struct{}, 1)}
	return newEtags(base)
}

// The bounds of GitHub's best practices for the REST API. A client sends one write at a time, and
// many writes a second apart. It pauses a minute if a limit has no end time. The first burst of
// writes is not delayed: with it, no minute has more than the 80 writes that GitHub allows.
const (
	gap          = time.Second
	burst        = 20
	defaultPause = time.Minute
	// tokenDelay is the time until all of GitHub knows a new token of an app.
	tokenDelay = 2 * time.Second
)

// The bounds of one answer.
const (
	maxTime = time.Minute
	maxBody = 16 << 20
)

// complete reads the whole body of an answer, in bounded time and space.
type complete struct{ base http.RoundTripper }

func (c complete) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), maxTime)
	defer cancel()
	response, err := c.base.RoundTrip(r.Clone(ctx))
	if err != nil {
		return nil, err
	}
	data, err := httpclient.ReadAll(response.Body, maxBody)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	return response, nil
}

// retryLater is an answer in place of another one: the request is to be made again after a wait,
// for which package server has the patience.
func retryLater(r *http.Request, wait time.Duration) *http.Response {
	seconds := int64((wait + time.Second - 1) / time.Second)
	return &http.Response{StatusCode: http.StatusTooManyRequests, Status: "429 Too Many Requests",
		Header: http.Header{"Retry-After": {strconv.FormatInt(seconds, 10)}}, Body: http.NoBody,
		Request: r}
}

// limits waits while a limit is exhausted: GitHub penalizes further requests. REST and GraphQL
// have a limit each, and there are secondary limits of both. Any number of goroutines may use it.
type limits struct {
	base http.RoundTripper
	now  func() time.Time
	wait func(context.Context, time.Duration) error // within the patience of package server

	mu        sync.Mutex
	exhausted map[string]time.Time // the ends of exhausted limits, "" for one of all requests
}

func (l *limits) RoundTrip(r *http.Request) (*http.Response, error) {
	limit := "core"
	if strings.HasSuffix(r.URL.Path, "/graphql") {
		limit = "graphql"
	}
	l.mu.Lock()
	until := l.exhausted[limit]
	if all := l.exhausted[""]; all.After(until) {
		until = all
	}
	l.mu.Unlock()
	if d := until.Sub(l.now()); d > 0 {
		if err := l.wait(r.Context(), d); err != nil {
			return nil, err
		}
	}
	response, err := l.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	limited := isLimited(response)
	// The end is the server's Retry-After, else the end of its window, else a minute.
	end, isUsed := resetOf(response.Header)
	end = end.Add(time.Second) // it is in whole seconds
	isUsed = isUsed && response.Header.Get("X-RateLimit-Remaining") == "0"
	l.mu.Lock()
	defer l.mu.Unlock()
	if isUsed {
		l.exhausted[limit] = end
	}
	if !limited {
		return response, nil
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		limit = "" // a secondary limit holds for all requests
		end = l.now().Add(max(time.Duration(seconds)*time.Second, time.Second))
	} else if !isUsed {
		end = l.now().Add(defaultPause)
	}
	l.exhausted[limit] = end
	return retryLater(r, end.Sub(l.now())), nil
}

// isLimited reports whether an answer is that a rate limit is exhausted: a 429, or a 403, which
// has other meanings too. The body can still be read.
func isLimited(response *http.Response) bool {
	if response.StatusCode != http.StatusForbidden {
		return response.StatusCode == http.StatusTooManyRequests
	}
	data, _ := io.ReadAll(response.Body) // complete has read it
	response.Body = io.NopCloser(bytes.NewReader(data))
	text := strings.ToLower(string(data[:min(len(data), 4096)]))
	return response.Header.Get("Retry-After") != "" ||
		response.Header.Get("X-RateLimit-Remaining") == "0" ||
		strings.Contains(text, "secondary rate limit") ||
		strings.Contains(text, "abuse detection") // of older servers
}

// resetOf returns the end of a limit's window. It returns false if the server does not send it.
func resetOf(header http.Header) (time.Time, bool) {
	seconds, err := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// turns sends one write at a time, and many of them a gap apart. A write keeps its turn while it
// waits for a limit, so that the writes behind it learn of the limit before they are sent. Any
// number of goroutines may use it.
type turns struct {
	base http.RoundTripper
	now  func() time.Time
	wait func(context.Context, time.Duration) error
	turn chan struct{} // has one element during a write
	// when the next write would be if all were a gap apart; owned by the holder of the turn
	due time.Time
}

func (t *turns) RoundTrip(r *http.Request) (*http.Response, error) {
	if server.KindOf(r) == server.Read {
		return t.base.RoundTrip(r)
	}
	select {
	case t.turn <- struct{}{}:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	defer func() { <-t.turn }()
	now := t.now()
	if t.due.Before(now) {
		t.due = now
	}
	wait := t.due.Sub(now) - (burst-1)*gap
	t.due = t.due.Add(gap)
	if wait > 0 {
		if err := t.wait(r.Context(), wait); err != nil {
			return nil, err
		}
	}
	return t.base.RoundTrip(r)
}

// freshToken repeats the first request if a server does not know the token yet. Such a server
// answers everything with 404, the same status as for objects that a token may not see.
type freshToken struct {
	base  http.RoundTripper
	known atomic.Bool // whether the server has answered before
}

func (f *freshToken) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := f.base.RoundTrip(r)
	if err != nil || response.StatusCode >= http.StatusBadRequest &&
		response.StatusCode != http.StatusNotFound {
		return response, err
	}
	if f.known.Swap(true) || response.StatusCode != http.StatusNotFound {
		return response, nil
	}
	return retryLater(r, tokenDelay), nil
}

// The bounds of the answers that etags keeps.
const (
	maxCached      = 512
	maxCachedBytes = 16 << 20
)

// etags sends the ETag of an earlier answer with a request. Unchanged answers do not count for
// rate limits. It keeps answers with an ETag by URL, and drops the least recently used first. Any
// number of goroutines may use it.
type etags struct {
	base http.RoundTripper

	mu      sync.Mutex
	answers *simplelru.LRU[string, cachedAnswer]
	bytes   int // of the bodies of answers
}

// cachedAnswer is an answer with 200 and its whole body.
type cachedAnswer struct {
	header http.Header // with the ETag, and the link to the next page of a list
	body   []byte
}

func newEtags(base http.RoundTripper) *etags {
	e := &etags{base: base}
	// The only error is a size that is not positive.
	e.answers, _ = simplelru.NewLRU(maxCached,
		func(_ string, a cachedAnswer) { e.bytes -= len(a.body) })
	return e
}

func (e *etags) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return e.base.RoundTrip(r)
	}
	address := r.URL.String()
	e.mu.Lock()
	known, isKnown := e.answers.Get(address)
	e.mu.Unlock()
	if isKnown {
		r.Header.Set("If-None-Match", known.header.Get("Etag"))
	}
	response, err := e.base.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case isKnown && response.StatusCode == http.StatusNotModified:
		response.StatusCode, response.Status, response.Header = http.StatusOK, "200 OK",
			known.header.Clone()
		response.Body = io.NopCloser(bytes.NewReader(known.body))
		return response, nil
	case response.StatusCode != http.StatusOK || response.Header.Get("Etag") == "":
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers.Remove(address)
	e.bytes += len(body)
	e.answers.Add(address, cachedAnswer{response.Header.Clone(), body})
	for e.bytes > maxCachedBytes {
		e.answers.RemoveOldest()
	}
	return response, nil
}
