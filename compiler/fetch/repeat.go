package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/kalypso-io/kalypso/compiler/store"
	"github.com/kalypso-io/kalypso/compiler/web"
)

const (
	dialTimeout   = 15 * time.Second
	answerTimeout = time.Minute
	// retries is how often something is asked for again, and mostWaits how long at
	// most before that, in first waits, also where a server asks for more: half a
	// minute.
	retries   = 3
	mostWaits = 60
)

// What is read at most of a response, in bytes.
const (
	maxBody   = 1 << 30
	maxRefs   = 64 << 20 // the branches and tags of a git repository
	maxRefuse = 64 << 10 // of a response that is no success
)

// transport returns a transport that asks again where a server answers that it
// cannot now, and bounds what it reads.
func (f *Fetcher) transport(t *tls.Config) http.RoundTripper {
	return web.Transport(web.Options{
		Dial: dialTimeout, Answer: answerTimeout,
		Repeat: unavailable, Retries: retries, First: f.wait, Most: mostWaits * f.wait,
		Body: mostOf, TLS: t,
	})
}

// unavailable says whether a response is about this moment alone. Connections that
// break are for [Fetcher.repeat], which can also begin a body anew.
func unavailable(r *http.Response, err error) (bool, error) {
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

func mostOf(r *http.Response) int64 {
	switch {
	case r.StatusCode >= 300:
		return maxRefuse
	case strings.HasSuffix(r.Request.URL.Path, "/info/refs"):
		return maxRefs
	}
	return maxBody
}

// repeat does something until it succeeds, fails for good, or has failed too often.
func (f *Fetcher) repeat(ctx context.Context, do func() error) error {
	wait := f.wait
	for attempt := 0; ; attempt++ {
		err := do()
		if err == nil || attempt == retries || !temporary(err) || ctx.Err() != nil {
			return err
		}
		if web.Wait(ctx, wait) != nil {
			return err
		}
		wait *= 2
	}
}

// temporary says whether an error is of a connection, and not of what was said.
func temporary(err error) bool {
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

// readAll reads what has at most the size of content.
func readAll(r io.Reader) ([]byte, error) { return io.ReadAll(web.NewReader(r, store.MaxSize)) }
