package fetch

import (
	"context"
	"errors"

	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// repeat calls do, again after errors of connections. Errors of package remote are final:
// it has retried already.
func (f *Fetcher) repeat(ctx context.Context, do func() error) error {
	var last error
	err := httpclient.Repeat(ctx, httpclient.Retries, f.wait, func() error {
		if last = do(); errors.As(last, new(*remote.Error)) {
			return errFinal
		}
		return last
	})
	if err == errFinal {
		return last
	}
	return err
}

// errFinal ends the retries.
var errFinal = errors.New("it was repeated already")
