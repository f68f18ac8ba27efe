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

// Unavailable says whether a response is about this moment alone: it fits
// [Options.Repeat]. Connections that break are for [Repeat], which can also begin a
// body anew.
func Unavailable(r *http.Response, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	switch r.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, nil
	}
	return false, nil
}

// Repeat does something until it succeeds, fails for good, or has failed so often
// again as retries says. It waits between, twice as long each time.
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

// Temporary says whether an error is of a connection, and not of what was said.
func Temporary(err error) bool {
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
		return unknown.IsTemporary && !unknown.IsNotFound
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return !errors.Is(err, context.DeadlineExceeded)
	}
	for _, broken := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}
