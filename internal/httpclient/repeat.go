package httpclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Unavailable reports whether the server may answer the same request later: it is an
// [Options.Repeat]. Broken connections are left to [Repeat], which can also read a body
// again.
func Unavailable(r *http.Response, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	switch r.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true, nil
	}
	return false, nil
}

// Repeat calls do until it succeeds, fails with an error that is not [Temporary], or was
// retried as often as retries allows. It waits before each retry, twice as long each time.
func Repeat(ctx context.Context, retries int, wait time.Duration, do func() error) error {
	for attempt := 0; ; attempt++ {
		err := do()
		if err == nil || attempt == retries || !Temporary(err) || ctx.Err() != nil {
			return err
		}
		if Wait(ctx, wait) != nil {
			return err
		}
		wait *= 2
	}
}

// Temporary reports whether an error is of a connection, and not of an answer.
func Temporary(err error) bool {
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
		return unknown.IsTemporary && !unknown.IsNotFound
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return !errors.Is(err, context.DeadlineExceeded)
	}
	for _, broken := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED,
		syscall.EPIPE, io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}

// Clock returns a clock for tests. If a function is nil, it uses the real one.
func Clock(now func() time.Time, wait func(context.Context, time.Duration) error) (func() time.Time,
	func(context.Context, time.Duration) error) {
	if now == nil {
		now = time.Now
	}
	if wait == nil {
		wait = Wait
	}
	return now, wait
}

// Wait waits, or returns the context's error if that ends before.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
