package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/httpclient"
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
	maxRefuse = 64 << 10 // of a response that is no success
)

// patience has a transport ask again where a server answers that it cannot now, and
// bound what it reads.
func (f *Fetcher) patience() httpclient.Options {
	return httpclient.Options{
		Dial: dialTimeout, Answer: answerTimeout,
		Repeat: httpclient.Unavailable, Retries: retries, First: f.wait, Most: mostWaits * f.wait,
		Body: mostOf,
	}
}

func mostOf(r *http.Response) int64 {
	if r.StatusCode >= 300 {
		return maxRefuse
	}
	return maxBody
}

// repeat does something until it succeeds, fails for good, or has failed too often.
// What package remote fails at, it has repeated itself.
func (f *Fetcher) repeat(ctx context.Context, do func() error) error {
	var last error
	err := httpclient.Repeat(ctx, retries, f.wait, func() error {
		if last = do(); errors.As(last, new(*remote.Error)) {
			return errRepeated
		}
		return last
	})
	if err == errRepeated {
		return last
	}
	return err
}

// errRepeated ends repetitions.
var errRepeated = errors.New("it was repeated already")

// readAll reads what has at most the size of content.
func readAll(r io.Reader) ([]byte, error) {
	return io.ReadAll(httpclient.NewReader(r, dependency.MaxSize))
}
